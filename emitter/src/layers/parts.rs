//! Parts in which weights are packed.
//!
//! What packing a whole matrix computes on the way, some of it `i32` for each element, would be written to memory and read
//! again. That of a part stays in the processor's caches, and matrices with rows of one length share a function.

use mlxcel_models::{Storage, Weight};

use super::weights::{Matrix, Weights};
use crate::packing::{InParts, StoredWeight};

/// Elements of a part.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartSize {
    /// The most.
    pub(super) elements: usize,
    /// What the rows of a part are a multiple of.
    pub(super) lanes: usize,
}

/// Weights in equal parts, as a function that packs a part takes them.
pub(super) struct Part {
    pub(super) packed: InParts,
    /// Whether the weights are stacks of matrices, of which the part has one each, and which of them are transposed.
    stacks: Option<Vec<bool>>,
}

impl Part {
    /// Calls `body` with the weights of one part.
    pub(super) fn with_weights<T>(&self, body: impl FnOnce(Weights<'_>) -> T) -> T {
        let weights = self.packed.weights.iter().map(|(weight, _)| weight);
        match &self.stacks {
            None => body(Weights::Layers(&weights.map(Matrix::from).collect::<Vec<_>>())),
            Some(transposed) => {
                let matrix = |(weight, &transposed)| Matrix { weight, stack_index: Some(0), transposed };
                body(Weights::Experts(&[weights.zip(transposed).map(matrix).collect()]))
            }
        }
    }
}

/// Splits weights into parts whose packed rows are those of the whole, one after the other. Returns none if there is no way,
/// or no need.
pub(super) fn split(weights: Weights<'_>, stored: &[StoredWeight<'_>], size: PartSize) -> Vec<Part> {
    let elements: usize = stored.iter().map(|(weight, _)| weight.shape.iter().product::<usize>()).sum();
    if elements <= size.elements {
        return Vec::new();
    }
    let is_plain = |matrix: &&Matrix<'_>| matrix.stack_index.is_none() && !matrix.transposed;
    let parts = match weights {
        _ if weights.all().iter().all(is_plain) => matrices(weights, stored, size),
        Weights::Experts(experts) => stacks(experts, stored).map(|part| vec![part]),
        Weights::Layers(_) => None,
    };
    parts.unwrap_or_default()
}

/// Splits one weight, as [`split`].
pub(super) fn split_weight(weight: &Weight, storage: &Storage, size: PartSize) -> Option<InParts> {
    let &[first, ..] = weight.shape.as_slice() else { return None };
    let elements = weight.shape.iter().product::<usize>();
    if elements <= size.elements {
        return None;
    }
    rows(weight, storage, [first, elements / first.max(1)], size)
}

/// Splits each matrix into some rows.
fn matrices(weights: Weights<'_>, stored: &[StoredWeight<'_>], size: PartSize) -> Option<Vec<Part>> {
    let all = weights.all();
    if all.len() != stored.len() {
        return None;
    }
    let part = |(matrix, (weight, storage)): (&&Matrix<'_>, &StoredWeight<'_>)| {
        let (outputs, inputs) = matrix.size();
        let packed = rows(weight, storage, [outputs, inputs], size)?;
        Some(Part { packed, stacks: None })
    };
    all.iter().zip(stored).map(part).collect()
}

/// Splits a weight into as few parts as have a size.
fn rows(
    weight: &Weight,
    storage: &Storage,
    [outputs, inputs]: [usize; 2],
    size: PartSize,
) -> Option<InParts> {
    let most = size.elements.max(size.lanes * inputs);
    let fits = |parts: &usize| outputs.is_multiple_of(parts * size.lanes) && outputs / parts * inputs <= most;
    let (parts, part) =
        (1..=outputs / size.lanes).filter(fits).find_map(|parts| Some((parts, storage.part(parts)?)))?;
    let mut weight = weight.clone();
    *weight.shape.first_mut()? /= parts;
    Some(InParts { weights: vec![(weight, part)], parts })
}

