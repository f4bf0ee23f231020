//! The experts of gpt-oss: `quant_method` mxfp4.
//!
//! A stack has `…_blocks`, bytes of two 4-bit floats, the low one first, and `…_scales`, powers of two. Both have outputs
//! before inputs, and the float form has inputs first.

use safetensors::Dtype;

use super::numbers::{FloatCodes, e8m0};
use crate::{
    error::Error,
    json::Json,
    layers::Weight,
    storage::{
        coding::{Coding, Numbers, Storage},
        tensors::{Parts, StoredTensors, WrongStorage},
    },
};

/// The settings of gpt-oss' experts, which are always the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Mxfp4;

const GROUP: usize = 32;

impl Mxfp4 {
    #[expect(clippy::unnecessary_wraps, reason = "as other schemes")]
    pub(in crate::storage) fn read(_: &Json<'_>) -> Result<Self, Error> {
        Ok(Self)
    }

    #[expect(clippy::unused_self, reason = "as other schemes")]
    pub(in crate::storage) fn stores(&self, name: &str, tensors: &StoredTensors) -> bool {
        tensors.has(&format!("{name}_blocks"))
    }

    #[expect(clippy::unused_self, reason = "as other schemes")]
    pub(in crate::storage) fn storage(
        &self,
        weight: &Weight,
        tensors: &StoredTensors,
    ) -> Result<Storage, WrongStorage> {
        let &[experts, inputs, outputs] = weight.shape.as_slice() else {
            let problem =
                format!("a quantized tensor of shape {:?}, expected a stack of experts", weight.shape);
            return Err(WrongStorage::new(&weight.name, problem));
        };
        let groups = super::names::whole_groups(&weight.name, inputs, GROUP)?;
        let mut parts = Parts::new(tensors);
        let blocks = format!("{}_blocks", weight.name);
        let blocks = parts.take(&blocks, &[Dtype::U8], &[experts, outputs, groups, GROUP / 2])?;
        let scales = format!("{}_scales", weight.name);
        let scales = parts.take(&scales, &[Dtype::U8], &[experts, outputs, groups])?;
        let codes = blocks.unpack(4).reshape(&[experts, outputs, inputs]).lookup(FloatCodes::E2m1.list());
        let scales = scales.unpack(8).lookup(e8m0());
        let coding = Coding::in_groups(codes, Numbers::Floats { bits: 4 }, GROUP, scales);
        Ok(parts.finish(Coding { transposed: true, ..coding }))
    }
}
