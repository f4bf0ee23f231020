//! GGUF: ggml's block types, and what llama.cpp's converter makes of Hugging Face's tensors.
//!
//! A tensor of blocks is bytes, `[…, bytes of a row]`. The numbers are those of `gguf.quants.dequantize` in gguf 0.19.

mod blocks;
pub(crate) mod lists;
mod names;
mod simple;
mod superblocks;

use std::collections::BTreeMap;

use safetensors::Dtype;

use self::{
    blocks::{Blocks, Decoded},
    names::{Order, Source},
};
use crate::{
    layers::Weight,
    storage::{
        coding::Storage,
        expr::Expr,
        tensors::{Parts, StoredTensors, WrongStorage, check_floats},
    },
};

pub(crate) use names::Layout;

/// The tensors of a GGUF file.
#[derive(Debug, Clone, PartialEq)]
pub struct Gguf {
    /// Types of blocks, by tensor.
    pub(crate) types: BTreeMap<String, String>,
    pub(crate) layout: Layout,
}

/// A type of blocks.
struct BlockType {
    /// Elements and bytes of a block.
    block: usize,
    bytes: usize,
    decode: fn(&Blocks) -> Decoded,
}

/// Types by ggml's name.
const TYPES: [(&str, BlockType); 13] = [
    ("IQ4_NL", BlockType { block: 32, bytes: 18, decode: simple::iq4_nl }),
    ("IQ4_XS", BlockType { block: 256, bytes: 136, decode: superblocks::iq4_xs }),
    ("MXFP4", BlockType { block: 32, bytes: 17, decode: simple::mxfp4 }),
    ("Q2_K", BlockType { block: 256, bytes: 84, decode: superblocks::q2_k }),
    ("Q3_K", BlockType { block: 256, bytes: 110, decode: superblocks::q3_k }),
    ("Q4_0", BlockType { block: 32, bytes: 18, decode: simple::q4_0 }),
    ("Q4_1", BlockType { block: 32, bytes: 20, decode: simple::q4_1 }),
    ("Q4_K", BlockType { block: 256, bytes: 144, decode: superblocks::q4_k }),
    ("Q5_0", BlockType { block: 32, bytes: 22, decode: simple::q5_0 }),
    ("Q5_1", BlockType { block: 32, bytes: 24, decode: simple::q5_1 }),
    ("Q5_K", BlockType { block: 256, bytes: 176, decode: superblocks::q5_k }),
    ("Q6_K", BlockType { block: 256, bytes: 210, decode: superblocks::q6_k }),
    ("Q8_0", BlockType { block: 32, bytes: 34, decode: simple::q8_0 }),
];

/// The rows and columns that a weight has in a file, of which there may be a stack.
#[derive(Debug, Clone, Copy)]
struct Size {
    stack: Option<usize>,
    rows: usize,
    columns: usize,
    /// Whether it is a vector, whose columns are not mentioned in its shape.
    is_vector: bool,
}

impl Gguf {
    pub(in crate::storage) fn stores(&self, name: &str, tensors: &StoredTensors) -> bool {
        let source = self.layout.source(name, tensors);
        source.is_some_and(|source| source.tensors.iter().all(|tensor| tensors.has(tensor)))
    }

    pub(in crate::storage) fn storage(
        &self,
        weight: &Weight,
        tensors: &StoredTensors,
    ) -> Result<Storage, WrongStorage> {
        let Some(source) = self.layout.source(&weight.name, tensors) else {
            return Err(WrongStorage::new(&weight.name, "no tensor of a GGUF file has this weight"));
        };
        if let Some(tensor) = source.as_it_is()
            && let Some(found) = tensors.get(tensor)
            && !self.types.contains_key(tensor)
        {
            return plain(weight, found);
        }
        let size = Size::of(weight, &source)?;
        if !size.rows.is_multiple_of(source.row_unit()) {
            let problem = format!("{} rows, expected a multiple of {}", size.rows, source.row_unit());
            return Err(WrongStorage::new(&weight.name, problem));
        }
        let mut parts = Parts::new(tensors);
        let mut decoded = Vec::new();
        for tensor in &source.tensors {
            decoded.push(self.matrix(tensor, size, &source, &mut parts)?);
        }
        let whole = source.arrange(decoded, size);
        let whole = whole.ok_or_else(|| WrongStorage::new(&weight.name, "has no tensors, expected one"))?;
        Ok(parts.finish(whole.coding(source.transposed)))
    }

