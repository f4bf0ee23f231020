//! Weights of stored tensors: the descriptions of `mlxcel_models`, in StableHLO.

mod order;

use mlxcel_models::{Coding, Expr, Numbers, OfGroups, Storage};
use safetensors::Dtype;

use self::order::order_of;
use crate::{
    graph::{Graph, Tensor},
    group_form::{GroupForm, Groups, Scales, UNIT_GROUPS},
    ops::GatherDimensions,
};

/// Computes a weight of this shape from its stored tensors: as it is, or in `f32`.
pub(crate) fn decode(g: &mut Graph, storage: &Storage, shape: &[usize], stored: &[Tensor]) -> Tensor {
    let Some(coding) = &storage.coding else {
        return stored.first().copied().unwrap_or_else(|| g.fail("decode", "found no stored tensor"));
    };
    let whole = Decoder { g, stored }.weight(coding);
    g.reshape(whole, shape)
}

/// Returns the codes of a weight and what its groups have, in a form that [`GroupForm::holding`] chose: `[…, outputs, codes]`
/// and the same for each part of [`Scales`].
///
/// Codes are unsigned, except that 8 bits are less 128, as kernels read them. Zero points are those of unsigned codes. Columns
/// are in the order of their groups, see [`column_order`].
pub(crate) fn decode_groups(
    g: &mut Graph,
    storage: &Storage,
    form: GroupForm,
    stored: &[Tensor],
) -> Vec<Tensor> {
    let of_floats = match form.scales {
        Scales::Floats(_, Groups { dtype, .. }) => Some(dtype),
        Scales::ListedHalves => Some(Dtype::F8_E4M3),
        _ => None,
    };
    if let (Some(dtype), Some(coding)) = (of_floats, &storage.coding) {
        return Decoder { g, stored }.floats_of_groups(coding, dtype);
    }
    let Some(coding) = storage.coding.as_ref().and_then(Coding::in_whole_numbers) else {
        return vec![g.fail("decode", "found a weight without codes that are whole numbers")];
    };
    Decoder { g, stored }.groups(&coding, form)
}

/// Returns the columns of a weight in the order of their groups, `[columns]`; `None` if they are stored so.
pub(crate) fn column_order(g: &mut Graph, storage: &Storage, stored: &[Tensor]) -> Option<Tensor> {
    let groups = storage.coding.as_ref()?.column_groups.as_ref()?;
    let groups = Decoder { g, stored }.eval(groups);
    Some(order_of(g, groups))
}

/// Returns the exponents of powers of two as an `f32` has them, in bytes. Those that it has no exponent for become zero.
fn exponents(g: &mut Graph, x: Tensor) -> Tensor {
    let bits = g.bitcast_convert(x, Dtype::I32);
    let exponents = g.with_number(bits, 23, Graph::shift_right_logical);
    g.convert(exponents, Dtype::I8)
}

struct Decoder<'a> {
    g: &'a mut Graph,
    stored: &'a [Tensor],
}

