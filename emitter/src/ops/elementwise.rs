//! Elementwise ops, one line each.

use safetensors::Dtype;

use crate::{
    graph::{Graph, Tensor},
    types::{TensorType, is_complex, is_float, is_integer, is_signed},
};

/// The element types that an op accepts.
#[derive(Clone, Copy)]
enum ElementTypes {
    Float,
    FloatOrComplex,
    Integer,
    Number,
    NumberOrComplex,
    Signed,
    IntegerOrBool,
    Any,
}

impl ElementTypes {
    fn accepts(self, dtype: Dtype) -> bool {
        match self {
            Self::Float => is_float(dtype),
            Self::FloatOrComplex => is_float(dtype) || is_complex(dtype),
            Self::Integer => is_integer(dtype),
            Self::Number => is_float(dtype) || is_integer(dtype),
            Self::NumberOrComplex => is_float(dtype) || is_integer(dtype) || is_complex(dtype),
            Self::Signed => is_float(dtype) || is_signed(dtype),
            Self::IntegerOrBool => is_integer(dtype) || dtype == Dtype::BOOL,
            Self::Any => true,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Float => "a floating-point type",
            Self::FloatOrComplex => "a floating-point or complex type",
            Self::Integer => "an integer type",
            Self::Number => "a number type",
            Self::NumberOrComplex => "a number or complex type",
            Self::Signed => "a signed number type",
            Self::IntegerOrBool => "an integer or boolean type",
            Self::Any => "any type",
        }
    }
}

