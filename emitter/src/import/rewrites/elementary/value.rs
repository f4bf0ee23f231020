//! Tensors of a formula, which is then written as one writes numbers: `(x + 1.0) * y`.

use std::{
    cell::RefCell,
    ops::{Add, Div, Mul, Neg, Sub},
};

use safetensors::Dtype;

use crate::graph::{Graph, Tensor};

/// The graph that formulas are added to.
pub(super) struct Math<'g> {
    graph: RefCell<&'g mut Graph>,
}

/// A tensor of a formula. A number beside one stands for a tensor of its type.
#[derive(Clone, Copy)]
pub(super) struct Value<'m, 'g> {
    math: &'m Math<'g>,
    tensor: Tensor,
}

impl<'g> Math<'g> {
    pub(super) fn new(graph: &'g mut Graph) -> Self {
        Self { graph: RefCell::new(graph) }
    }

    pub(super) fn value(&self, tensor: Tensor) -> Value<'_, 'g> {
        Value { math: self, tensor }
    }
}

/// A function of a graph with one operand.
type Unary = fn(&mut Graph, Tensor) -> Tensor;

/// A function of a graph with two operands.
type Binary = fn(&mut Graph, Tensor, Tensor) -> Tensor;

impl<'m, 'g> Value<'m, 'g> {
    pub(super) fn tensor(self) -> Tensor {
        self.tensor
    }

    pub(super) fn dtype(self) -> Dtype {
        self.math.graph.borrow().dtype(self.tensor)
    }

    /// Adds ops to the graph.
    pub(super) fn with(self, f: impl FnOnce(&mut Graph, Tensor) -> Tensor) -> Self {
        let tensor = f(&mut self.math.graph.borrow_mut(), self.tensor);
        Self { math: self.math, tensor }
    }

    /// Returns a number in the shape and type of this tensor.
    pub(super) fn number(self, number: f64) -> Self {
        self.with(|g, x| {
            let ty = g.type_of(x);
            g.full(number, ty.dtype, &ty.shape)
        })
    }

    pub(super) fn apply(self, op: Unary) -> Self {
        self.with(op)
    }

    pub(super) fn with_value(self, op: Binary, other: Self) -> Self {
        self.with(|g, x| op(g, x, other.tensor))
    }

    pub(super) fn with_number(self, op: Binary, number: f64) -> Self {
        self.with_value(op, self.number(number))
    }

    pub(super) fn abs(self) -> Self {
        self.apply(Graph::abs)
    }

    pub(super) fn sqrt(self) -> Self {
        self.apply(Graph::sqrt)
    }

    pub(super) fn exp(self) -> Self {
        self.apply(Graph::exponential)
    }

    pub(super) fn log(self) -> Self {
        self.apply(Graph::log)
    }

    pub(super) fn equals(self, other: Self) -> Self {
        self.with_value(Graph::eq, other)
    }

    pub(super) fn is(self, number: f64) -> Self {
        self.with_number(Graph::eq, number)
    }

    pub(super) fn above(self, number: f64) -> Self {
        self.with_number(Graph::gt, number)
    }

    pub(super) fn below(self, number: f64) -> Self {
        self.with_number(Graph::lt, number)
    }

    pub(super) fn and(self, other: Self) -> Self {
        self.with_value(Graph::and, other)
    }

    pub(super) fn or(self, other: Self) -> Self {
        self.with_value(Graph::or, other)
    }

    /// Returns `yes` where this is true, otherwise `no`.
    pub(super) fn select(self, yes: Self, no: Self) -> Self {
        self.with(|g, condition| g.select(condition, yes.tensor, no.tensor))
    }

    pub(super) fn shift_left(self, bits: u32) -> Self {
        self.with_number(Graph::shift_left, f64::from(bits))
    }

    pub(super) fn shift_right(self, bits: u32) -> Self {
        self.with_number(Graph::shift_right_logical, f64::from(bits))
    }

    /// Returns the bits of a float.
    pub(super) fn bits(self) -> Self {
        let dtype = if self.dtype() == Dtype::F64 { Dtype::I64 } else { Dtype::I32 };
        self.with(|g, x| g.bitcast_convert(x, dtype))
    }

    /// Returns the float that has these bits.
    pub(super) fn float_of_bits(self) -> Self {
        let dtype = if self.dtype() == Dtype::I64 { Dtype::F64 } else { Dtype::F32 };
        self.with(|g, x| g.bitcast_convert(x, dtype))
    }

    /// Returns integers as floats of as many bits.
    pub(super) fn float(self) -> Self {
        let dtype = if self.dtype() == Dtype::I64 { Dtype::F64 } else { Dtype::F32 };
        self.with(|g, x| g.convert(x, dtype))
    }

    /// Returns whether a float has the sign, zeros included.
    pub(super) fn has_sign(self) -> Self {
        self.bits().below(0.0)
    }

    /// Returns this with the sign of another float, if it has none.
    pub(super) fn with_sign_of(self, other: Self) -> Self {
        other.has_sign().select(-self, self)
    }

    /// Returns a polynomial of this, with the constant first.
    pub(super) fn polynomial(self, coefficients: &[f64]) -> Self {
        let mut reversed = coefficients.iter().rev();
        let last = reversed.next().copied().unwrap_or_default();
        reversed.fold(self.number(last), |sum, &coefficient| sum * self + coefficient)
    }
}

macro_rules! operators {
    ($($operator:ident $method:ident $op:ident;)*) => {$(
        impl $operator for Value<'_, '_> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                self.with_value(Graph::$op, other)
            }
        }

        impl $operator<f64> for Value<'_, '_> {
            type Output = Self;
            fn $method(self, other: f64) -> Self {
                self.with_number(Graph::$op, other)
            }
        }
    )*};
}

operators! {
    Add add add;
    Div div divide;
    Mul mul multiply;
    Sub sub subtract;
}

impl Neg for Value<'_, '_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.apply(Graph::negate)
    }
}