impl Decoder<'_> {
    /// Returns `(codes - zeros) · scales + minima`, with the last two dimensions swapped if the weight has them so.
    fn weight(&mut self, coding: &Coding) -> Tensor {
        let Coding { codes, numbers, zeros, scales, minima, transposed, .. } = coding;
        let mut x = self.eval(codes);
        if let Numbers::Integers { .. } = numbers {
            x = self.g.convert(x, Dtype::F32);
        }
        let shape = self.g.shape(x).to_vec();
        if let Some(zeros) = zeros {
            let zeros = self.spread(coding, zeros, &shape);
            x = self.g.subtract(x, zeros);
        }
        let of_groups = groups_of(&shape, coding.group);
        let scales = self.spread(coding, &scales.numbers(&of_groups), &shape);
        x = self.g.multiply(x, scales);
        if let Some(minima) = minima {
            let minima = self.spread(coding, &minima.numbers(&of_groups), &shape);
            x = self.g.add(x, minima);
        }
        if !transposed {
            return x;
        }
        let mut permutation: Vec<_> = (0..shape.len()).collect();
        permutation.swap(shape.len() - 2, shape.len() - 1);
        self.g.transpose(x, &permutation)
    }

    /// Returns codes of floating-point numbers, and scales for each output, see [`decode_groups`]: numbers, or units and E4M3.
    fn floats_of_groups(&mut self, coding: &Coding, dtype: Dtype) -> Vec<Tensor> {
        let codes = self.eval(&coding.places().integers());
        let shape = self.g.shape(codes).to_vec();
        let of_groups = groups_of(&shape, coding.group);
        let scales = coding.scales.numbers(&of_groups);
        let rows = shape.len().saturating_sub(2);
        let of_outputs = |decoder: &mut Self, scales: &Expr| {
            let scales = decoder.eval(scales);
            let scales = broadcast(decoder.g, scales, &of_groups);
            repeat(decoder.g, scales, rows, coding.group[0], shape[rows])
        };
        if dtype != Dtype::F8_E4M3 {
            let scales = of_outputs(self, &scales);
            return vec![codes, self.g.convert(scales, dtype)];
        }
        let Some([steps, units]) = scales.in_e4m3() else {
            return vec![self.g.fail("decode", "found scales that are not in E4M3")];
        };
        let [steps, units] = [steps, units].map(|one| of_outputs(self, &one));
        // All groups of an output have one unit.
        let unit = self.g.slice_dimension(units, rows + 1, 0, 1);
        let blocks = of_groups[rows + 1].div_ceil(UNIT_GROUPS);
        let units = broadcast(self.g, unit, &[&shape[..=rows], &[blocks]].concat());
        vec![codes, units, steps]
    }

    /// Returns codes and what groups have, see [`decode_groups`].
    fn groups(&mut self, coding: &Coding, form: GroupForm) -> Vec<Tensor> {
        let Coding { codes, numbers, zeros, scales, minima, .. } = coding;
        let places = form.scales.list().map(|_| coding.places());
        let mut codes = self.eval(places.as_ref().unwrap_or(codes));
        let shape = self.g.shape(codes).to_vec();
        if let Some(groups) = &coding.column_groups {
            let groups = self.eval(groups);
            let order = order_of(self.g, groups);
            codes = take_last(self.g, codes, order);
        }
        // What is added to stored codes so that they are unsigned.
        let stored_offset = match numbers {
            Numbers::Integers { bits, signed: true } => 1 << (bits - 1),
            _ => 0,
        };
        let kernel_offset = if form.bits == 8 { -128 } else { 0 };
        let offset = match form.scales {
            // The middle of few bits becomes that of more.
            Scales::Symmetric(_) | Scales::Halves => {
                let middle = match (numbers, zeros) {
                    (Numbers::Integers { bits, signed: false }, Some(_)) => 1 << (bits - 1),
                    _ => 0,
                };
                (1 << (form.bits - 1)) - middle
            }
            Scales::Listed(..) | Scales::ListedBlocks => 0,
            _ => stored_offset,
        };
        let mut parts = vec![self.g.with_number(codes, offset + kernel_offset, Graph::add)];
        let of_groups = groups_of(&shape, coding.group);
        let number = |decoder: &mut Self, of: &OfGroups, Groups { dtype, .. }| {
            let x = decoder.eval(&of.numbers(&of_groups));
            let x = broadcast(decoder.g, x, &of_groups);
            if dtype == Dtype::F8_E8M0 {
                return exponents(decoder.g, x);
            }
            decoder.g.convert(x, dtype)
        };
        match (form.scales, zeros, minima) {
            (Scales::Symmetric(groups) | Scales::Listed(_, groups), _, _) => {
                parts.push(number(self, scales, groups));
            }
            (Scales::Zeros(groups), zeros, _) => {
                parts.push(number(self, scales, groups));
                let none = Expr::Constant(vec![0.0]).reshape(&vec![1; of_groups.len()]);
                let zeros = self.eval(zeros.as_ref().unwrap_or(&none));
                let zeros = self.g.convert(zeros, Dtype::I32);
                let zeros = broadcast(self.g, zeros, &of_groups);
                parts.push(self.g.with_number(zeros, stored_offset, Graph::add));
            }
            (Scales::Minima(groups), _, Some(minima)) => {
                parts.push(number(self, scales, groups));
                parts.push(number(self, minima, groups));
            }
            (Scales::Superblocks | Scales::HalfMinima, _, Some(minima)) => {
                let [(scales, unit), (minima, below)] = [scales, minima].map(|of| self.steps(of));
                // Minima are subtracted.
                let least = self.g.scale(below, -1.0);
                parts.extend([
                    self.g.convert(unit, Dtype::F16),
                    self.g.convert(least, Dtype::F16),
                    scales,
                    minima,
                ]);
            }
            (Scales::Halves | Scales::ListedBlocks, _, _) => {
                let (steps, unit) = self.steps(scales);
                parts.extend([self.g.convert(unit, Dtype::F16), steps]);
            }
            _ => {
                let problem = format!("found a weight without the parts of {}", form.name());
                parts.push(self.g.fail("decode", problem));
            }
        }
        parts
    }

    /// Returns whole numbers of groups, and the units of blocks.
    fn steps(&mut self, of_groups: &OfGroups) -> (Tensor, Tensor) {
        match of_groups {
            OfGroups::Steps { steps, sizes, .. } => (self.eval(steps), self.eval(sizes)),
            OfGroups::Numbers(_) => {
                let failed = self.g.fail("decode", "found numbers of groups, expected steps of a unit");
                (failed, failed)
            }
        }
    }

    /// Returns what each group has for each of its elements, in this shape.
    fn spread(&mut self, coding: &Coding, of_groups: &Expr, shape: &[usize]) -> Tensor {
        let x = self.eval(of_groups);
        let [rows, columns] = [shape.len() - 2, shape.len() - 1];
        let [of_rows, of_columns] = coding.group;
        let mut wanted = groups_of(shape, coding.group);
        if coding.column_groups.is_some() {
            wanted[columns] = self.g.shape(x).last().copied().unwrap_or(1);
        }
        let x = broadcast(self.g, x, &wanted);
        let x = match &coding.column_groups {
            None => repeat(self.g, x, columns, of_columns, shape[columns]),
            Some(index) => {
                let index = self.eval(index);
                take_last(self.g, x, index)
            }
        };
        repeat(self.g, x, rows, of_rows, shape[rows])
    }

    fn eval(&mut self, expr: &Expr) -> Tensor {
        match expr {
            Expr::Stored(index) => match self.stored.get(*index) {
                Some(&tensor) => tensor,
                None => self.g.fail("decode", format!("found no stored tensor {index}")),
            },
            Expr::Constant(numbers) => self.g.constant_f32(numbers, &[numbers.len()]),
            Expr::Concatenate(parts, dimension) => {
                let parts: Vec<_> = parts.iter().map(|part| self.eval(part)).collect();
                // Parts along other dimensions are contiguous, and cheap to copy.
                let is_last = parts.first().is_some_and(|&part| self.g.shape(part).len() == dimension + 1);
                if is_last && parts.len() <= MOST_FUSED {
                    self.g.concatenate_fused(&parts, *dimension)
                } else {
                    self.g.concatenate(&parts, *dimension)
                }
            }
            Expr::Take(of, index) => {
                let [x, index] = [of, index].map(|one| self.eval(one));
                take_last(self.g, x, index)
            }
            Expr::Lookup(of, list) => {
                let [x, list] = [of, list].map(|one| self.eval(one));
                self.g.take_rows(list, x)
            }
            Expr::Or(one, other) => self.pair(one, other, Graph::or),
            Expr::Product(one, other) => self.pair(one, other, Graph::multiply),
            Expr::Sum(one, other) => self.pair(one, other, Graph::add),
            Expr::Quotient(one, other) => self.pair(one, other, Graph::divide),
            Expr::Reshape(of, _)
            | Expr::Transpose(of, _)
            | Expr::Slice { of, .. }
            | Expr::Padded(of, _)
            | Expr::Reorder(of, _)
            | Expr::Unpack { of, .. }
            | Expr::Integers(of)
            | Expr::Floats(of)
            | Expr::FloatsOf(of, _)
            | Expr::And(of, _)
            | Expr::Shift(of, _)
            | Expr::Plus(of, _) => {
                let x = self.eval(of);
                change(self.g, expr, x)
            }
        }
    }

    /// Combines two tensors of one rank, of which dimensions of size 1 are repeated.
    fn pair(&mut self, one: &Expr, other: &Expr, op: fn(&mut Graph, Tensor, Tensor) -> Tensor) -> Tensor {
        let pair = [one, other].map(|one| self.eval(one));
        let [one, other] = pair.map(|x| self.g.shape(x).to_vec());
        let shape: Vec<_> = one.iter().zip(&other).map(|(&one, &other)| one.max(other)).collect();
        let [one, other] = pair.map(|x| broadcast(self.g, x, &shape));
        op(self.g, one, other)
    }
}

