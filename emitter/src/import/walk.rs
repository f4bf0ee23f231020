//! Walks through a program's functions, with all calls inlined.
//!
//! An op is taken as it is, or as what [`rewrites`] make of it.

use safetensors::Dtype;

use super::{
    ast::{Function, Op, Region},
    attributes::integer,
    custom_call, dynamic,
    refusal::{OF_WORDS, is_of_words, not_of_words, refusal},
    replay::Replay,
    rewrites, spelling,
};
use crate::{
    error::Error,
    graph::{self, Tensor},
    types::ValueType,
};

/// The most ops that a function has once calls are inlined.
const OP_LIMIT: usize = 1 << 20;

/// Functions that call functions, as deep as calls are followed.
const CALL_LIMIT: usize = 100;

/// Regions within regions, as deep as they are followed through all calls. What replays them is on the stack.
const REGION_LIMIT: usize = 100;

/// Bytes of the name of a part of a tuple that count as much as an op. Names grow with tuples within tuples.
const NAME_BYTES: usize = 8;

impl Replay<'_, '_> {
    /// Replays a function with these arguments, and returns its results.
    pub(super) fn function(
        &mut self,
        function: &Function<'_>,
        arguments: &[Tensor],
    ) -> Result<Vec<Tensor>, Error> {
        let names = function.body.arguments.iter().map(|argument| argument.value.to_owned());
        self.frames.push(names.zip(arguments.iter().copied()).collect());
        let results = self.block(&function.body);
        self.frames.pop();
        results
    }

    /// Replays the ops of a block, and returns what it returns.
    fn block(&mut self, region: &Region<'_>) -> Result<Vec<Tensor>, Error> {
        for op in &region.ops {
            if self.tuple(op)? {
                continue;
            }
            let operands =
                op.operands.iter().map(|name| self.value(op, name)).collect::<Result<Vec<_>, _>>()?;
            if matches!(op.name, "func.return" | "stablehlo.return") {
                return Ok(operands);
            }
            self.count(op, 1)?;
            let mut results = self.op(op, &operands)?;
            let is_outside = self.graph.open_regions().len() == 1;
            if is_outside && self.checks.as_ref().is_some_and(|checks| checks.are_inputs(op, &operands)) {
                results = self.opaque(results);
            }
            for (index, result) in results.into_iter().enumerate() {
                let Some(name) = op.result(index) else { continue };
                if let Some(frame) = self.frames.last_mut() {
                    frame.insert(name, result);
                }
            }
        }
        Ok(Vec::new())
    }

    /// Counts ops and parts of tuples, up to the most that a function may have.
    fn count(&mut self, op: &Op<'_>, count: usize) -> Result<(), Error> {
        self.ops = self.ops.saturating_add(count);
        if self.ops <= OP_LIMIT {
            return Ok(());
        }
        let problem = format!("found more than {OP_LIMIT} ops with all calls inlined, expected fewer");
        Err(self.refused(op, problem, "loop in place of repeating, as with jax.lax.scan"))
    }

    /// Names the parts of a tuple, or of what is taken out of one; returns whether the op is about a tuple.
    fn tuple(&mut self, op: &Op<'_>) -> Result<bool, Error> {
        let Some(result) = op.results else { return Ok(false) };
        match op.name {
            "stablehlo.tuple" => {
                for (index, operand) in op.operands.iter().enumerate() {
                    self.rename(op, operand, &format!("{result}.{index}"))?;
                }
                Ok(true)
            }
            "stablehlo.get_tuple_element" => {
                let index = op.attribute("index").and_then(integer);
                let from = index.zip(op.operands.first()).map(|(index, tuple)| format!("{tuple}.{index}"));
                from.as_deref().map(|from| self.rename(op, from, result)).transpose()?;
                Ok(from.is_some())
            }
            _ => Ok(false),
        }
    }

    /// Gives a value, or all parts of a tuple, another name too.
    fn rename(&mut self, op: &Op<'_>, from: &str, to: &str) -> Result<(), Error> {
        let Some(frame) = self.frames.last() else { return Ok(()) };
        let parts: Vec<_> = match frame.get(from) {
            Some(value) => vec![(to.to_owned(), *value)],
            None => {
                let inner = format!("{from}.");
                let part = |(name, value): (&String, &Tensor)| {
                    Some((format!("{to}.{}", name.strip_prefix(&inner)?), *value))
                };
                frame.iter().filter_map(part).collect()
            }
        };
        self.count(op, 1 + parts.iter().map(|(name, _)| 1 + name.len() / NAME_BYTES).sum::<usize>())?;
        if let Some(frame) = self.frames.last_mut() {
            frame.extend(parts);
        }
        Ok(())
    }

    fn value(&self, op: &Op<'_>, name: &str) -> Result<Tensor, Error> {
        let found = self.frames.last().and_then(|frame| frame.get(name));
        found.copied().ok_or_else(|| {
            self.refused(
                op,
                format!("found no value {name}, expected one that the function computes before"),
                "export the program again",
            )
        })
    }

