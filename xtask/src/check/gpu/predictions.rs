//! What the kernels of the model of full shape should take, which the emitter's tests compute from its calls.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value};

use crate::check::goldens::body_of_snapshot;

/// The table, with a row for each kernel of a step, and for all of it with the name of the target.
const FILE: &str = "emitter/tests/snapshots/predictions.snap";

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prediction {
    pub(super) variant: String,
    /// The entry point, `step_1`.
    step: String,
    /// The kernel; the target if it is of the whole step.
    kernel: String,
    calls: u64,
    /// Of a thread, for each target.
    registers: String,
    /// Microseconds of all calls on an H200.
    pub(super) us: f64,
    /// All cells, by the names of their columns.
    cells: Map<String, Value>,
}

/// Reads the committed table.
pub(super) fn read(root: &Path) -> Result<Vec<Prediction>> {
    let text = fs::read_to_string(root.join(FILE)).context(FILE)?;
    of(body_of_snapshot(&text)).context(FILE)
}

/// Reads a table.
pub(super) fn of(table: &str) -> Result<Vec<Prediction>> {
    let mut lines = table.lines().filter(|line| !line.starts_with("//"));
    let names: Vec<_> = lines.next().unwrap_or_default().split_whitespace().collect();
    let row = |line: &str| {
        let cells: Vec<_> = line.split_whitespace().collect();
        if cells.len() != names.len() {
            bail!("found {} cells in `{line}`, expected {}", cells.len(), names.len());
        }
        let cell = |name: &str| {
            let column = names.iter().position(|known| *known == name);
            let column = column.with_context(|| format!("found no column {name}, expected one"))?;
            Ok::<_, anyhow::Error>(cells[column])
        };
        let value = |cell: &str| match cell.parse::<u64>() {
            Ok(number) => Value::from(number),
            Err(_) => cell.parse::<f64>().map_or_else(|_| Value::from(cell), Value::from),
        };
        Ok(Prediction {
            variant: cell("variant")?.to_owned(),
            step: cell("step")?.to_owned(),
            kernel: cell("kernel")?.to_owned(),
            calls: cell("calls")?.parse().with_context(|| format!("calls of `{line}`"))?,
            registers: cell("registers")?.to_owned(),
            us: cell("us_H200")?.parse().with_context(|| format!("us_H200 of `{line}`"))?,
            cells: names.iter().zip(&cells).map(|(name, cell)| ((*name).to_owned(), value(cell))).collect(),
        })
    };
    lines.map(row).collect()
}

/// Returns the microseconds of a whole step of a variant for a target, if that is predicted.
pub(super) fn of_step(all: &[Prediction], variant: &str, step: &str, target: &str) -> Option<f64> {
    let is_it = |row: &&Prediction| (&*row.variant, &*row.step, &*row.kernel) == (variant, step, target);
    all.iter().find(is_it).map(|row| row.us)
}

/// Returns a line for each kernel of a variant, as `run.sh` reads them: step, kernel, microseconds of a call, registers.
pub(super) fn lines(all: &[Prediction], variant: &str) -> String {
    let own = all.iter().filter(|row| row.variant == variant);
    let line = |Prediction { step, kernel, calls, registers, us, .. }: &Prediction| {
        #[expect(clippy::cast_precision_loss, reason = "a number of calls")]
        let of_call = us / *calls as f64;
        format!("{step} {kernel} {of_call:.1} {registers}\n")
    };
    own.map(line).collect()
}

/// Returns the rows of a variant as JSON in one line.
pub(super) fn json(all: &[Prediction], variant: &str) -> String {
    let own = all.iter().filter(|row| row.variant == variant);
    Value::from(own.map(|row| Value::Object(row.cells.clone())).collect::<Vec<_>>()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    const TABLE: &str = "// Comment\n\
        variant  step    kernel       calls  bytes  registers  us_H200  us_H100\n\
        bf16     step_1  cuda_argmax      2   1000  20/24         16.0     20.5\n\
        bf16     step_1  cuda             2   1000  -/-          100.0    120.0\n";

    #[test]
    fn rows_are_lines_and_json() {
        let all = of(TABLE).unwrap();
        assert_eq!(of_step(&all, "bf16", "step_1", "cuda"), Some(100.0));
        assert_eq!(of_step(&all, "q8", "step_1", "cuda"), None);
        assert_eq!(lines(&all, "bf16"), "step_1 cuda_argmax 8.0 20/24\nstep_1 cuda 50.0 -/-\n");
        let json: Value = serde_json::from_str(&json(&all, "bf16")).unwrap();
        assert_eq!((&json[0]["bytes"], &json[0]["us_H100"]), (&Value::from(1000), &Value::from(20.5)));
        let broken = TABLE.replace("20/24 ", "");
        let error = of(&broken).unwrap_err().to_string();
        assert!(error.starts_with("found 7 cells in `bf16 "), "{error}");
    }

    #[test]
    fn the_committed_table_has_every_step_of_both_targets() {
        let all = read(&Workspace::find().root).unwrap();
        for variant in ["bf16", "q8", "q4"] {
            for step in ["step_1", "step_512"] {
                let [plain, overlapped] =
                    ["cuda", "cuda-sm_90"].map(|target| of_step(&all, variant, step, target).unwrap());
                assert!(overlapped < plain, "{variant} {step}: {overlapped} and {plain}");
            }
        }
    }
}
