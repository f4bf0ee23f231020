//! Results as Markdown, CSV and JSON.

use std::{collections::BTreeMap, fmt};

use mlxcel_artifacts::{Bundle, CacheType, Float, Quant, Traffic, Window};
use mlxcel_runtime::{
    BenchCase, BenchSample, BenchWork, Capabilities, Dispatch, Profile, Quality, QualityComparison,
    Statistics,
};
use serde_json::{Value, json};

use crate::{
    options::Output,
    table::{Column, header, line, table, values},
};

/// Smaller weights may fit a processor's cache.
const CACHED_BYTES: u64 = 256 << 20;

/// Facts about the bundle that every row shows.
#[derive(Debug)]
pub(crate) struct ModelInfo {
    model: String,
    /// The bundle's folder.
    bundle: String,
    precision: Float,
    quant: Quant,
    cache_type: CacheType,
    target: String,
    device: String,
    threads: usize,
    /// Number of parameters of the checkpoint.
    parameters: u64,
    /// Bytes of the parameters that the target reads.
    bytes: u64,
    step_bytes: u64,
    position_bytes: u64,
    windows: Vec<Window>,
    dispatches: BTreeMap<String, Traffic>,
}

/// A test with its results.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) case: BenchCase,
    pub(crate) samples: Vec<BenchSample>,
}

impl ModelInfo {
    /// Collects the facts from the manifest and the session.
    pub(crate) fn new(bundle: &Bundle, capabilities: &Capabilities) -> Self {
        let manifest = bundle.manifest();
        let plan = &manifest.plan;
        let target = &manifest.targets[&capabilities.target];
        let elements = |shape: &[usize]| shape.iter().product::<usize>() as u64;
        let bytes = |parameters: &mut dyn Iterator<Item = &mlxcel_artifacts::entry::Parameter>| {
            parameters.filter_map(|parameter| parameter.bytes()).sum::<usize>() as u64
        };
        let kind: &dyn fmt::Display = if plan.quant == Quant::None { &plan.precision } else { &plan.quant };
        let kv = if plan.cache_type == CacheType::Float(plan.precision) {
            String::new()
        } else {
            format!(" kv-{}", plan.cache_type)
        };
        Self {
            model: format!("{} {kind}{kv}", manifest.model),
            bundle: bundle.path().display().to_string(),
            precision: plan.precision,
            quant: plan.quant,
            cache_type: plan.cache_type,
            target: capabilities.target.clone(),
            device: capabilities.device.clone(),
            threads: capabilities.threads,
            parameters: manifest.parameters.iter().map(|parameter| elements(&parameter.shape)).sum(),
            bytes: match &target.packing {
                Some(packing) => bytes(&mut packing.steps.iter().flat_map(|step| &step.results)),
                None => bytes(&mut manifest.parameters.iter()),
            },
            step_bytes: target.step_bytes,
            position_bytes: plan.position_bytes,
            windows: plan.windows.clone(),
            dispatches: target.dispatches.clone(),
        }
    }

    /// Returns the cells of a row.
    fn cells(&self, case: &BenchCase, speed: &str, share: &str) -> [String; 8] {
        [
            self.model.clone(),
            size(self.bytes),
            count(self.parameters),
            self.target.clone(),
            self.threads.to_string(),
            case.to_string(),
            speed.to_owned(),
            share.to_owned(),
        ]
    }

    /// Returns the bytes of weights and cache that a step reads.
    #[expect(clippy::cast_precision_loss, reason = "bytes of a memory")]
    fn bytes_per_token(&self, case: &BenchCase) -> f64 {
        let all = moved(Traffic { bytes: self.step_bytes, position_bytes: self.position_bytes }, case);
        let of_window =
            |window: &Window| middle(case).min(window.positions as f64) * window.position_bytes as f64;
        all + self.windows.iter().map(of_window).sum::<f64>()
    }

