//! Storages of a part of a weight: some of its first dimension.

use super::{
    coding::{Coding, OfGroups, Storage},
    expr::Expr,
};

/// How one of equal parts of a weight is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoragePart {
    /// That of the part. A tensor that is split has the part's shape.
    pub storage: Storage,
    /// Whether each tensor is split along its first dimension. All parts need the whole of others.
    pub is_split: Vec<bool>,
}

impl Storage {
    /// Returns how each of `parts` equal parts of a weight is stored, along the first dimension, if the same part of stored
    /// tensors holds it, and at least one of them is split.
    #[must_use]
    pub fn part(&self, parts: usize) -> Option<StoragePart> {
        let mut splitter = Splitter { storage: self, parts, is_split: vec![None; self.tensors.len()] };
        let coding = match &self.coding {
            Some(coding) => Some(splitter.coding(coding)?),
            None if splitter.split(&Expr::Stored(0))?.is_split => None,
            None => return None,
        };
        let is_split: Vec<_> = splitter.is_split.iter().map(|is_split| *is_split == Some(true)).collect();
        let mut storage = Self { coding, ..self.clone() };
        for (tensor, _) in storage.tensors.iter_mut().zip(&is_split).filter(|(_, is_split)| **is_split) {
            *tensor.shape.first_mut()? /= parts;
        }
        Some(StoragePart { storage, is_split })
    }
}

/// A part of what an expression computes.
struct Piece {
    expr: Expr,
    rank: usize,
    /// The first dimension of the whole.
    first: usize,
    /// Whether the part is less than the whole.
    is_split: bool,
}

struct Splitter<'s> {
    storage: &'s Storage,
    parts: usize,
    /// What is known about the stored tensors.
    is_split: Vec<Option<bool>>,
}

