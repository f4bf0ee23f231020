//! Ops that no target can run, and elements that some cannot.

use safetensors::Dtype;

use crate::types::TensorType;

/// Returns what is wrong with an op that cannot be compiled, and what to do instead.
pub(super) fn refusal(name: &str) -> Option<(String, &'static str)> {
    let Some(short) = name.strip_prefix("stablehlo.") else {
        let is_known =
            name.strip_prefix("chlo.").is_some_and(|short| !matches!(short, "constant_like" | "ragged_dot"));
        return (!is_known).then(|| {
            (
                format!("found {name}, expected ops of StableHLO and CHLO that iree-compile knows"),
                "lower it to StableHLO before exporting, as stablehlo-opt does",
            )
        });
    };
    let (problem, hint) = match short {
        "all_gather"
        | "all_reduce"
        | "all_to_all"
        | "collective_broadcast"
        | "collective_permute"
        | "reduce_scatter" => {
            ("found an exchange between devices, expected a program for one", "export it without sharding")
        }
        "after_all" | "create_token" | "infeed" | "outfeed" | "recv" | "send" => (
            "found an exchange with the host, expected a function of its arguments",
            "return what it sends, and pass what it receives",
        ),
        "get_tuple_element" => {
            ("found a tuple of another function, expected tensors", "pass and return its parts")
        }
        "uniform_quantize" | "uniform_dequantize" => (
            "found a quantized type, expected plain ones",
            "export integers and scales, as with stablehlo-legalize-quant-to-math",
        ),
        "unary_einsum" | "einsum" | "torch_index_select" | "cross-replica-sum" | "trace" => (
            "found an op that StableHLO has given up, expected those that took its place",
            "export it with a newer version of the framework",
        ),
        "set_dimension_size" => (
            "found a shape that changes as the program runs, expected a fixed one",
            "pad to the largest size and use a mask",
        ),
        _ => return None,
    };
    Some((problem.to_owned(), hint))
}

/// What to do about elements that a target cannot load.
pub(super) const OF_WORDS: &str =
    "convert to f32 or i32 in the program, or compile it for a CPU or CUDA, which have all elements";

/// Returns whether elements are words, or pairs of them, as targets load them that have no others. Vulkan's baseline profile is
/// such a target: IREE 3.13 writes over the neighbors of narrower ones.
pub(super) fn is_of_words(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F32 | Dtype::I32 | Dtype::U32 | Dtype::I64 | Dtype::U64 | Dtype::C64)
}

/// Says that a tensor has other elements.
pub(super) fn not_of_words(ty: &TensorType) -> String {
    format!(
        "found {ty}, expected f32, integers of 32 or 64 bits or complex<f32>, because a target has no others"
    )
}
