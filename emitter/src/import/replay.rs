//! A function that is replayed into a graph: what is known of its values, and how ops are added.

use std::collections::HashMap;

use super::{
    ast::{Attributes, Module, Op},
    attributes::tensor_type,
    fold::{Operand, fold},
    found::Checks,
    infer,
    options::ProgramOptions,
};
use crate::{
    error::Error,
    graph::{self, Graph, Tensor},
    kernels::Executable,
    types::{TensorType, ValueType},
};

/// A function while it is replayed.
pub(super) struct Replay<'p, 't> {
    pub(super) module: &'p Module<'t>,
    /// The function that others call.
    name: &'p str,
    pub(super) graph: Graph,
    /// Values by name, of each function that is being inlined.
    pub(super) frames: Vec<HashMap<String, Tensor>>,
    /// Integers that are known already.
    pub(super) known: HashMap<Tensor, Vec<i64>>,
    pub(super) ops: usize,
    /// How many regions within regions are being replayed.
    pub(super) depth: usize,
    /// How many of the regions under construction are of ops that combine numbers, such as a reduction.
    pub(super) combiners: usize,
    /// What is checked, if this is a test.
    pub(super) checks: Option<Checks>,
    /// How the program is compiled.
    pub(super) options: &'p ProgramOptions,
    /// The kernels that it calls.
    pub(super) executables: Vec<Executable>,
}

impl<'p, 't> Replay<'p, 't> {
    pub(super) fn new(module: &'p Module<'t>, name: &'p str, options: &'p ProgramOptions) -> Self {
        Self {
            module,
            name,
            graph: Graph::new(),
            frames: Vec::new(),
            known: HashMap::new(),
            ops: 0,
            depth: 0,
            combiners: 0,
            checks: None,
            options,
            executables: Vec::new(),
        }
    }

    /// Adds an op with these attributes and results.
    pub(super) fn add(
        &mut self,
        name: &str,
        operands: &[Tensor],
        attributes: &Attributes<'_>,
        regions: Vec<graph::Region>,
        results: Vec<TensorType>,
    ) -> Vec<Tensor> {
        let attributes = attributes
            .iter()
            .map(|(name, value)| ((*name).to_owned().into(), self.resolved(value)))
            .collect();
        let results = results.into_iter().map(ValueType::from).collect();
        self.graph.raw(name.to_owned().into(), operands, attributes, regions, results)
    }

    /// Returns an attribute's text without aliases and names of constants, which belong to the text around it.
    fn resolved(&self, text: &str) -> String {
        if let Some(value) = self.module.aliases.get(text) {
            return (*value).to_owned();
        }
        let resource = text.strip_prefix("dense_resource<").and_then(|rest| rest.split_once('>'));
        if let Some((digits, ty)) =
            resource.and_then(|(name, ty)| Some((self.module.resources.get(name)?, ty)))
        {
            // The first four bytes are the alignment of the others.
            return format!("dense<\"0x{}\">{ty}", digits.get(10..).unwrap_or_default());
        }
        text.to_owned()
    }

    /// Returns the types of an op's results: those that are written, with shapes from the operands where they are open.
    pub(super) fn result_types(
        &self,
        op: &Op<'_>,
        operands: &[Tensor],
        regions: &[graph::Region],
    ) -> Result<Vec<TensorType>, Error> {
        let mut types =
            op.result_types.iter().map(|ty| self.tensor_type(op, ty)).collect::<Result<Vec<_>, _>>()?;
        if !types.iter().any(TensorType::is_dynamic) {
            return Ok(types);
        }
        let operands: Vec<_> = operands.iter().map(|operand| self.graph.type_of(*operand)).collect();
        let shapes = match op.name {
            "stablehlo.if" | "stablehlo.case" => regions.first().map(|region| {
                region.results.iter().map(|result| self.graph.shape(*result).to_vec()).collect::<Vec<_>>()
            }),
            _ => infer::shapes(op, &operands),
        };
        let open = || {
            let problem = format!(
                "found {}, expected a shape that follows from the arguments'",
                op.result_types.join(", ")
            );
            self.refused(
                op,
                problem,
                "give the arguments' sizes with --shape, or export the program without open shapes",
            )
        };
        let shapes = shapes.filter(|shapes| shapes.len() == types.len()).ok_or_else(open)?;
        if !shapes.iter().all(|shape| infer::is_static(shape)) {
            return Err(open());
        }
        types.iter_mut().zip(shapes).for_each(|(ty, shape)| ty.shape = shape);
        Ok(types)
    }

    /// Returns the type of a tensor that the program has.
    pub(super) fn tensor_type(&self, op: &Op<'_>, text: &str) -> Result<TensorType, Error> {
        tensor_type(text).ok_or_else(|| {
            let problem = format!("found {text}, expected a tensor of bool, integers of 8 to 64 bits, f16, bf16, f32, f64, f8E4M3FN, f8E5M2 or complex<f32>");
            self.refused(op, problem, "no target computes with other types; convert what has them before exporting")
        })
    }

    /// Keeps the integers that an op computes, if they follow from what is known.
    pub(super) fn learn(&mut self, op: &Op<'_>, operands: &[Tensor], results: &[Tensor]) {
        let [result] = results else { return };
        let ty = self.graph.type_of(*result);
        let operands: Vec<_> = operands
            .iter()
            .map(|operand| Operand { ty: self.graph.type_of(*operand), known: self.known(*operand) })
            .collect();
        if let Some(values) = fold(op, &operands, &ty) {
            self.known.insert(*result, values);
        }
    }

    /// Returns the integers of a tensor, if they are known.
    pub(super) fn known(&self, tensor: Tensor) -> Option<&[i64]> {
        self.known.get(&tensor).map(Vec::as_slice)
    }

    /// Returns an error about an op.
    pub(super) fn refused(&self, op: &Op<'_>, problem: impl Into<String>, hint: &str) -> Error {
        Error::Refused {
            function: self.name.to_owned(),
            op: op.name.strip_prefix("stablehlo.").unwrap_or(op.name).to_owned(),
            place: self.module.place(op.location),
            problem: problem.into(),
            hint: hint.to_owned(),
        }
    }
}
