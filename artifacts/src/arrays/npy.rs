//! NumPy's npy files: a header in Python's syntax, then the elements.

use std::io::{self, Read};

use safetensors::Dtype;

use super::{dtypes, error::Problem, value::Tensor};
use crate::{safetensors::printable, tensor::tensor_bytes};

/// What an npy file begins with.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header. NumPy reads up to 10,000 bytes unless told to trust the file.
const HEADER_MAX: usize = 64 << 10;

/// The most dimensions of an array, as in NumPy.
const RANK_MAX: usize = 64;

/// The remedy for types that no program takes.
const OTHER_TYPE: &str = "convert the array, for example with numpy's astype(\"<f4\")";

/// What an npy file says about its array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    /// Whether the elements of the first dimension are next to each other.
    is_fortran: bool,
    /// Bytes before the elements.
    pub(super) length: usize,
}

impl Header {
    /// Reads the header that a file begins with. Takes bits for elements of the type `named`, if there is one.
    pub(super) fn read(from: &mut dyn Read, named: Option<Dtype>) -> Result<Self, Problem> {
        let mut start = [0; 8];
        from.read_exact(&mut start).map_err(|error| Problem::read(&error))?;
        if !start.starts_with(MAGIC) {
            return Err(Problem::damaged("found no npy header"));
        }
        // Version 1 has two bytes for the length, versions 2 and 3 have four.
        let mut length = [0; 4];
        let bytes = if start[6] == 1 { 2 } else { 4 };
        from.read_exact(&mut length[..bytes]).map_err(|error| Problem::read(&error))?;
        let found = u32::from_le_bytes(length) as usize;
        if !(1..=3).contains(&start[6]) || found > HEADER_MAX {
            let version = start[6];
            return Err(Problem::damaged(format!(
                "found an npy header of version {version} with {found} bytes, expected 1 to 3 with at most {HEADER_MAX}"
            )));
        }
        let mut text = vec![0; found];
        from.read_exact(&mut text).map_err(|error| Problem::read(&error))?;
        let text = String::from_utf8_lossy(&text);
        let Fields { descr, fortran_order, shape } = Fields::parse(text.trim_end())?;
        let dtype = element_type(&descr, named)?;
        if tensor_bytes(dtype, &shape).is_none() {
            return Err(Problem::damaged(format!("found the shape {shape:?}, which no memory holds")));
        }
        Ok(Self { dtype, shape, is_fortran: fortran_order, length: start.len() + bytes + found })
    }

    /// Returns the bytes of the elements.
    pub(super) fn data_bytes(&self) -> usize {
        // `read` has checked that they do not overflow.
        tensor_bytes(self.dtype, &self.shape).unwrap_or(usize::MAX)
    }

    /// Reads the elements, all that follow the header.
    pub(super) fn read_data(&self, from: &mut dyn Read) -> Result<Tensor, Problem> {
        let mut bytes = Vec::new();
        let limit = self.data_bytes() as u64;
        let read = from.take(limit).read_to_end(&mut bytes).map_err(|error| Problem::read(&error))?;
        let more = read as u64 == limit && matches!(from.read(&mut [0]), Ok(1));
        if (read as u64) < limit || more {
            let more = if more { "more than " } else { "" };
            return Err(Problem::damaged(format!("found {more}{read} bytes of elements, expected {limit}")));
        }
        if self.is_fortran {
            bytes = transposed(&bytes, &self.shape, self.dtype.bitsize() / 8);
        }
        Tensor::new(self.dtype, &self.shape, bytes).map_err(|error| Problem::damaged(error.to_string()))
    }
}

/// Returns the element type of a description such as `<f4`.
fn element_type(descr: &str, named: Option<Dtype>) -> Result<Dtype, Problem> {
    let shown = printable(descr);
    let refused =
        |what: &str, hint| Problem::unsupported(format!("found {what} (`{shown}`), expected numbers"), hint);
    let (order, kind) = descr.split_at_checked(1).unwrap_or(("", descr));
    if order == ">" {
        return Err(refused("numbers of another order of bytes", OTHER_TYPE));
    }
    if kind.starts_with('O') {
        let hint = "save numbers, for example with numpy's asarray(x, dtype=\"f4\")";
        return Err(refused("Python objects", hint));
    }
    // ml_dtypes saves bfloat16 as bytes without a type.
    let dtype = if kind == "V2" { Some(Dtype::BF16) } else { dtypes::of_numpy(kind) };
    let bits = |dtype: &Dtype| dtype.bitsize();
    match (named, dtype) {
        (Some(named), _) if kind == format!("V{}", named.bitsize() / 8) => Ok(named),
        (Some(named), Some(Dtype::U8 | Dtype::U16)) if dtype.as_ref().map(bits) == Some(named.bitsize()) => {
            Ok(named)
        }
        (Some(named), _) => {
            let expected = if named.bitsize() == 8 { "uint8" } else { "uint16" };
            let text = format!("found `{shown}` for {named:?}, expected its bits as {expected}");
            Err(Problem::unsupported(text, "save x.view(\"uint16\"), or \"uint8\" for types of 8 bits"))
        }
        (None, Some(dtype)) if ["<", "|", "="].contains(&order) => Ok(dtype),
        (None, _) => Err(refused("another type", OTHER_TYPE)),
    }
}