/// Returns what an expression of one tensor makes of it.
fn change(g: &mut Graph, expr: &Expr, x: Tensor) -> Tensor {
    let last = g.shape(x).len().saturating_sub(1);
    match expr {
        Expr::Reshape(_, shape) => g.reshape(x, shape),
        Expr::Transpose(_, permutation) => g.transpose(x, permutation),
        Expr::Slice { dimension, start, end, .. } => g.slice_dimension(x, *dimension, *start, *end),
        Expr::Padded(_, size) => g.pad_end(x, last, *size),
        Expr::Reorder(_, order) => {
            let order = small_numbers(g, order.iter().copied());
            take_last(g, x, order)
        }
        Expr::Unpack { bits, .. } => unpack(g, x, *bits),
        Expr::Integers(_) => g.convert(x, Dtype::I32),
        Expr::Floats(_) => g.convert(x, Dtype::F32),
        Expr::FloatsOf(_, dtype) => floats_of(g, x, *dtype),
        Expr::And(_, number) => g.with_number(x, *number, Graph::and),
        Expr::Shift(_, by @ 0..) => g.with_number(x, *by, Graph::shift_left),
        Expr::Shift(_, by) => g.with_number(x, -by, Graph::shift_right_logical),
        Expr::Plus(_, number) => g.with_number(x, *number, Graph::add),
        _ => x,
    }
}