    /// Returns the matrix that a tensor stores, all stacked rows in one dimension.
    fn matrix(
        &self,
        tensor: &str,
        size: Size,
        source: &Source,
        parts: &mut Parts<'_>,
    ) -> Result<Decoded, WrongStorage> {
        let Size { stack, rows, columns, is_vector } = size;
        let rows = rows / source.tensors.len();
        // One of a stack is cut out.
        let cut = source
            .index
            .map(|index| Ok::<_, WrongStorage>((parts.stack(tensor, index)?, index)))
            .transpose()?;
        let stack = stack.or(cut.map(|(count, _)| count));
        let shape = |last: usize| {
            let last = (!is_vector).then_some(last);
            stack.into_iter().chain([rows]).chain(last).collect::<Vec<_>>()
        };
        let whole = |all: Expr, last: usize| match cut {
            Some((_, index)) => all.slice(0, index, index + 1).reshape(&[rows, last]),
            None => all.reshape(&[stack.unwrap_or(1) * rows, last]),
        };
        let all_rows = if cut.is_some() { rows } else { stack.unwrap_or(1) * rows };
        let Some(name) = self.types.get(tensor) else {
            let numbers = parts.floats(tensor, &shape(columns))?;
            return Ok(Decoded::floats(whole(numbers, columns), columns));
        };
        let wrong = |problem: String| WrongStorage::new(tensor, problem);
        let Some((_, ty)) = TYPES.iter().find(|(known, _)| known == name) else {
            let known: Vec<_> = TYPES.iter().map(|(name, _)| *name).collect();
            return Err(wrong(format!("type {name}, expected F32, F16, BF16, {}", known.join(", "))));
        };
        if is_vector {
            return Err(wrong(format!("a vector of type {name}, expected F32, F16 or BF16")));
        }
        if !columns.is_multiple_of(ty.block) {
            let problem =
                format!("rows of {columns} elements, expected a multiple of {} for {name}", ty.block);
            return Err(wrong(problem));
        }
        let bytes = columns / ty.block * ty.bytes;
        let stored = parts.take(tensor, &[Dtype::U8], &shape(bytes))?;
        Ok((ty.decode)(&Blocks::new(whole(stored, bytes), all_rows, columns / ty.block, ty.bytes)))
    }
}

/// Returns the storage of a weight that a tensor of numbers is.
fn plain(weight: &Weight, found: crate::storage::StoredTensor) -> Result<Storage, WrongStorage> {
    // A single row may be stored as a vector.
    let is_same = found.shape == weight.shape
        || (weight.shape.first() == Some(&1) && weight.shape.get(1..) == Some(&found.shape[..]));
    if !is_same {
        let problem = format!("shape {:?}, expected {:?}", found.shape, weight.shape);
        return Err(WrongStorage::new(found.name, problem));
    }
    check_floats(&found)?;
    if found.shape == weight.shape {
        return Ok(Storage { tensors: vec![found], coding: None, order: None });
    }
    let columns = found.shape.iter().product();
    let codes = Expr::Stored(0).floats().reshape(&[1, columns]);
    let coding = Decoded::floats(codes, columns).coding(false);
    Ok(Storage { tensors: vec![found], coding: Some(coding), order: None })
}

impl Size {
    /// Returns the size that a weight has in a file.
    fn of(weight: &Weight, source: &Source) -> Result<Self, WrongStorage> {
        let is_vector = source.is_vector || weight.shape.len() == 1;
        let (stack, rows, columns) = match (weight.shape.as_slice(), is_vector) {
            (&[rows], _) => (None, rows, 1),
            (&[stack, rows], true) => (Some(stack), rows, 1),
            (&[rows, columns], false) => (None, rows, columns),
            (&[stack, rows, columns], false) => (Some(stack), rows, columns),
            (shape, _) => {
                let problem = format!("has the shape {shape:?}, expected rows and columns");
                return Err(WrongStorage::new(&weight.name, problem));
            }
        };
        let (rows, columns) = if source.transposed { (columns, rows) } else { (rows, columns) };
        Ok(Self { stack, rows, columns, is_vector })
    }
}

impl Source {
    /// Returns what the number of rows is a multiple of.
    fn row_unit(&self) -> usize {
        match self.order {
            Order::AsStored | Order::Interleaved => self.tensors.len().max(1),
            Order::Halves { heads } => 2 * heads.max(1),
            Order::HeadByHead { heads } => 3 * heads.max(1),
        }
    }

    /// Puts the rows of the weight in order.
    fn arrange(&self, decoded: Vec<Decoded>, size: Size) -> Option<Decoded> {
        let Size { stack, rows, columns, .. } = size;
        let count = stack.unwrap_or(1);
        let mut decoded = decoded.into_iter();
        let first = decoded.next()?;
        let whole = match decoded.next() {
            None => first,
            Some(second) => {
                let half = rows / 2;
                first.join(second, [count * half, columns], |both, last| {
                    let split: &[usize] = match self.order {
                        Order::Interleaved => &[count * half, 1, last],
                        _ => &[count, half, last],
                    };
                    Expr::Concatenate(both.map(|one| one.reshape(split)).to_vec(), 1)
                        .reshape(&[count * rows, last])
                })
            }
        };
        let swapped = |whole: Decoded, [outer, inner, rest]: [usize; 3], permutation: [usize; 4]| {
            whole.map(columns, |part, last| {
                part.reshape(&[outer, inner, rest, last]).transpose(&permutation).reshape(&[rows, last])
            })
        };
        let whole = match self.order {
            Order::AsStored | Order::Interleaved => whole,
            Order::Halves { heads } => swapped(whole, [heads, rows / heads / 2, 2], [0, 2, 1, 3]),
            Order::HeadByHead { heads } => swapped(whole, [3, heads, rows / heads / 3], [1, 0, 2, 3]),
        };
        Some(match stack {
            None => whole,
            Some(count) => whole.map(columns, |part, last| part.reshape(&[count, rows, last])),
        })
    }
}