    /// Returns the bytes per second of a dispatch, if its traffic is known.
    #[expect(clippy::cast_precision_loss, reason = "a number of calls")]
    fn bytes_per_second(&self, case: &BenchCase, dispatch: &Dispatch) -> Option<f64> {
        let traffic = self.dispatches.get(&dispatch.name)?;
        Some(moved(*traffic, case) * dispatch.calls as f64 / dispatch.time.as_secs_f64())
    }
}

/// Returns the bytes that a call moves, with the cache up to the middle of the case's tokens.
#[expect(clippy::cast_precision_loss, reason = "bytes of a memory")]
fn moved(traffic: Traffic, case: &BenchCase) -> f64 {
    traffic.bytes as f64 + middle(case) * traffic.position_bytes as f64
}

/// Returns the position in the middle of the case's tokens.
#[expect(clippy::cast_precision_loss, reason = "a number of positions")]
fn middle(case: &BenchCase) -> f64 {
    case.depth as f64 + case.tokens() as f64 / 2.0
}

impl Row {
    /// Returns tokens per second.
    fn speed(&self) -> Statistics {
        let speeds: Vec<_> = self.samples.iter().map(|sample| sample.tok_s).collect();
        Statistics::of_samples(&speeds)
    }

    /// Returns the share of the memory bandwidth; `None` for prompts and small weights.
    fn share(&self, model: &ModelInfo) -> Option<Statistics> {
        // Weights that fit a cache do not measure the memory.
        if matches!(self.case.work, BenchWork::Prompt(_)) || model.bytes < CACHED_BYTES {
            return None;
        }
        let bytes = model.bytes_per_token(&self.case);
        let share = |sample: &BenchSample| Some(sample.tok_s * bytes / sample.read_bytes_s?);
        let shares: Option<Vec<_>> = self.samples.iter().map(share).collect();
        shares.map(|shares| Statistics::of_samples(&shares))
    }
}

/// Renders results one by one, so that each is shown while the rest is measured.
pub(crate) struct Rows<'a> {
    model: &'a ModelInfo,
    output: Output,
    columns: Vec<Column>,
    /// Results for [`Output::Json`], which is one value.
    done: Vec<Value>,
}

impl<'a> Rows<'a> {
    /// Lays out columns for these cases.
    pub(crate) fn new(model: &'a ModelInfo, cases: &[BenchCase], output: Output) -> Self {
        const HEADER: [&str; 8] =
            ["model", "size", "params", "target", "threads", "test", "t/s", "bandwidth"];
        let known: Vec<_> = cases.iter().map(|case| model.cells(case, "1234.56 ± 123.45", "-")).collect();
        let columns = HEADER.iter().enumerate().map(|(index, name)| {
            let cells = known.iter().map(|row| row[index].as_str());
            // Numbers are aligned to the right.
            Column::new(name, cells, !matches!(*name, "model" | "target" | "test"))
        });
        Self { model, output, columns: columns.collect(), done: Vec::new() }
    }

    /// Renders the header.
    pub(crate) fn begin(&self) -> String {
        match self.output {
            Output::Md => header(&self.columns),
            Output::Csv | Output::Json => String::new(),
        }
    }

    /// Renders a result.
    pub(crate) fn row(&mut self, row: &Row) -> String {
        match self.output {
            Output::Md => {
                let Statistics { mean, deviation } = row.speed();
                let speed = format!("{mean:.2} ± {deviation:.2}");
                let share = row.share(self.model);
                let share = share.map_or("-".into(), |share| format!("{:.0} %", share.mean * 100.0));
                line(&self.columns, &self.model.cells(&row.case, &speed, &share))
            }
            Output::Csv => {
                let Value::Object(fields) = row_json(self.model, row) else { return String::new() };
                // A cell cannot hold a list.
                let (names, cells): (Vec<_>, Vec<_>) = fields
                    .into_iter()
                    .filter(|(_, value)| !value.is_array())
                    .map(|(name, value)| (name, text(value)))
                    .unzip();
                let first = if self.done.is_empty() { values(&names) } else { String::new() };
                self.done.push(Value::Null);
                first + &values(&cells)
            }
            Output::Json => {
                self.done.push(row_json(self.model, row));
                String::new()
            }
        }
    }

