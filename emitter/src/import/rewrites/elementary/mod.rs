//! Elementary functions that iree-compile does not have for CPUs, or that it gets wrong.
//!
//! Formulas are StableHLO, so that they are the same on every target. They keep what rounding loses in a second number, and
//! never rely on a product being rounded before it is added to another, because compilers fuse both.

mod arc;
mod exponential;
mod remainder;
mod trigonometry;
mod turns;
mod value;

use safetensors::Dtype;

use self::value::{Math, Value};
use super::super::ast::Op;
use crate::graph::{Graph, Tensor};

/// A function of one number.
type Formula = for<'m, 'g> fn(Value<'m, 'g>) -> Value<'m, 'g>;

/// Returns what stands for a function, if it is one of these.
///
/// Where it is a part of what combines numbers, there can be neither a table nor a loop.
pub(super) fn rewrite(g: &mut Graph, op: &Op<'_>, operands: &[Tensor], combines: bool) -> Option<Tensor> {
    let ty = g.type_of(*operands.first()?);
    let (is_double, is_half) = (ty.dtype == Dtype::F64, matches!(ty.dtype, Dtype::F16 | Dtype::BF16));
    if !is_double && !is_half && ty.dtype != Dtype::F32 {
        return None;
    }
    let short = op.name.split_once('.')?.1;
    if combines && matches!(short, "cosine" | "remainder" | "sine" | "tan") {
        return None;
    }
    let operands: Vec<_> =
        operands.iter().map(|&x| if is_half { g.convert(x, Dtype::F32) } else { x }).collect();
    let result = match *operands.as_slice() {
        [x] => {
            let formula = unary(short, is_double)?;
            formula(Math::new(g).value(x)).tensor()
        }
        [y, x] if short == "atan2" => {
            let math = Math::new(g);
            arc::atan2(math.value(y), math.value(x)).tensor()
        }
        [x, y] if short == "remainder" && is_double => remainder::remainder(g, x, y),
        _ => return None,
    };
    Some(g.convert(result, ty.dtype))
}

fn unary(name: &str, is_double: bool) -> Option<Formula> {
    Some(match name {
        "acos" => arc::acos,
        "asin" => arc::asin,
        "atan" => arc::atan,
        "cbrt" => exponential::cbrt,
        "cosh" => exponential::cosh,
        "cosine" => trigonometry::cosine,
        "sine" => trigonometry::sine,
        "sinh" => exponential::sinh,
        "tan" => trigonometry::tangent,
        "asinh" if is_double => exponential::asinh,
        "atanh" if is_double => exponential::atanh,
        "exponential_minus_one" if is_double => exponential::exp_minus_one,
        "log_plus_one" if is_double => exponential::log_plus_one,
        "tanh" if is_double => exponential::tanh,
        _ => return None,
    })
}
