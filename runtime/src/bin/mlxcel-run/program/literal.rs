//! Tensors on the command line: `0.1`, `f32=0.1`, `4xf32=1 2 3 4`, as iree-run-module writes them.

use half::{bf16, f16};
use mlxcel_artifacts::{Tensor, dtype_of_mlir, type_text};
use mlxcel_runtime::Number;
use safetensors::Dtype;

/// The most elements that one number is repeated for. Larger tensors belong into files.
const SPLAT_MAX: usize = 1 << 28;

/// Reads a tensor of the type that an argument has. The text may say the type, which must then be the same.
pub(super) fn read(text: &str, dtype: Dtype, shape: &[usize]) -> Result<Tensor, String> {
    let (found, values) = match text.split_once('=') {
        Some((ty, values)) => (Some(parse_type(ty)?), values),
        None => (None, text),
    };
    if let Some((found, sizes)) = found
        && (found, sizes.as_slice()) != (dtype, shape)
    {
        return Err(format!("found {}, expected {}", type_text(found, &sizes), type_text(dtype, shape)));
    }
    let count: usize = shape.iter().product();
    let words: Vec<&str> = values
        .split(|c: char| c.is_whitespace() || "[],;".contains(c))
        .filter(|word| !word.is_empty())
        .collect();
    if words.len() != count && (words.len() != 1 || count > SPLAT_MAX) {
        let (found, s) = (words.len(), if words.len() == 1 { "" } else { "s" });
        return Err(format!("found {found} number{s}, expected {count}, or one for all"));
    }
    let words = words.iter().cycle().take(count);
    let mut bytes = Vec::new();
    for word in words {
        append(word, dtype, &mut bytes)?;
    }
    Tensor::new(dtype, shape, bytes).map_err(|error| error.to_string())
}

/// Parses a type: `4x3xf32`.
fn parse_type(text: &str) -> Result<(Dtype, Vec<usize>), String> {
    let mut shape = Vec::new();
    let mut rest = text;
    while let Some((size, after)) = rest.split_once('x') {
        let Ok(size) = size.parse() else { break };
        shape.push(size);
        rest = after;
    }
    let dtype = dtype_of_mlir(rest);
    let dtype = dtype
        .ok_or_else(|| format!("found the type `{}`, expected one such as 4xf32", text.escape_debug()))?;
    Ok((dtype, shape))
}

/// Appends a number of this type.
fn append(word: &str, dtype: Dtype, bytes: &mut Vec<u8>) -> Result<(), String> {
    macro_rules! number {
        ($number:ty) => {
            word.parse::<$number>().map(|number| number.append_to(bytes)).map_err(|_| ())
        };
    }
    let parsed = match dtype {
        Dtype::BOOL => match word {
            "true" | "1" => Ok(1),
            "false" | "0" => Ok(0),
            _ => Err(()),
        }
        .map(|byte| bytes.push(byte)),
        Dtype::I8 => number!(i8),
        Dtype::I16 => number!(i16),
        Dtype::I32 => number!(i32),
        Dtype::I64 => number!(i64),
        Dtype::U8 => number!(u8),
        Dtype::U16 => number!(u16),
        Dtype::U32 => number!(u32),
        Dtype::U64 => number!(u64),
        Dtype::F32 => number!(f32),
        Dtype::F64 => number!(f64),
        // Rounded once: a f32 first would be rounded twice.
        Dtype::F16 => {
            word.parse().map(|value| bytes.extend(f16::from_f64(value).to_le_bytes())).map_err(|_| ())
        }
        Dtype::BF16 => {
            word.parse().map(|value| bytes.extend(bf16::from_f64(value).to_le_bytes())).map_err(|_| ())
        }
        _ => {
            let name = dtype.to_string().to_lowercase();
            return Err(format!("found numbers for {name}, expected a file"));
        }
    };
    parsed.map_err(|()| {
        let name = dtype.to_string().to_lowercase();
        format!("found `{}`, expected a number of type {name}", word.escape_debug())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(text: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        read(text, Dtype::F32, shape).map(|tensor| tensor.numbers().unwrap())
    }

    #[test]
    fn numbers_with_and_without_a_type() {
        assert_eq!(floats("0.1", &[]).unwrap(), [0.1]);
        assert_eq!(floats("f32=-1e-3", &[]).unwrap(), [-1e-3]);
        assert_eq!(floats("2x2xf32=1 2 3 4", &[2, 2]).unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(floats("2x2xf32=[[1,2],[3,4]]", &[2, 2]).unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(floats("7", &[3]).unwrap(), [7.0; 3]);
        assert!(floats("", &[0]).unwrap().is_empty());
        assert!(floats("nan", &[]).unwrap()[0].is_nan());
        let flags = read("i1=true", Dtype::BOOL, &[]).unwrap();
        assert_eq!(flags.numbers::<bool>().unwrap(), [true]);
        let half = read("2xbf16=1 -2.5", Dtype::BF16, &[2]).unwrap();
        assert_eq!(half.bytes(), [0x80, 0x3f, 0x20, 0xc0]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = |text: &str, shape: &[usize]| floats(text, shape).unwrap_err();
        assert_eq!(refused("f64=1", &[]), "found f64[], expected f32[]");
        assert_eq!(refused("4xf32=1 2 3", &[4]), "found 3 numbers, expected 4, or one for all");
        assert_eq!(refused("", &[4]), "found 0 numbers, expected 4, or one for all");
        assert_eq!(refused("q=1", &[]), "found the type `q`, expected one such as 4xf32");
        assert_eq!(refused("x", &[]), "found `x`, expected a number of type f32");
        assert_eq!(read("256", Dtype::U8, &[]).unwrap_err(), "found `256`, expected a number of type u8");
        assert_eq!(read("1", Dtype::C64, &[]).unwrap_err(), "found numbers for c64, expected a file");
        assert_eq!(refused("1", &[1 << 40]), "found 1 number, expected 1099511627776, or one for all");
    }
}