/// Reorders elements of which those of the first dimension are next to each other.
fn transposed(bytes: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = 1;
    for &dimension in shape {
        strides.push(stride);
        stride *= dimension;
    }
    let mut to = Vec::with_capacity(bytes.len());
    let mut index = vec![0; shape.len()];
    for _ in 0..bytes.len() / size.max(1) {
        let at: usize = index.iter().zip(&strides).map(|(index, stride)| index * stride).sum();
        to.extend_from_slice(&bytes[at * size..(at + 1) * size]);
        for (index, &dimension) in index.iter_mut().zip(shape).rev() {
            *index += 1;
            if *index < dimension {
                break;
            }
            *index = 0;
        }
    }
    to
}

/// The entries of a header.
struct Fields {
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Fields {
    /// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
    fn parse(text: &str) -> Result<Self, Problem> {
        let mut cursor = Cursor(text);
        let (mut descr, mut order, mut shape) = (None, None, None);
        let mut read = || -> Option<()> {
            cursor.take("{")?;
            while cursor.take("}").is_none() {
                let key = cursor.string()?;
                cursor.take(":")?;
                match key {
                    "descr" if descr.is_none() => descr = Some(cursor.descr()?),
                    "fortran_order" if order.is_none() => order = Some(cursor.boolean()?),
                    "shape" if shape.is_none() => shape = Some(cursor.tuple()?),
                    _ => return None,
                }
                if cursor.take(",").is_none() {
                    cursor.take("}")?;
                    break;
                }
            }
            cursor.is_at_end().then_some(())
        };
        let read = read();
        match (read, descr, order, shape) {
            (Some(()), Some(descr), Some(fortran_order), Some(shape)) => {
                Ok(Self { descr, fortran_order, shape })
            }
            // What follows a list of fields is not looked at.
            (_, Some(descr), ..) if descr.starts_with('[') => {
                Err(Problem::unsupported("found records of fields, expected numbers", OTHER_TYPE))
            }
            _ => {
                let shown = printable(&text.chars().take(80).collect::<String>());
                Err(Problem::damaged(format!(
                    "found the npy header `{shown}`, expected descr, fortran_order and shape"
                )))
            }
        }
    }
}

/// The rest of a header.
struct Cursor<'t>(&'t str);

impl<'t> Cursor<'t> {
    fn take(&mut self, token: &str) -> Option<()> {
        self.0 = self.0.trim_start().strip_prefix(token)?;
        Some(())
    }

    fn string(&mut self) -> Option<&'t str> {
        let text = self.0.trim_start();
        let quote = text.chars().next().filter(|c| ['\'', '"'].contains(c))?;
        let (string, rest) = text[1..].split_once(quote)?;
        self.0 = rest;
        Some(string)
    }

    /// Returns a description; of records, only the bracket that it begins with.
    fn descr(&mut self) -> Option<String> {
        if self.0.trim_start().starts_with('[') {
            return Some("[".to_owned());
        }
        self.string().map(str::to_owned)
    }

    fn boolean(&mut self) -> Option<bool> {
        match self.take("True") {
            Some(()) => Some(true),
            None => self.take("False").map(|()| false),
        }
    }

    fn tuple(&mut self) -> Option<Vec<usize>> {
        self.take("(")?;
        let mut numbers = Vec::new();
        while self.take(")").is_none() {
            let text = self.0.trim_start();
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            numbers.push(text[..end].parse().ok()?);
            self.0 = &text[end..];
            if numbers.len() > RANK_MAX {
                return None;
            }
            if self.take(",").is_none() {
                self.take(")")?;
                break;
            }
        }
        Some(numbers)
    }

    fn is_at_end(&self) -> bool {
        self.0.trim().is_empty()
    }
}

/// Writes a tensor. Bits of a type that NumPy lacks are written as unsigned integers.
pub(super) fn write(tensor: &Tensor, to: &mut dyn io::Write) -> io::Result<()> {
    let dtype = tensor.dtype();
    let unknown = || io::Error::other(format!("NumPy has no type for {dtype:?}"));
    let kind = dtypes::numpy(dtype).ok_or_else(unknown)?;
    let order = if dtype.bitsize() == 8 { '|' } else { '<' };
    let sizes: Vec<String> = tensor.shape().iter().map(ToString::to_string).collect();
    let comma = if sizes.len() == 1 { "," } else { "" };
    let mut header = format!(
        "{{'descr': '{order}{kind}', 'fortran_order': False, 'shape': ({}{comma}), }}",
        sizes.join(", ")
    );
    // NumPy aligns elements to 64 bytes, and ends the header with a newline.
    let start = MAGIC.len() + 4;
    let length = (start + header.len() + 1).next_multiple_of(64) - start;
    header.extend(std::iter::repeat_n(' ', length - header.len() - 1));
    header.push('\n');
    let length = u16::try_from(length).map_err(io::Error::other)?;
    to.write_all(MAGIC)?;
    to.write_all(&[1, 0])?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(header.as_bytes())?;
    to.write_all(tensor.bytes())
}

#[cfg(test)]
mod tests;
