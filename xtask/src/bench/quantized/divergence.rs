//! How far predictions are from those of the exact weights: the tool's, and ours of the same checkpoint.
//!
//! Each tool quantizes the demo model and predicts its held-out text; so does a bundle of the tool's checkpoint. Both are compared
//! with what the same weights predict in `f32`, decoded without loss.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::Value;

use super::tools::{Bench, Tool};
use crate::{
    bench::{
        llama_cpp,
        pairs::{QUANTIZE, Weights},
        record::recorded,
        stats::{Output, first_row, number},
    },
    shell,
};

/// The checkpoints, by their names in the script.
const CASES: [(&str, Tool); 12] = [
    ("gguf-q4_0", Tool::LlamaCpp("Q4_0")),
    ("gguf-q8_0", Tool::LlamaCpp("Q8_0")),
    ("gguf-q4_k_m", Tool::LlamaCpp("Q4_K_M")),
    ("mlx-4bit", Tool::Mlx),
    ("mlx-8bit", Tool::Mlx),
    ("mlx-mxfp4", Tool::Mlx),
    ("mlx-nvfp4", Tool::Mlx),
    ("bnb-nf4", Tool::Transformers),
    ("bnb-nf4-double", Tool::Transformers),
    ("bnb-fp4", Tool::Transformers),
    ("bnb-int8", Tool::Transformers),
    ("fp8-block", Tool::Transformers),
];

const MODEL: &str = "models/demo";
const TEXT: &str = "models/demo/held_out.txt";
/// The tokens that are predicted at a time, as in the script.
const WINDOW: &str = "256";

/// The file of the measurements.
const RECORD: &str = "measured-divergence.jsonl";

/// What is measured of a checkpoint. Divergences are means in nats.
#[derive(Serialize)]
struct Row {
    checkpoint: &'static str,
    /// Bytes of its tensors.
    stored_bytes: f64,
    /// Bytes of the weights that a bundle of it reads.
    packed_bytes: f64,
    tool_kl: f64,
    our_kl: f64,
}

/// Returns the cases with these names, or all if there are none.
pub(super) fn chosen(only: &[String]) -> Result<Vec<(&'static str, Tool)>> {
    if let Some(unknown) = only.iter().find(|name| CASES.iter().all(|(known, _)| known != name)) {
        let known = CASES.map(|(name, _)| name).join(", ");
        bail!("found the checkpoint `{unknown}`, expected one of {known}");
    }
    Ok(CASES.into_iter().filter(|(name, _)| only.is_empty() || only.iter().any(|one| one == name)).collect())
}