macro_rules! unary {
    ($($(#[$doc:meta])* $method:ident = $op:literal, $types:ident;)*) => {
        impl Graph {$(
            $(#[$doc])*
            pub fn $method(&mut self, x: Tensor) -> Tensor {
                self.unary($op, ElementTypes::$types, x)
            }
        )*}
    };
}

macro_rules! binary {
    ($($(#[$doc:meta])* $method:ident = $op:literal, $types:ident;)*) => {
        impl Graph {$(
            $(#[$doc])*
            pub fn $method(&mut self, x: Tensor, y: Tensor) -> Tensor {
                self.binary($op, ElementTypes::$types, x, y)
            }
        )*}
    };
}

macro_rules! comparison {
    ($($(#[$doc:meta])* $method:ident = $direction:literal;)*) => {
        impl Graph {$(
            $(#[$doc])*
            pub fn $method(&mut self, x: Tensor, y: Tensor) -> Tensor {
                self.compare($direction, x, y)
            }
        )*}
    };
}

unary! {
    /// Returns the cube root.
    cbrt = "stablehlo.cbrt", Float;
    /// Rounds up.
    ceil = "stablehlo.ceil", Float;
    /// Counts leading zero bits.
    count_leading_zeros = "stablehlo.count_leading_zeros", Integer;
    /// Returns the cosine.
    cosine = "stablehlo.cosine", FloatOrComplex;
    /// Returns the error function. It is an op of CHLO, which iree-compile accepts too.
    erf = "chlo.erf", Float;
    /// Returns the inverse of the error function. It is an op of CHLO, as `erf`.
    erf_inv = "chlo.erf_inv", Float;
    /// Returns `eˣ`.
    exponential = "stablehlo.exponential", FloatOrComplex;
    /// Returns `eˣ - 1`.
    exponential_minus_one = "stablehlo.exponential_minus_one", FloatOrComplex;
    /// Rounds down.
    floor = "stablehlo.floor", Float;
    /// Returns the natural logarithm.
    log = "stablehlo.log", FloatOrComplex;
    /// Returns `log(1 + x)`.
    log_plus_one = "stablehlo.log_plus_one", FloatOrComplex;
    /// Returns `1 / (1 + e⁻ˣ)`.
    logistic = "stablehlo.logistic", FloatOrComplex;
    /// Returns `-x`.
    negate = "stablehlo.negate", NumberOrComplex;
    /// Returns the bitwise or logical not.
    not = "stablehlo.not", IntegerOrBool;
    /// Counts the bits that are set.
    popcnt = "stablehlo.popcnt", Integer;
    /// Rounds to the nearest integer, away from zero on ties.
    round_nearest_afz = "stablehlo.round_nearest_afz", Float;
    /// Rounds to the nearest integer, to even on ties.
    round_nearest_even = "stablehlo.round_nearest_even", Float;
    /// Returns `1 / √x`.
    rsqrt = "stablehlo.rsqrt", FloatOrComplex;
    /// Returns the sign: -1, 0 or 1.
    sign = "stablehlo.sign", Signed;
    /// Returns the sine.
    sine = "stablehlo.sine", FloatOrComplex;
    /// Returns `√x`.
    sqrt = "stablehlo.sqrt", FloatOrComplex;
    /// Returns the tangent.
    tan = "stablehlo.tan", FloatOrComplex;
    /// Returns the hyperbolic tangent.
    tanh = "stablehlo.tanh", FloatOrComplex;
}

binary! {
    /// Returns `x + y`, or the logical or of booleans.
    add = "stablehlo.add", Any;
    /// Returns the bitwise or logical and.
    and = "stablehlo.and", IntegerOrBool;
    /// Returns `atan2(x, y)`: the angle of the point `(y, x)`.
    atan2 = "stablehlo.atan2", Float;
    /// Returns `x / y`.
    divide = "stablehlo.divide", NumberOrComplex;
    /// Returns the larger element, or NaN if either is NaN.
    maximum = "stablehlo.maximum", Any;
    /// Returns the smaller element, or NaN if either is NaN.
    minimum = "stablehlo.minimum", Any;
    /// Returns `x · y`, or the logical and of booleans.
    multiply = "stablehlo.multiply", Any;
    /// Returns the bitwise or logical or.
    or = "stablehlo.or", IntegerOrBool;
    /// Returns `xʸ`.
    power = "stablehlo.power", NumberOrComplex;
    /// Returns the remainder, with the dividend's sign.
    remainder = "stablehlo.remainder", Number;
    /// Returns `x << y`.
    shift_left = "stablehlo.shift_left", Integer;
    /// Returns `x >> y`, copying the sign.
    shift_right_arithmetic = "stablehlo.shift_right_arithmetic", Integer;
    /// Returns `x >> y`, filling with zeros.
    shift_right_logical = "stablehlo.shift_right_logical", Integer;
    /// Returns `x - y`.
    subtract = "stablehlo.subtract", NumberOrComplex;
    /// Returns the bitwise or logical exclusive or.
    xor = "stablehlo.xor", IntegerOrBool;
}

comparison! {
    /// Returns `x = y`.
    eq = "EQ";
    /// Returns `x ≠ y`.
    ne = "NE";
    /// Returns `x ≥ y`.
    ge = "GE";
    /// Returns `x > y`.
    gt = "GT";
    /// Returns `x ≤ y`.
    le = "LE";
    /// Returns `x < y`.
    lt = "LT";
}

impl Graph {
    fn unary(&mut self, op: &'static str, types: ElementTypes, x: Tensor) -> Tensor {
        let ty = self.type_of(x);
        if !Self::poisoned(&[x]) && !types.accepts(ty.dtype) {
            return self.fail(op, format!("found {ty}, expected {}", types.name()));
        }
        self.op(op, &[x], vec![], ty)
    }

    fn binary(&mut self, op: &'static str, types: ElementTypes, x: Tensor, y: Tensor) -> Tensor {
        let (a, b) = (self.type_of(x), self.type_of(y));
        if !Self::poisoned(&[x, y]) {
            if a != b {
                return self.fail(op, format!("found {a} and {b}, expected two of one type"));
            }
            if !types.accepts(a.dtype) {
                return self.fail(op, format!("found {a}, expected {}", types.name()));
            }
        }
        self.op(op, &[x, y], vec![], a)
    }

    fn compare(&mut self, direction: &str, x: Tensor, y: Tensor) -> Tensor {
        const OP: &str = "stablehlo.compare";
        let (a, b) = (self.type_of(x), self.type_of(y));
        if !Self::poisoned(&[x, y]) && a != b {
            return self.fail(OP, format!("found {a} and {b}, expected two of one type"));
        }
        let direction = format!("#stablehlo<comparison_direction {direction}>");
        let result = TensorType::new(Dtype::BOOL, a.shape);
        self.op(OP, &[x, y], vec![("comparison_direction", direction)], result)
    }

    /// Returns `|x|`, which is real for complex numbers.
    pub fn abs(&mut self, x: Tensor) -> Tensor {
        const OP: &str = "stablehlo.abs";
        let ty = self.type_of(x);
        if is_complex(ty.dtype) {
            return self.op(OP, &[x], vec![], TensorType::new(Dtype::F32, ty.shape));
        }
        self.unary(OP, ElementTypes::Signed, x)
    }

    /// Returns `x · factor`.
    pub fn scale(&mut self, x: Tensor, factor: f64) -> Tensor {
        if factor == 1.0 {
            return x;
        }
        let factor = self.scalar(factor, self.dtype(x));
        let factor = self.broadcast_like(factor, x);
        self.multiply(x, factor)
    }

    /// Returns `op(x, number)`, where `x` are integers.
    pub(crate) fn with_number(
        &mut self,
        x: Tensor,
        number: i32,
        op: fn(&mut Self, Tensor, Tensor) -> Tensor,
    ) -> Tensor {
        let TensorType { dtype, shape } = self.type_of(x);
        let number = self.full(f64::from(number), dtype, &shape);
        op(self, x, number)
    }

    /// Clamps `x` to the range from `-limit` to `limit`.
    pub fn clip(&mut self, x: Tensor, limit: f64) -> Tensor {
        let [low, high] = [-limit, limit].map(|bound| {
            let bound = self.scalar(bound, self.dtype(x));
            self.broadcast_like(bound, x)
        });
        self.clamp(low, x, high)
    }

    /// Returns `cap · tanh(x / cap)`.
    pub fn soft_cap(&mut self, x: Tensor, cap: f64) -> Tensor {
        let divisor = self.scalar(cap, self.dtype(x));
        let divisor = self.broadcast_like(divisor, x);
        let ratio = self.divide(x, divisor);
        let tanh = self.tanh(ratio);
        self.scale(tanh, cap)
    }

    /// Returns `x` where `condition` is true, otherwise `y`. The condition has their shape or is a scalar.
    pub fn select(&mut self, condition: Tensor, x: Tensor, y: Tensor) -> Tensor {
        const OP: &str = "stablehlo.select";
        let (c, a, b) = (self.type_of(condition), self.type_of(x), self.type_of(y));
        if !Self::poisoned(&[condition, x, y]) {
            if a != b {
                return self.fail(OP, format!("found {a} and {b}, expected two of one type"));
            }
            if c.dtype != Dtype::BOOL || !(c.shape.is_empty() || c.shape == a.shape) {
                let expected = TensorType::new(Dtype::BOOL, a.shape);
                return self.fail(OP, format!("found condition {c}, expected {expected} or tensor<i1>"));
            }
        }
        self.op(OP, &[condition, x, y], vec![], a)
    }

    /// Returns `min(max(x, low), high)`. The bounds have the shape of `x` or are scalars.
    pub fn clamp(&mut self, low: Tensor, x: Tensor, high: Tensor) -> Tensor {
        const OP: &str = "stablehlo.clamp";
        let ty = self.type_of(x);
        for bound in [low, high] {
            let b = self.type_of(bound);
            let fits = b.dtype == ty.dtype && (b.shape.is_empty() || b.shape == ty.shape);
            if !Self::poisoned(&[low, x, high]) && !fits {
                return self.fail(OP, format!("found bound {b}, expected {ty} or a scalar of its type"));
            }
        }
        self.op(OP, &[low, x, high], vec![], ty)
    }

    /// Returns whether each element is neither infinite nor NaN.
    pub fn is_finite(&mut self, x: Tensor) -> Tensor {
        const OP: &str = "stablehlo.is_finite";
        let ty = self.type_of(x);
        if !Self::poisoned(&[x]) && !is_float(ty.dtype) {
            return self.fail(OP, format!("found {ty}, expected a floating-point type"));
        }
        self.op(OP, &[x], vec![], TensorType::new(Dtype::BOOL, ty.shape))
    }

    /// Converts `x` to another element type. Adds no op if `x` has that type.
    pub fn convert(&mut self, x: Tensor, dtype: Dtype) -> Tensor {
        let ty = self.type_of(x);
        if ty.dtype == dtype || Self::poisoned(&[x]) {
            return x;
        }
        self.op("stablehlo.convert", &[x], vec![], TensorType::new(dtype, ty.shape))
    }

    /// Reinterprets the bits of `x` as another element type of the same width.
    pub fn bitcast_convert(&mut self, x: Tensor, dtype: Dtype) -> Tensor {
        const OP: &str = "stablehlo.bitcast_convert";
        let ty = self.type_of(x);
        if ty.dtype == dtype {
            return x;
        }
        if !Self::poisoned(&[x]) && ty.dtype.bitsize() != dtype.bitsize() {
            let bits = ty.dtype.bitsize();
            return self.fail(OP, format!("found {dtype}, expected a type of {bits} bits like {ty}"));
        }
        self.op(OP, &[x], vec![], TensorType::new(dtype, ty.shape))
    }

    /// Rounds `x` as if it were stored with fewer bits.
    pub fn reduce_precision(&mut self, x: Tensor, exponent_bits: u32, mantissa_bits: u32) -> Tensor {
        const OP: &str = "stablehlo.reduce_precision";
        let ty = self.type_of(x);
        if !Self::poisoned(&[x]) && (!is_float(ty.dtype) || exponent_bits == 0) {
            let problem = format!(
                "found {ty} and {exponent_bits} exponent bits, expected a floating-point type and at least 1"
            );
            return self.fail(OP, problem);
        }
        let attributes = vec![
            ("exponent_bits", format!("{exponent_bits} : i32")),
            ("mantissa_bits", format!("{mantissa_bits} : i32")),
        ];
        self.op(OP, &[x], attributes, ty)
    }
}
