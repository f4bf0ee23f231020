//! The numbers by which kernels know types of elements and kinds of norms.

use mlxcel_models::{Norm, NormKind};
use safetensors::Dtype;

/// Returns the number of a type of floats: `element_type` of `common.h`, `IN_E4M3` of `cpu/float_codes.h`, or `IN_E8M0` of
/// `cuda/groups.h`.
pub(crate) fn element_number(ty: Dtype) -> usize {
    match ty {
        Dtype::BF16 => 1,
        Dtype::F16 => 2,
        Dtype::F8_E8M0 => 3,
        Dtype::F8_E4M3 => 4,
        _ => 0,
    }
}

/// Returns the number of a norm: `norm_kind` of `cuda/norm.h`, where 0 is none.
pub(crate) fn norm_number(kind: NormKind) -> usize {
    match kind {
        NormKind::Rms => 1,
        NormKind::Layer => 2,
    }
}

/// Returns the number of a norm of rows, with its bias if it has one: `norm_kind` of `cuda/norm.h`.
pub(crate) fn row_norm_number(layer: &Norm) -> usize {
    match (layer.kind, &layer.bias) {
        (NormKind::Layer, None) => 3,
        (kind, _) => norm_number(kind),
    }
}
