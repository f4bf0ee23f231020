//! Calls of what a framework's own runtime has.

use super::{
    ast::Op, cursor::unquote, infer::is_written, kernel_call, parse::attributes, replay::Replay,
    rewrites::lapack,
};
use crate::{error::Error, graph::Tensor, kernels::LinkedKernels};

/// Calls that say where data lies, which is one place here.
const PLACEMENTS: [&str; 6] = [
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "annotate_device_placement",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.ShardingGroup",
];

/// Calls that MLIR's own dialects stand for, with the op that each is.
const OPS: [(&str, &str); 12] = [
    ("mhlo.acos", "chlo.acos"),
    ("mhlo.acosh", "chlo.acosh"),
    ("mhlo.asin", "chlo.asin"),
    ("mhlo.asinh", "chlo.asinh"),
    ("mhlo.atanh", "chlo.atanh"),
    ("mhlo.bessel_i1e", "chlo.bessel_i1e"),
    ("mhlo.cosh", "chlo.cosh"),
    ("mhlo.erf", "chlo.erf"),
    ("mhlo.sinh", "chlo.sinh"),
    ("mhlo.tan", "stablehlo.tan"),
    ("mhlo.topk", "chlo.top_k"),
    ("chlo.top_k", "chlo.top_k"),
];

/// What names begin with that frameworks give their calls, what they are, and what to do instead.
const KNOWN: [(&str, &str, &str); 9] = [
    (
        "lapack_",
        "a call of LAPACK",
        "replace the decomposition: cholesky, lu, solve, inv, det and triangular solves are compiled, of square matrices",
    ),
    ("cusolver", "a call of cuSOLVER", "export with platforms=[\"cpu\"], or replace the decomposition"),
    ("cublas", "a call of cuBLAS", "export with platforms=[\"cpu\"]"),
    ("cu_threefry2x32", "a kernel for CUDA", "export with platforms=[\"cpu\"]"),
    (
        "cu",
        "a call of a library for CUDA",
        "export with platforms=[\"cpu\"], or link a kernel of this name with --kernels",
    ),
    ("xla_python", "a call of a Python function", "remove callbacks and debug prints before exporting"),
    ("xla_ffi_python", "a call of a Python function", "remove callbacks and debug prints before exporting"),
    ("tpu_custom_call", "a Pallas kernel for TPUs", "export with the reference implementation of the op"),
    ("__gpu$", "a kernel for GPUs", "export with platforms=[\"cpu\"]"),
];

