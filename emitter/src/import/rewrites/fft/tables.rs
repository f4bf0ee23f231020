//! Roots of unity, and tables of them.

use std::f64::consts::TAU;

/// Returns `exp(-2πi · turns / size)`.
#[expect(clippy::cast_precision_loss, reason = "sizes of tensors are below 2^52")]
pub(super) fn root(turns: usize, size: usize) -> [f64; 2] {
    let turns = turns % size;
    if (4 * turns).is_multiple_of(size) {
        // Zeros and ones are exact.
        return [[1.0, 0.0], [0.0, -1.0], [-1.0, 0.0], [0.0, 1.0]][4 * turns / size];
    }
    let (sine, cosine) = (TAU * turns as f64 / size as f64).sin_cos();
    [cosine, -sine]
}

/// Returns the real parts, or the imaginary ones.
#[expect(clippy::cast_possible_truncation, reason = "tables are f32")]
pub(super) fn part(roots: &[[f64; 2]], part: usize) -> Vec<f32> {
    roots.iter().map(|root| root[part] as f32).collect()
}

/// Returns the matrix of a transform, `[parts, size, 2, size]`: from real parts, and imaginary ones, to both.
#[expect(clippy::cast_possible_truncation, reason = "tables are f32")]
pub(super) fn matrix(size: usize, parts: usize) -> Vec<f32> {
    let roots: Vec<_> = (0..size).map(|turns| root(turns, size)).collect();
    let mut values = Vec::with_capacity(parts * size * 2 * size);
    for part in 0..parts {
        for row in 0..size {
            let of_row = (0..size).map(|column| roots[row * column % size]);
            let [to_real, to_imaginary]: [Vec<f32>; 2] = if part == 0 {
                [of_row.clone().map(|[c, _]| c as f32).collect(), of_row.map(|[_, s]| s as f32).collect()]
            } else {
                [of_row.clone().map(|[_, s]| -s as f32).collect(), of_row.map(|[c, _]| c as f32).collect()]
            };
            values.extend(to_real);
            values.extend(to_imaginary);
        }
    }
    values
}

/// Returns the transform of numbers, whose count is a power of two.
pub(super) fn spectrum(values: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let size = values.len();
    if size < 2 {
        return values.to_vec();
    }
    let half = |start: usize| spectrum(&values.iter().copied().skip(start).step_by(2).collect::<Vec<_>>());
    let (even, odd) = (half(0), half(1));
    let turned: Vec<_> = odd.iter().enumerate().map(|(k, x)| product(*x, root(k, size))).collect();
    let sums = even.iter().zip(&turned).map(|(a, b)| [a[0] + b[0], a[1] + b[1]]);
    let differences = even.iter().zip(&turned).map(|(a, b)| [a[0] - b[0], a[1] - b[1]]);
    sums.chain(differences).collect()
}

fn product(x: [f64; 2], y: [f64; 2]) -> [f64; 2] {
    [x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spectrum_of_a_wave_is_its_frequency() {
        let wave: Vec<_> = (0..8).map(|n| root(8 - 3 * n % 8, 8)).collect();
        for (frequency, [real, imaginary]) in spectrum(&wave).into_iter().enumerate() {
            let expected = if frequency == 3 { 8.0 } else { 0.0 };
            assert!(
                (real - expected).abs() < 1e-12 && imaginary.abs() < 1e-12,
                "{frequency} {real} {imaginary}"
            );
        }
    }
}