/// Splits stacks of matrices into experts.
fn stacks(experts: &[Vec<Matrix<'_>>], stored: &[StoredWeight<'_>]) -> Option<Part> {
    let is_stack = |(index, layers): (usize, &Vec<Matrix<'_>>)| {
        let of_expert = |matrix: &Matrix<'_>| {
            matrix.stack_index == Some(index) && matrix.weight.shape.first() == Some(&experts.len())
        };
        layers.len() == stored.len() && layers.iter().all(of_expert)
    };
    if !experts.iter().enumerate().all(is_stack) {
        return None;
    }
    let parts = experts.len();
    let one = |(weight, storage): &StoredWeight<'_>| {
        let mut one = (*weight).clone();
        *one.shape.first_mut()? = 1;
        Some((one, storage.part(parts)?))
    };
    let weights = stored.iter().map(one).collect::<Option<_>>()?;
    let transposed = experts.first()?.iter().map(|matrix| matrix.transposed).collect();
    Some(Part { packed: InParts { weights, parts }, stacks: Some(transposed) })
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;

    use super::*;

    const SIZE: PartSize = PartSize { elements: 64, lanes: 4 };

    fn weight(name: &str, shape: &[usize]) -> Weight {
        Weight { name: name.into(), shape: shape.into() }
    }

    /// Returns the numbers of parts, and the shapes of one.
    fn split_plain(weights: Weights<'_>) -> Vec<(usize, Vec<Vec<usize>>)> {
        let tensors = weights.tensors();
        let stored: Vec<_> =
            tensors.into_iter().map(|weight| (weight, Storage::plain(weight, Dtype::F32))).collect();
        let parts = split(weights, &stored, SIZE);
        let shapes =
            |part: &Part| part.packed.weights.iter().map(|(weight, _)| weight.shape.clone()).collect();
        parts.iter().map(|part| (part.packed.parts, shapes(part))).collect()
    }

    #[test]
    fn matrices_are_split_into_rows_of_panels() {
        let split_one = |shape: &[usize]| split_plain(Weights::Layers(&[(&weight("w", shape)).into()]));
        assert_eq!(split_one(&[16, 8]), [(2, vec![vec![8, 8]])]);
        // Three parts of eight rows are not multiples of the others, three of four rows are.
        assert_eq!(split_one(&[24, 8]), [(3, vec![vec![8, 8]])]);
        assert_eq!(split_one(&[20, 8]), [(5, vec![vec![4, 8]])]);
        // A part has one panel, however long its rows are.
        assert_eq!(split_one(&[8, 32]), [(2, vec![vec![4, 32]])]);
        // It is small, or its rows are no panels.
        assert_eq!(split_one(&[8, 8]), []);
        assert_eq!(split_one(&[22, 8]), []);
        let (q, k) = (weight("q", &[16, 8]), weight("k", &[4, 8]));
        let both = [(&q).into(), (&k).into()];
        assert_eq!(split_plain(Weights::Layers(&both)), [(2, vec![vec![8, 8]]), (1, vec![vec![4, 8]])]);
    }

    #[test]
    fn stacks_are_split_into_experts() {
        let (up, down) = (weight("up", &[3, 6, 8]), weight("down", &[3, 8, 6]));
        let expert = |index| {
            let of = |weight, transposed| Matrix { weight, stack_index: Some(index), transposed };
            vec![of(&up, false), of(&down, true)]
        };
        let experts: Vec<_> = (0..3).map(expert).collect();
        assert_eq!(split_plain(Weights::Experts(&experts)), [(3, vec![vec![1, 6, 8], vec![1, 8, 6]])]);
        assert_eq!(split_plain(Weights::Experts(&experts[..2])), []);
        assert_eq!(split_plain(Weights::Layers(&experts[0])), []);
    }

    #[test]
    fn a_stack_of_one_expert_is_packed_as_a_whole() {
        let up = weight("up", &[1, 12, 8]);
        let experts = [vec![Matrix { weight: &up, stack_index: Some(0), transposed: false }]];
        assert_eq!(split_plain(Weights::Experts(&experts)), []);
    }

    #[test]
    fn experts_with_tensors_of_their_own_are_packed_one_after_the_other() {
        let all: Vec<_> = (0..4).map(|index| weight(&index.to_string(), &[8, 8])).collect();
        let experts: Vec<_> =
            all.chunks(2).map(|layers| layers.iter().map(Matrix::from).collect::<Vec<_>>()).collect();
        assert_eq!(split_plain(Weights::Experts(&experts)), vec![(1, vec![vec![8, 8]]); 4]);
    }
}
