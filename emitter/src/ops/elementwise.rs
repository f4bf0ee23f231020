//! Elementwise ops: one line each.

use safetensors::Dtype;

use crate::{
    Graph, Tensor, TensorType,
    types::{is_float, is_integer, is_signed},
};

/// Which element types an op takes.
#[derive(Clone, Copy)]
enum Takes {
    Float,
    Integer,
    Number,
    Signed,
    IntegerOrBool,
    Any,
}

impl Takes {
    fn accepts(self, dtype: Dtype) -> bool {
        match self {
            Self::Float => is_float(dtype),
            Self::Integer => is_integer(dtype),
            Self::Number => is_float(dtype) || is_integer(dtype),
            Self::Signed => is_float(dtype) || is_signed(dtype),
            Self::IntegerOrBool => is_integer(dtype) || dtype == Dtype::BOOL,
            Self::Any => true,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Float => "a floating-point type",
            Self::Integer => "an integer type",
            Self::Number => "a number type",
            Self::Signed => "a signed number type",
            Self::IntegerOrBool => "an integer or boolean type",
            Self::Any => "any type",
        }
    }
}

macro_rules! unary {
    ($($(#[$doc:meta])* $method:ident = $op:literal, $takes:ident;)*) => {
        impl Graph {$(
            $(#[$doc])*
            pub fn $method(&mut self, x: Tensor) -> Tensor {
                self.unary($op, Takes::$takes, x)
            }
        )*}
    };
}

macro_rules! binary {
    ($($(#[$doc:meta])* $method:ident = $op:literal, $takes:ident;)*) => {
        impl Graph {$(
            $(#[$doc])*
            pub fn $method(&mut self, x: Tensor, y: Tensor) -> Tensor {
                self.binary($op, Takes::$takes, x, y)
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
    /// `|x|`.
    abs = "stablehlo.abs", Signed;
    /// Cube root.
    cbrt = "stablehlo.cbrt", Float;
    /// Rounds up.
    ceil = "stablehlo.ceil", Float;
    /// Leading zero bits.
    count_leading_zeros = "stablehlo.count_leading_zeros", Integer;
    /// Cosine.
    cosine = "stablehlo.cosine", Float;
    /// `eˣ`.
    exponential = "stablehlo.exponential", Float;
    /// `eˣ - 1`.
    exponential_minus_one = "stablehlo.exponential_minus_one", Float;
    /// Rounds down.
    floor = "stablehlo.floor", Float;
    /// Natural logarithm.
    log = "stablehlo.log", Float;
    /// The error function. It is of CHLO, which iree-compile takes beside StableHLO.
    erf = "chlo.erf", Float;
    /// `log(1 + x)`.
    log_plus_one = "stablehlo.log_plus_one", Float;
    /// `1 / (1 + e⁻ˣ)`.
    logistic = "stablehlo.logistic", Float;
    /// `-x`.
    negate = "stablehlo.negate", Number;
    /// Bitwise or logical not.
    not = "stablehlo.not", IntegerOrBool;
    /// Bits that are set.
    popcnt = "stablehlo.popcnt", Integer;
    /// Rounds to the nearest, away from zero on ties.
    round_nearest_afz = "stablehlo.round_nearest_afz", Float;
    /// Rounds to the nearest, to even on ties.
    round_nearest_even = "stablehlo.round_nearest_even", Float;
    /// `1 / √x`.
    rsqrt = "stablehlo.rsqrt", Float;
    /// Sign.
    sign = "stablehlo.sign", Signed;
    /// Sine.
    sine = "stablehlo.sine", Float;
    /// `√x`.
    sqrt = "stablehlo.sqrt", Float;
    /// Tangent.
    tan = "stablehlo.tan", Float;
    /// Hyperbolic tangent.
    tanh = "stablehlo.tanh", Float;
}

binary! {
    /// `x + y`; logical or of booleans.
    add = "stablehlo.add", Any;
    /// Bitwise or logical and.
    and = "stablehlo.and", IntegerOrBool;
    /// The angle of `(y, x)`: `atan2(x, y)`.
    atan2 = "stablehlo.atan2", Float;
    /// `x / y`.
    divide = "stablehlo.divide", Number;
    /// The larger; NaN if either is.
    maximum = "stablehlo.maximum", Any;
    /// The smaller; NaN if either is.
    minimum = "stablehlo.minimum", Any;
    /// `x · y`; logical and of booleans.
    multiply = "stablehlo.multiply", Any;
    /// Bitwise or logical or.
    or = "stablehlo.or", IntegerOrBool;
    /// `xʸ`.
    power = "stablehlo.power", Number;
    /// Remainder, with the dividend's sign.
    remainder = "stablehlo.remainder", Number;
    /// `x << y`.
    shift_left = "stablehlo.shift_left", Integer;
    /// `x >> y`, copying the sign.
    shift_right_arithmetic = "stablehlo.shift_right_arithmetic", Integer;
    /// `x >> y`, filling with zeros.
    shift_right_logical = "stablehlo.shift_right_logical", Integer;
    /// `x - y`.
    subtract = "stablehlo.subtract", Number;
    /// Bitwise or logical exclusive or.
    xor = "stablehlo.xor", IntegerOrBool;
}

comparison! {
    /// `x = y`.
    eq = "EQ";
    /// `x ≠ y`.
    ne = "NE";
    /// `x ≥ y`.
    ge = "GE";
    /// `x > y`.
    gt = "GT";
    /// `x ≤ y`.
    le = "LE";
    /// `x < y`.
    lt = "LT";
}

impl Graph {
    fn unary(&mut self, op: &'static str, takes: Takes, x: Tensor) -> Tensor {
        let ty = self.type_of(x);
        if !Self::poisoned(&[x]) && !takes.accepts(ty.dtype) {
            return self.fail(op, format!("found {ty}, expected {}", takes.name()));
        }
        self.op(op, &[x], vec![], ty)
    }

    fn binary(&mut self, op: &'static str, takes: Takes, x: Tensor, y: Tensor) -> Tensor {
        let (a, b) = (self.type_of(x), self.type_of(y));
        if !Self::poisoned(&[x, y]) {
            if a != b {
                return self.fail(op, format!("found {a} and {b}, expected two of one type"));
            }
            if !takes.accepts(a.dtype) {
                return self.fail(op, format!("found {a}, expected {}", takes.name()));
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

    /// `x · factor`.
    pub fn scale(&mut self, x: Tensor, factor: f64) -> Tensor {
        if factor == 1.0 {
            return x;
        }
        let factor = self.scalar(factor, self.dtype(x));
        let factor = self.broadcast_like(factor, x);
        self.multiply(x, factor)
    }

    /// `x`, from `-limit` to `limit`.
    pub fn clip(&mut self, x: Tensor, limit: f64) -> Tensor {
        let [low, high] = [-limit, limit].map(|bound| {
            let bound = self.scalar(bound, self.dtype(x));
            self.broadcast_like(bound, x)
        });
        self.clamp(low, x, high)
    }

    /// `cap · tanh(x / cap)`.
    pub fn soft_cap(&mut self, x: Tensor, cap: f64) -> Tensor {
        let divisor = self.scalar(cap, self.dtype(x));
        let divisor = self.broadcast_like(divisor, x);
        let ratio = self.divide(x, divisor);
        let tanh = self.tanh(ratio);
        self.scale(tanh, cap)
    }

    /// `x` where `condition` holds, else `y`. The condition has the shape of both or none.
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

    /// `min(max(x, low), high)`; the bounds have the shape of `x` or none.
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

    /// Whether each element is neither infinite nor NaN.
    pub fn is_finite(&mut self, x: Tensor) -> Tensor {
        const OP: &str = "stablehlo.is_finite";
        let ty = self.type_of(x);
        if !Self::poisoned(&[x]) && !is_float(ty.dtype) {
            return self.fail(OP, format!("found {ty}, expected a floating-point type"));
        }
        self.op(OP, &[x], vec![], TensorType::new(Dtype::BOOL, ty.shape))
    }

    /// The values as another element type; nothing when it is that already.
    pub fn convert(&mut self, x: Tensor, dtype: Dtype) -> Tensor {
        let ty = self.type_of(x);
        if ty.dtype == dtype || Self::poisoned(&[x]) {
            return x;
        }
        self.op("stablehlo.convert", &[x], vec![], TensorType::new(dtype, ty.shape))
    }

    /// The bits as another element type of the same width.
    pub fn bitcast_convert(&mut self, x: Tensor, dtype: Dtype) -> Tensor {
        const OP: &str = "stablehlo.bitcast_convert";
        let ty = self.type_of(x);
        if !Self::poisoned(&[x]) && ty.dtype.bitsize() != dtype.bitsize() {
            let bits = ty.dtype.bitsize();
            return self.fail(OP, format!("found {dtype}, expected a type of {bits} bits like {ty}"));
        }
        self.op(OP, &[x], vec![], TensorType::new(dtype, ty.shape))
    }

    /// `x` rounded as if it were stored with fewer bits.
    pub fn reduce_precision(&mut self, x: Tensor, exponent_bits: u32, mantissa_bits: u32) -> Tensor {
        const OP: &str = "stablehlo.reduce_precision";
        let ty = self.type_of(x);
        if !Self::poisoned(&[x]) && (!is_float(ty.dtype) || exponent_bits == 0) {
            let problem = format!(
                "found {ty} and {exponent_bits} exponent bits, expected a floating-point type and 1 at least"
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