    /// Renders the end.
    pub(crate) fn end(self) -> String {
        match self.output {
            Output::Json => pretty(&Value::Array(self.done)),
            Output::Md | Output::Csv => String::new(),
        }
    }
}

/// Returns a result as a JSON object.
fn row_json(model: &ModelInfo, row: &Row) -> Value {
    let Statistics { mean, deviation } = row.speed();
    let reads: Option<Vec<_>> = row.samples.iter().map(|sample| sample.read_bytes_s).collect();
    let steps = matches!(row.case.work, BenchWork::Decode(_));
    json!({
        "model": model.model,
        "bundle": model.bundle,
        "size_bytes": model.bytes,
        "parameters": model.parameters,
        "precision": model.precision,
        "quant": model.quant,
        "kv": model.cache_type,
        "target": model.target,
        "device": model.device,
        "threads": model.threads,
        "test": row.case.to_string(),
        "depth": row.case.depth,
        "tokens": row.case.tokens(),
        "mean_tok_s": mean,
        "deviation_tok_s": deviation,
        "samples_tok_s": row.samples.iter().map(|sample| sample.tok_s).collect::<Vec<_>>(),
        "bytes_a_token": steps.then(|| model.bytes_per_token(&row.case)),
        "bandwidth_share": row.share(model).map(|share| share.mean),
        "read_bytes_s": reads,
    })
}

/// Renders the profiles.
pub(crate) fn profiles(model: &ModelInfo, profiles: &[(BenchCase, Profile)], output: Output) -> String {
    if output == Output::Json {
        let json = |(case, Profile { total, dispatches }): &(BenchCase, Profile)| {
            let dispatches = dispatches.iter().map(|dispatch| {
                json!({
                    "name": dispatch.name,
                    "calls": dispatch.calls,
                    "time_ms": dispatch.time.as_secs_f64() * 1e3,
                    "bytes_s": model.bytes_per_second(case, dispatch),
                })
            });
            json!({
                "test": case.to_string(),
                "total_ms": total.as_secs_f64() * 1e3,
                "dispatches": dispatches.collect::<Vec<_>>(),
            })
        };
        return pretty(&Value::Array(profiles.iter().map(json).collect()));
    }
    let csv = output == Output::Csv;
    let header = match csv {
        true => ["test", "dispatch", "calls", "time_ms", "share", "bytes_s"],
        false => ["test", "dispatch", "calls", "ms", "share", "GB/s"],
    };
    let mut cells = Vec::new();
    for (case, Profile { total, dispatches }) in profiles {
        let mut row = |name: &str, calls: String, time: f64, bytes_s: Option<f64>| {
            let share = time / total.as_secs_f64();
            let numbers = if csv {
                let bytes_s = bytes_s.map(|bytes_s| bytes_s.to_string()).unwrap_or_default();
                [calls, (time * 1e3).to_string(), share.to_string(), bytes_s]
            } else {
                let calls = if calls.is_empty() { "-".into() } else { calls };
                let bytes_s = bytes_s.map_or("-".into(), |bytes_s| format!("{:.1}", bytes_s / 1e9));
                [calls, format!("{:.3}", time * 1e3), format!("{:.1} %", 100.0 * share), bytes_s]
            };
            cells.push([&[case.to_string(), name.to_owned()], &numbers[..]].concat());
        };
        let mut rest = total.as_secs_f64();
        for dispatch in dispatches {
            let (time, bytes_s) = (dispatch.time.as_secs_f64(), model.bytes_per_second(case, dispatch));
            row(&dispatch.name, dispatch.calls.to_string(), time, bytes_s);
            rest -= dispatch.time.as_secs_f64();
        }
        row("between dispatches", String::new(), rest.max(0.0), None);
    }
    render_table(&header, &cells, output)
}