    /// Replays an op, and returns its results.
    pub(super) fn op(&mut self, op: &Op<'_>, operands: &[Tensor]) -> Result<Vec<Tensor>, Error> {
        match op.name {
            "func.call" => return self.call(op, op.attribute("callee"), operands),
            "stablehlo.composite" => return self.call(op, op.attribute("decomposition"), operands),
            "stablehlo.custom_call" => return custom_call::replay(self, op, operands),
            _ => {}
        }
        if let Some((problem, hint)) = refusal(op.name) {
            return Err(self.refused(op, problem, hint));
        }
        if let Some(results) = dynamic::replay(self, op, operands)? {
            return Ok(results);
        }
        if let Some(results) = spelling::replay(self, op, operands)? {
            return Ok(results);
        }
        let rewritten = match rewrites::boolean_constant(self, op) {
            Some(constant) => Some(vec![constant]),
            // A test is rewritten when it is compiled.
            None if self.checks.is_some() => None,
            None => rewrites::rewrite(self, op, operands)?,
        };
        let results = match rewritten {
            Some(results) => results,
            None => self.as_it_is(op, operands)?,
        };
        if self.options.words_only {
            let is_grouped =
                |name: &&'static str| op.attribute(name).and_then(integer).is_some_and(|count| count > 1);
            if let Some(name) = ["feature_group_count", "batch_group_count"].into_iter().find(is_grouped) {
                let problem = format!(
                    "found more than one of {name}, expected 1, because a target computes others wrong"
                );
                return Err(self.refused(op, problem, "divide the operands, and concatenate the results"));
            }
            let mut types = results.iter().map(|result| self.graph.type_of(*result));
            if let Some(ty) = types.find(|ty| ty.dtype != Dtype::BOOL && !is_of_words(ty.dtype)) {
                return Err(self.refused(op, not_of_words(&ty), OF_WORDS));
            }
        }
        self.learn(op, operands, &results);
        Ok(results)
    }

    /// Replays the function that an op names, `@f`.
    fn call(&mut self, op: &Op<'_>, callee: Option<&str>, operands: &[Tensor]) -> Result<Vec<Tensor>, Error> {
        let name = callee.unwrap_or_default().trim_start_matches('@').trim_matches('"');
        let function = self.module.functions.iter().find(|function| function.name == name);
        let Some(function) = function else {
            return Err(self.refused(
                op,
                format!("found no function '{name}', expected one of the program"),
                "export the program again",
            ));
        };
        if self.frames.len() > CALL_LIMIT {
            let problem = format!("found calls {CALL_LIMIT} deep, the last one of '{name}', expected fewer");
            return Err(self.refused(op, problem, "programs must not call themselves"));
        }
        self.function(function, operands)
    }

    /// Adds an op as it is written.
    pub(super) fn as_it_is(&mut self, op: &Op<'_>, operands: &[Tensor]) -> Result<Vec<Tensor>, Error> {
        let mut regions = Vec::with_capacity(op.regions.len());
        for region in &op.regions {
            regions.push(self.region(op, region, operands)?);
        }
        let results = self.result_types(op, operands, &regions)?;
        Ok(self.add(op.name, operands, &op.attributes, regions, results))
    }

    /// Replays a region of an op.
    pub(super) fn region(
        &mut self,
        op: &Op<'_>,
        region: &Region<'_>,
        operands: &[Tensor],
    ) -> Result<graph::Region, Error> {
        let mut types: Vec<ValueType> = Vec::with_capacity(region.arguments.len());
        for (index, argument) in region.arguments.iter().enumerate() {
            let mut ty = self.tensor_type(op, argument.ty)?;
            if ty.is_dynamic() {
                // Of loops alone, which carry operands.
                ty.shape = operands
                    .get(index)
                    .map(|operand| self.graph.shape(*operand).to_vec())
                    .unwrap_or_default();
            }
            types.push(ty.into());
        }
        let arguments = self.graph.begin_region(&types);
        // Loops and branches hold ops on tensors, all others combine numbers.
        let combines = !matches!(op.name, "stablehlo.while" | "stablehlo.if" | "stablehlo.case");
        self.combiners += usize::from(combines);
        let results = self.inlined(region, &arguments);
        self.combiners -= usize::from(combines);
        // Ended after an error too, so that the graph stays as it was.
        let region = self.graph.end_region(results.as_deref().unwrap_or_default().to_vec());
        results.map(|_| region)
    }

    /// Replays the ops of a region into the current one, with these values for its arguments, and returns what it returns.
    pub(super) fn inlined(&mut self, region: &Region<'_>, values: &[Tensor]) -> Result<Vec<Tensor>, Error> {
        if let Some(op) = region.ops.first().filter(|_| self.depth >= REGION_LIMIT) {
            let problem = format!("found regions {REGION_LIMIT} deep through all calls, expected fewer");
            return Err(self.refused(op, problem, "nest fewer loops and branches"));
        }
        for (argument, value) in region.arguments.iter().zip(values) {
            if let Some(frame) = self.frames.last_mut() {
                frame.insert(argument.value.to_owned(), *value);
            }
        }
        self.depth += 1;
        let results = self.block(region);
        self.depth -= 1;
        results
    }

    /// Returns arguments of a test in place of these constants, if it takes its inputs.
    fn opaque(&mut self, tensors: Vec<Tensor>) -> Vec<Tensor> {
        let Some(checks) = &mut self.checks else { return tensors };
        checks.inputs.extend(&tensors);
        if !checks.takes_inputs {
            return tensors;
        }
        let as_argument = |tensor: &Tensor| {
            let ty = self.graph.type_of(*tensor);
            let argument = self.graph.argument(ty.dtype, &ty.shape);
            // Shapes that an op takes as operands must still be known.
            if let Some(known) = self.known.get(tensor).cloned() {
                self.known.insert(argument, known);
            }
            argument
        };
        tensors.iter().map(as_argument).collect()
    }
}
