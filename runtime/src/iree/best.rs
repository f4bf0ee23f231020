//! Entry points that find the best tokens of a step's logits.

use mlxcel_artifacts::entry::{ArgumentKind, ArgumentSpec, Entry, MODULE_NAME, ResultKind, Role};
use safetensors::Dtype;

use crate::{
    error::Error,
    ffi::{self, Call, Input, Module, Tensor},
    model::BestTokens,
};

/// An entry point of [`Role::Best`].
pub(super) struct BestEntry {
    entry: Entry,
    /// The rows of the logits.
    rows: usize,
    call: Call,
}

impl BestEntry {
    /// Finds the function of `entry`; `None` if it has another role.
    pub(super) fn new(module: &Module, entry: &Entry) -> Result<Option<Self>, Error> {
        let Role::Best { rows } = entry.role else { return Ok(None) };
        let name = &entry.name;
        // Logits are a tensor of the device: their first dimension of 0 says that they are given with each call.
        let shape = |argument: &ArgumentSpec| match (argument.kind, argument.shape.as_slice()) {
            (ArgumentKind::Logits, [_, rest @ ..]) => [&[0], rest].concat(),
            (_, shape) => shape.to_vec(),
        };
        let shapes: Vec<Vec<usize>> = entry.arguments.iter().map(shape).collect();
        let arguments = entry.arguments.iter().zip(&shapes);
        let inputs: Vec<(Dtype, &[usize])> =
            arguments.map(|(argument, shape)| (argument.dtype, shape.as_slice())).collect();
        let call = Call::new(module, &format!("{MODULE_NAME}.{name}"), &inputs)
            .map_err(Error::iree(|| format!("prepare {name}")))?;
        Ok(Some(Self { entry: entry.clone(), rows, call }))
    }

    /// Returns the rows of the logits that it takes.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the best tokens of the first `count` rows.
    pub(super) fn run(
        &mut self,
        logits: &Tensor,
        count: usize,
        vocab: usize,
    ) -> Result<Vec<BestTokens>, Error> {
        // In a valid manifest the arguments are the logits and the number of rows, and a number of rows fits an i32.
        let counts = [count as i32];
        let inputs = [Input::Tensor(logits), Input::Bytes(ffi::bytes(&counts))];
        let results = self.call.invoke_with(&inputs);
        let results = results.map_err(Error::iree(|| format!("run {}", self.entry.name)))?;
        let ids: Vec<i32> = self.read(&results, ResultKind::BestTokens)?;
        let logits: Vec<f32> = self.read(&results, ResultKind::BestLogits)?;
        let sums: Vec<f32> = self.read(&results, ResultKind::LogSumExp)?;
        let best = (ids.len() / self.rows.max(1)).max(1);
        let rows = ids.chunks(best).zip(logits.chunks(best)).zip(&sums).take(count);
        let rows: Vec<BestTokens> = rows
            .map(|((ids, logits), &log_sum_exp)| BestTokens {
                ids: ids.iter().filter_map(|&id| u32::try_from(id).ok()).collect(),
                logits: logits.to_vec(),
                log_sum_exp,
            })
            .collect();
        let is_token = |row: &BestTokens| {
            row.ids.len() == row.logits.len() && row.ids.iter().all(|&id| (id as usize) < vocab)
        };
        if rows.len() < count || !rows.iter().all(is_token) {
            let name = &self.entry.name;
            return Err(Error::Unsupported(format!("{name} returns no tokens of the vocabulary")));
        }
        Ok(rows)
    }

    /// Reads the result of this kind.
    fn read<T: ffi::Element>(&self, results: &[Tensor], kind: ResultKind) -> Result<Vec<T>, Error> {
        let name = &self.entry.name;
        let index = self.entry.results.iter().position(|result| result.kind == kind);
        // A module that differs from its manifest may return fewer results.
        let result = index.and_then(|index| results.get(index));
        let result = result.ok_or_else(|| Error::Unsupported(format!("{name} returns no {kind}")))?;
        result.read().map_err(Error::iree(|| format!("read from {name}")))
    }
}
