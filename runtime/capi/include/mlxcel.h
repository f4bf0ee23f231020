// mlxcel.h: runs bundles of models that were compiled ahead of time.
//
// Handles are opaque. Each is closed with the function of its kind; closing NULL or a closed handle does nothing. A handle
// that is NULL, closed or of another kind is an error, never undefined behavior.
//
// Functions that can fail return NULL, or an error that mlxcel_error_free frees. Out-parameters are set only without an
// error. Texts are UTF-8; those with a length need no terminator.
//
// Threads: what is said of a function holds for calls with the same handle. Different handles never exclude each other.


#ifndef MLXCEL_H_
#define MLXCEL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What kind of error it is.
enum mlxcel_code {
  // There is none.
  MLXCEL_CODE_NONE = 0,
  // A handle is NULL, closed or of another kind, or another argument cannot be what it is.
  MLXCEL_CODE_USAGE = 1,
  // The call is for another thread, or another thread is in a call that excludes it.
  MLXCEL_CODE_THREAD = 2,
  // A bundle cannot be found or read, or is damaged.
  MLXCEL_CODE_BUNDLE = 3,
  // The bundle is not signed as required.
  MLXCEL_CODE_SIGNATURE = 4,
  // No target of the bundle runs on the device.
  MLXCEL_CODE_DEVICE = 5,
  // A request or an argument of a function is refused. Nothing has run.
  MLXCEL_CODE_REQUEST = 6,
  // As many requests wait as may wait.
  MLXCEL_CODE_QUEUE_FULL = 7,
  // The device failed while it ran.
  MLXCEL_CODE_ENGINE = 8,
  // The engine was closed.
  MLXCEL_CODE_CLOSED = 9,
  // This library failed: please report it.
  MLXCEL_CODE_INTERNAL = 10,
};

// What came of waiting for an answer.
enum mlxcel_event {
  // Nothing has come in the time given.
  MLXCEL_EVENT_NOTHING = 0,
  // A piece.
  MLXCEL_EVENT_PIECE = 1,
  // The end.
  MLXCEL_EVENT_END = 2,
};

// An element type.
enum mlxcel_dtype {
  // A byte that is 0 or 1.
  MLXCEL_DTYPE_BOOL = 1,
  // A signed integer of 8 bits.
  MLXCEL_DTYPE_I8 = 2,
  // A signed integer of 16 bits.
  MLXCEL_DTYPE_I16 = 3,
  // A signed integer of 32 bits.
  MLXCEL_DTYPE_I32 = 4,
  // A signed integer of 64 bits.
  MLXCEL_DTYPE_I64 = 5,
  // An unsigned integer of 8 bits.
  MLXCEL_DTYPE_U8 = 6,
  // An unsigned integer of 16 bits.
  MLXCEL_DTYPE_U16 = 7,
  // An unsigned integer of 32 bits.
  MLXCEL_DTYPE_U32 = 8,
  // An unsigned integer of 64 bits.
  MLXCEL_DTYPE_U64 = 9,
  // A float of 16 bits.
  MLXCEL_DTYPE_F16 = 10,
  // A float of 16 bits with the exponent of one of 32.
  MLXCEL_DTYPE_BF16 = 11,
  // A float of 32 bits.
  MLXCEL_DTYPE_F32 = 12,
  // A float of 64 bits.
  MLXCEL_DTYPE_F64 = 13,
  // Two floats of 32 bits.
  MLXCEL_DTYPE_C64 = 14,
  // A float of 8 bits, 5 of them for the exponent.
  MLXCEL_DTYPE_F8E5M2 = 15,
  // A float of 8 bits, 4 of them for the exponent.
  MLXCEL_DTYPE_F8E4M3 = 16,
};

// A whole answer.
struct mlxcel_answer;

// A bundle that was opened and may run.
struct mlxcel_bundle;

// A model on a device. Its calls share the device: any thread may make any of them at any time.
struct mlxcel_engine;

// An error, with its message.
struct mlxcel_error;

// A function of a program, with its arguments and states on the device. It belongs to the program's thread.
struct mlxcel_function;

// A program on a device. It belongs to the thread that loaded it: other threads get MLXCEL_CODE_THREAD.
struct mlxcel_program;

// An answer that is read while it grows.
struct mlxcel_stream;

// What is required of a bundle. Set `size`; what is 0 or NULL says nothing.
struct mlxcel_bundle_options {
  // sizeof(mlxcel_bundle_options).
  size_t size;
  // The store's folder; NULL for $MLXCEL_STORE, or the default.
  const char *store;
  // The minisign key that must have signed the bundle: a public key, or its file.
  const char *require_signature;
};

