// Continues a text, and reads two answers while they grow.
//
//   cc generate.c $(pkg-config --cflags --libs mlxcel) -o generate
//   ./generate demo.bundle [device]

#include <mlxcel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Ends the program if there is an error.
static void check(struct mlxcel_error* error) {
  if (!error) return;
  const char* hint = mlxcel_error_hint(error);
  fprintf(stderr, "error: %s\n", mlxcel_error_message(error));
  if (hint) fprintf(stderr, "hint: %s\n", hint);
  mlxcel_error_free(error);
  exit(1);
}

static bool show(void* user, const struct mlxcel_piece* piece) {
  (void)user;
  fwrite(piece->text, 1, piece->text_length, stdout);
  fflush(stdout);
  return true;
}

int main(int count, char** arguments) {
  if (count < 2 || count > 3) {
    fprintf(stderr, "usage: generate BUNDLE [DEVICE]\n");
    return 2;
  }
  struct mlxcel_bundle* bundle = NULL;
  check(mlxcel_bundle_open(arguments[1], NULL, &bundle));
  struct mlxcel_device_options device = {.size = sizeof(device), .cache_bytes = 64 << 20};
  device.device = count == 3 ? arguments[2] : "auto";
  struct mlxcel_engine* engine = NULL;
  check(mlxcel_engine_load(bundle, &device, &engine));
  fprintf(stderr, "%s on %s\n", mlxcel_bundle_model(bundle), mlxcel_engine_device(engine));
  mlxcel_bundle_close(bundle);

  // One answer, on this thread.
  struct mlxcel_request request = {.size = sizeof(request), .prompt = "And it came to pass", .max_tokens = 12};
  struct mlxcel_answer* answer = NULL;
  check(mlxcel_engine_generate(engine, &request, show, NULL, &answer));
  printf("\nended by %s\n", mlxcel_answer_finish_reason(answer));
  mlxcel_answer_close(answer);

  // Two at a time, which the engine computes together.
  const char* prompts[2] = {"In the beginning", "And the LORD said"};
  struct mlxcel_stream* streams[2] = {NULL, NULL};
  for (int i = 0; i < 2; ++i) {
    request.prompt = prompts[i];
    request.max_tokens = 8;
    check(mlxcel_engine_submit(engine, &request, &streams[i]));
  }
  for (int i = 0; i < 2; ++i) {
    printf("%s", prompts[i]);
    enum mlxcel_event event = MLXCEL_EVENT_NOTHING;
    do {
      struct mlxcel_piece piece;
      check(mlxcel_stream_next(streams[i], 1000, &event, &piece));
      if (event == MLXCEL_EVENT_PIECE) show(NULL, &piece);
    } while (event != MLXCEL_EVENT_END);
    printf("\n");
    mlxcel_stream_close(streams[i]);
  }
  mlxcel_engine_close(engine);
  return 0;
}
