//! aiperf, which asks a server.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::servers::Server;
use crate::{
    bench::stats::number,
    shell,
    toolchain::venv::{self, Packages},
    workspace::Workspace,
};

/// The load tool on PyPI.
const AIPERF: &str = "aiperf==0.13.0";

/// The tokenizer's name in a cache of Hugging Face's, because aiperf takes no folder when it is offline.
const TOKENIZER: [&str; 2] = ["local/tokenizer", "models--local--tokenizer"];

/// The revision in that cache.
const REVISION: &str = "0000000000000000000000000000000000000000";

/// What is taken from aiperf's report: our name, its metric, the statistic, the unit. Its `inter_token_latency` is one number for
/// each request: the mean of the times between its tokens.
const METRICS: [(&str, &str, &str, &str); 5] = [
    ("requests", "request_throughput", "avg", "req/s"),
    ("first token, median", "time_to_first_token", "p50", "ms"),
    ("first token, p95", "time_to_first_token", "p95", "ms"),
    ("mean between tokens of a request, median", "inter_token_latency", "p50", "ms"),
    ("mean between tokens of a request, p95", "inter_token_latency", "p95", "ms"),
];

/// The statistic that needs requests: of fewer, it is the slowest one.
const P95: (&str, usize) = ("p95", 20);

/// The metric with the tokens of a prompt that a server knew already. Not every server tells them.
const CACHED: &str = "usage_prompt_cache_read_tokens";

/// The lengths of prompts and answers.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) prompt: usize,
    pub(super) tokens: usize,
}

/// A load tool that is installed.
pub(super) struct Load<'a> {
    python: PathBuf,
    folder: &'a Path,
    /// A cache of Hugging Face's with the tokenizer that makes prompts.
    hub: PathBuf,
    pub(super) shape: Shape,
}

/// A number of a run.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) value: f64,
}

impl Shape {
    /// Returns the context that a request needs, with room for a prompt that a server reads as a few tokens more.
    pub(super) fn context(self) -> usize {
        (self.prompt + self.tokens + 32).next_multiple_of(256)
    }
}

impl<'a> Load<'a> {
    /// Installs it, for prompts by a checkpoint's tokenizer.
    pub(super) fn new(
        workspace: &Workspace,
        folder: &'a Path,
        checkpoint: &Path,
        shape: Shape,
    ) -> Result<Self> {
        let python = venv::python(workspace, &folder.join("aiperf"), Packages::Named(&[AIPERF]))?;
        let hub = folder.join("hub");
        fill(&hub, checkpoint).with_context(|| hub.display().to_string())?;
        Ok(Self { python, folder, hub, shape })
    }

    /// Lets so many clients ask a server at a time. A seed gives the same prompts.
    pub(super) fn run(
        &self,
        workspace: &Workspace,
        server: &Server,
        clients: usize,
        requests: usize,
        seed: usize,
    ) -> Result<Vec<Figure>> {
        let Self { python, folder, hub, shape } = self;
        let report = folder.join("aiperf-report");
        _ = fs::remove_dir_all(&report);
        let numbers = [
            ("--isl", shape.prompt),
            ("--isl-stddev", 0),
            ("--osl", shape.tokens),
            ("--osl-stddev", 0),
            ("--concurrency", clients),
            ("--request-count", requests),
            ("--num-dataset-entries", requests + clients),
            // A first request of each client comes before the clock starts.
            ("--warmup-request-count", clients),
            ("--random-seed", seed),
            ("--workers-max", 1),
            ("--record-processor-service-count", 1),
        ];
        let mut command = workspace.command(python.with_file_name("aiperf"));
        command.arg("profile").args(numbers.map(|(name, number)| format!("{name}={number}")));
        command.args(["--url", &format!("http://{}", server.address), "--model", &server.model]);
        command.args(["--endpoint-type", "completions", "--streaming", "--use-server-token-count"]);
        command.args(["--extra-inputs", "ignore_eos:true", "--extra-inputs", "temperature:0"]);
        // llama-server closes a connection after a stream, at a time at which the next request may be on its way.
        command.args(["--connection-reuse-strategy", "never"]);
        command.args(["--no-gpu-telemetry", "--no-server-metrics", "--ui", "none"]);
        command.args(["--tokenizer", TOKENIZER[0], "--output-artifact-dir"]).arg(&report);
        command.env("HF_HUB_OFFLINE", "1").env("HF_HUB_CACHE", hub);
        let output = shell::output(&mut command);
        output.with_context(|| format!("hint: cat {}", report.join("logs/aiperf.log").display()))?;
        let file = report.join("profile_export_aiperf.json");
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        read(&text, *shape, requests).with_context(|| file.display().to_string())
    }
}

