//! Comparing the results of a call with those that were recorded.

use mlxcel_artifacts::{Element, Tensor};

/// How far numbers may be from those that are expected, as in numpy's `allclose`: `atol + rtol · |expected|`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// The part of the number that is expected.
    pub rtol: f64,
    /// What is added to it.
    pub atol: f64,
}

/// The default is numpy's.
impl Default for Tolerance {
    fn default() -> Self {
        Self { rtol: 1e-5, atol: 1e-8 }
    }
}

/// How a tensor differs from the one that is expected.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// The types differ.
    Type {
        /// The tensor's type.
        found: String,
        /// The type that is expected.
        expected: String,
    },
    /// Some elements are too far away.
    Elements {
        /// How many.
        count: usize,
        /// How many elements there are.
        of: usize,
        /// The index of the one that is farthest beyond its tolerance.
        index: Vec<usize>,
        /// That element.
        found: Element,
        /// The one that is expected.
        expected: Element,
    },
}

/// Compares a tensor with the one that is expected. Returns the largest distance of two elements, or how they differ.
///
/// Infinite numbers are near equal ones alone, and a number that is none is near another that is none. Integers and bools
/// have tolerances too.
///
/// # Errors
/// The types differ, or an element is too far away.
pub fn compare(found: &Tensor, expected: &Tensor, tolerance: Tolerance) -> Result<f64, Difference> {
    if (found.dtype(), found.shape()) != (expected.dtype(), expected.shape()) {
        return Err(Difference::Type { found: found.to_string(), expected: expected.to_string() });
    }
    let (mut largest, mut count, mut of) = (0.0f64, 0, 0);
    let mut worst: Option<(f64, usize, Element, Element)> = None;
    for (index, (a, b)) in found.elements().zip(expected.elements()).enumerate() {
        of += 1;
        let (distance, size) = distance(a, b);
        largest = largest.max(distance);
        let excess = distance - (tolerance.atol + tolerance.rtol * size);
        // Not `excess > 0`, which is false for NaN.
        if distance == 0.0 || excess <= 0.0 {
            continue;
        }
        count += 1;
        if worst.is_none_or(|(most, ..)| excess > most) {
            worst = Some((excess, index, a, b));
        }
    }
    match worst {
        None => Ok(largest),
        Some((_, index, a, b)) => {
            let index = position(index, found.shape());
            Err(Difference::Elements { count, of, index, found: a, expected: b })
        }
    }
}

/// Returns the distance of two elements, and the size of the second; 0 if that is none or infinite, which is near no other.
fn distance(a: Element, b: Element) -> (f64, f64) {
    let real = |a: f64, b: f64| match (a.is_nan(), b.is_nan()) {
        (true, true) => 0.0,
        (false, false) if a == b => 0.0,
        // One is none or infinite.
        _ if !a.is_finite() || !b.is_finite() => f64::INFINITY,
        _ => (a - b).abs(),
    };
    let size = |size: f64| if size.is_finite() { size } else { 0.0 };
    match (a, b) {
        (Element::Complex(a, c), Element::Complex(b, d)) => {
            let [a, b, c, d] = [a, b, c, d].map(f64::from);
            (real(a, b).hypot(real(c, d)), size(b.hypot(d)))
        }
        // The distance of large integers is exact, and a float has room for it.
        (Element::Integer(a), Element::Integer(b)) => {
            ((a - b).unsigned_abs() as f64, b.unsigned_abs() as f64)
        }
        (a, b) => {
            let (a, b) = (value(a), value(b));
            (real(a, b), size(b.abs()))
        }
    }
}

fn value(element: Element) -> f64 {
    match element {
        Element::Bool(value) => f64::from(u8::from(value)),
        Element::Integer(value) => value as f64,
        Element::Single(value) | Element::Complex(value, _) => value.into(),
        Element::Double(value) => value,
    }
}

/// Returns the index of an element in each dimension.
fn position(mut index: usize, shape: &[usize]) -> Vec<usize> {
    let mut position: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&size| {
            let at = index % size.max(1);
            index /= size.max(1);
            at
        })
        .collect();
    position.reverse();
    position
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;

    use super::*;

    fn floats(values: &[f32]) -> Tensor {
        Tensor::of(&[values.len()], values).unwrap()
    }

    #[test]
    fn the_element_farthest_beyond_its_tolerance_is_shown() {
        let expected = Tensor::of(&[2, 2], &[1.0f32, 100.0, 0.0, -2.0]).unwrap();
        let found = Tensor::of(&[2, 2], &[1.0f32, 100.01, 0.5, -2.1]).unwrap();
        let tolerance = Tolerance { rtol: 1e-3, atol: 0.0 };
        assert_eq!(
            compare(&found, &expected, tolerance).unwrap_err(),
            Difference::Elements {
                count: 2,
                of: 4,
                index: vec![1, 0],
                found: Element::Single(0.5),
                expected: Element::Single(0.0)
            }
        );
        let near = compare(&found, &expected, Tolerance { rtol: 0.0, atol: 0.6 }).unwrap();
        assert!((near - 0.5).abs() < 1e-9, "{near}");
    }

    #[test]
    fn numbers_that_are_none_and_infinite_ones() {
        let loose = Tolerance { rtol: 1e30, atol: 1e30 };
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        assert_eq!(
            compare(&floats(&[inf, nan, -0.0]), &floats(&[inf, nan, 0.0]), Tolerance::default()),
            Ok(0.0)
        );
        for (found, expected) in [(inf, -inf), (1.0, inf), (inf, 1.0), (nan, 1.0), (1.0, nan)] {
            assert!(compare(&floats(&[found]), &floats(&[expected]), loose).is_err(), "{found} {expected}");
        }
    }

    #[test]
    fn complex_numbers_with_an_infinite_part() {
        let of = |real: f32, imaginary: f32| {
            Tensor::new(Dtype::C64, &[], [real.to_le_bytes(), imaginary.to_le_bytes()].concat()).unwrap()
        };
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let is_near = |found: [f32; 2], expected: [f32; 2]| {
            compare(&of(found[0], found[1]), &of(expected[0], expected[1]), Tolerance::default()).is_ok()
        };
        assert!(is_near([1.0, 2.0], [1.0, 2.000_001]) && !is_near([1.0, 2.0], [1.0, 2.1]));
        assert!(is_near([inf, 2.0], [inf, 2.0]) && is_near([nan, inf], [nan, inf]));
        // As with numbers that are finite, the other part counts.
        assert!(!is_near([inf, 2.0], [inf, 3.0]) && !is_near([3.0, -inf], [2.0, -inf]));
        assert!(!is_near([nan, 2.0], [nan, 3.0]));
    }

    #[test]
    fn integers_are_exact() {
        let exact = Tolerance { rtol: 0.0, atol: 0.0 };
        let of = |value: i64| Tensor::scalar(value);
        assert_eq!(compare(&of(i64::MAX), &of(i64::MAX), exact), Ok(0.0));
        assert!(compare(&of(i64::MAX), &of(i64::MAX - 1), exact).is_err());
        assert!(compare(&Tensor::scalar(true), &Tensor::scalar(false), exact).is_err());
        assert_eq!(
            compare(&of(1), &Tensor::scalar(1i32), exact).unwrap_err(),
            Difference::Type { found: "i64[]".into(), expected: "i32[]".into() }
        );
    }
}
