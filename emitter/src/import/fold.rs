//! Integers that are known while a program is read: sizes of dimensions, and what is computed from them.
//!
//! A program with open shapes computes shapes as tensors of integers. As arguments get sizes, these become numbers.

use super::{
    ast::Op,
    attributes::{integer, integers, sizes, word},
};
use crate::types::{DYNAMIC, TensorType, is_integer};

/// The most elements that are computed.
const LIMIT: usize = 64;

/// An operand: its type, and its elements if they are known.
pub(super) struct Operand<'v> {
    pub(super) ty: TensorType,
    pub(super) known: Option<&'v [i64]>,
}

/// Returns the elements of an op's result, if its operands say them.
pub(super) fn fold(op: &Op<'_>, operands: &[Operand<'_>], result: &TensorType) -> Option<Vec<i64>> {
    let short = op.name.strip_prefix("stablehlo.")?;
    if short == "get_dimension_size" {
        let dimension = usize::try_from(integer(op.attribute("dimension")?)?).ok()?;
        let size = *operands.first()?.ty.shape.get(dimension)?;
        return (size != DYNAMIC).then(|| i64::try_from(size).ok().map(|size| vec![size]))?;
    }
    let is_integral = is_integer(result.dtype) || result.dtype == safetensors::Dtype::BOOL;
    if !is_integral || result.elements() > LIMIT {
        return None;
    }
    let known: Vec<&[i64]> = operands.iter().map(|operand| operand.known).collect::<Option<_>>()?;
    if !operands
        .iter()
        .all(|operand| is_integer(operand.ty.dtype) || operand.ty.dtype == safetensors::Dtype::BOOL)
    {
        return None;
    }
    let values = match (short, known.as_slice()) {
        ("constant", []) => integers(op.attribute("value")?)?,
        ("convert" | "reshape" | "optimization_barrier", [x]) => x.to_vec(),
        // Along the first dimension, the elements of one part follow those of another.
        ("concatenate", parts) if op.attribute("dimension").and_then(integer) == Some(0) => parts.concat(),
        ("slice", [x]) if result.rank() == 1 => {
            let [start, limit, stride] =
                ["start_indices", "limit_indices", "strides"].map(|name| op.attribute(name).and_then(sizes));
            x.get(*start?.first()?..*limit?.first()?)?.iter().step_by(*stride?.first()?).copied().collect()
        }
        ("broadcast_in_dim", [[one]]) => vec![*one; result.elements()],
        // Otherwise it transposes.
        ("broadcast_in_dim", [x])
            if x.len() == result.elements()
                && op.attribute("broadcast_dimensions").and_then(sizes)?.is_sorted() =>
        {
            x.to_vec()
        }
        ("negate", [x]) => each(x, |x| x.checked_neg())?,
        ("abs", [x]) => each(x, |x| x.checked_abs())?,
        ("sign", [x]) => each(x, |x| Some(x.signum()))?,
        ("not", [x]) if result.dtype == safetensors::Dtype::BOOL => each(x, |x| Some(1 - x))?,
        ("select", [[condition], x, y]) => if *condition != 0 { x } else { y }.to_vec(),
        ("select", [condition, x, y]) => {
            let pairs = condition.iter().zip(x.iter().zip(*y));
            pairs.map(|(condition, (x, y))| if *condition != 0 { *x } else { *y }).collect()
        }
        ("clamp", [low, x, high]) => {
            let low = low.iter().cycle();
            let high = high.iter().cycle();
            x.iter().zip(low.zip(high)).map(|(x, (low, high))| *x.max(low).min(high)).collect()
        }
        ("compare", [x, y]) => {
            let direction = word(op.attribute("comparison_direction")?)?;
            pairs(x, y, |x, y| compare(direction, x, y).map(i64::from))?
        }
        (name, [x, y]) => pairs(x, y, |x, y| binary(name, x, y, result.dtype == safetensors::Dtype::BOOL))?,
        _ => return None,
    };
    (values.len() == result.elements() && values.iter().all(|value| fits(*value, result))).then_some(values)
}

fn each(x: &[i64], f: impl Fn(i64) -> Option<i64>) -> Option<Vec<i64>> {
    x.iter().map(|x| f(*x)).collect()
}

fn pairs(x: &[i64], y: &[i64], f: impl Fn(i64, i64) -> Option<i64>) -> Option<Vec<i64>> {
    (x.len() == y.len()).then(|| x.iter().zip(y).map(|(x, y)| f(*x, *y)).collect())?
}

fn compare(direction: &str, x: i64, y: i64) -> Option<bool> {
    Some(match direction {
        "EQ" => x == y,
        "NE" => x != y,
        "LT" => x < y,
        "LE" => x <= y,
        "GT" => x > y,
        "GE" => x >= y,
        _ => return None,
    })
}