/// Returns the shape of what groups have, for codes of a shape.
fn groups_of(shape: &[usize], [of_rows, of_columns]: [usize; 2]) -> Vec<usize> {
    let mut shape = shape.to_vec();
    if let [.., rows, columns] = shape.as_mut_slice() {
        (*rows, *columns) = (rows.div_ceil(of_rows), columns.div_ceil(of_columns));
    }
    shape
}

/// Repeats dimensions of size 1.
fn broadcast(g: &mut Graph, x: Tensor, shape: &[usize]) -> Tensor {
    if g.shape(x) == shape {
        return x;
    }
    let own = g.shape(x).to_vec();
    if own.len() > shape.len() {
        return g.fail("decode", format!("found shape {own:?}, expected that of {shape:?}"));
    }
    let kept: Vec<_> = (0..own.len()).filter(|&dimension| own[dimension] == shape[dimension]).collect();
    let sizes: Vec<_> = kept.iter().map(|&dimension| own[dimension]).collect();
    let x = g.reshape(x, &sizes);
    g.broadcast_in_dim(x, shape, &kept)
}

/// Repeats each element of a dimension, and cuts it at `size`.
fn repeat(g: &mut Graph, x: Tensor, dimension: usize, times: usize, size: usize) -> Tensor {
    let shape = g.shape(x).to_vec();
    if times == 1 {
        return x;
    }
    let (mut wide, mut whole) = (shape.clone(), shape.clone());
    wide.insert(dimension + 1, times);
    whole[dimension] *= times;
    let kept: Vec<_> = (0..wide.len()).filter(|&one| one != dimension + 1).collect();
    let x = g.broadcast_in_dim(x, &wide, &kept);
    let x = g.reshape(x, &whole);
    if whole[dimension] == size { x } else { g.slice_dimension(x, dimension, 0, size) }
}

/// Takes elements of the last dimension.
pub(crate) fn take_last(g: &mut Graph, x: Tensor, index: Tensor) -> Tensor {
    let mut sizes = g.shape(x).to_vec();
    let last = sizes.len().saturating_sub(1);
    let offset: Vec<_> = (0..last).collect();
    sizes[last] = 1;
    let dims = GatherDimensions {
        offset: &offset,
        collapsed_slice: &[last],
        start_index_map: &[last],
        index_vector: 1,
    };
    g.gather(x, index, &dims, &sizes)
}

/// Returns `[…, n / parts, parts]` for `[…, n]`.
fn split_last(shape: &[usize], parts: usize) -> Vec<usize> {
    let mut shape = shape.to_vec();
    if let Some(last) = shape.last_mut() {
        *last /= parts;
    }
    shape.push(parts);
    shape
}

/// Returns `[…, n · m]` for `[…, n, m]`.
fn join_last(g: &mut Graph, x: Tensor) -> Tensor {
    let mut shape = g.shape(x).to_vec();
    let last = shape.pop().unwrap_or(1);
    if let Some(before) = shape.last_mut() {
        *before *= last;
    }
    g.reshape(x, &shape)
}

/// The most parts of rows that are concatenated in one dispatch with what computes them, as often as there are parts.
const MOST_FUSED: usize = 4;

/// Codes of a period of a stream whose codes cross bytes.
const PERIOD: usize = 8;

