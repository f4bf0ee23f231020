//! Lists of all elementwise ops, and a tiny model, for several test targets.

use mlxcel_emitter::{Graph, Tensor};
use mlxcel_models::ModelConfig;

pub(crate) type Unary = fn(&mut Graph, Tensor) -> Tensor;
pub(crate) type Binary = fn(&mut Graph, Tensor, Tensor) -> Tensor;

/// Unary ops on floats.
pub(crate) const FLOAT_UNARY: &[Unary] = &[
    Graph::abs,
    Graph::cbrt,
    Graph::ceil,
    Graph::cosine,
    Graph::erf_inv,
    Graph::exponential,
    Graph::exponential_minus_one,
    Graph::floor,
    Graph::log,
    Graph::log_plus_one,
    Graph::logistic,
    Graph::negate,
    Graph::round_nearest_afz,
    Graph::round_nearest_even,
    Graph::rsqrt,
    Graph::sign,
    Graph::sine,
    Graph::sqrt,
    Graph::tan,
    Graph::tanh,
];

/// Unary ops on integers.
pub(crate) const INTEGER_UNARY: &[Unary] =
    &[Graph::abs, Graph::count_leading_zeros, Graph::negate, Graph::not, Graph::popcnt, Graph::sign];

/// Binary ops on floats.
pub(crate) const FLOAT_BINARY: &[Binary] = &[
    Graph::add,
    Graph::atan2,
    Graph::divide,
    Graph::maximum,
    Graph::minimum,
    Graph::multiply,
    Graph::power,
    Graph::remainder,
    Graph::subtract,
];

/// Binary ops on integers.
pub(crate) const INTEGER_BINARY: &[Binary] = &[
    Graph::add,
    Graph::and,
    Graph::divide,
    Graph::maximum,
    Graph::minimum,
    Graph::multiply,
    Graph::or,
    Graph::power,
    Graph::remainder,
    Graph::shift_left,
    Graph::shift_right_arithmetic,
    Graph::shift_right_logical,
    Graph::subtract,
    Graph::xor,
];

/// Binary ops on booleans.
pub(crate) const LOGICAL_BINARY: &[Binary] =
    &[Graph::add, Graph::and, Graph::maximum, Graph::minimum, Graph::multiply, Graph::or, Graph::xor];

/// Comparisons of all element types.
pub(crate) const COMPARISON: &[Binary] = &[Graph::eq, Graph::ne, Graph::ge, Graph::gt, Graph::le, Graph::lt];

/// Returns a Llama that is small in every way, with grouped heads and a tied head.
pub(crate) fn tiny() -> ModelConfig {
    tiny_of_vocab(32)
}

/// Returns the same with a vocabulary of another size.
pub(crate) fn tiny_of_vocab(vocab: usize) -> ModelConfig {
    tiny_of(&[("vocab_size", vocab)])
}

/// Returns the same with other numbers in its `config.json`.
pub(crate) fn tiny_of(sizes: &[(&str, usize)]) -> ModelConfig {
    let config = r#"{
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "bfloat16",
        "hidden_act": "silu",
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 4,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-05,
        "rope_theta": 10000.0,
        "tie_word_embeddings": true,
        "vocab_size": 32,
        "bos_token_id": 1,
        "eos_token_id": 2
    }"#;
    let wide = sizes.iter().fold(config.to_owned(), |config, (name, size)| {
        let line = config.lines().find(|line| line.contains(&format!("\"{name}\""))).unwrap();
        config.replace(line, &format!("        \"{name}\": {size},"))
    });
    ModelConfig::from_json(&wide).unwrap()
}