// The device to load on. Set `size`; what is 0 or NULL is the default.
struct mlxcel_device_options {
  // sizeof(mlxcel_device_options).
  size_t size;
  // "auto", "local-task", "local-sync", "cuda", "cuda:1", "vulkan" or "vulkan:1".
  const char *device;
  // Threads of the device local-task; one for each physical core by default.
  size_t threads;
  // Bytes of the cache; room for one whole context by default.
  uint64_t cache_bytes;
  // Tokens of context, at most the bundle's.
  size_t context;
  // Requests that may wait; 256 by default.
  size_t queue;
  // A checkpoint's folder or file, for bundles without weights.
  const char *weights;
};

// A request. Set `size`, and one of `prompt`, `tokens` and `messages_json`; what is 0 or NULL is the default.
struct mlxcel_request {
  // sizeof(mlxcel_request).
  size_t size;
  // The text to continue.
  const char *prompt;
  // Bytes of the prompt; 0 if it ends with a zero.
  size_t prompt_length;
  // The tokens to continue.
  const uint32_t *tokens;
  // The number of tokens.
  size_t token_count;
  // A chat to answer, as OpenAI's API has it: [{"role": "user", "content": "Hello"}].
  const char *messages_json;
  // The most tokens; 128 by default, and for a chat what there is room for.
  size_t max_tokens;
  // Divides the logits; 0 takes the most likely token.
  float temperature;
  // Draws among so many of the most likely tokens; 0 for all.
  size_t top_k;
  // Draws among the most likely tokens whose probabilities add up to this; 0 for all.
  float top_p;
  // Draws among tokens with at least this share of the best one's probability.
  float min_p;
  // True if `seed` is to be used; another one is taken each time otherwise.
  bool has_seed;
  // The same seed draws the same tokens.
  uint64_t seed;
  // Texts that end the answer.
  const char *const *stop;
  // The number of these texts.
  size_t stop_count;
  // Goes on after tokens that end a text.
  bool ignore_eos;
  // The answer is JSON that this schema accepts.
  const char *json_schema;
  // This regular expression matches the answer as a whole.
  const char *regex;
  // The answer is a text of this grammar, in llguidance's form of Lark.
  const char *grammar;
  // Guesses tokens from the text and verifies several at once. The answer stays the same.
  bool speculate;
  // Adds log-probabilities to every token, those of the model itself.
  bool logprobs;
  // Adds so many of the most likely tokens to every token, too. Needs `logprobs`.
  size_t top_logprobs;
  // Subtracted once from the logits of tokens of the answer.
  float presence_penalty;
  // Subtracted from the logits of tokens of the answer as often as they are in it.
  float frequency_penalty;
  // Divides positive logits of tokens of prompt and answer, and multiplies negative ones; 0 and 1 change nothing.
  float repetition_penalty;
  // Tokens whose logits change.
  const uint32_t *logit_bias_tokens;
  // What is added to the logit of each.
  const float *logit_bias;
  // The number of these tokens.
  size_t logit_bias_count;
};

// A token that was likely, and the logarithm of its probability.
struct mlxcel_logprob {
  // The token.
  uint32_t token;
  // The natural logarithm of its probability.
  float logprob;
};

// What a token adds to an answer. The pointers are valid until the next call for the same answer.
struct mlxcel_piece {
  // The text that is final now, in UTF-8 and with a zero at its end; often empty.
  const char *text;
  // Its bytes without the zero.
  size_t text_length;
  // The token.
  uint32_t token;
  // False at the end, where a rest of text may come without a token.
  bool has_token;
  // The natural logarithm of the token's probability, if the request asks for `logprobs`; else 0.
  float logprob;
  // The most likely tokens in its place, best first; NULL if there are none.
  const struct mlxcel_logprob *top_logprobs;
  // The number of these tokens.
  size_t top_logprob_count;
};

// Takes a piece of an answer, on the thread that called. Returns false to end the answer.
typedef bool (*mlxcel_on_piece)(void *user, const struct mlxcel_piece *piece);

