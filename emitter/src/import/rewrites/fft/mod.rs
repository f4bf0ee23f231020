//! Fourier transforms of any size and number of dimensions, as matrix products.
//!
//! iree-compile has those of one dimension alone, of powers of two.

mod tables;
mod transform;

use safetensors::Dtype;

use self::transform::{Signal, transform};
use super::super::{
    ast::Op,
    attributes::{sizes, word},
    replay::Replay,
};
use crate::{
    error::Error,
    graph::{Graph, Tensor},
    types::TensorType,
};

/// Returns what stands for `fft`.
pub(super) fn rewrite(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let (&[x], Some(kind)) = (operands, op.attribute("fft_type").and_then(word)) else { return Ok(None) };
    let lengths = op.attribute("fft_length").and_then(sizes).unwrap_or_default();
    let results = replay.result_types(op, operands, &[])?;
    let (Some(result), Some(last)) = (results.into_iter().next(), lengths.last()) else { return Ok(None) };
    let g = &mut replay.graph;
    let ty = g.type_of(x);
    let has_own_type = matches!(ty.dtype, Dtype::F32 | Dtype::C64);
    if !has_own_type || lengths.len() > ty.rank() || result.elements() == 0 || ty.elements() == 0 {
        return Ok(None);
    }
    let first = ty.rank() - lengths.len();
    let is_inverse = matches!(kind, "IFFT" | "IRFFT");
    let mut signal = Signal::new(g, x);
    let whole = match kind {
        "RFFT" => {
            signal = along(g, &signal, ty.rank() - 1, is_inverse);
            signal = signal.map(|part| g.slice_dimension(part, ty.rank() - 1, 0, last / 2 + 1));
            first..ty.rank() - 1
        }
        "IRFFT" => first..ty.rank() - 1,
        _ => first..ty.rank(),
    };
    for dimension in whole {
        signal = along(g, &signal, dimension, is_inverse);
    }
    if kind == "IRFFT" {
        signal = one_sided(g, &signal, *last);
        signal = along(g, &signal, ty.rank() - 1, is_inverse);
        return Ok(Some(vec![signal.real]));
    }
    let imaginary = signal.imaginary(g);
    Ok(Some(vec![g.op("stablehlo.complex", &[signal.real, imaginary], vec![], result)]))
}

/// Transforms along a dimension.
fn along(g: &mut Graph, signal: &Signal, dimension: usize, is_inverse: bool) -> Signal {
    let shape = g.shape(signal.real).to_vec();
    let mut order: Vec<_> = (0..shape.len()).filter(|d| *d != dimension).collect();
    order.push(dimension);
    let moved: Vec<_> = order.iter().map(|&d| shape[d]).collect();
    let size = shape[dimension];
    let batch = shape.iter().product::<usize>() / size;
    let rows = signal.map(|part| {
        let part = g.transpose(part, &order);
        g.reshape(part, &[batch, size])
    });
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(index, &d)| back[d] = index);
    let found = transform(g, &rows, is_inverse);
    found.map(|part| {
        let part = g.reshape(part, &moved);
        g.transpose(part, &back)
    })
}

/// Returns a spectrum whose inverse has the real part that belongs to the first half of a symmetric one: its frequencies
/// twice, but for the first, and the last if that is in the middle.
fn one_sided(g: &mut Graph, signal: &Signal, size: usize) -> Signal {
    let TensorType { shape, .. } = g.type_of(signal.real);
    let dimension = shape.len() - 1;
    let count = shape[dimension];
    let weights: Vec<f32> =
        (0..count).map(|index| if index == 0 || 2 * index == size { 1.0 } else { 2.0 }).collect();
    let weights = g.constant_f32(&weights, &[count]);
    let weights = g.broadcast_in_dim(weights, &shape, &[dimension]);
    signal.map(|part| {
        let part = g.multiply(part, weights);
        g.pad_end(part, dimension, size)
    })
}

#[cfg(test)]
mod tests {
    use crate::import::replayed::{lines_with, replayed};

    fn products(kind: &str, operand: &str, lengths: &str, result: &str) -> Vec<String> {
        let line = format!(
            r#"%r = "stablehlo.fft"(%0) <{{fft_length = array<i64: {lengths}>, fft_type = #stablehlo<fft_type {kind}>}}>
                : ({operand}) -> {result}"#
        );
        let mlir = replayed(&[operand], &line, result).unwrap();
        assert!(!mlir.contains("stablehlo.fft"), "{mlir}");
        let types = lines_with(&mlir, "stablehlo.dot_general").into_iter();
        types.filter_map(|line| Some(line.rsplit_once(" : ")?.1.to_owned())).collect()
    }

    #[test]
    fn sizes_are_divided_into_factors() {
        assert_eq!(
            products("FFT", "tensor<3x60xcomplex<f32>>", "60", "tensor<3x60xcomplex<f32>>"),
            [
                "(tensor<3x2x30x2xf32>, tensor<2x30x2x30xf32>) -> tensor<3x2x2x30xf32>",
                "(tensor<90x2x2x1xf32>, tensor<2x2x2x2xf32>) -> tensor<90x1x2x2xf32>"
            ]
        );
    }

    #[test]
    fn real_numbers_have_half_a_spectrum() {
        assert_eq!(
            products("RFFT", "tensor<4x6xf32>", "4, 6", "tensor<4x4xcomplex<f32>>"),
            [
                "(tensor<4x1x6x1xf32>, tensor<1x6x2x6xf32>) -> tensor<4x1x2x6xf32>",
                "(tensor<4x2x4x1xf32>, tensor<2x4x2x4xf32>) -> tensor<4x1x2x4xf32>"
            ]
        );
    }

    #[test]
    fn a_large_prime_is_a_convolution() {
        let found = products("FFT", "tensor<131xcomplex<f32>>", "131", "tensor<131xcomplex<f32>>");
        // Of 512 numbers, there and back.
        assert_eq!(found.len(), 4);
        assert!(found[0].starts_with("(tensor<1x2x32x16xf32>"), "{found:?}");
    }
}
