//! Elementary functions that iree-compile does not have for CPUs, or that it gets wrong.
//!
//! Formulas are StableHLO, so that they are the same on every target. They keep what rounding loses in a second number, and
//! never rely on a product being rounded before it is added to another, because compilers fuse both.

mod arc;
mod exponential;
mod gamma;
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
/// Where it is a part of what combines numbers, there can be no loop.
pub(super) fn rewrite(g: &mut Graph, op: &Op<'_>, operands: &[Tensor], combines: bool) -> Option<Tensor> {
    let ty = g.type_of(*operands.first()?);
    let (is_double, is_half) = (ty.dtype == Dtype::F64, matches!(ty.dtype, Dtype::F16 | Dtype::BF16));
    if !is_double && !is_half && ty.dtype != Dtype::F32 {
        return None;
    }
    let short = op.name.split_once('.')?.1;
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
        [x, y] if short == "remainder" && is_double && !combines => remainder::remainder(g, x, y),
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
        "digamma" if is_double => gamma::digamma,
        "exponential_minus_one" if is_double => exponential::exp_minus_one,
        "lgamma" if is_double => gamma::lgamma,
        "log_plus_one" if is_double => exponential::log_plus_one,
        "tanh" if is_double => exponential::tanh,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use crate::import::replayed::{lines_with, replayed};

    fn unary(name: &str, ty: &str) -> String {
        replayed(&[ty], &format!(r#"%r = "{name}"(%0) : ({ty}) -> {ty}"#), ty).unwrap()
    }

    #[test]
    fn functions_that_compilers_get_right_stay() {
        for (name, ty, is_own) in [
            ("stablehlo.sine", "tensor<4xf32>", true),
            ("stablehlo.sine", "tensor<4xf64>", true),
            ("chlo.atan", "tensor<f32>", true),
            ("stablehlo.tanh", "tensor<4xf64>", true),
            ("stablehlo.tanh", "tensor<4xf32>", false),
            ("stablehlo.exponential", "tensor<4xf64>", false),
            ("stablehlo.sine", "tensor<4xcomplex<f32>>", false),
        ] {
            assert_ne!(unary(name, ty).contains(name), is_own, "{name} {ty}");
        }
    }

    #[test]
    fn half_precision_is_computed_in_single() {
        let mlir = unary("stablehlo.sine", "tensor<4xbf16>");
        assert_eq!(
            lines_with(&mlir, "stablehlo.convert\"(%arg0) : (tensor<4xbf16>) -> tensor<4xf32>").len(),
            1,
            "{mlir}"
        );
        assert!(lines_with(&mlir, "f64").is_empty(), "{mlir}");
    }

    #[test]
    fn what_combines_numbers_has_no_loops() {
        let lines = r#"%r = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 0>}> ({
            ^bb0(%a: tensor<f64>, %b: tensor<f64>):
              %s = "stablehlo.remainder"(%a, %b) : (tensor<f64>, tensor<f64>) -> tensor<f64>
              "stablehlo.return"(%s) : (tensor<f64>) -> ()
            }) : (tensor<4xf64>, tensor<f64>) -> tensor<f64>"#;
        let mlir = replayed(&["tensor<4xf64>", "tensor<f64>"], lines, "tensor<f64>").unwrap();
        assert!(mlir.contains("stablehlo.remainder") && !mlir.contains("stablehlo.while"), "{mlir}");
    }
}
