//! The remainder of numbers divided by π/2, exact for numbers of every size.
//!
//! A number is `m · 2^e` with an integer `m`. Of the bits of 2/π those matter that are neither multiples of 4 once multiplied by
//! it, nor too small. Products of `m` with these bits are integers in limbs of half a word.

use safetensors::Dtype;

use super::value::Value;
use crate::graph::{Graph, Tensor};

/// The bits of 2/π behind the point.
const TWO_OVER_PI: [u32; 37] = [
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
    0xfe51_63ab,
    0xdebb_c561,
    0xb724_6e3a,
    0x424d_d2e0,
    0x0649_2eea,
    0x09d1_921c,
    0xfe1d_eb1c,
    0xb129_a73e,
    0xe882_35f5,
    0x2ebb_4484,
    0xe99c_7026,
    0xb45f_7e41,
    0x3991_d639,
    0x8353_39f4,
    0x9c84_5f8b,
    0xbdf9_283b,
    0x1ff8_97ff,
    0xde05_980f,
    0xef2f_118b,
    0x5a0a_6d1f,
    0x6d36_7ecf,
    0x27cb_09b7,
    0x4f46_3f66,
    0x9e5f_ea2d,
    0x7527_bac7,
    0xebe5_f17b,
    0x3d07_39f7,
    0x8a52_92ea,
    0x6bfb_5fb1,
    0x1f8d_5d08,
    0x5603_3046,
];

/// The limbs of a product.
const LIMBS: usize = 6;

/// The upper half of π/2 in `f64` and in `f32`, and what it lacks.
const HALF_PI: [[f64; 2]; 2] =
    [[1.570_796_310_901_641_8, 1.589_325_477_352_819_6e-8], [1.570_312_5, 0.000_483_826_794_896_619_26]];

/// How a type has its numbers.
#[derive(Clone, Copy)]
struct Format {
    mantissa: u32,
    bias: f64,
    /// The bits of a limb.
    limb: u32,
    half_pi: [f64; 2],
}

/// A number as `quarter · π/2 + high + low`.
pub(super) struct Turns<'m, 'g> {
    /// An integer modulo 4.
    pub(super) quarter: Value<'m, 'g>,
    /// From -π/4 to π/4.
    pub(super) high: Value<'m, 'g>,
    pub(super) low: Value<'m, 'g>,
}

impl<'m, 'g> Turns<'m, 'g> {
    /// Divides numbers without sign.
    pub(super) fn new(x: Value<'m, 'g>) -> Self {
        let format = if x.dtype() == Dtype::F64 {
            Format { mantissa: 52, bias: 1075.0, limb: 32, half_pi: HALF_PI[0] }
        } else {
            Format { mantissa: 23, bias: 150.0, limb: 16, half_pi: HALF_PI[1] }
        };
        let product = product(x, format);
        let Format { limb, .. } = format;
        // The first two bits are quarters, the next says whether the nearest one is above.
        let top = product[0];
        let half = top.shift_right(limb - 3).with_number(Graph::and, 1.0);
        let quarter = top.shift_right(limb - 2) + half;
        let is_above = half.is(1.0);
        let mask = f64::from(2).powi(limb as i32) - 1.0;
        let top = top.with_number(Graph::and, f64::from(2).powi(limb as i32 - 2) - 1.0);
        let complement = |value: Value<'m, 'g>, mask: f64| {
            let other = value.with_number(Graph::xor, mask);
            is_above.select(other, value)
        };
        let first = complement(top, f64::from(2).powi(limb as i32 - 2) - 1.0);
        let rest = [1, 2, 3].map(|index| complement(product[index], mask));
        let scale = |index: i32| f64::from(2).powi(2 - limb as i32 * (index + 1));
        let [a, b, c, d] = [(first, 0), (rest[0], 1), (rest[1], 2), (rest[2], 3)]
            .map(|(limb, index)| limb.float() * scale(index));
        let sum = a + b;
        let behind = (b - (sum - a)) + (c + d);
        let fraction = sum + behind;
        let behind = behind - (fraction - sum);
        let (high, low) = multiplied(fraction, behind, format);
        let (high, low) = (is_above.select(-high, high), is_above.select(-low, low));
        // What is within the first eighth stays as it is.
        let is_small = x.below(std::f64::consts::FRAC_PI_4);
        Self {
            quarter: is_small.select(quarter.number(0.0), quarter),
            high: is_small.select(x, high),
            low: is_small.select(low.number(0.0), low),
        }
    }
}

