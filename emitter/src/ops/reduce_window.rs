//! Reductions of windows.

use super::{reduce::Reduction, window::Window};
use crate::{
    graph::{Graph, Tensor},
    types::TensorType,
};

const OP: &str = "stablehlo.reduce_window";

impl Graph {
    /// Combines the elements of each window. What a window has outside of `x` is neutral.
    pub fn reduce_window(&mut self, x: Tensor, reduction: Reduction, window: &Window) -> Tensor {
        let ty = self.type_of(x);
        if Self::poisoned(&[x]) {
            return x;
        }
        if let Err(problem) = reduction.check(&ty) {
            return self.fail(OP, problem);
        }
        let Some(shape) = window.counts(&ty.shape) else {
            return self.fail(OP, format!("found {ty}, expected it to fit {window:?}"));
        };
        let init = self.neutral(reduction, ty.dtype);
        let body = self.reduction_body(reduction, ty.dtype);
        let result = TensorType::new(ty.dtype, shape);
        self.op_with_regions(OP, &[x, init], window.attributes(), vec![body], vec![result.into()])[0]
    }

    /// Combines each element with those before it along `dimension`.
    pub fn cumulative(&mut self, x: Tensor, reduction: Reduction, dimension: usize) -> Tensor {
        let ty = self.type_of(x);
        let Some(&size) = ty.shape.get(dimension).filter(|_| !Self::poisoned(&[x])) else {
            return self.fail(OP, format!("found dimension {dimension}, expected one of {ty}"));
        };
        let mut window = Window::new(&vec![1; ty.rank()]);
        window.sizes[dimension] = size.max(1);
        window.padding[dimension].0 = i64::try_from(size.saturating_sub(1)).unwrap_or(i64::MAX);
        self.reduce_window(x, reduction, &window)
    }
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;

    use super::*;

    #[test]
    fn windows_are_counted_in_each_dimension() {
        let mut g = Graph::new();
        let x = g.argument(Dtype::F32, &[2, 8, 7, 3]);
        let pool = g.reduce_window(x, Reduction::Max, &Window::tiles(&[1, 2, 2, 1]));
        assert_eq!(g.shape(pool), [2, 4, 3, 3]);
        let sums = g.cumulative(x, Reduction::Sum, 1);
        assert_eq!(g.shape(sums), [2, 8, 7, 3]);
        g.reduce_window(x, Reduction::Max, &Window::new(&[2, 2]));
        let error = g.finish("f", &[]).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "graph: stablehlo.reduce_window: found tensor<2x8x7x3xf32>, expected it to fit Window"
            ),
            "{error}"
        );
    }
}
