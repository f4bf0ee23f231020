//! The walk back from results to what they depend on.

use std::collections::{HashMap, HashSet};

use super::{
    complex, control, convolution, dot, elementwise, gather, linear_algebra, loops, reads::reads_any, reduce,
    shape, sort, step::Step, window,
};
use crate::{
    graph::{Graph, Op, Tensor},
    types::{bits_type, is_complex, is_float},
};

/// The rules: each returns whether the op is of its kind, and adds ops for the gradients of its operands.
const RULES: &[fn(&mut Graph, &mut Step<'_>) -> bool] = &[
    elementwise::pull,
    complex::pull,
    shape::pull,
    reduce::pull,
    dot::pull,
    gather::pull,
    sort::pull,
    convolution::pull,
    window::pull,
    linear_algebra::pull,
    control::pull,
    loops::pull,
];

const GRADIENT: &str = "gradient";

impl Graph {
    /// Returns the gradients of the scalar `loss` with respect to tensors that it was computed from, in their types.
    ///
    /// They are computed by ops that are added here, so that they have gradients too. A tensor that the loss does not depend
    /// on has the gradient zero. Conventions are those of `jax.grad`.
    pub fn gradient(&mut self, loss: Tensor, of: &[Tensor]) -> Vec<Tensor> {
        let ty = self.type_of(loss);
        let is_loss = ty.shape.is_empty() && is_float(ty.dtype);
        if !Self::poisoned(&[loss]) && !is_loss {
            self.fail(GRADIENT, format!("found {ty}, expected a floating-point scalar"));
            return vec![Self::poison(); of.len()];
        }
        let one = self.scalar(1.0, ty.dtype);
        self.vjp(&[loss], &[one], of)
    }

    /// Returns the vector-Jacobian product: the gradients of the sum of `outputs`, each weighted by its `cotangents`, with
    /// respect to tensors that they were computed from.
    pub fn vjp(&mut self, outputs: &[Tensor], cotangents: &[Tensor], of: &[Tensor]) -> Vec<Tensor> {
        self.vjp_within(0, outputs, cotangents, of)
    }

    /// Returns `x`, which has no gradient: what depends on it does so as on a constant.
    pub fn stop_gradient(&mut self, x: Tensor) -> Tensor {
        let ty = self.type_of(x);
        if is_complex(ty.dtype) {
            let [real, imaginary] = [self.real(x), self.imag(x)].map(|part| self.stop_gradient(part));
            return self.complex(real, imaginary);
        }
        let Some(bits) = bits_type(ty.dtype) else { return x };
        let bits = self.bitcast_convert(x, bits);
        self.bitcast_convert(bits, ty.dtype)
    }

    /// Returns a vector-Jacobian product through the ops of the regions under construction from index `first` on.
    pub(super) fn vjp_within(
        &mut self,
        first: usize,
        outputs: &[Tensor],
        cotangents: &[Tensor],
        of: &[Tensor],
    ) -> Vec<Tensor> {
        let poisoned = [outputs, cotangents, of].into_iter().any(Self::poisoned);
        if poisoned || !self.check_cotangents(outputs, cotangents, of) {
            return vec![Self::poison(); of.len()];
        }
        let (ops, active) = self.path(first, of);
        let mut gradients = HashMap::new();
        for (&output, &cotangent) in outputs.iter().zip(cotangents) {
            self.accumulate(&mut gradients, output, cotangent);
        }
        for op in ops.iter().rev() {
            let results: Vec<_> = op.results.iter().map(|result| gradients.get(result).copied()).collect();
            if results.iter().all(Option::is_none) {
                continue;
            }
            let mut step = Step { op, gradients: results, active: &active, sent: Vec::new() };
            self.in_scope_of(op, |g| g.pull(&mut step));
            for (tensor, gradient) in step.sent {
                self.accumulate(&mut gradients, tensor, gradient);
            }
        }
        of.iter()
            .map(|tensor| gradients.get(tensor).copied().unwrap_or_else(|| self.zeros_like(*tensor)))
            .collect()
    }

    fn check_cotangents(&mut self, outputs: &[Tensor], cotangents: &[Tensor], of: &[Tensor]) -> bool {
        let types = |g: &Self, tensors: &[Tensor]| tensors.iter().map(|&t| g.type_of(t)).collect::<Vec<_>>();
        let (found, expected) = (types(self, cotangents), types(self, outputs));
        if found != expected {
            let list = |types: &[_]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            self.fail(GRADIENT, format!("found cotangents {}, expected {}", list(&found), list(&expected)));
            return false;
        }
        for (tensors, role) in [(outputs, "outputs to differentiate"), (of, "tensors to differentiate by")] {
            if let Some(&tensor) = tensors.iter().find(|&&tensor| !self.is_differentiable(tensor)) {
                let ty = self.type_of(tensor);
                self.fail(GRADIENT, format!("found {ty}, expected floating-point {role}"));
                return false;
            }
        }
        true
    }

    pub(super) fn is_differentiable(&self, tensor: Tensor) -> bool {
        let dtype = self.dtype(tensor);
        is_float(dtype) || is_complex(dtype)
    }

    /// Returns the ops that depend on `of`, in order, and the tensors on the way.
    fn path(&self, first: usize, of: &[Tensor]) -> (Vec<Op>, HashSet<Tensor>) {
        let mut active: HashSet<_> = of.iter().copied().collect();
        let mut ops = Vec::new();
        for op in self.open_regions().iter().skip(first).flat_map(|region| &region.ops) {
            if reads_any(op, &active) {
                active.extend(op.results.iter().copied().filter(|&result| self.is_differentiable(result)));
                ops.push(op.clone());
            }
        }
        (ops, active)
    }

    fn pull(&mut self, step: &mut Step<'_>) {
        if !RULES.iter().any(|rule| rule(self, step)) {
            let name = &step.op.name;
            let problem = format!(
                "found {name}, expected ops with a gradient\nhint: stop_gradient makes a constant of its operands"
            );
            self.fail(GRADIENT, problem);
        }
    }

    fn accumulate(&mut self, gradients: &mut HashMap<Tensor, Tensor>, tensor: Tensor, gradient: Tensor) {
        let sum = match gradients.get(&tensor) {
            Some(&known) => self.add(known, gradient),
            None => gradient,
        };
        gradients.insert(tensor, sum);
    }

    /// Returns zeros in the shape and type of a tensor.
    pub(super) fn zeros_like(&mut self, tensor: Tensor) -> Tensor {
        self.full_like(tensor, 0)
    }
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;

    use super::*;

    fn error(build: impl FnOnce(&mut Graph)) -> String {
        let mut g = Graph::new();
        build(&mut g);
        g.finish("f", &[]).unwrap_err().to_string()
    }

    #[test]
    fn a_tensor_that_the_loss_does_not_depend_on_has_the_gradient_zero() {
        let mut g = Graph::new();
        let (x, y) = (g.argument(Dtype::F32, &[]), g.argument(Dtype::F32, &[3]));
        let loss = g.sine(x);
        let gradients = g.gradient(loss, &[y, x, loss]);
        assert_eq!(gradients.iter().map(|&gradient| g.shape(gradient).len()).collect::<Vec<_>>(), [1, 0, 0]);
        assert!(g.finish("f", &gradients).is_ok());
    }

    #[test]
    fn what_is_stopped_is_a_constant() {
        for dtype in [Dtype::F32, Dtype::C64] {
            let mut g = Graph::new();
            let x = g.argument(dtype, &[2]);
            let stopped = g.stop_gradient(x);
            let (_, active) = g.path(0, &[x]);
            assert!(active.contains(&x) && !active.contains(&stopped), "{dtype}");
            assert_eq!(g.type_of(stopped), g.type_of(x));
        }
    }

    #[test]
    fn what_has_no_gradient_is_an_error_in_its_scope() {
        let error = error(|g| {
            let (x, count) = (g.argument(Dtype::F32, &[]), g.argument(Dtype::I32, &[]));
            let looped = g.scope("layer.2", |g| {
                let zero = g.scalar(0.0, Dtype::I32);
                g.while_loop(&[count, x], |g, s| g.gt(s[0], zero), |g, s| vec![g.not(s[0]), g.sine(s[1])])
            });
            g.scope("training", |g| g.gradient(looped[1], &[x]));
        });
        assert_eq!(
            error,
            "layer.2: gradient: found stablehlo.while, expected ops with a gradient\nhint: stop_gradient makes a constant \
             of its operands"
        );
    }

    #[test]
    fn losses_are_scalars_and_what_they_are_differentiated_by_is_real() {
        assert_eq!(
            error(|g| {
                let x = g.argument(Dtype::F32, &[2]);
                g.gradient(x, &[x]);
            }),
            "graph: gradient: found tensor<2xf32>, expected a floating-point scalar"
        );
        assert_eq!(
            error(|g| {
                let (x, at) = (g.argument(Dtype::F32, &[]), g.argument(Dtype::I32, &[2]));
                g.gradient(x, &[at]);
            }),
            "graph: gradient: found tensor<2xi32>, expected floating-point tensors to differentiate by"
        );
        assert_eq!(
            error(|g| {
                let (x, y) = (g.argument(Dtype::F32, &[]), g.argument(Dtype::F32, &[2]));
                g.vjp(&[x], &[y], &[x]);
            }),
            "graph: gradient: found cotangents tensor<2xf32>, expected tensor<f32>"
        );
        assert_eq!(
            error(|g| {
                let x = g.argument(Dtype::F32, &[2]);
                let whole = g.convert(x, Dtype::I32);
                let one = g.full(1.0, Dtype::I32, &[2]);
                g.vjp(&[whole], &[one], &[x]);
            }),
            "graph: gradient: found tensor<2xi32>, expected floating-point outputs to differentiate"
        );
    }
}