impl Splitter<'_> {
    fn coding(&mut self, coding: &Coding) -> Option<Coding> {
        let codes = self.split(&coding.codes)?;
        let is_matrix = codes.rank == 2;
        // The first dimension of a matrix that is stored transposed is its columns.
        if !codes.is_split || is_matrix && coding.transposed {
            return None;
        }
        if is_matrix && !codes.first.is_multiple_of(self.parts * coding.group[0]) {
            return None;
        }
        if let Some(groups) = &coding.column_groups {
            self.keep(groups)?;
        }
        Some(Coding {
            codes: codes.expr,
            scales: self.of_groups(&coding.scales)?,
            zeros: match &coding.zeros {
                Some(zeros) => Some(self.of_group(zeros)?),
                None => None,
            },
            minima: match &coding.minima {
                Some(minima) => Some(self.of_groups(minima)?),
                None => None,
            },
            ..coding.clone()
        })
    }

    fn of_groups(&mut self, of_groups: &OfGroups) -> Option<OfGroups> {
        Some(match of_groups {
            OfGroups::Numbers(numbers) => OfGroups::Numbers(self.of_group(numbers)?),
            OfGroups::Steps { steps, numbers, sizes, in_block } => OfGroups::Steps {
                steps: self.of_group(steps)?,
                numbers: *numbers,
                sizes: self.of_group(sizes)?,
                in_block: *in_block,
            },
        })
    }

    /// Splits what groups have, which may be the same for all.
    fn of_group(&mut self, expr: &Expr) -> Option<Expr> {
        let piece = self.split(expr)?;
        (piece.is_split || piece.first == 1).then_some(piece.expr)
    }

    fn split(&mut self, expr: &Expr) -> Option<Piece> {
        let parts = self.parts;
        Some(match expr {
            Expr::Stored(index) => {
                let shape = &self.storage.tensors.get(*index)?.shape;
                let (rank, first) = (shape.len(), shape.first().copied().unwrap_or(1));
                let is_split = first != 1;
                if is_split && !first.is_multiple_of(parts) {
                    return None;
                }
                self.mark(*index, is_split)?;
                Piece { expr: expr.clone(), rank, first, is_split }
            }
            Expr::Constant(numbers) => {
                Piece { expr: expr.clone(), rank: 1, first: numbers.len(), is_split: false }
            }
            Expr::Reshape(of, shape) => {
                let of = self.split(of)?;
                let (first, mut shape) = (shape.first().copied().unwrap_or(1), shape.clone());
                if of.is_split {
                    // Parts of the elements are parts of the first dimension, before and after.
                    if !first.is_multiple_of(parts) {
                        return None;
                    }
                    *shape.first_mut()? /= parts;
                }
                Piece { rank: shape.len(), first, expr: of.expr.reshape(&shape), ..of }
            }
            Expr::Transpose(of, permutation) => {
                let of = self.split(of)?;
                if permutation.first() != Some(&0) {
                    return None;
                }
                Piece { expr: of.expr.transpose(permutation), ..of }
            }
            Expr::Slice { of, dimension, start, end } if *dimension > 0 => {
                let of = self.split(of)?;
                Piece { expr: of.expr.slice(*dimension, *start, *end), ..of }
            }
            Expr::Slice { .. } => return None,
            Expr::Concatenate(of, dimension) if *dimension > 0 => {
                let pieces: Vec<_> = of.iter().map(|part| self.split(part)).collect::<Option<_>>()?;
                let (is_split, rank) = pieces.first().map(|first| (first.is_split, first.rank))?;
                if pieces.iter().any(|piece| piece.is_split != is_split) {
                    return None;
                }
                let first = pieces.first()?.first;
                let all = pieces.into_iter().map(|piece| piece.expr).collect();
                Piece { expr: Expr::Concatenate(all, *dimension), rank, first, is_split }
            }
            Expr::Concatenate(..) => return None,
            Expr::Padded(of, size) => self.in_last(of, |of| of.padded(*size))?,
            Expr::Take(of, index) => {
                self.keep(index)?;
                self.in_last(of, |of| Expr::Take(of.into(), index.clone()))?
            }
            Expr::Unpack { of, bits } => self.in_last(of, |of| of.unpack(*bits))?,
            Expr::Reorder(of, order) => self.in_last(of, |of| of.reorder(order))?,
            Expr::FloatsOf(of, dtype) => self.in_last(of, |of| of.floats_of(*dtype))?,
            Expr::Lookup(of, list) => {
                self.keep(list)?;
                self.each(of, |of| Expr::Lookup(of.into(), list.clone()))?
            }
            Expr::Integers(of) => self.each(of, Expr::integers)?,
            Expr::Floats(of) => self.each(of, Expr::floats)?,
            Expr::And(of, number) => self.each(of, |of| of.and(*number))?,
            Expr::Shift(of, by) => self.each(of, |of| of.shifted(*by))?,
            Expr::Plus(of, number) => self.each(of, |of| of.plus(*number))?,
            Expr::Or(one, other) => self.pair(one, other, Expr::or)?,
            Expr::Product(one, other) => self.pair(one, other, Expr::times)?,
            Expr::Sum(one, other) => self.pair(one, other, Expr::added_to)?,
            Expr::Quotient(one, other) => self.pair(one, other, Expr::divided_by)?,
        })
    }

    /// Splits what changes each element.
    fn each(&mut self, of: &Expr, change: impl FnOnce(Expr) -> Expr) -> Option<Piece> {
        let of = self.split(of)?;
        Some(Piece { expr: change(of.expr), ..of })
    }

    /// Splits what changes the last dimension, which must not be the one that is split.
    fn in_last(&mut self, of: &Expr, change: impl FnOnce(Expr) -> Expr) -> Option<Piece> {
        self.each(of, change).filter(|piece| piece.rank > 1)
    }

    /// Splits what combines two tensors. What is the same for all rows stays whole.
    fn pair(&mut self, one: &Expr, other: &Expr, combine: fn(Expr, Expr) -> Expr) -> Option<Piece> {
        let [one, other] = [self.split(one)?, self.split(other)?];
        let fits = |piece: &Piece| piece.is_split || piece.first == 1;
        let is_split = one.is_split || other.is_split;
        if is_split && !(fits(&one) && fits(&other)) || one.rank != other.rank {
            return None;
        }
        let (rank, first) = (one.rank, one.first.max(other.first));
        Some(Piece { expr: combine(one.expr, other.expr), rank, first, is_split })
    }

    /// Keeps the stored tensors of an expression whole.
    fn keep(&mut self, expr: &Expr) -> Option<()> {
        if let Expr::Stored(index) = expr {
            self.mark(*index, false)?;
        }
        expr.operands().into_iter().try_for_each(|operand| self.keep(operand))
    }

    fn mark(&mut self, index: usize, is_split: bool) -> Option<()> {
        let known = self.is_split.get_mut(index)?;
        (*known.get_or_insert(is_split) == is_split).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;

    use super::*;
    use crate::storage::{Numbers, StoredTensor};

    const INTEGERS: Numbers = Numbers::Integers { bits: 4, signed: false };

    fn storage(tensors: &[&[usize]], coding: Coding) -> Storage {
        let tensor = |(index, shape): (usize, &&[usize])| StoredTensor {
            name: index.to_string(),
            dtype: Dtype::U8,
            shape: shape.to_vec(),
        };
        Storage {
            tensors: tensors.iter().enumerate().map(tensor).collect(),
            coding: Some(coding),
            order: None,
        }
    }

    fn shapes(storage: &Storage) -> Vec<Vec<usize>> {
        storage.tensors.iter().map(|tensor| tensor.shape.clone()).collect()
    }

    /// Returns rows of 64 codes of 4 bits, in the order of GGUF's heads.
    fn codes(rows: usize) -> Expr {
        let heads = Expr::Stored(0).reshape(&[rows / 4, 2, 2, 32]).transpose(&[0, 2, 1, 3]);
        heads.reshape(&[rows, 32]).unpack(4)
    }

    fn coding(scales: Expr) -> Coding {
        Coding::in_groups(codes(12), INTEGERS, 32, scales)
    }

    #[test]
    fn parts_have_the_same_formula_over_fewer_rows() {
        let scales = |rows| {
            Expr::Stored(1).reshape(&[rows, 2, 1]).times(Expr::Constant(vec![2.0]).reshape(&[1, 1, 1]))
        };
        let whole = storage(&[&[12, 32], &[24]], coding(scales(12)));
        let StoragePart { storage: part, is_split } = whole.part(3).unwrap();
        assert_eq!(shapes(&part), [vec![4, 32], vec![8]]);
        let expected = Coding::in_groups(codes(4), INTEGERS, 32, scales(4));
        assert_eq!((part.coding, is_split), (Some(expected), vec![true, true]));
        // Half a head is no part.
        assert_eq!(whole.part(6), None);
        assert_eq!(whole.part(5), None);
    }

    #[test]
    fn what_all_rows_share_stays_whole() {
        let one_scale = storage(&[&[12, 32], &[1, 1]], coding(Expr::Stored(1)));
        let part = one_scale.part(3).unwrap();
        assert_eq!(part.is_split, [true, false]);
        assert_eq!(shapes(&part.storage), [vec![4, 32], vec![1, 1]]);
        let by_order = Coding { column_groups: Some(Expr::Stored(2)), ..coding(Expr::Stored(1)) };
        let part = storage(&[&[12, 32], &[12, 2], &[64]], by_order.clone()).part(3).unwrap();
        assert_eq!(shapes(&part.storage)[2], [64]);
        assert_eq!(part.is_split, [true, true, false]);
        // A tensor cannot be both.
        let twice = Coding { column_groups: Some(Expr::Stored(1)), ..by_order };
        assert_eq!(storage(&[&[12, 32], &[12, 2]], twice).part(3), None);
    }

    #[test]
    fn rows_that_share_scales_stay_together() {
        let scales = Coding { group: [4, 32], ..coding(Expr::Stored(1)) };
        assert!(storage(&[&[12, 32], &[3, 2]], scales.clone()).part(3).is_some());
        let of_two = Coding { group: [6, 32], ..scales };
        // The second part has rows of both groups.
        assert_eq!(storage(&[&[12, 32], &[2, 2]], of_two).part(3), None);
    }

    #[test]
    fn rows_that_are_stored_as_columns_have_no_parts() {
        let transposed = Coding { transposed: true, ..coding(Expr::Stored(1)) };
        assert_eq!(storage(&[&[12, 32], &[12, 2]], transposed).part(3), None);
        let across = Coding { codes: Expr::Stored(0).transpose(&[1, 0]), ..coding(Expr::Stored(1)) };
        assert_eq!(storage(&[&[32, 12], &[12, 2]], across).part(3), None);
    }

    #[test]
    fn a_weight_that_is_a_tensor_has_parts_of_it() {
        let weight = crate::Weight { name: "w".into(), shape: vec![12, 8] };
        let part = Storage::plain(&weight, Dtype::F16).part(4).unwrap();
        assert_eq!((shapes(&part.storage), part.is_split), (vec![vec![3, 8]], vec![true]));
        // A stack of one matrix is its own part, and nothing of it is split.
        let stack = crate::Weight { name: "w".into(), shape: vec![1, 12, 8] };
        assert_eq!(Storage::plain(&stack, Dtype::F16).part(1), None);
    }
}