/// Computes an op, or returns `None` where it overflows or has no meaning.
fn binary(name: &str, x: i64, y: i64, is_bool: bool) -> Option<i64> {
    match name {
        "add" if is_bool => Some(x | y),
        "add" => x.checked_add(y),
        "subtract" => x.checked_sub(y),
        "multiply" => x.checked_mul(y),
        // Both round towards zero, as in StableHLO.
        "divide" => x.checked_div(y),
        "remainder" => x.checked_rem(y),
        "maximum" => Some(x.max(y)),
        "minimum" => Some(x.min(y)),
        "and" => Some(x & y),
        "or" => Some(x | y),
        "xor" => Some(x ^ y),
        _ => None,
    }
}

/// Returns whether a number is one of the type. Unsigned 64 bits are left out above the signed ones.
pub(super) fn fits(value: i64, ty: &TensorType) -> bool {
    use safetensors::Dtype;
    match ty.dtype {
        Dtype::BOOL => (0..=1).contains(&value),
        Dtype::I8 => i8::try_from(value).is_ok(),
        Dtype::I16 => i16::try_from(value).is_ok(),
        Dtype::I32 => i32::try_from(value).is_ok(),
        Dtype::U8 => u8::try_from(value).is_ok(),
        Dtype::U16 => u16::try_from(value).is_ok(),
        Dtype::U32 => u32::try_from(value).is_ok(),
        Dtype::U64 => value >= 0,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ast::Attributes, attributes::tensor_type};
    use super::*;

    fn of(
        name: &str,
        attributes: &[(&'static str, &'static str)],
        operands: &[&[i64]],
        ty: &str,
    ) -> Option<Vec<i64>> {
        let attributes: Attributes<'_> = attributes.iter().copied().collect();
        let op = Op {
            name,
            results: None,
            operands: Vec::new(),
            attributes,
            regions: Vec::new(),
            result_types: vec![],
            location: "",
        };
        let ty = tensor_type(ty).unwrap();
        let operands: Vec<_> = operands
            .iter()
            .map(|known| Operand {
                ty: TensorType { dtype: ty.dtype, shape: vec![known.len()] },
                known: Some(known),
            })
            .collect();
        fold(&op, &operands, &ty)
    }

    #[test]
    fn integers_are_computed_as_the_specification_says() {
        assert_eq!(of("stablehlo.divide", &[], &[&[-7], &[2]], "tensor<1xi32>"), Some(vec![-3]));
        assert_eq!(of("stablehlo.remainder", &[], &[&[-7], &[2]], "tensor<1xi32>"), Some(vec![-1]));
        assert_eq!(of("stablehlo.clamp", &[], &[&[0], &[-1, 9], &[5]], "tensor<2xi32>"), Some(vec![0, 5]));
        let first = [("dimension", "0 : i64")];
        let concatenated = |ty| of("stablehlo.concatenate", &first, &[&[1], &[2, 3]], ty);
        assert_eq!(concatenated("tensor<3xi64>"), Some(vec![1, 2, 3]));
        assert_eq!(concatenated("tensor<3x1xi64>"), Some(vec![1, 2, 3]));
        assert_eq!(of("stablehlo.select", &[], &[&[0], &[1, 2], &[3, 4]], "tensor<2xi64>"), Some(vec![3, 4]));
        assert_eq!(of("stablehlo.add", &[], &[&[1], &[1]], "tensor<1xi1>"), Some(vec![1]));
    }

    #[test]
    fn what_overflows_or_has_no_meaning_stays_unknown() {
        assert_eq!(of("stablehlo.divide", &[], &[&[1], &[0]], "tensor<1xi32>"), None);
        assert_eq!(of("stablehlo.add", &[], &[&[i64::from(i32::MAX)], &[1]], "tensor<1xi32>"), None);
        assert_eq!(of("stablehlo.subtract", &[], &[&[0], &[1]], "tensor<1xui32>"), None);
        assert_eq!(of("stablehlo.sine", &[], &[&[1]], "tensor<1xi32>"), None);
        let last = [("dimension", "1 : i64")];
        assert_eq!(of("stablehlo.concatenate", &last, &[&[1, 2], &[3, 4]], "tensor<2x2xi64>"), None);
    }

    #[test]
    fn elements_that_change_places_stay_unknown() {
        let broadcast = |dimensions| {
            let attributes = [("broadcast_dimensions", dimensions)];
            of("stablehlo.broadcast_in_dim", &attributes, &[&[1, 2, 3, 4]], "tensor<2x2xi32>")
        };
        assert_eq!(broadcast("array<i64: 0, 1>"), Some(vec![1, 2, 3, 4]));
        assert_eq!(broadcast("array<i64: 1, 0>"), None);
    }

    #[test]
    fn large_numbers_without_sign_stay_unknown() {
        let constant = |value| of("stablehlo.constant", &[("value", value)], &[], "tensor<ui64>");
        assert_eq!(constant("dense<7> : tensor<ui64>"), Some(vec![7]));
        assert_eq!(constant("dense<18446744073709551615> : tensor<ui64>"), None);
    }
}
