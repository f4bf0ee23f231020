//! Prints a module with a function for each op that has a gradient: `gradients elementwise`, `structure` or `products`.
//!
//! A function takes the op's operands `x0`, `x1`, … and the gradient of its result, `d`. It returns the result, and the
//! gradients of its operands. `oracle.py` has the same functions in JAX.

mod elementwise;
mod products;
mod structure;

use std::{
    env,
    io::{self, Write},
};

use mlxcel_emitter::{Error, Graph, Module, Tensor};
use safetensors::Dtype;

/// A function of floats, or of complex numbers if its name begins with `complex_`.
pub(crate) struct Case {
    name: &'static str,
    shapes: &'static [&'static [usize]],
    body: fn(&mut Graph, &[Tensor]) -> Tensor,
}

/// The functions by group.
pub(crate) const GROUPS: [(&str, &[Case]); 3] =
    [("elementwise", elementwise::CASES), ("structure", structure::CASES), ("products", products::CASES)];

fn main() -> io::Result<()> {
    let asked = env::args().nth(1);
    let group = GROUPS.into_iter().find(|(name, _)| asked.as_deref() == Some(name));
    let group = group.ok_or_else(|| io::Error::other("expected elementwise, structure or products"))?;
    let text = module(group.1).map_err(io::Error::other)?;
    io::stdout().write_all(text.as_bytes())
}

/// Returns a module of functions as MLIR text.
pub(crate) fn module(cases: &[Case]) -> Result<String, Error> {
    let mut module = Module::new("gradients");
    for case in cases {
        let mut g = Graph::new();
        let dtype = if case.name.starts_with("complex_") { Dtype::C64 } else { Dtype::F32 };
        let operands: Vec<_> = case
            .shapes
            .iter()
            .enumerate()
            .map(|(index, shape)| g.named_argument(format!("x{index}"), dtype, shape))
            .collect();
        let result = (case.body)(&mut g, &operands);
        let ty = g.type_of(result);
        let d = g.named_argument("d", ty.dtype, &ty.shape);
        let gradients = g.vjp(&[result], &[d], &operands);
        let names: Vec<_> = (0..gradients.len()).map(|index| format!("g{index}")).collect();
        let gradients = names.iter().map(String::as_str).zip(gradients);
        let results: Vec<_> = [("result", result)].into_iter().chain(gradients).collect();
        module.add(g.finish_named(case.name, &results)?);
    }
    module.to_mlir()
}