/// Makes a cache of Hugging Face's that has a checkpoint's tokenizer.
fn fill(hub: &Path, checkpoint: &Path) -> Result<()> {
    _ = fs::remove_dir_all(hub);
    let model = hub.join(TOKENIZER[1]);
    let (snapshot, references) = (model.join("snapshots").join(REVISION), model.join("refs"));
    fs::create_dir_all(&snapshot)?;
    fs::create_dir_all(&references)?;
    fs::write(references.join("main"), REVISION)?;
    for name in ["config.json", "tokenizer.json", "tokenizer_config.json"] {
        symlink(checkpoint.join(name), snapshot.join(name))?;
    }
    Ok(())
}

/// Reads aiperf's report, and checks that every request was answered at its full length.
fn read(text: &str, shape: Shape, requests: usize) -> Result<Vec<Figure>> {
    let report: Value = serde_json::from_str(text)?;
    let figure = |metric: &str, statistic| {
        let found = report.get(metric).with_context(|| format!("found no {metric}"))?;
        number(found, statistic)
    };
    let expected = [("request_count", requests), ("output_sequence_length", shape.tokens)];
    for (metric, expected) in expected {
        let found = figure(metric, "avg")?;
        if found != expected as f64 {
            bail!("{metric} is {found}, expected {expected}");
        }
    }
    // The first token is that of all texts, and a word may begin two prompts.
    let (cached, most) = (figure(CACHED, "avg").unwrap_or(0.0), shape.prompt / 8);
    if cached > most as f64 {
        bail!(
            "{CACHED} is {cached} of {} tokens of a prompt, expected at most {most}: prompts that no server has seen",
            shape.prompt
        );
    }
    let figures = METRICS
        .iter()
        .filter(|(_, _, statistic, _)| *statistic != P95.0 || requests >= P95.1)
        .map(|&(name, metric, statistic, unit)| Ok(Figure { name, unit, value: figure(metric, statistic)? }));
    figures.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(requests: u32, tokens: u32) -> String {
        format!(
            r#"{{"request_count": {{"avg": {requests}}}, "output_sequence_length": {{"avg": {tokens}}},
                "request_throughput": {{"avg": 2.5}}, "time_to_first_token": {{"p50": 1, "p95": 2}},
                "inter_token_latency": {{"p50": 3, "p95": 4}}}}"#
        )
    }

    #[test]
    fn figures_come_from_a_whole_run() {
        let shape = Shape { prompt: 128, tokens: 64 };
        let found = read(&report(20, 64), shape, 20).unwrap();
        assert_eq!(found.iter().map(|figure| figure.value).collect::<Vec<_>>(), [2.5, 1.0, 2.0, 3.0, 4.0]);
        // The slowest of a few requests is no percentile.
        let found = read(&report(19, 64), shape, 19).unwrap();
        assert_eq!(found.iter().map(|figure| figure.value).collect::<Vec<_>>(), [2.5, 1.0, 3.0]);
        let refused = |text: &str| read(text, shape, 4).err().unwrap().to_string();
        assert_eq!(refused(&report(3, 64)), "request_count is 3, expected 4");
        assert_eq!(refused(&report(4, 63)), "output_sequence_length is 63, expected 64");
        assert_eq!(refused("{}"), "found no request_count");
    }

    #[test]
    fn prompts_that_a_server_knows_are_refused() {
        let shape = Shape { prompt: 128, tokens: 64 };
        let with = |cached: u32| {
            let cached = format!(r#"{{"{CACHED}": {{"avg": {cached}}}, "#);
            read(&report(4, 64).replacen('{', &cached, 1), shape, 4)
        };
        assert_eq!(with(1).unwrap().len(), 3);
        assert_eq!(
            with(64).err().unwrap().to_string(),
            "usage_prompt_cache_read_tokens is 64 of 128 tokens of a prompt, expected at most 16: prompts that no server has seen"
        );
    }

    #[test]
    fn a_context_has_room_for_prompt_and_answer() {
        assert_eq!(Shape { prompt: 128, tokens: 64 }.context(), 256);
        assert_eq!(Shape { prompt: 160, tokens: 65 }.context(), 512);
    }
}
