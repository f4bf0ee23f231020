//! The structures of the interface.

use std::ffi::{c_char, c_void};

use super::pointers::Options;

/// What is required of a bundle. Set `size`; what is 0 or NULL says nothing.
#[derive(Debug)]
#[repr(C)]
pub struct BundleOptions {
    /// sizeof(mlxcel_bundle_options).
    pub size: usize,
    /// The store's folder; NULL for $MLXCEL_STORE, or the default.
    pub store: *const c_char,
    /// The minisign key that must have signed the bundle: a public key, or its file.
    pub require_signature: *const c_char,
}

/// The device to load on. Set `size`; what is 0 or NULL is the default.
#[derive(Debug)]
#[repr(C)]
pub struct DeviceOptions {
    /// sizeof(mlxcel_device_options).
    pub size: usize,
    /// "auto", "local-task", "local-sync", "cuda", "cuda:1", "vulkan" or "vulkan:1".
    pub device: *const c_char,
    /// Threads of the device local-task; one for each physical core by default.
    pub threads: usize,
    /// Bytes of the cache; room for one whole context by default.
    pub cache_bytes: u64,
    /// Tokens of context, at most the bundle's.
    pub context: usize,
    /// Requests that may wait; 256 by default.
    pub queue: usize,
    /// A checkpoint's folder or file, for bundles without weights.
    pub weights: *const c_char,
}

/// A request. Set `size`, and one of `prompt`, `tokens` and `messages_json`; what is 0 or NULL is the default.
#[derive(Debug)]
#[repr(C)]
pub struct Request {
    /// sizeof(mlxcel_request).
    pub size: usize,
    /// The text to continue.
    pub prompt: *const c_char,
    /// Bytes of the prompt; 0 if it ends with a zero.
    pub prompt_length: usize,
    /// The tokens to continue.
    pub tokens: *const u32,
    /// The number of tokens.
    pub token_count: usize,
    /// A chat to answer, as OpenAI's API has it: [{"role": "user", "content": "Hello"}].
    pub messages_json: *const c_char,
    /// The most tokens; 128 by default, and for a chat what there is room for.
    pub max_tokens: usize,
    /// Divides the logits; 0 takes the most likely token.
    pub temperature: f32,
    /// Draws among so many of the most likely tokens; 0 for all.
    pub top_k: usize,
    /// Draws among the most likely tokens whose probabilities add up to this; 0 for all.
    pub top_p: f32,
    /// Draws among tokens with at least this share of the best one's probability.
    pub min_p: f32,
    /// True if `seed` is to be used; another one is taken each time otherwise.
    pub has_seed: bool,
    /// The same seed draws the same tokens.
    pub seed: u64,
    /// Texts that end the answer.
    pub stop: *const *const c_char,
    /// The number of these texts.
    pub stop_count: usize,
    /// Goes on after tokens that end a text.
    pub ignore_eos: bool,
    /// The answer is JSON that this schema accepts.
    pub json_schema: *const c_char,
    /// This regular expression matches the answer as a whole.
    pub regex: *const c_char,
    /// The answer is a text of this grammar, in llguidance's form of Lark.
    pub grammar: *const c_char,
    /// Guesses tokens from the text and verifies several at once. The answer stays the same.
    pub speculate: bool,
    /// Adds log-probabilities to every token, those of the model itself.
    pub logprobs: bool,
    /// Adds so many of the most likely tokens to every token, too. Needs `logprobs`.
    pub top_logprobs: usize,
    /// Subtracted once from the logits of tokens of the answer.
    pub presence_penalty: f32,
    /// Subtracted from the logits of tokens of the answer as often as they are in it.
    pub frequency_penalty: f32,
    /// Divides positive logits of tokens of prompt and answer, and multiplies negative ones; 0 and 1 change nothing.
    pub repetition_penalty: f32,
    /// Tokens whose logits change.
    pub logit_bias_tokens: *const u32,
    /// What is added to the logit of each.
    pub logit_bias: *const f32,
    /// The number of these tokens.
    pub logit_bias_count: usize,
}

// SAFETY: numbers and pointers may be all zeros.
unsafe impl Options for BundleOptions {}

// SAFETY: numbers and pointers may be all zeros.
unsafe impl Options for DeviceOptions {}

// SAFETY: numbers, pointers and bools may be all zeros, and C's bool is 0 or 1.
unsafe impl Options for Request {}

/// A token that was likely, and the logarithm of its probability.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Logprob {
    /// The token.
    pub token: u32,
    /// The natural logarithm of its probability.
    pub logprob: f32,
}

/// What a token adds to an answer. The pointers are valid until the next call for the same answer.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Piece {
    /// The text that is final now, in UTF-8 and with a zero at its end; often empty.
    pub text: *const c_char,
    /// Its bytes without the zero.
    pub text_length: usize,
    /// The token.
    pub token: u32,
    /// False at the end, where a rest of text may come without a token.
    pub has_token: bool,
    /// The natural logarithm of the token's probability, if the request asks for `logprobs`; else 0.
    pub logprob: f32,
    /// The most likely tokens in its place, best first; NULL if there are none.
    pub top_logprobs: *const Logprob,
    /// The number of these tokens.
    pub top_logprob_count: usize,
}

/// Takes a piece of an answer, on the thread that called. Returns false to end the answer.
pub type OnPiece = Option<unsafe extern "C" fn(user: *mut c_void, piece: *const Piece) -> bool>;

/// What came of waiting for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum Event {
    /// Nothing has come in the time given.
    Nothing = 0,
    /// A piece.
    Piece = 1,
    /// The end.
    End = 2,
}

/// An element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum Dtype {
    /// A byte that is 0 or 1.
    Bool = 1,
    /// A signed integer of 8 bits.
    I8 = 2,
    /// A signed integer of 16 bits.
    I16 = 3,
    /// A signed integer of 32 bits.
    I32 = 4,
    /// A signed integer of 64 bits.
    I64 = 5,
    /// An unsigned integer of 8 bits.
    U8 = 6,
    /// An unsigned integer of 16 bits.
    U16 = 7,
    /// An unsigned integer of 32 bits.
    U32 = 8,
    /// An unsigned integer of 64 bits.
    U64 = 9,
    /// A float of 16 bits.
    F16 = 10,
    /// A float of 16 bits with the exponent of one of 32.
    Bf16 = 11,
    /// A float of 32 bits.
    F32 = 12,
    /// A float of 64 bits.
    F64 = 13,
    /// Two floats of 32 bits.
    C64 = 14,
    /// A float of 8 bits, 5 of them for the exponent.
    F8E5m2 = 15,
    /// A float of 8 bits, 4 of them for the exponent.
    F8E4m3 = 16,
}

/// The type of an argument or result. Name and dimensions are valid until the function is closed.
#[derive(Debug)]
#[repr(C)]
pub struct TensorType {
    /// Its name.
    pub name: *const c_char,
    /// An mlxcel_dtype; 0 for a type that this interface has no name for.
    pub dtype: u32,
    /// The number of dimensions.
    pub rank: usize,
    /// The dimensions, the last one's elements next to each other.
    pub dims: *const usize,
    /// The bytes of the tensor.
    pub bytes: usize,
    /// True for an argument that each call replaces by a result, and for that result.
    pub is_state: bool,
}
