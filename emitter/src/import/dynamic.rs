//! Ops whose shapes are operands, as ops with fixed shapes.

use super::{
    ast::{Attributes, Op},
    attributes::sizes,
    infer,
    replay::Replay,
};
use crate::{error::Error, graph::Tensor};

/// An op with a fixed shape, in place of one that takes it as an operand.
struct Fixed {
    name: &'static str,
    /// The operands that are left, the first ones.
    operands: usize,
    /// Attributes that were operands; those without a text are not known.
    attributes: Vec<(&'static str, Option<String>)>,
    /// The result's shape, if the operands say it.
    shape: Option<Vec<usize>>,
}

/// Replays an op that takes a shape as an operand; `None` if it is no such op.
pub(super) fn replay(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let Some(fixed) = fixed(replay, op, operands) else { return Ok(None) };
    let unknown = || {
        replay.refused(
            op,
            "found a shape that is computed from the values of arguments, expected one that follows from their shapes",
            "give the arguments' sizes with --shape, or export the program with fixed shapes",
        )
    };
    let mut attributes: Attributes<'_> = op.attributes.clone();
    if op.name == "stablehlo.dynamic_broadcast_in_dim" {
        // Others say which dimensions expand, which follows from the shapes.
        attributes.retain(|name, _| *name == "broadcast_dimensions");
    }
    for (name, value) in &fixed.attributes {
        attributes.insert(name, value.as_deref().ok_or_else(unknown)?);
    }
    let used = operands.get(..fixed.operands).unwrap_or(operands);
    let written = op.result_types.first().map(|ty| replay.tensor_type(op, ty)).transpose()?;
    let mut ty = written.ok_or_else(unknown)?;
    if ty.is_dynamic() {
        let of_convolution = || {
            let types: Vec<_> = used.iter().map(|operand| replay.graph.type_of(*operand)).collect();
            infer::shapes(&op.renamed(fixed.name, attributes.clone()), &types)?.pop()
        };
        ty.shape = fixed.shape.clone().or_else(of_convolution).ok_or_else(unknown)?;
    }
    let ty = ty.to_string();
    let mut plain = op.renamed(fixed.name, attributes);
    plain.result_types = vec![&ty];
    // As if it had been written so, because it is rewritten and refused under that name.
    replay.op(&plain, used).map(Some)
}

fn fixed(replay: &Replay<'_, '_>, op: &Op<'_>, operands: &[Tensor]) -> Option<Fixed> {
    let known =
        |index: usize| operands.get(index).and_then(|operand| replay.known(*operand)).map(<[i64]>::to_vec);
    let text = |index: usize| known(index).map(|values| array(&values));
    let shaped = |name, operands, index| Fixed {
        name,
        operands,
        attributes: vec![],
        shape: known(index).and_then(to_shape),
    };
    Some(match op.name {
        "stablehlo.dynamic_broadcast_in_dim" => shaped("stablehlo.broadcast_in_dim", 1, 1),
        "stablehlo.dynamic_reshape" => shaped("stablehlo.reshape", 1, 1),
        "stablehlo.dynamic_iota" => shaped("stablehlo.iota", 0, 0),
        "stablehlo.dynamic_pad" => {
            let shape = match [known(2), known(3), known(4)] {
                [Some(low), Some(high), Some(inner)] => {
                    operands.first().and_then(|x| infer::padded(replay.graph.shape(*x), &low, &high, &inner))
                }
                _ => None,
            };
            let names = ["edge_padding_low", "edge_padding_high", "interior_padding"];
            let attributes = names.into_iter().zip([text(2), text(3), text(4)]).collect();
            Fixed { name: "stablehlo.pad", operands: 2, attributes, shape }
        }
        "stablehlo.dynamic_gather" => {
            let types: Vec<_> = operands.iter().map(|operand| replay.graph.type_of(*operand)).collect();
            let numbers = op.attribute("dimension_numbers").unwrap_or_default();
            let shape =
                known(2).and_then(to_shape).and_then(|slices| infer::gather(numbers, &types, &slices));
            Fixed { name: "stablehlo.gather", operands: 2, attributes: vec![("slice_sizes", text(2))], shape }
        }
        "stablehlo.real_dynamic_slice" => {
            let shape = match [1, 2, 3].map(|index| known(index).and_then(to_shape)) {
                [Some(starts), Some(limits), Some(strides)] => {
                    Some(infer::sliced(&starts, &limits, &strides))
                }
                _ => None,
            };
            let names = ["start_indices", "limit_indices", "strides"];
            let attributes = names.into_iter().zip([text(1), text(2), text(3)]).collect();
            Fixed { name: "stablehlo.slice", operands: 1, attributes, shape }
        }
        "stablehlo.dynamic_conv" => {
            let padding = known(2).map(|values| {
                let pairs: Vec<_> = values.chunks(2).map(|pair| format!("{pair:?}")).collect();
                match pairs.len() {
                    0 => "dense<> : tensor<0x2xi64>".to_owned(),
                    rows => format!("dense<[{}]> : tensor<{rows}x2xi64>", pairs.join(", ")),
                }
            });
            Fixed {
                name: "stablehlo.convolution",
                operands: 2,
                attributes: vec![("padding", padding)],
                shape: None,
            }
        }
        _ => return None,
    })
}

/// Returns `array<i64: 1, 2>`.
fn array(values: &[i64]) -> String {
    if values.is_empty() {
        return "array<i64>".to_owned();
    }
    let values: Vec<_> = values.iter().map(ToString::to_string).collect();
    format!("array<i64: {}>", values.join(", "))
}

fn to_shape(values: Vec<i64>) -> Option<Vec<usize>> {
    sizes(&array(&values))
}

#[cfg(test)]
mod tests {
    use crate::import::{
        ProgramOptions,
        replayed::{replayed, replayed_for},
    };

