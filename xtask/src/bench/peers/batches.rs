//! Several sequences at once, beside llama-batched-bench.

use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::programs::{Programs, STEPS};
use crate::{
    bench::{
        pairs::Pair,
        ratio::{Measurement, in_turn},
        stats::{first_row, number},
    },
    shell,
    workspace::Workspace,
};

/// A cell of llama-batched-bench's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Batch {
    /// Tokens of each prompt.
    prompt: usize,
    /// Sequences.
    sequences: usize,
}

impl Batch {
    /// Returns every number of sequences for every length of prompts.
    pub(super) fn all(prompts: &[usize], sequences: &[usize]) -> Vec<Self> {
        let of = |&prompt| sequences.iter().map(move |&sequences| Self { prompt, sequences });
        prompts.iter().flat_map(of).collect()
    }

    /// Measures the tokens per second that all sequences together generate, of both programs, one right after the other.
    pub(super) fn measure(
        self,
        programs: &Programs,
        workspace: &Workspace,
        pair: &Pair,
        repeat: usize,
    ) -> Result<Measurement> {
        let Self { prompt, sequences } = self;
        let arguments = |command: &mut Command, names: [&str; 3]| {
            for (name, number) in names.into_iter().zip([prompt, STEPS, sequences]) {
                command.args([name, &number.to_string()]);
            }
            command.args(["-t", &programs.threads]);
        };
        let mut ours = workspace.command(&programs.bench);
        ours.arg(&pair.bundle).args(["--device", "local-task", "-r", "1", "-o", "json"]);
        arguments(&mut ours, ["-p", "-n", "--parallel"]);
        let mut theirs = workspace.command(&programs.llama_batched_bench);
        // A context for all sequences, and a batch for all of a call's rows.
        let context = sequences * (prompt + STEPS) + 64;
        theirs.arg("-m").arg(&pair.gguf).args(["-c", &context.to_string(), "-b", "2048", "-ub", "512"]);
        theirs.args(["--output-format", "jsonl"]);
        arguments(&mut theirs, ["-npp", "-ntg", "-npl"]);
        let (ours, output) = in_turn(repeat, || first_row(&mut ours), || shell::output(&mut theirs))?;
        let theirs = last_object(&output).context("llama-batched-bench printed no result")?;
        Ok(Measurement {
            test: format!("{} tg{STEPS} × {sequences} @ d{prompt}", pair.ours),
            beside: pair.theirs,
            unit: "tok/s",
            ours: number(&ours, "speed_tg")?,
            theirs: number(&theirs, "speed_tg")?,
            share: None,
        })
    }
}

/// Returns the last line that is a JSON object.
fn last_object(output: &str) -> Option<Value> {
    output.lines().rev().find_map(|line| serde_json::from_str(line).ok().filter(Value::is_object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_in_the_order_of_llama_batched_bench() {
        let cells = Batch::all(&[128, 1024], &[1, 8]);
        let cells: Vec<_> = cells.iter().map(|cell| (cell.prompt, cell.sequences)).collect();
        assert_eq!(cells, [(128, 1), (128, 8), (1024, 1), (1024, 8)]);
    }

    #[test]
    fn the_result_is_the_last_line_of_json() {
        let output = "build: 1\n{\"pl\": 1, \"speed_tg\": 2.5}\n\nperf: 3\n";
        assert_eq!(last_object(output).unwrap()["speed_tg"], 2.5);
        assert_eq!(last_object("3\nno\n"), None);
    }
}