/// Measures, and prints the result.
pub(super) fn measure(
    bench: &Bench<'_>,
    cases: &[(&'static str, Tool)],
    precision: Option<&str>,
    output: Output,
) -> Result<()> {
    recorded(
        &bench.folder.join(RECORD),
        |record| {
            for &(name, tool) in cases {
                eprintln!("{name}");
                record.push(row(bench, name, tool, precision).context(name)?)?;
            }
            Ok(())
        },
        |rows| {
            shell::print(&match output {
                Output::Md => table(rows),
                Output::Json => format!("{:#}\n", serde_json::to_value(rows)?),
            })
        },
    )
}

/// Measures a checkpoint.
fn row(bench: &Bench<'_>, name: &'static str, tool: Tool, precision: Option<&str>) -> Result<Row> {
    let folder = bench.folder.join(name);
    let quantized = folder.join("quantized");
    let folders = [Path::new(MODEL), folder.as_path()];
    let (theirs, checkpoint) = match tool {
        Tool::LlamaCpp(kind) => {
            let file = quantized.join("model.gguf");
            let tools = write_gguf(bench, kind, &file)?;
            let bindings = llama_cpp::bindings(bench.workspace, &bench.folder)?;
            let theirs = bench.tool(tool, name, folders, Some(TEXT), |command| {
                command.env("PYTHONPATH", &bindings).env("LLAMA_CPP_LIB_PATH", &tools);
            })?;
            (theirs, file)
        }
        Tool::Mlx | Tool::Transformers => (bench.tool(tool, name, folders, Some(TEXT), |_| ())?, quantized),
    };
    let options = precision.map(|precision| ["--precision", precision]);
    let ours = bench.bundle(&checkpoint, folder.join("bundle"), options.as_ref().map_or(&[], |both| both))?;
    let exact = bench.bundle(&folder.join("plain"), folder.join("reference"), &["--precision", "f32"])?;
    let mut quality = bench.command("mlxcel-bench")?;
    quality.arg(&ours).args(["--perplexity", TEXT, "--window", WINDOW, "-o", "json", "--reference"]);
    let text = shell::output(quality.arg(exact))?;
    let quality: Value = serde_json::from_str(&text).with_context(|| shell::command_line(&quality))?;
    let mut size = bench.command("mlxcel-bench")?;
    size.arg(&ours).args(["-p", "0", "-n", "1", "-r", "1", "-o", "json"]);
    Ok(Row {
        checkpoint: name,
        stored_bytes: number(&theirs, "bytes")?,
        packed_bytes: number(&first_row(&mut size)?, "size_bytes")?,
        tool_kl: number(&theirs, "mean_kl")?,
        our_kl: number(&quality, "mean_kl")?,
    })
}

/// Makes a GGUF file of the model. Returns the folder of llama.cpp's executables and libraries.
fn write_gguf(bench: &Bench<'_>, kind: &str, file: &Path) -> Result<std::path::PathBuf> {
    let Bench { workspace, folder } = bench;
    let tools = llama_cpp::tools(workspace, folder, &[QUANTIZE])?;
    let checkpoint = &workspace.root.join(MODEL);
    let weights = Weights { checkpoint, name: "demo", folder, tools: &tools, context: 0 };
    let gguf = weights.gguf(workspace, kind)?;
    let copy = || {
        fs::create_dir_all(file.parent().unwrap_or(folder))?;
        fs::copy(&gguf, file)
    };
    copy().with_context(|| file.display().to_string())?;
    Ok(tools)
}

fn table(rows: &[Row]) -> String {
    let head = ["checkpoint", "stored MB", "packed / stored", "KL of the tool", "ours", "ours / tool"];
    let row = |row: &Row| {
        let Row { checkpoint, stored_bytes, packed_bytes, tool_kl, our_kl } = row;
        [
            (*checkpoint).to_owned(),
            format!("{:.2}", stored_bytes / 1e6),
            format!("{:.3}", packed_bytes / stored_bytes),
            format!("{tool_kl:.9}"),
            format!("{our_kl:.9}"),
            format!("{:.3}", our_kl / tool_kl),
        ]
    };
    shell::markdown_table(head, rows.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_checkpoints_are_refused() {
        let names = |only: &[&str]| {
            let only: Vec<_> = only.iter().map(|name| (*name).to_owned()).collect();
            chosen(&only).map(|cases| cases.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap().len(), CASES.len());
        assert_eq!(names(&["bnb-nf4", "mlx-4bit"]).unwrap(), ["mlx-4bit", "bnb-nf4"]);
        let error = names(&["mlx-4bit", "mlx-1bit"]).unwrap_err().to_string();
        assert!(error.starts_with("found the checkpoint `mlx-1bit`, expected one of gguf-q4_0, "), "{error}");
    }

    #[test]
    fn the_script_knows_every_checkpoint_and_the_window() {
        let script = include_str!("../../../../models/oracle/quantized_checkpoints/divergence.py");
        for (name, _) in CASES {
            assert!(script.contains(&format!("    \"{name}\": (")), "{name}");
        }
        assert!(script.contains(&format!("\nWINDOW = {WINDOW}  # tokens\n")));
    }

    #[test]
    fn divergences_are_beside_the_tools() {
        let row = |checkpoint, tool_kl, our_kl| Row {
            checkpoint,
            stored_bytes: 2e6,
            packed_bytes: 2.1e6,
            tool_kl,
            our_kl,
        };
        let rows = [row("gguf-q4_0", 2.5e-4, 2e-4), row("bnb-nf4", 1e-4, 1e-7)];
        insta::assert_snapshot!(table(&rows), @"
        | checkpoint  | stored MB  | packed / stored  | KL of the tool  | ours         | ours / tool |
        |---          |---         |---               |---              |---           |---|
        | gguf-q4_0   | 2.00       | 1.050            | 0.000250000     | 0.000200000  | 0.800 |
        | bnb-nf4     | 2.00       | 1.050            | 0.000100000     | 0.000000100  | 0.001 |
        ");
    }
}
