// What the options of a request do: log-probabilities, biases and penalties.

#include <math.h>
#include <mlxcel.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 12, TOP = 3, PROMPT = 64 };

static const char PROMPT_TEXT[] = "And it came to pass";
static int failures = 0;

#define CHECK(condition) \
  if (!(condition)) fprintf(stderr, "line %d: %s is false\n", __LINE__, #condition), ++failures

static void need(struct mlxcel_error* error) {
  if (!error) return;
  fprintf(stderr, "error: %s\n", mlxcel_error_message(error));
  mlxcel_error_free(error);
  exit(1);
}

static struct mlxcel_request plain(void) {
  struct mlxcel_request request = {.size = sizeof(request), .prompt = PROMPT_TEXT, .max_tokens = TOKENS};
  request.ignore_eos = true;
  return request;
}

// Generates the tokens of a request.
static void generate(const struct mlxcel_engine* engine, const struct mlxcel_request* request, uint32_t tokens[TOKENS]) {
  struct mlxcel_answer* answer = NULL;
  need(mlxcel_engine_generate(engine, request, NULL, NULL, &answer));
  size_t count = 0;
  const uint32_t* found = mlxcel_answer_tokens(answer, &count);
  CHECK(count == TOKENS);
  for (size_t i = 0; i < count; ++i) tokens[i] = found[i];
  size_t none = 1;
  CHECK(!mlxcel_answer_logprobs(answer, &none) && none == 0);
  mlxcel_answer_close(answer);
}

// Reads an answer with log-probabilities piece by piece. Returns the most likely tokens in place of its first.
static void logprobs(const struct mlxcel_engine* engine, const uint32_t expected[TOKENS], struct mlxcel_logprob first[TOP]) {
  struct mlxcel_request request = plain();
  request.logprobs = true;
  request.top_logprobs = TOP;
  struct mlxcel_stream* stream = NULL;
  need(mlxcel_engine_submit(engine, &request, &stream));
  float read[TOKENS] = {0};
  size_t count = 0;
  for (;;) {
    enum mlxcel_event event;
    struct mlxcel_piece piece;
    need(mlxcel_stream_next(stream, 1000, &event, &piece));
    if (event == MLXCEL_EVENT_END) break;
    if (event != MLXCEL_EVENT_PIECE || !piece.has_token || count == TOKENS) continue;
    CHECK(piece.token == expected[count] && piece.top_logprob_count == TOP);
    // The most likely token is taken.
    CHECK(piece.top_logprobs[0].token == piece.token && piece.top_logprobs[0].logprob == piece.logprob);
    for (size_t i = 1; i < TOP; ++i) CHECK(piece.top_logprobs[i].logprob <= piece.top_logprobs[i - 1].logprob);
    if (count == 0) {
      for (size_t i = 0; i < TOP; ++i) first[i] = piece.top_logprobs[i];
    }
    read[count++] = piece.logprob;
  }
  CHECK(count == TOKENS);
  struct mlxcel_answer* answer = NULL;
  need(mlxcel_stream_answer(stream, &answer));
  const float* whole = mlxcel_answer_logprobs(answer, &count);
  CHECK(count == TOKENS);
  for (size_t i = 0; i < count; ++i) CHECK(whole[i] == read[i]);
  const struct mlxcel_logprob* top = mlxcel_answer_top_logprobs(answer, 0, &count);
  CHECK(count == TOP && top[1].token == first[1].token && top[1].logprob == first[1].logprob);
  CHECK(!mlxcel_answer_top_logprobs(answer, TOKENS, &count) && count == 0);
  mlxcel_answer_close(answer);
  mlxcel_stream_close(stream);

  // As another way to compute them says.
  uint32_t text[PROMPT + TOKENS];
  need(mlxcel_engine_encode(engine, PROMPT_TEXT, 0, true, text, PROMPT, &count));
  for (size_t i = 0; i < TOKENS; ++i) text[count + i] = expected[i];
  float scores[TOKENS];
  need(mlxcel_engine_score(engine, text, count + TOKENS, count, scores, TOKENS));
  for (size_t i = 0; i < TOKENS; ++i) CHECK(fabsf(scores[i] - read[i]) < 1e-3f);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  struct mlxcel_bundle* bundle = NULL;
  need(mlxcel_bundle_open(arguments[1], NULL, &bundle));
  struct mlxcel_engine* engine = NULL;
  need(mlxcel_engine_load(bundle, NULL, &engine));
  mlxcel_bundle_close(bundle);
  struct mlxcel_request request = plain();
  uint32_t expected[TOKENS];
  generate(engine, &request, expected);
  struct mlxcel_logprob first[TOP];
  logprobs(engine, expected, first);

  // Without the best token, the second is the best.
  uint32_t found[TOKENS];
  float bias = -1000;
  request.logit_bias_tokens = &expected[0];
  request.logit_bias = &bias;
  request.logit_bias_count = 1;
  generate(engine, &request, found);
  CHECK(found[0] == first[1].token);
  bias = 1000;
  generate(engine, &request, found);
  for (size_t i = 0; i < TOKENS; ++i) CHECK(found[i] == expected[0]);
  // A token is taken until what is subtracted outweighs what is added: once, and as often as it was taken.
  request.presence_penalty = 2000;
  generate(engine, &request, found);
  CHECK(found[0] == expected[0] && found[1] != expected[0]);
  request.presence_penalty = 0;
  request.frequency_penalty = 400;
  generate(engine, &request, found);
  for (size_t i = 0; i < 4; ++i) CHECK((found[i] == expected[0]) == (i < 3));
  request.frequency_penalty = 0;
  request.logit_bias_count = 0;
  request.repetition_penalty = 1;
  generate(engine, &request, found);
  for (size_t i = 0; i < TOKENS; ++i) CHECK(found[i] == expected[i]);
  request.repetition_penalty = 1000;
  generate(engine, &request, found);
  for (size_t i = 0; i < TOKENS; ++i) {
    for (size_t j = 0; j < i; ++j) CHECK(found[i] != found[j]);
  }
  mlxcel_engine_close(engine);
  printf("%d failures\n", failures);
  return failures > 0;
}