/// Returns the unsigned integers of a stream of bits, the last dimension.
fn unpack(g: &mut Graph, x: Tensor, bits: usize) -> Tensor {
    let word = g.dtype(x).bitsize();
    let x = g.convert(x, Dtype::I32);
    if word.is_multiple_of(bits) {
        return fields(g, x, word / bits, bits);
    }
    let bytes = if word == 8 { x } else { fields(g, x, word / 8, 8) };
    let bytes = g.with_number(bytes, 255, Graph::and);
    // As many bytes as bits hold eight codes, of which each is in one byte or in two.
    let whole = g.shape(bytes).last().copied().unwrap_or(0).next_multiple_of(bits);
    let last = g.shape(bytes).len().saturating_sub(1);
    let bytes = g.pad_end(bytes, last, whole);
    let shape = split_last(g.shape(bytes), bits);
    let bytes = g.reshape(bytes, &shape);
    let starts = || (0..PERIOD).map(|code| code * bits);
    let [low, high] = [0, 1].map(|next| {
        let places = small_numbers(g, starts().map(|start| (start / 8 + next).min(bits - 1)));
        take_last(g, bytes, places)
    });
    let low = with_numbers(g, low, starts().map(|start| start % 8), Graph::shift_right_logical);
    // Of a code in one byte, these are bits above it.
    let high = with_numbers(g, high, starts().map(|start| 8 - start % 8), Graph::shift_left);
    let codes = g.or(low, high);
    let codes = g.with_number(codes, (1 << bits) - 1, Graph::and);
    join_last(g, codes)
}

/// Returns `op(x, number)` for each element of the last dimension of `x` and its number.
fn with_numbers(
    g: &mut Graph,
    x: Tensor,
    numbers: impl Iterator<Item = usize>,
    op: fn(&mut Graph, Tensor, Tensor) -> Tensor,
) -> Tensor {
    let shape = g.shape(x).to_vec();
    let numbers = small_numbers(g, numbers);
    let numbers = g.broadcast_in_dim(numbers, &shape, &[shape.len().saturating_sub(1)]);
    op(g, x, numbers)
}

/// Returns numbers below 2³¹, `[n]`.
fn small_numbers(g: &mut Graph, numbers: impl Iterator<Item = usize>) -> Tensor {
    let numbers: Vec<_> = numbers.map(|number| i32::try_from(number).unwrap_or(i32::MAX)).collect();
    g.constant_i32(&numbers, &[numbers.len()])
}

/// Returns the `count` fields of so many bits of each word, the lowest first.
pub(crate) fn fields(g: &mut Graph, words: Tensor, count: usize, bits: usize) -> Tensor {
    if bits == 32 {
        return words;
    }
    if count == 1 {
        return g.with_number(words, (1 << bits) - 1, Graph::and);
    }
    let mut wide = g.shape(words).to_vec();
    let kept: Vec<_> = (0..wide.len()).collect();
    wide.push(count);
    let words = g.broadcast_in_dim(words, &wide, &kept);
    let starts = (0..count).map(|field| field * bits);
    let fields = with_numbers(g, words, starts, Graph::shift_right_logical);
    let fields = g.with_number(fields, (1 << bits) - 1, Graph::and);
    join_last(g, fields)
}

/// Returns the floating-point numbers that the bytes of the last dimension are, in `f32`.
fn floats_of(g: &mut Graph, bytes: Tensor, dtype: Dtype) -> Tensor {
    let size = dtype.bitsize() / 8;
    let bytes = unpack(g, bytes, 8);
    let shape = split_last(g.shape(bytes), size);
    let (bytes, last) = (g.reshape(bytes, &shape), shape.len() - 1);
    let mut bits = None;
    for index in 0..size {
        let byte = g.slice_dimension(bytes, last, index, index + 1);
        let by = i32::try_from(8 * index).unwrap_or(0);
        let byte = g.with_number(byte, by, Graph::shift_left);
        bits = Some(bits.map_or(byte, |bits| g.or(bits, byte)));
    }
    let bits = bits.map_or(bytes, |bits| join_last(g, bits));
    match dtype {
        Dtype::F16 => {
            let bits = g.convert(bits, Dtype::I16);
            let half = g.bitcast_convert(bits, Dtype::F16);
            g.convert(half, Dtype::F32)
        }
        Dtype::BF16 => {
            let bits = g.with_number(bits, 16, Graph::shift_left);
            g.bitcast_convert(bits, Dtype::F32)
        }
        _ => g.bitcast_convert(bits, Dtype::F32),
    }
}