    #[test]
    fn what_an_op_becomes_is_rewritten() {
        let lines = r#"%low = "stablehlo.constant"() <{value = dense<0> : tensor<1xi64>}> : () -> tensor<1xi64>
            %inner = "stablehlo.constant"() <{value = dense<1> : tensor<1xi64>}> : () -> tensor<1xi64>
            %r = "stablehlo.dynamic_pad"(%0, %1, %low, %low, %inner)
                : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>"#;
        let mlir = replayed(&["tensor<4xf32>", "tensor<f32>"], lines, "tensor<7xf32>").unwrap();
        assert!(mlir.contains("stablehlo.pad") && mlir.contains("-> tensor<7xf32>"), "{mlir}");
        assert!(!mlir.contains("interior_padding = array<i64: 1>"), "{mlir}");
    }

    #[test]
    fn what_an_op_becomes_is_refused() {
        let options = ProgramOptions { words_only: true, ..ProgramOptions::default() };
        let lines = r#"%p = "stablehlo.constant"() <{value = dense<0> : tensor<1x2xi64>}> : () -> tensor<1x2xi64>
            %r = "stablehlo.dynamic_conv"(%0, %1, %p) <{batch_group_count = 1 : i64, feature_group_count = 2 : i64,
                dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>}>
                : (tensor<1x2x2xf32>, tensor<2x1x2xf32>, tensor<1x2xi64>) -> tensor<1x1x2xf32>"#;
        let types = ["tensor<1x2x2xf32>", "tensor<2x1x2xf32>"];
        let error = replayed_for(&options, &types, lines, "tensor<1x1x2xf32>").unwrap_err();
        assert!(
            error.starts_with("main: convolution: found more than one of feature_group_count"),
            "{error}"
        );
    }

    #[test]
    fn what_an_op_becomes_is_known() {
        let lines = r#"%s = "stablehlo.constant"() <{value = dense<[2, 3]> : tensor<2xi32>}> : () -> tensor<2xi32>
            %n = "stablehlo.constant"() <{value = dense<[1, 2]> : tensor<2xi32>}> : () -> tensor<2xi32>
            %t = "stablehlo.dynamic_reshape"(%s, %n) : (tensor<2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
            %u = "stablehlo.reshape"(%t) : (tensor<1x2xi32>) -> tensor<2xi32>
            %r = "stablehlo.dynamic_reshape"(%0, %u) : (tensor<6xf32>, tensor<2xi32>) -> tensor<?x?xf32>"#;
        let mlir = replayed(&["tensor<6xf32>"], lines, "tensor<2x3xf32>").unwrap();
        assert!(mlir.contains("(tensor<6xf32>) -> tensor<2x3xf32>"), "{mlir}");
    }
}
