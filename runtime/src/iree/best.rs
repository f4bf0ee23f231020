//! Entry points that find the best tokens of a step's logits.

use mlxcel_artifacts::entry::{Entry, ResultKind, Role};

use super::function::Function;
use crate::{
    error::Error,
    ffi::{self, Element, Input, Module, Tensor},
    model::BestTokens,
};

/// An entry point of [`Role::Best`].
pub(super) struct BestEntry {
    function: Function,
    /// The rows of the logits.
    rows: usize,
}

impl BestEntry {
    /// Finds the function of `entry`; `None` if it has another role.
    pub(super) fn new(module: &Module, entry: &Entry) -> Result<Option<Self>, Error> {
        let Role::Best { rows } = entry.role else { return Ok(None) };
        Ok(Some(Self { function: Function::new(module, entry, &[])?, rows }))
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
        let mut results = self.function.call(inputs)?;
        let ids: Vec<i32> = read(&self.function, &mut results, ResultKind::BestTokens)?;
        let logits: Vec<f32> = read(&self.function, &mut results, ResultKind::BestLogits)?;
        let sums: Vec<f32> = read(&self.function, &mut results, ResultKind::LogSumExp)?;
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
            let name = &self.function.entry().name;
            return Err(Error::Unsupported(format!("{name} returns no tokens of the vocabulary")));
        }
        Ok(rows)
    }
}

/// Reads the result of this kind.
fn read<T: Element>(
    function: &Function,
    results: &mut [Option<Tensor>],
    kind: ResultKind,
) -> Result<Vec<T>, Error> {
    let result = function.take(kind, results)?;
    result.read().map_err(Error::iree(|| format!("read from {}", function.entry().name)))
}

#[cfg(test)]
mod tests;
