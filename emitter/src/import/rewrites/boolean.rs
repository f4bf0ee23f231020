//! Arithmetic and constants of booleans.
//!
//! iree-compile adds them modulo 2, where the specification says "or". It prints large constants as a byte for each element,
//! where earlier versions of MLIR read a bit.

use safetensors::Dtype;

use super::super::{ast::Op, attributes::tensor_type, replay::Replay};
use crate::{
    graph::{Graph, Tensor},
    types::TensorType,
};

/// Returns what stands for arithmetic of booleans.
pub(super) fn rewrite(graph: &mut Graph, op: &Op<'_>, x: Tensor, y: Tensor) -> Option<Tensor> {
    Some(match op.name {
        "stablehlo.add" | "stablehlo.maximum" => graph.or(x, y),
        "stablehlo.multiply" | "stablehlo.minimum" => graph.and(x, y),
        _ => return None,
    })
}

/// Returns what stands for a constant of bytes: those that are not zero.
pub(in crate::import) fn constant(replay: &mut Replay<'_, '_>, op: &Op<'_>) -> Option<Tensor> {
    let ty = tensor_type(op.result_types.first()?).filter(|ty| ty.dtype == Dtype::BOOL)?;
    let (elements, _) =
        op.attribute("value").filter(|value| value.starts_with("dense<\"0x"))?.split_once('>')?;
    let ty = TensorType::new(Dtype::I8, ty.shape);
    let mut attributes = op.attributes.clone();
    let value = format!("{elements}> : {ty}");
    attributes.insert("value", &value);
    let bytes = *replay.add(op.name, &[], &attributes, Vec::new(), vec![ty.clone()]).first()?;
    let zero = replay.graph.full(0.0, ty.dtype, &ty.shape);
    Some(replay.graph.ne(bytes, zero))
}