/// Returns the limbs of a number multiplied by 2/π, the first one first: two bits before the point, all others behind it.
fn product<'m, 'g>(x: Value<'m, 'g>, format: Format) -> [Value<'m, 'g>; LIMBS] {
    let Format { mantissa, bias, limb, .. } = format;
    let mask = f64::from(2).powi(limb as i32) - 1.0;
    let bits = x.bits();
    let one = f64::from(2).powi(mantissa as i32);
    let number = bits.with_number(Graph::and, one - 1.0).with_number(Graph::or, one);
    // The table begins with two limbs of zeros, for numbers around one.
    let start = bits.shift_right(mantissa) - (bias + 2.0 - 2.0 * f64::from(limb));
    let last = f64::from(limb) * f64::from(if limb == 32 { 33 } else { 9 }) - 1.0;
    let start = start.with(|g, start| clamped(g, start, last));
    let (index, shift) =
        (start.shift_right(limb.ilog2()), start.with_number(Graph::and, f64::from(limb - 1)));
    let words = words(index, limb);
    let shift = shift.number(f64::from(limb)) - shift;
    let window: Vec<_> = (0..LIMBS)
        .map(|at| {
            let both = words[at].shift_left(limb).with_value(Graph::or, words[at + 1]);
            both.with_value(Graph::shift_right_logical, shift).with_number(Graph::and, mask)
        })
        .collect();
    let factors = [number.with_number(Graph::and, mask), number.shift_right(limb)];
    let mut result = [number; LIMBS];
    let mut sum = number.number(0.0);
    for place in 0..LIMBS {
        for (at, factor) in factors.iter().enumerate() {
            if let Some(low) = place.checked_sub(at) {
                sum = sum + (*factor * window[LIMBS - 1 - low]).with_number(Graph::and, mask);
            }
            if let Some(high) = place.checked_sub(at + 1) {
                sum = sum + (*factor * window[LIMBS - 1 - high]).shift_right(limb);
            }
        }
        result[LIMBS - 1 - place] = sum.with_number(Graph::and, mask);
        sum = sum.shift_right(limb);
    }
    result
}

fn clamped(g: &mut Graph, x: Tensor, last: f64) -> Tensor {
    let dtype = g.dtype(x);
    let (zero, last) = (g.scalar(0.0, dtype), g.scalar(last, dtype));
    g.clamp(zero, x, last)
}

/// Returns the words of the table from an index on.
///
/// The table is moved by powers of two, where the index has them: compilers make one vector of that, which they do not of loads.
fn words<'m, 'g>(index: Value<'m, 'g>, limb: u32) -> Vec<Value<'m, 'g>> {
    let table: Vec<u32> = if limb == 32 {
        [0, 0].into_iter().chain(TWO_OVER_PI).collect()
    } else {
        let halves = TWO_OVER_PI.iter().flat_map(|word| [word >> 16, word & 0xffff]);
        [0, 0].into_iter().chain(halves).take(15).collect()
    };
    let mut words: Vec<_> = table.into_iter().map(|word| index.number(f64::from(word))).collect();
    let zero = index.number(0.0);
    for step in (0..=words.len().ilog2()).rev() {
        let is_moved = index.shift_right(step).with_number(Graph::and, 1.0).is(1.0);
        let next = (0..words.len().min(LIMBS + (1 << step))).map(|at| {
            let moved = words.get(at + (1 << step)).copied().unwrap_or(zero);
            is_moved.select(moved, words[at])
        });
        words = next.collect();
    }
    words
}

/// Returns a fraction multiplied by π/2, in two parts.
fn multiplied<'m, 'g>(
    fraction: Value<'m, 'g>,
    behind: Value<'m, 'g>,
    format: Format,
) -> (Value<'m, 'g>, Value<'m, 'g>) {
    let [upper, lower] = format.half_pi;
    // Products of halves are exact, so that it makes no difference whether the compiler fuses them with sums.
    let mask = -f64::from(2).powi(format.mantissa.div_ceil(2) as i32);
    let first = fraction.bits().with_number(Graph::and, mask).float_of_bits();
    let second = fraction - first;
    let exact = first * upper;
    let rest = first * lower + second * upper + second * lower + behind * (upper + lower);
    let high = exact + rest;
    (high, rest - (high - exact))
}