/// Replays a call.
pub(super) fn replay(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Vec<Tensor>, Error> {
    let target = unquote(op.attribute("call_target_name").unwrap_or_default());
    if replay.checks.as_mut().is_some_and(|checks| checks.note(&target, operands)) {
        return Ok(Vec::new());
    }
    if let Some(results) = kernel_call::replay(replay, op, &target, operands)? {
        return Ok(results);
    }
    if PLACEMENTS.contains(&target.as_str()) {
        return placed(replay, op, &target, operands);
    }
    if target == "shape_assertion" {
        return assertion(replay, op, operands).map(|()| Vec::new());
    }
    if let Some((_, name)) = OPS.iter().find(|(call, _)| *call == target) {
        let all = op.attribute("mhlo.attributes").map(attributes).transpose()?;
        let mut attributes = all.unwrap_or_default();
        if attributes.remove("largest").is_some_and(|text| text != "true") {
            let problem = format!("found the smallest elements of @{target}, expected the largest");
            return Err(replay.refused(op, problem, "negate the tensor, and the values that are found"));
        }
        return replay.op(&op.renamed(name, attributes), operands);
    }
    if let Some(results) = lapack::replay(replay, op, &target, operands)? {
        return Ok(results);
    }
    Err(unknown(replay, op, &target))
}

/// Returns the operands of a call that says where data lies. Shapes that differ are those of parts, which other devices have.
fn placed(
    replay: &Replay<'_, '_>,
    op: &Op<'_>,
    target: &str,
    operands: &[Tensor],
) -> Result<Vec<Tensor>, Error> {
    let mut results = Vec::with_capacity(op.result_types.len());
    for (written, operand) in op.result_types.iter().zip(operands) {
        let (found, expected) = (replay.graph.type_of(*operand), replay.tensor_type(op, written)?);
        if found.dtype != expected.dtype || !is_written(&found.shape, &expected.shape) {
            let problem = format!("found {found} for a result of @{target}, expected {expected}");
            return Err(replay.refused(op, problem, "export it without sharding"));
        }
        results.push(*operand);
    }
    Ok(results)
}

/// Says that there is nothing of this name.
fn unknown(replay: &Replay<'_, '_>, op: &Op<'_>, target: &str) -> Error {
    let LinkedKernels { arch, functions, elsewhere } = &replay.options.kernels;
    if !arch.is_empty()
        && let Some(others) = elsewhere.get(target)
    {
        let problem = format!(
            "found kernels @{target} for {} alone, expected one for {arch} as well",
            others.join(", ")
        );
        return replay.refused(op, problem, "compile the kernel for it, and link it with another --kernels");
    }
    if let Some((_, what, hint)) = KNOWN.iter().find(|(begin, ..)| target.starts_with(begin)) {
        return replay.refused(op, format!("found {what}, @{target}, expected ops that are compiled"), hint);
    }
    if functions.is_empty() && elsewhere.is_empty() {
        let problem = format!("found a call of another runtime, @{target}, expected ops that are compiled");
        let hint = "replace it with ops of StableHLO, or link a kernel of this name with --kernels";
        return replay.refused(op, problem, hint);
    }
    if arch.is_empty() {
        let problem = format!("found a call of @{target}, expected ops that are compiled");
        return replay.refused(op, problem, "kernels run on x86_64, aarch64 and CUDA: choose other targets");
    }
    let names: Vec<_> = functions.keys().map(|name| format!("@{name}")).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let is_mangled = functions.keys().any(|name| name.starts_with("_Z") && name.contains(target));
    let hint = if is_mangled {
        "declare it extern \"C\""
    } else {
        "compile a kernel of this name, to an ELF object or to PTX for CUDA, and link it with --kernels"
    };
    let problem = format!("found a call of @{target}, expected one of the kernels for {arch}: {names}");
    replay.refused(op, problem, hint)
}

/// Checks what a program asserts about the sizes of its arguments.
fn assertion(replay: &Replay<'_, '_>, op: &Op<'_>, operands: &[Tensor]) -> Result<(), Error> {
    let [condition, numbers @ ..] = operands else { return Ok(()) };
    match replay.known(*condition) {
        Some([0]) => {
            let mut message = unquote(op.attribute("error_message").unwrap_or_default());
            for (index, number) in numbers.iter().enumerate() {
                if let Some([value]) = replay.known(*number) {
                    message = message.replace(&format!("{{{index}}}"), &value.to_string());
                }
            }
            Err(replay.refused(op, message, "give sizes with --shape for which the program was exported"))
        }
        Some(_) => Ok(()),
        None => Err(replay.refused(
            op,
            "found an assertion about values, expected one about shapes",
            "export without it: jax.export.DisabledSafetyCheck.shape_assertions()",
        )),
    }
}

#[cfg(test)]
mod tests {
    use crate::import::replayed::replayed;

    #[test]
    fn data_that_is_divided_among_devices_is_refused() {
        let of = |result: &str| {
            let line = format!(
                r#"%p = "stablehlo.custom_call"(%0) <{{call_target_name = "SPMDFullToShardShape"}}> : (tensor<8x4xf32>) -> {result}
                %r = "stablehlo.negate"(%p) : ({result}) -> {result}"#
            );
            replayed(&["tensor<8x4xf32>"], &line, result)
        };
        assert!(!of("tensor<8x4xf32>").unwrap().contains("custom_call"));
        assert_eq!(
            of("tensor<4x4xf32>").unwrap_err(),
            "main: custom_call: found tensor<8x4xf32> for a result of @SPMDFullToShardShape, expected tensor<4x4xf32>\n\
             hint: export it without sharding"
        );
    }
}
