// What is not allowed: each is an error with its code, and nothing else happens. Run under valgrind, too.

#include <mlxcel.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

// Checks an error's code, and that its message contains a text.
static void expect(int line, struct mlxcel_error* error, enum mlxcel_code code, const char* text) {
  const char* message = mlxcel_error_message(error);
  if (mlxcel_error_code(error) != code || !strstr(message, text)) {
    fprintf(stderr, "line %d: found code %d, \"%s\", expected code %d and \"%s\"\n", line, (int)mlxcel_error_code(error),
            message, (int)code, text);
    ++failures;
  }
  mlxcel_error_free(error);
}

#define EXPECT(call, code, text) expect(__LINE__, call, code, text)
#define GOOD(call) expect(__LINE__, call, MLXCEL_CODE_NONE, "")

static struct mlxcel_program* program;
static struct mlxcel_function* function;
static struct mlxcel_stream* stream;

// Where the two threads that read the stream wait for each other, so that neither has ended when the other begins.
static pthread_barrier_t both;

static void* other_thread(void* user) {
  (void)user;
  EXPECT(mlxcel_function_call(function), MLXCEL_CODE_THREAD, "another thread");
  float number = 0;
  EXPECT(mlxcel_function_read(function, "count", &number, sizeof(number)), MLXCEL_CODE_THREAD, "another thread");
  EXPECT(mlxcel_function_close(function), MLXCEL_CODE_THREAD, "another thread");
  EXPECT(mlxcel_program_close(program), MLXCEL_CODE_THREAD, "another thread");
  struct mlxcel_function* more = NULL;
  EXPECT(mlxcel_program_function(program, NULL, &more), MLXCEL_CODE_THREAD, "another thread");
  return NULL;
}

static void* waiting_thread(void* user) {
  (void)user;
  enum mlxcel_event event;
  struct mlxcel_piece piece;
  pthread_barrier_wait(&both);
  // Either of the two threads may be first.
  struct mlxcel_error* error = NULL;
  for (int i = 0; i < 200 && !error; ++i) error = mlxcel_stream_next(stream, 5, &event, &piece);
  return error;
}

// A call of another thread, whose engine is closed meanwhile.
struct generating {
  struct mlxcel_engine* engine;
  const struct mlxcel_request* request;
  struct mlxcel_answer* answer;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool has_begun;
};

static bool on_piece(void* user, const struct mlxcel_piece* piece) {
  (void)piece;
  struct generating* call = user;
  pthread_mutex_lock(&call->lock);
  call->has_begun = true;
  pthread_cond_signal(&call->changed);
  pthread_mutex_unlock(&call->lock);
  return true;
}

static void* generating_thread(void* user) {
  struct generating* call = user;
  GOOD(mlxcel_engine_generate(call->engine, call->request, on_piece, call, &call->answer));
  // The other thread waits for this, also if there was no piece.
  on_piece(call, NULL);
  return NULL;
}

static void programs(const char* path) {
  struct mlxcel_bundle* bundle = NULL;
  GOOD(mlxcel_bundle_open(path, NULL, &bundle));
  if (!mlxcel_bundle_is_program(bundle)) ++failures;
  GOOD(mlxcel_program_load(bundle, NULL, &program));
  GOOD(mlxcel_program_function(program, NULL, &function));
  pthread_t thread;
  pthread_create(&thread, NULL, other_thread, NULL);
  pthread_join(thread, NULL);

  const size_t dims[2] = {16, 8};
  const float data[128] = {0};
  EXPECT(mlxcel_function_call(function), MLXCEL_CODE_REQUEST, "found nothing");
  EXPECT(mlxcel_function_set(function, "x", MLXCEL_DTYPE_F32, dims, 2, data, 500), MLXCEL_CODE_REQUEST, "found 500 bytes");
  EXPECT(mlxcel_function_set(function, "x", MLXCEL_DTYPE_F64, dims, 2, data, 512), MLXCEL_CODE_REQUEST, "found f64[16,8]");
  EXPECT(mlxcel_function_set(function, "x", 99, dims, 2, data, 512), MLXCEL_CODE_USAGE, "found 99");
  EXPECT(mlxcel_function_set(function, "x", MLXCEL_DTYPE_F32, NULL, 2, data, 512), MLXCEL_CODE_USAGE, "dims");
  EXPECT(mlxcel_function_set(function, "x", MLXCEL_DTYPE_F32, dims, 2, NULL, 512), MLXCEL_CODE_USAGE, "data");
  EXPECT(mlxcel_function_set(function, NULL, MLXCEL_DTYPE_F32, dims, 2, data, 512), MLXCEL_CODE_USAGE, "name");
  EXPECT(mlxcel_function_set(function, "z", MLXCEL_DTYPE_F32, dims, 2, data, 512), MLXCEL_CODE_REQUEST, "takes no `z`");
  GOOD(mlxcel_function_set(function, "x", MLXCEL_DTYPE_F32, dims, 2, data, 512));
  float number = 0;
  EXPECT(mlxcel_function_read(function, "nothing", &number, 4), MLXCEL_CODE_REQUEST, "no result and no state");
  const float zero = 0;
  GOOD(mlxcel_function_set(function, "count", MLXCEL_DTYPE_F32, NULL, 0, &zero, 4));
  EXPECT(mlxcel_function_read(function, "count", &number, 3), MLXCEL_CODE_REQUEST, "found 3 bytes");
  struct mlxcel_tensor_type type;
  EXPECT(mlxcel_function_argument(function, 99, &type), MLXCEL_CODE_USAGE, "index");
  struct mlxcel_function* none = NULL;
  EXPECT(mlxcel_program_function(program, "nothing", &none), MLXCEL_CODE_REQUEST, "found no function");
  struct mlxcel_engine* engine = NULL;
  EXPECT(mlxcel_engine_load(bundle, NULL, &engine), MLXCEL_CODE_BUNDLE, "program");

  // A function after its program, and handles that were closed.
  GOOD(mlxcel_program_close(program));
  GOOD(mlxcel_program_close(program));
  EXPECT(mlxcel_function_call(function), MLXCEL_CODE_USAGE, "closed program");
  GOOD(mlxcel_function_close(function));
  EXPECT(mlxcel_function_call(function), MLXCEL_CODE_USAGE, "closed");
  mlxcel_bundle_close(bundle);
  mlxcel_bundle_close(bundle);
  EXPECT(mlxcel_program_load(bundle, NULL, &program), MLXCEL_CODE_USAGE, "closed");
}

