//! Reductions of signed integers to the largest or smallest.
//!
//! For GPUs, iree-compile 3.13 pads them with the extremes of unsigned numbers, 0 and -1. If threads share a row, no maximum is
//! below 0 then, and no minimum above -1. To unsigned numbers this padding does nothing.

use safetensors::Dtype;

use super::{
    super::{ast::Op, replay::Replay},
    scatter::combining_op,
};
use crate::{
    error::Error,
    graph::{Graph, Tensor},
    types::{TensorType, is_signed},
};

/// Returns what stands for the largest or smallest of signed integers: that of unsigned ones in the same order.
pub(super) fn extreme(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let (&[x, initial], [region]) = (operands, op.regions.as_slice()) else { return Ok(None) };
    let combine: fn(&mut Graph, Tensor, Tensor) -> Tensor = match combining_op(region) {
        Some("stablehlo.maximum") => Graph::maximum,
        Some("stablehlo.minimum") => Graph::minimum,
        _ => return Ok(None),
    };
    let Some(dtype) = unsigned_type(replay.graph.dtype(x)) else { return Ok(None) };
    let Some(result) = replay.result_types(op, operands, &[])?.pop() else { return Ok(None) };
    let g = &mut replay.graph;
    let operands = [x, initial].map(|tensor| {
        let inverted = with_sign_inverted(g, tensor);
        g.bitcast_convert(inverted, dtype)
    });
    let scalar = TensorType::new(dtype, []);
    let body =
        g.region(&[scalar.clone().into(), scalar.into()], |g, values| vec![combine(g, values[0], values[1])]);
    let unsigned = TensorType::new(dtype, result.shape);
    let found = replay.add(op.name, &operands, &op.attributes, vec![body], vec![unsigned]);
    let g = &mut replay.graph;
    let signed = g.bitcast_convert(found[0], result.dtype);
    Ok(Some(vec![with_sign_inverted(g, signed)]))
}

/// Returns signed integers with the other sign bit. As unsigned ones they are in the order of what they are made of.
fn with_sign_inverted(g: &mut Graph, x: Tensor) -> Tensor {
    let ty = g.type_of(x);
    // A full number saturates: it is the lowest integer, the sign alone.
    let sign = g.full(f64::NEG_INFINITY, ty.dtype, &ty.shape);
    g.xor(x, sign)
}

/// Returns the unsigned type with as many bits as a signed one.
fn unsigned_type(dtype: Dtype) -> Option<Dtype> {
    let unsigned = match dtype {
        Dtype::I8 => Dtype::U8,
        Dtype::I16 => Dtype::U16,
        Dtype::I32 => Dtype::U32,
        _ => Dtype::U64,
    };
    is_signed(dtype).then_some(unsigned)
}

#[cfg(test)]
mod tests {
    use crate::import::replayed::{lines_with, replayed};

    /// Returns the type of the numbers that a reduction combines, and how often it inverts signs.
    fn combined(name: &str, element: &str) -> (String, usize) {
        let ty = format!("tensor<4x1024x{element}>");
        let scalar = format!("tensor<{element}>");
        let line = format!(
            r#"%r = "stablehlo.reduce"(%0, %1) <{{dimensions = array<i64: 1>}}> ({{
              ^bb0(%a: {scalar}, %b: {scalar}):
                %s = "stablehlo.{name}"(%b, %a) : ({scalar}, {scalar}) -> {scalar}
                "stablehlo.return"(%s) : ({scalar}) -> ()
            }}) : ({ty}, {scalar}) -> tensor<4x{element}>"#
        );
        let mlir = replayed(&[&ty, &scalar], &line, &format!("tensor<4x{element}>")).unwrap();
        let [combine] = lines_with(&mlir, &format!("stablehlo.{name}\""))[..] else { panic!("{mlir}") };
        let (_, ty) = combine.rsplit_once(" -> ").unwrap();
        (ty.to_owned(), lines_with(&mlir, "stablehlo.xor\"").len())
    }

    #[test]
    fn signed_integers_are_reduced_as_unsigned_ones() {
        assert_eq!(combined("maximum", "i32"), ("tensor<ui32>".into(), 3));
        assert_eq!(combined("minimum", "i64"), ("tensor<ui64>".into(), 3));
        assert_eq!(combined("minimum", "i8"), ("tensor<ui8>".into(), 3));
        // These are right as they are.
        assert_eq!(combined("maximum", "ui32"), ("tensor<ui32>".into(), 0));
        assert_eq!(combined("maximum", "f32"), ("tensor<f32>".into(), 0));
        assert_eq!(combined("add", "i32"), ("tensor<i32>".into(), 0));
        assert_eq!(combined("and", "i1"), ("tensor<i1>".into(), 0));
    }
}
