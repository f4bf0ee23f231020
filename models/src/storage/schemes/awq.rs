//! AWQ: `quant_method` awq, as autoawq 0.2.9 writes its version gemm.
//!
//! A module has `qweight` and `qzeros`, words of eight codes along the rows, and `scales`, all with inputs first.

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
    /// Inputs of a group; `None` if all have one scale.
    group: Option<usize>,
    excluded: Excluded,
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
        json.require("version", "gemm", |value| {
            value.as_str().is_some_and(|version| version.eq_ignore_ascii_case("gemm"))
        })?;
        json.require("zero_point", "true", |value| value.as_bool() == Some(true))?;
        let excluded = Excluded::read(json, "modules_to_not_convert")?;
        Ok(Self { group: json.group_size("group_size")?, excluded })
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
        if !rows.is_multiple_of(IN_WORD) {
            let problem = format!("{rows} rows, expected a multiple of {IN_WORD}");
            return Err(WrongStorage::new(&weight.name, problem));
        }
        let name = |part: &str| format!("{}.{part}", module(&weight.name).unwrap_or_default());
        let mut parts = Parts::new(tensors);
        let codes = parts.take(&name("qweight"), &[Dtype::I32], &[columns, rows / IN_WORD])?;
        let zeros = parts.take(&name("qzeros"), &[Dtype::I32], &[groups, rows / IN_WORD])?;
        let scales = parts.floats(&name("scales"), &[groups, rows])?;
        let in_order = |words: Expr, count: usize| {
            let codes = words.unpack(BITS).reshape(&[count, rows / IN_WORD, IN_WORD]).reorder(&ORDER);
            codes.reshape(&[count, rows]).transpose(&[1, 0])
        };
        let numbers = Numbers::Integers { bits: BITS, signed: false };
        let coding = Coding {
            zeros: Some(in_order(zeros, groups).floats()),
            ..Coding::in_groups(in_order(codes, columns), numbers, size, scales.transpose(&[1, 0]))
        };
        Ok(parts.finish(coding))
    }
}