/// Renders the quality on a text.
pub(crate) fn quality(found: &Quality, output: Output) -> String {
    let Quality { tokens, perplexity, comparison } = found;
    let mut rows = vec![
        ("tokens", json!(tokens), tokens.to_string()),
        ("perplexity", json!(perplexity), format!("{perplexity:.4}")),
    ];
    if let Some(QualityComparison { reference_perplexity, mean_kl, p99_kl, top_1_agreement }) = comparison {
        rows.extend([
            ("reference_perplexity", json!(reference_perplexity), format!("{reference_perplexity:.4}")),
            ("mean_kl", json!(mean_kl), format!("{mean_kl:.6}")),
            ("p99_kl", json!(p99_kl), format!("{p99_kl:.6}")),
            ("top_1_agreement", json!(top_1_agreement), format!("{:.2} %", top_1_agreement * 100.0)),
        ]);
    }
    if output == Output::Json {
        let fields = rows.into_iter().map(|(name, value, _)| (name.to_owned(), value));
        return pretty(&Value::Object(fields.collect()));
    }
    let header: Vec<_> = rows.iter().map(|(name, ..)| *name).collect();
    let cell = |(_, value, shown): &(&str, Value, String)| match output {
        Output::Csv => value.to_string(),
        Output::Md | Output::Json => shown.clone(),
    };
    let cells = rows.iter().map(cell).collect();
    render_table(&header, &[cells], output)
}

/// Renders rows as a table of the output format.
fn render_table(names: &[&str], rows: &[Vec<String>], output: Output) -> String {
    match output {
        Output::Csv => values(names) + &rows.iter().map(|row| values(row)).collect::<String>(),
        Output::Md | Output::Json => table(names, rows),
    }
}

/// Returns a value as a cell.
fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Renders a number of bytes.
#[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
fn size(bytes: u64) -> String {
    let (mib, gib) = (bytes as f64 / f64::from(1 << 20), bytes as f64 / f64::from(1 << 30));
    if gib >= 1.0 { format!("{gib:.2} GiB") } else { format!("{mib:.2} MiB") }
}

