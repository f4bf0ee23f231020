// Answers on several threads that share an engine, in C++ with handles that close themselves.
//
//   c++ -std=c++17 streams.cpp $(pkg-config --cflags --libs mlxcel) -pthread -o streams
//   ./streams demo.bundle

#include <mlxcel.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

void check(mlxcel_error* error) {
  if (!error) return;
  std::string message = mlxcel_error_message(error);
  if (const char* hint = mlxcel_error_hint(error)) message += std::string("\nhint: ") + hint;
  mlxcel_error_free(error);
  throw std::runtime_error(message);
}

template <typename T, void (*close)(T*)>
struct Closer {
  void operator()(T* handle) const { close(handle); }
};

using Bundle = std::unique_ptr<mlxcel_bundle, Closer<mlxcel_bundle, mlxcel_bundle_close>>;
using Engine = std::unique_ptr<mlxcel_engine, Closer<mlxcel_engine, mlxcel_engine_close>>;
using Stream = std::unique_ptr<mlxcel_stream, Closer<mlxcel_stream, mlxcel_stream_close>>;

Engine load(const char* path) {
  mlxcel_bundle* bundle = nullptr;
  check(mlxcel_bundle_open(path, nullptr, &bundle));
  Bundle opened(bundle);
  mlxcel_device_options options{};
  options.size = sizeof(options);
  options.cache_bytes = 64 << 20;
  mlxcel_engine* engine = nullptr;
  check(mlxcel_engine_load(bundle, &options, &engine));
  return Engine(engine);
}

std::string answer(const mlxcel_engine* engine, const std::string& prompt) {
  mlxcel_request request{};
  request.size = sizeof(request);
  request.prompt = prompt.data();
  request.prompt_length = prompt.size();
  request.max_tokens = 16;
  mlxcel_stream* handle = nullptr;
  check(mlxcel_engine_submit(engine, &request, &handle));
  Stream stream(handle);
  std::string text;
  for (;;) {
    mlxcel_event event{};
    mlxcel_piece piece{};
    check(mlxcel_stream_next(handle, 1000, &event, &piece));
    if (event == MLXCEL_EVENT_END) return text;
    if (event == MLXCEL_EVENT_PIECE) text.append(piece.text, piece.text_length);
  }
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 2) throw std::runtime_error("usage: streams BUNDLE");
  Engine engine = load(arguments[1]);
  const std::vector<std::string> prompts = {"In the beginning", "And the LORD said", "Blessed are"};
  std::vector<std::string> answers(prompts.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        answers[i] = answer(engine.get(), prompts[i]);
      } catch (const std::exception& error) {
        answers[i] = error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::size_t i = 0; i < prompts.size(); ++i) std::printf("%s%s\n", prompts[i].c_str(), answers[i].c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