static void engines(const char* path) {
  struct mlxcel_bundle* bundle = NULL;
  struct mlxcel_engine* engine = NULL;
  EXPECT(mlxcel_bundle_open(NULL, NULL, &bundle), MLXCEL_CODE_USAGE, "path");
  EXPECT(mlxcel_bundle_open("\xff", NULL, &bundle), MLXCEL_CODE_USAGE, "UTF-8");
  EXPECT(mlxcel_bundle_open("/nothing/here", NULL, &bundle), MLXCEL_CODE_BUNDLE, "is not a bundle");
  EXPECT(mlxcel_bundle_open(path, NULL, NULL), MLXCEL_CODE_USAGE, "bundle");
  struct mlxcel_bundle_options unset = {0};
  EXPECT(mlxcel_bundle_open(path, &unset, &bundle), MLXCEL_CODE_USAGE, "size");
  struct mlxcel_bundle_options signed_by = {.size = sizeof(signed_by), .require_signature = "no key"};
  EXPECT(mlxcel_bundle_open(path, &signed_by, &bundle), MLXCEL_CODE_BUNDLE, "public key");
  EXPECT(mlxcel_engine_load(NULL, NULL, &engine), MLXCEL_CODE_USAGE, "found NULL, expected a bundle");
  if (bundle || engine) ++failures;
  GOOD(mlxcel_bundle_open(path, NULL, &bundle));
  EXPECT(mlxcel_engine_load((struct mlxcel_bundle*)0x1234, NULL, &engine), MLXCEL_CODE_USAGE, "another kind");
  struct mlxcel_device_options rocm = {.size = sizeof(rocm), .device = "rocm"};
  EXPECT(mlxcel_engine_load(bundle, &rocm, &engine), MLXCEL_CODE_USAGE, "unknown device `rocm`");
  EXPECT(mlxcel_program_load(bundle, NULL, &program), MLXCEL_CODE_BUNDLE, "language model");
  // The device on this thread, which valgrind runs at a bearable speed.
  struct mlxcel_device_options sync = {.size = sizeof(sync), .device = "local-sync"};
  GOOD(mlxcel_engine_load(bundle, &sync, &engine));
  mlxcel_bundle_close(bundle);
  if (mlxcel_bundle_model(bundle) || mlxcel_engine_context(NULL) || mlxcel_engine_device(NULL)) ++failures;

  struct mlxcel_request request = {.size = sizeof(request), .max_tokens = 200, .ignore_eos = true};
  EXPECT(mlxcel_engine_submit(engine, NULL, &stream), MLXCEL_CODE_USAGE, "no request");
  EXPECT(mlxcel_engine_submit(engine, &request, &stream), MLXCEL_CODE_USAGE, "none or several");
  request.prompt = "And";
  request.messages_json = "[]";
  EXPECT(mlxcel_engine_submit(engine, &request, &stream), MLXCEL_CODE_USAGE, "none or several");
  request.messages_json = NULL;
  request.temperature = -1;
  EXPECT(mlxcel_engine_submit(engine, &request, &stream), MLXCEL_CODE_REQUEST, "temperature is -1");
  request.temperature = 0;
  request.regex = "(";
  EXPECT(mlxcel_engine_submit(engine, &request, &stream), MLXCEL_CODE_REQUEST, "grammar");
  request.regex = NULL;
  request.top_logprobs = 3;
  EXPECT(mlxcel_engine_submit(engine, &request, &stream), MLXCEL_CODE_USAGE, "top_logprobs without logprobs");
  request.top_logprobs = 0;
  request.repetition_penalty = -1;
  EXPECT(mlxcel_engine_submit(engine, &request, &stream), MLXCEL_CODE_REQUEST, "repetition penalty");
  request.repetition_penalty = 0;
  request.logit_bias_count = 1;
  EXPECT(mlxcel_engine_submit(engine, &request, &stream), MLXCEL_CODE_USAGE, "logit_bias_tokens");
  const uint32_t none = UINT32_MAX;
  request.logit_bias_tokens = &none;
  EXPECT(mlxcel_engine_submit(engine, &request, &stream), MLXCEL_CODE_USAGE, "logit_bias");
  const float bias = 1;
  request.logit_bias = &bias;
  EXPECT(mlxcel_engine_submit(engine, &request, &stream), MLXCEL_CODE_REQUEST, "4294967295");
  request.logit_bias_count = 0;
  EXPECT(mlxcel_engine_submit(engine, &request, NULL), MLXCEL_CODE_USAGE, "stream");
  EXPECT(mlxcel_engine_submit((struct mlxcel_engine*)bundle, &request, &stream), MLXCEL_CODE_USAGE, "another kind");
  const uint32_t large = 1u << 30;
  struct mlxcel_request tokens = {.size = sizeof(tokens), .tokens = &large, .token_count = 1};
  EXPECT(mlxcel_engine_submit(engine, &tokens, &stream), MLXCEL_CODE_REQUEST, "expected 0 to");
  EXPECT(mlxcel_engine_embed(engine, NULL, 0, NULL, 0), MLXCEL_CODE_REQUEST, "makes no embeddings");
  float logprob = 0;
  EXPECT(mlxcel_engine_score(engine, &large, 1, 1, &logprob, 1), MLXCEL_CODE_REQUEST, "expected 0 to");

  // Two threads read one stream, and one of them is refused.
  GOOD(mlxcel_engine_submit(engine, &request, &stream));
  struct mlxcel_answer* answer = NULL;
  EXPECT(mlxcel_stream_answer(stream, &answer), MLXCEL_CODE_USAGE, "not complete");
  pthread_t thread;
  pthread_barrier_init(&both, NULL, 2);
  pthread_create(&thread, NULL, waiting_thread, NULL);
  void* first = waiting_thread(NULL);
  void* second = NULL;
  pthread_join(thread, &second);
  pthread_barrier_destroy(&both);
  if (!first && !second) {
    fprintf(stderr, "two threads have read a stream\n");
    ++failures;
  }
  if (first) EXPECT(first, MLXCEL_CODE_THREAD, "another thread");
  if (second) EXPECT(second, MLXCEL_CODE_THREAD, "another thread");

  // An engine closes while answers grow: the stream says so, another thread's call ends, and later calls have no engine.
  struct generating call = {.engine = engine, .request = &request};
  pthread_mutex_init(&call.lock, NULL);
  pthread_cond_init(&call.changed, NULL);
  pthread_create(&thread, NULL, generating_thread, &call);
  pthread_mutex_lock(&call.lock);
  while (!call.has_begun) pthread_cond_wait(&call.changed, &call.lock);
  pthread_mutex_unlock(&call.lock);
  mlxcel_engine_close(engine);
  mlxcel_engine_close(engine);
  pthread_join(thread, NULL);
  const char* reason = mlxcel_answer_finish_reason(call.answer);
  // It may have been complete.
  if (!reason || (strcmp(reason, "cancelled") && strcmp(reason, "length"))) {
    fprintf(stderr, "a call on a closed engine ended by %s\n", reason ? reason : "nothing");
    ++failures;
  }
  mlxcel_answer_close(call.answer);
  pthread_cond_destroy(&call.changed);
  pthread_mutex_destroy(&call.lock);
  EXPECT(mlxcel_engine_submit(engine, &request, &stream), MLXCEL_CODE_USAGE, "closed");
  enum mlxcel_event event = MLXCEL_EVENT_NOTHING;
  struct mlxcel_piece piece;
  while (event != MLXCEL_EVENT_END) {
    struct mlxcel_error* error = mlxcel_stream_next(stream, 1000, &event, &piece);
    if (error) {
      EXPECT(error, MLXCEL_CODE_CLOSED, "ended");
      break;
    }
  }
  mlxcel_stream_close(stream);
  EXPECT(mlxcel_stream_next(stream, 0, &event, &piece), MLXCEL_CODE_USAGE, "closed");
  EXPECT(mlxcel_stream_cancel(NULL), MLXCEL_CODE_USAGE, "found NULL, expected a stream");
  mlxcel_stream_close(NULL);
  mlxcel_answer_close(NULL);
  mlxcel_error_free(NULL);
  size_t length = 0;
  if (mlxcel_answer_logprobs(NULL, &length) || mlxcel_answer_top_logprobs(NULL, 0, &length)) ++failures;
  if (mlxcel_answer_text(NULL, NULL) || mlxcel_error_code(NULL) != MLXCEL_CODE_NONE) ++failures;
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  engines(arguments[1]);
  programs(arguments[2]);
  printf("%d failures\n", failures);
  return failures > 0;
}
