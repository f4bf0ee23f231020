//! Reads the measurements that programs print, and summarizes them.

use std::process::Command;

use anyhow::{Context as _, Result};
use clap::{ValueEnum, builder::RangedU64ValueParser};
use serde_json::Value;

use crate::shell;

/// The form of a result.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Output {
    /// A Markdown table
    Md,
    /// An array with an object for each row
    Json,
}

/// Returns the parser of options that say how often something is done. A median needs a value.
pub(crate) fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

/// Runs a benchmark program that prints JSON and returns its first row.
pub(crate) fn first_row(command: &mut Command) -> Result<Value> {
    let text = shell::output(command)?;
    let rows: Value = serde_json::from_str(&text).with_context(|| shell::command_line(command))?;
    rows.get(0)
        .cloned()
        .with_context(|| format!("{}: found no row, expected one", shell::command_line(command)))
}

/// Returns a number of a row.
pub(crate) fn number(row: &Value, name: &str) -> Result<f64> {
    row.get(name)
        .and_then(Value::as_f64)
        .with_context(|| format!("found no number {name} in {row}, expected one"))
}

/// Returns the lowest, the median and the highest of at least one value.
pub(crate) fn spread(values: Vec<f64>) -> [f64; 3] {
    let values = sorted(values.into_iter());
    [values[0], median(&values), values[values.len() - 1]]
}

/// Sorts the values.
pub(super) fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Returns the median of at least one sorted value.
pub(super) fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_two_lies_between() {
        assert_eq!((median(&[1.0]), median(&[1.0, 2.0]), median(&[1.0, 2.0, 9.0])), (1.0, 1.5, 2.0));
    }
}
