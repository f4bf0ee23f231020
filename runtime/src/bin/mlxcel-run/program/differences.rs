//! Words about how results differ from those that are expected.

use mlxcel_runtime::{Difference, Tolerance};

/// Returns what a comparison has found.
pub(super) fn line(name: &str, result: &Result<f64, Difference>, tolerance: Tolerance) -> String {
    let Tolerance { rtol, atol } = tolerance;
    match result {
        Ok(distance) => format!("ok    {name}: within {distance:.3e}"),
        Err(Difference::Type { found, expected }) => {
            format!("FAIL  {name}: found {found}, expected {expected}")
        }
        Err(Difference::Elements { count, of, index, found, expected }) => {
            let index: Vec<_> = index.iter().map(ToString::to_string).collect();
            let at = if index.is_empty() { String::new() } else { format!(" at [{}]", index.join(",")) };
            format!(
                "FAIL  {name}{at}: found {found}, expected {expected}; {count} of {of} beyond rtol {rtol:e}, atol {atol:e}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use mlxcel_artifacts::Tensor;
    use mlxcel_runtime::compare;

    use super::*;

    #[test]
    fn the_farthest_element_is_shown_with_its_place() {
        let tolerance = Tolerance { rtol: 1e-5, atol: 0.0 };
        let expected = Tensor::of(&[2, 2], &[1f32, 2.0, 3.0, 4.0]).unwrap();
        let found = Tensor::of(&[2, 2], &[1f32, 2.0, 3.5, 4.0]).unwrap();
        let words =
            |found: &Tensor, expected: &Tensor| line("w", &compare(found, expected, tolerance), tolerance);
        assert_eq!(
            words(&found, &expected),
            "FAIL  w at [1,0]: found 3.5, expected 3.0; 1 of 4 beyond rtol 1e-5, atol 0e0"
        );
        assert_eq!(words(&expected, &expected), "ok    w: within 0.000e0");
        assert_eq!(words(&Tensor::scalar(1), &expected), "FAIL  w: found i32[], expected f32[2,2]");
    }
}
