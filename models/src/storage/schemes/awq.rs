//! AWQ: `quant_method` awq, as autoawq 0.2.9 writes its versions gemm and gemv.
//!
//! A module has `qweight` and `qzeros`, words of eight codes, and `scales`. In gemm, all have inputs first, and words hold codes
//! of adjacent outputs. In gemv, all have outputs first, words hold codes of adjacent inputs, and rows of zero points and scales
//! go on with zeros.

use safetensors::Dtype;

use super::names::{Excluded, matrix, module, whole_groups};
use crate::{
    error::Error,
    json::Json,
    layers::Weight,
    storage::{
        coding::{Coding, Numbers, Storage},
        expr::Expr,
        tensors::{Parts, StoredTensors, WrongStorage},
    },
};

/// AWQ's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Awq {
    version: Version,
    /// Inputs of a group; `None` if all have one scale.
    group: Option<usize>,
    pub(in crate::storage) excluded: Excluded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Gemm,
    Gemv,
}

const BITS: usize = 4;
/// Codes of a word.
const IN_WORD: usize = 8;
/// The place in a word of each of eight adjacent outputs.
const ORDER: [usize; IN_WORD] = [0, 4, 1, 5, 2, 6, 3, 7];

impl Awq {
    pub(in crate::storage) fn read(json: &Json<'_>) -> Result<Self, Error> {
        let bits = json.size("bits", BITS, 8)?;
        if bits != BITS {
            return Err(json.unsupported("bits", "4"));
        }
        let version = match json.text_or_null("version")?.map(str::to_ascii_lowercase).as_deref() {
            None | Some("gemm") => Version::Gemm,
            Some("gemv") => Version::Gemv,
            Some(_) => return Err(json.unsupported("version", "gemm or gemv")),
        };
        json.require("zero_point", "true", |value| value.as_bool() == Some(true))?;
        let excluded = Excluded::read(json, "modules_to_not_convert")?;
        let group = json.group_size("group_size")?;
        if version == Version::Gemv && group.is_none_or(|size| size < 128 && ![32, 64].contains(&size)) {
            return Err(json.unsupported("group_size", "32, 64, or at least 128 with version gemv"));
        }
        Ok(Self { version, group, excluded })
    }

    pub(in crate::storage) fn stores(&self, name: &str, tensors: &StoredTensors) -> bool {
        module(name).is_some_and(|module| tensors.has(&format!("{module}.qweight")))
    }

    pub(in crate::storage) fn storage(
        &self,
        weight: &Weight,
        tensors: &StoredTensors,
    ) -> Result<Storage, WrongStorage> {
        self.excluded.check(weight)?;
        let [rows, columns] = matrix(weight)?;
        let size = self.group.unwrap_or(columns);
        let groups = whole_groups(&weight.name, columns, size)?;
        let name = |part: &str| format!("{}.{part}", module(&weight.name).unwrap_or_default());
        let mut parts = Parts::new(tensors);
        let form = match self.version {
            Version::Gemm => gemm,
            Version::Gemv => gemv,
        };
        let Tensors { codes, zeros, scales } =
            form(weight, &name, [rows, columns, groups], size, &mut parts)?;
        let numbers = Numbers::Integers { bits: BITS, signed: false };
        let coding =
            Coding { zeros: Some(zeros.floats()), ..Coding::in_groups(codes, numbers, size, scales) };
        Ok(parts.finish(coding))
    }
}

/// What a module's tensors hold, with outputs first.
struct Tensors {
    codes: Expr,
    zeros: Expr,
    scales: Expr,
}

fn gemm(
    weight: &Weight,
    name: &dyn Fn(&str) -> String,
    [rows, columns, groups]: [usize; 3],
    _: usize,
    parts: &mut Parts<'_>,
) -> Result<Tensors, WrongStorage> {
    if !rows.is_multiple_of(IN_WORD) {
        let problem = format!("{rows} rows, expected a multiple of {IN_WORD}");
        return Err(WrongStorage::new(&weight.name, problem));
    }
    let codes = parts.take(&name("qweight"), &[Dtype::I32], &[columns, rows / IN_WORD])?;
    let zeros = parts.take(&name("qzeros"), &[Dtype::I32], &[groups, rows / IN_WORD])?;
    let scales = parts.floats(&name("scales"), &[groups, rows])?;
    let in_order = |words: Expr, count: usize| {
        let codes = words.unpack(BITS).reshape(&[count, rows / IN_WORD, IN_WORD]).reorder(&ORDER);
        codes.reshape(&[count, rows]).transpose(&[1, 0])
    };
    let [codes, zeros] = [in_order(codes, columns), in_order(zeros, groups)];
    Ok(Tensors { codes, zeros, scales: scales.transpose(&[1, 0]) })
}

fn gemv(
    weight: &Weight,
    name: &dyn Fn(&str) -> String,
    [rows, columns, groups]: [usize; 3],
    size: usize,
    parts: &mut Parts<'_>,
) -> Result<Tensors, WrongStorage> {
    if !columns.is_multiple_of(IN_WORD) {
        let problem = format!("{columns} columns, expected a multiple of {IN_WORD}");
        return Err(WrongStorage::new(&weight.name, problem));
    }
    // Rows of zero points are multiples of what covers 1024 inputs.
    let together = (128 / size).max(1);
    let words = groups.div_ceil(IN_WORD).next_multiple_of(together);
    let codes = parts.take(&name("qweight"), &[Dtype::I32], &[rows, columns / IN_WORD])?.unpack(BITS);
    let zeros = parts.take(&name("qzeros"), &[Dtype::I32], &[rows, words])?.unpack(BITS);
    let scales = parts.floats(&name("scales"), &[rows, words * IN_WORD])?.slice(1, 0, groups);
    Ok(Tensors { codes, zeros: zeros.slice(1, 0, groups), scales })
}