/// Renders a number of parameters.
#[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
fn count(parameters: u64) -> String {
    let parameters = parameters as f64;
    match parameters {
        1e9.. => format!("{:.2} B", parameters / 1e9),
        1e6.. => format!("{:.2} M", parameters / 1e6),
        _ => format!("{:.2} K", parameters / 1e3),
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn model() -> ModelInfo {
        ModelInfo {
            model: "tiny, 1 \"b\" q8".into(),
            bundle: "b".into(),
            precision: Float::Bf16,
            quant: Quant::Q8,
            cache_type: CacheType::Float(Float::Bf16),
            device: "local-task".into(),
            target: "cpu".into(),
            threads: 2,
            parameters: 1_235_814_400,
            bytes: 3 << 29,
            step_bytes: 1_000,
            position_bytes: 10,
            windows: vec![],
            dispatches: [("matmul".into(), Traffic { bytes: 7_000, position_bytes: 100 })].into(),
        }
    }

    fn tests() -> Vec<Row> {
        let samples = |speeds: [f64; 2]| {
            speeds.map(|tok_s| BenchSample { tok_s, read_bytes_s: Some(21_280.0) }).to_vec()
        };
        vec![
            Row {
                case: BenchCase { work: BenchWork::Prompt(512), depth: 0 },
                samples: samples([100.0, 104.0]),
            },
            Row { case: BenchCase { work: BenchWork::Decode(128), depth: 0 }, samples: samples([9.0, 11.0]) },
        ]
    }

    fn rows(output: Output) -> String {
        let (model, tests) = (model(), tests());
        let cases: Vec<_> = tests.iter().map(|row| row.case).collect();
        let mut rows = Rows::new(&model, &cases, output);
        let begin = rows.begin();
        let all: String = tests.iter().map(|row| rows.row(row)).collect();
        begin + &all + &rows.end()
    }

    #[test]
    fn the_table_is_aligned() {
        insta::assert_snapshot!(rows(Output::Md), @r#"
        | model          |     size | params | target | threads | test  |              t/s | bandwidth |
        | -------------- | -------: | -----: | ------ | ------: | ----- | ---------------: | --------: |
        | tiny, 1 "b" q8 | 1.50 GiB | 1.24 B | cpu    |       2 | pp512 |    102.00 ± 2.83 |         - |
        | tiny, 1 "b" q8 | 1.50 GiB | 1.24 B | cpu    |       2 | tg128 |     10.00 ± 1.41 |      77 % |
        "#);
    }

    #[test]
    fn counts_have_a_unit() {
        assert_eq!([999_999, 1_869_504, 1_235_814_400].map(count), ["1000.00 K", "1.87 M", "1.24 B"]);
    }

    #[test]
    fn weights_that_fit_a_cache_have_no_share() {
        let small = ModelInfo { bytes: CACHED_BYTES - 1, ..model() };
        assert!(tests().iter().all(|row| row.share(&small).is_none()));
    }

    #[test]
    fn csv_and_json_have_all_fields() {
        insta::assert_snapshot!(rows(Output::Csv), @r#"
        model,bundle,size_bytes,parameters,precision,quant,kv,target,device,threads,test,depth,tokens,mean_tok_s,deviation_tok_s,bytes_a_token,bandwidth_share
        "tiny, 1 ""b"" q8",b,1610612736,1235814400,bf16,q8,bf16,cpu,local-task,2,pp512,0,512,102.0,2.8284271247461903,,
        "tiny, 1 ""b"" q8",b,1610612736,1235814400,bf16,q8,bf16,cpu,local-task,2,tg128,0,128,10.0,1.4142135623730951,1640.0,0.7706766917293233
        "#);
        let json: Value = serde_json::from_str(&rows(Output::Json)).unwrap();
        assert_eq!(json[1]["test"], "tg128");
        assert_eq!(json[1]["mean_tok_s"], 10.0);
        // 1,000 bytes of weights and 64 positions of 10, ten times a second, of 21,280.
        assert!((json[1]["bandwidth_share"].as_f64().unwrap() - 1640.0 * 10.0 / 21_280.0).abs() < 1e-9);
        assert_eq!(json[0]["bandwidth_share"], Value::Null);
    }

    #[test]
    fn a_profile_sums_to_its_total() {
        let dispatch =
            |name: &str, calls, ms| Dispatch { name: name.into(), calls, time: Duration::from_millis(ms) };
        let profile = Profile {
            total: Duration::from_millis(10),
            dispatches: vec![dispatch("matmul", 16, 7), dispatch("norm", 33, 1)],
        };
        let case = BenchCase { work: BenchWork::Decode(10), depth: 625_000 };
        // 16 calls move 7,000 bytes, and 100 bytes for each of 625,005 positions, in 7 ms.
        insta::assert_snapshot!(profiles(&model(), &[(case, profile)], Output::Md), @r#"
        | test           | dispatch           | calls |    ms |  share |  GB/s |
        | -------------- | ------------------ | ----: | ----: | -----: | ----: |
        | tg10 @ d625000 | matmul             |    16 | 7.000 | 70.0 % | 142.9 |
        | tg10 @ d625000 | norm               |    33 | 1.000 | 10.0 % |     - |
        | tg10 @ d625000 | between dispatches |     - | 2.000 | 20.0 % |     - |
        "#);
    }

    #[test]
    fn quality_is_compared_with_a_reference() {
        let comparison = QualityComparison {
            reference_perplexity: 5.0,
            mean_kl: 0.0005,
            p99_kl: 0.004,
            top_1_agreement: 0.985,
        };
        let found = Quality { tokens: 1000, perplexity: 5.01, comparison: Some(comparison) };
        insta::assert_snapshot!(quality(&found, Output::Md), @r#"
        | tokens | perplexity | reference_perplexity |  mean_kl |   p99_kl | top_1_agreement |
        | -----: | ---------: | -------------------: | -------: | -------: | --------------: |
        |   1000 |     5.0100 |               5.0000 | 0.000500 | 0.004000 |         98.50 % |
        "#);
        let alone = Quality { comparison: None, ..found };
        assert_eq!(quality(&alone, Output::Csv), "tokens,perplexity\n1000,5.01\n");
    }
}