// The type of an argument or result. Name and dimensions are valid until the function is closed.
struct mlxcel_tensor_type {
  // Its name.
  const char *name;
  // An mlxcel_dtype; 0 for a type that this interface has no name for.
  uint32_t dtype;
  // The number of dimensions.
  size_t rank;
  // The dimensions, the last one's elements next to each other.
  const size_t *dims;
  // The bytes of the tensor.
  size_t bytes;
  // True for an argument that each call replaces by a result, and for that result.
  bool is_state;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of this library. Any thread.
const char *mlxcel_version(void);

// Returns what kind of error it is; MLXCEL_CODE_NONE for NULL. Any thread.
enum mlxcel_code mlxcel_error_code(const struct mlxcel_error *error);

// Returns what failed and why, in one line; an empty text for NULL. Valid until the error is freed. Any thread.
const char *mlxcel_error_message(const struct mlxcel_error *error);

// Returns what was found; NULL if the message does not say. Valid until the error is freed. Any thread.
const char *mlxcel_error_found(const struct mlxcel_error *error);

// Returns what was expected; NULL if the message does not say. Valid until the error is freed. Any thread.
const char *mlxcel_error_expected(const struct mlxcel_error *error);

// Returns the remedy; NULL if there is none. Valid until the error is freed. Any thread.
const char *mlxcel_error_hint(const struct mlxcel_error *error);

// Frees an error. NULL is allowed. Any thread.
void mlxcel_error_free(struct mlxcel_error *error);

// Opens a bundle, a folder or a name in the store, and verifies all but its weights, which are verified when they are loaded.
// Any thread.
struct mlxcel_error *mlxcel_bundle_open(const char *path,
                                        const struct mlxcel_bundle_options *bundle_options,
                                        struct mlxcel_bundle **bundle);

// Returns the digest of the manifest, which names all files; NULL for a bad handle. Valid until it is closed. Any thread.
const char *mlxcel_bundle_digest(const struct mlxcel_bundle *bundle);

// Returns the model's name; NULL for a bad handle. Valid until it is closed. Any thread.
const char *mlxcel_bundle_model(const struct mlxcel_bundle *bundle);

// Returns a note if the bundle's code was neither compiled here nor signed as required: it runs with your rights. NULL if
// there is none. Valid until it is closed. Any thread.
const char *mlxcel_bundle_note(const struct mlxcel_bundle *bundle);

// Returns whether the bundle is a program, not a model; false for a bad handle. Any thread.
bool mlxcel_bundle_is_program(const struct mlxcel_bundle *bundle);

// Closes a bundle. What was loaded of it stays. Any thread.
void mlxcel_bundle_close(struct mlxcel_bundle *bundle);

// Loads a model on a device. Any thread.
struct mlxcel_error *mlxcel_engine_load(const struct mlxcel_bundle *bundle,
                                        const struct mlxcel_device_options *device_options,
                                        struct mlxcel_engine **engine);

// Ends an engine. Answers that are not complete end: their streams say so. Any thread.
void mlxcel_engine_close(struct mlxcel_engine *engine);

// Returns the device, as in "local-task, 2 threads"; NULL for a bad handle. Valid until the engine is closed. Any thread.
const char *mlxcel_engine_device(const struct mlxcel_engine *engine);

// Returns the most tokens of a request; 0 for a bad handle. Any thread.
size_t mlxcel_engine_context(const struct mlxcel_engine *engine);

// Returns the number of token ids; 0 for a bad handle. Any thread.
size_t mlxcel_engine_vocab(const struct mlxcel_engine *engine);

// Returns the numbers of an embedding; 0 for a bad handle or a model that makes none. Any thread.
size_t mlxcel_engine_width(const struct mlxcel_engine *engine);

// Encodes a text, with the special tokens that the tokenizer adds if `special` is true. Writes at most `capacity` tokens, and
// sets `count` to the number of all. `length` is 0 for a text that ends with a zero. Any thread.
struct mlxcel_error *mlxcel_engine_encode(const struct mlxcel_engine *engine,
                                          const char *text,
                                          size_t length,
                                          bool special,
                                          uint32_t *tokens,
                                          size_t capacity,
                                          size_t *count);

// Decodes tokens, without special ones. Writes at most `capacity` bytes of UTF-8 without a zero at their end, and sets `length`
// to the number of all. Any thread.
struct mlxcel_error *mlxcel_engine_decode(const struct mlxcel_engine *engine,
                                          const uint32_t *tokens,
                                          size_t count,
                                          char *text,
                                          size_t capacity,
                                          size_t *length);

// Computes the embeddings of texts that end with a zero: `count` times mlxcel_engine_width floats, one text's after the
// other's. Any thread.
struct mlxcel_error *mlxcel_engine_embed(const struct mlxcel_engine *engine,
                                         const char *const *texts,
                                         size_t count,
                                         float *embeddings,
                                         size_t capacity);

// Computes the log-probability of each token from index `from` on, given those before it: `count - from` floats. `from` is
// at least 1. Any thread.
struct mlxcel_error *mlxcel_engine_score(const struct mlxcel_engine *engine,
                                         const uint32_t *tokens,
                                         size_t count,
                                         size_t from,
                                         float *logprobs,
                                         size_t capacity);

// Answers a request, and waits for the whole answer. `on_piece`, which may be NULL, gets every piece on this thread. Any
// thread.
struct mlxcel_error *mlxcel_engine_generate(const struct mlxcel_engine *engine,
                                            const struct mlxcel_request *request,
                                            mlxcel_on_piece on_piece,
                                            void *user,
                                            struct mlxcel_answer **answer);

// Submits a request. Any thread.
struct mlxcel_error *mlxcel_engine_submit(const struct mlxcel_engine *engine,
                                          const struct mlxcel_request *request,
                                          struct mlxcel_stream **stream);

// Waits at most `timeout_ms` milliseconds for the next piece. One thread at a time: while one is in this call for a stream,
// another one gets MLXCEL_CODE_THREAD.
struct mlxcel_error *mlxcel_stream_next(const struct mlxcel_stream *stream,
                                        uint64_t timeout_ms,
                                        enum mlxcel_event *event,
                                        struct mlxcel_piece *piece);

// Ends the request of a stream. What has come can still be read. Any thread, also while another one waits.
struct mlxcel_error *mlxcel_stream_cancel(const struct mlxcel_stream *stream);

// Returns the whole answer; before its end an error. Any thread.
struct mlxcel_error *mlxcel_stream_answer(const struct mlxcel_stream *stream,
                                          struct mlxcel_answer **answer);

// Closes a stream, which ends its request. Any thread.
void mlxcel_stream_close(struct mlxcel_stream *stream);

// Returns the text of an answer with a zero at its end, and sets `length`, which may be NULL, to its bytes without it. NULL
// for a bad handle. Valid until the answer is closed. Any thread.
const char *mlxcel_answer_text(const struct mlxcel_answer *answer,
                               size_t *length);

// Returns the tokens of an answer, and sets `count` to their number. NULL for a bad handle. Valid until the answer is closed.
// Any thread.
const uint32_t *mlxcel_answer_tokens(const struct mlxcel_answer *answer,
                                     size_t *count);

// Returns the log-probabilities of an answer's tokens, and sets `count` to their number: that of the tokens, or 0 if the request
// did not ask for `logprobs`. NULL for none, and for a bad handle. Valid until the answer is closed. Any thread.
const float *mlxcel_answer_logprobs(const struct mlxcel_answer *answer,
                                    size_t *count);

// Returns the most likely tokens in place of an answer's token `index`, best first, and sets `count` to their number: what the
// request has as `top_logprobs`. NULL for none, and for a bad handle or index. Valid until the answer is closed. Any thread.
const struct mlxcel_logprob *mlxcel_answer_top_logprobs(const struct mlxcel_answer *answer,
                                                        size_t index,
                                                        size_t *count);

// Returns why an answer ended: "eos", "stop", "length", "context" or "cancelled". NULL for a bad handle. Valid until the answer
// is closed. Any thread.
const char *mlxcel_answer_finish_reason(const struct mlxcel_answer *answer);

// Closes an answer. Any thread.
void mlxcel_answer_close(struct mlxcel_answer *answer);

// Loads a program on a device. It belongs to this thread.
struct mlxcel_error *mlxcel_program_load(const struct mlxcel_bundle *bundle,
                                         const struct mlxcel_device_options *device_options,
                                         struct mlxcel_program **program);

// Closes a program and its functions. The program's thread; on others it stays open.
struct mlxcel_error *mlxcel_program_close(struct mlxcel_program *program);

// Prepares calls of a function; NULL is `main`, or the only one. The program's thread.
struct mlxcel_error *mlxcel_program_function(const struct mlxcel_program *program,
                                             const char *name,
                                             struct mlxcel_function **function);

// Closes a function. The program's thread; on others it stays open.
struct mlxcel_error *mlxcel_function_close(struct mlxcel_function *function);

// Sets the numbers of arguments and results. Any thread.
struct mlxcel_error *mlxcel_function_counts(const struct mlxcel_function *function,
                                            size_t *arguments,
                                            size_t *results);

// Describes the argument `index`, from 0. Any thread.
struct mlxcel_error *mlxcel_function_argument(const struct mlxcel_function *function,
                                              size_t index,
                                              struct mlxcel_tensor_type *tensor_type);

// Describes the result `index`, from 0. Any thread.
struct mlxcel_error *mlxcel_function_result(const struct mlxcel_function *function,
                                            size_t index,
                                            struct mlxcel_tensor_type *tensor_type);

// Copies a tensor of the caller to the device, as an argument of all calls from now on or as the present value of a state. The
// buffer is not used after this call. The program's thread.
struct mlxcel_error *mlxcel_function_set(const struct mlxcel_function *function,
                                         const char *name,
                                         uint32_t dtype,
                                         const size_t *dims,
                                         size_t rank,
                                         const void *data,
                                         size_t bytes);

// Calls the function and waits for it. States become what it returns. The program's thread.
struct mlxcel_error *mlxcel_function_call(const struct mlxcel_function *function);

// Copies a result of the last call, or the present value of a state, into the caller's buffer, whose bytes are those of the
// tensor. The program's thread.
struct mlxcel_error *mlxcel_function_read(const struct mlxcel_function *function,
                                          const char *name,
                                          void *data,
                                          size_t bytes);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MLXCEL_H_ */
