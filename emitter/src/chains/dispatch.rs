//! The dispatch of a chain.

use std::collections::HashMap;

use safetensors::Dtype;

use super::{members::Members, uses::Uses};
use crate::{
    cost::Cost,
    graph::{Graph, Op, Tensor},
    kernels::{CPU_CONTAINER, Chain, Link, Place},
    module::Module,
    types::TensorType,
};

/// What tensors within a chain are aligned to, in bytes: a cache line.
const ALIGNMENT: usize = 64;

/// Adds the dispatch of a chain to a function, and returns the counters after it.
///
/// `first_link` is the index of the chain's first link in the counters.
pub(super) fn dispatch(
    module: &mut Module,
    graph: &mut Graph,
    uses: &Uses,
    members: &Members,
    counters: Tensor,
    first_link: usize,
) -> Tensor {
    let operands = members.operands(uses);
    let numbers = members.numbers();
    let made = members.results(uses);
    let (places, scratch) = places(graph, members, &operands, &made);
    let links = members.all.iter().map(|member| {
        let tensors = member.operands().iter().map(|&operand| members.resolve(uses, operand));
        let tensors = tensors.chain(member.made().iter().copied());
        Link {
            executable: member.executable.clone(),
            places: tensors.filter_map(|tensor| places.get(&tensor).copied()).collect(),
            numbers: member.numbers().iter().filter_map(|number| position(&numbers, *number)).collect(),
        }
    });
    let chain = Chain {
        links: links.collect(),
        operands: operands.iter().map(|&operand| graph.type_of(operand)).collect(),
        results: made.iter().map(|&result| graph.type_of(result)).collect(),
        scratch,
        numbers: numbers.len(),
    };
    let entry = Chain::entry(module.add_chain(chain));
    let first = graph.host_number(first_link);
    let overwritten: Vec<_> = members.all.iter().flat_map(|member| member.overwritten()).collect();
    let extents = |tensors: &mut dyn Iterator<Item = Tensor>| -> Vec<_> {
        tensors.filter_map(|tensor| Some(graph.extent(tensor)?.0)).collect()
    };
    let of_operands = extents(&mut operands.iter().copied());
    let of_results = extents(&mut overwritten.iter().map(|&(before, _)| before));
    let arguments = operands.len() + 1 + numbers.len() + 1;
    let segments = format!("array<i32: 0, {arguments}, {}, {}>", of_operands.len(), of_results.len());
    let mut tied = vec!["-1 : index".to_owned(); made.len() + 1];
    let overwrites = overwritten.iter().filter_map(|(before, _)| position(&operands, *before));
    tied.extend(overwrites.chain([operands.len()]).map(|index| format!("{index} : index")));
    let own = graph.value(TensorType::new(Dtype::I8, [scratch]));
    let counted = graph.value(graph.type_of(counters));
    let results = made.into_iter().chain([own]).chain(overwritten.iter().map(|&(_, after)| after));
    let scope = members.all.first().map(|member| member.op.scope.clone());
    graph.put_op(Op {
        name: "flow.dispatch".into(),
        operands: [operands, vec![counters], numbers, vec![first.0], of_operands, of_results].concat(),
        attributes: vec![
            ("entry_points".into(), format!("[@{CPU_CONTAINER}::@{entry}]")),
            ("operandSegmentSizes".into(), segments),
            ("tied_operands".into(), format!("[{}]", tied.join(", "))),
        ],
        regions: Vec::new(),
        results: results.chain([counted]).collect(),
        scope: scope.unwrap_or_default(),
        kernel: None,
        cost: Cost::default(),
    });
    counted
}

fn position(all: &[Tensor], tensor: Tensor) -> Option<usize> {
    all.iter().position(|known| *known == tensor)
}

/// Returns the place of each tensor of a chain, and the bytes of those that stay within it.
fn places(
    graph: &Graph,
    members: &Members,
    operands: &[Tensor],
    made: &[Tensor],
) -> (HashMap<Tensor, Place>, usize) {
    let outer = operands.iter().enumerate().map(|(index, &operand)| (operand, Place::Operand(index)));
    let results = made.iter().enumerate().map(|(index, &result)| (result, Place::Result(index)));
    let mut places: HashMap<_, _> = outer.chain(results).collect();
    let mut bytes = 0;
    for &tensor in members.all.iter().flat_map(|member| member.made()) {
        places.entry(tensor).or_insert_with(|| {
            let ty = graph.type_of(tensor);
            let place = Place::Scratch(bytes);
            bytes += (ty.elements() * ty.dtype.bitsize() / 8).next_multiple_of(ALIGNMENT);
            place
        });
    }
    (places, bytes.max(ALIGNMENT))
}
