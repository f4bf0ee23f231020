//! Results as Markdown, CSV and JSON.

use std::{collections::BTreeMap, fmt};

use mlxcel_artifacts::{Bundle, CacheType, Float, Quant, Traffic, Window};
use mlxcel_runtime::{
    BenchCase, BenchSample, BenchWork, DeviceInfo, Dispatch, Profile, Quality, QualityComparison, Statistics,
};
use serde_json::{Value, json};

use crate::{
    array::Array,
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
    /// Collects the facts from the manifest and the device.
    pub(crate) fn new(bundle: &Bundle, device: &DeviceInfo) -> Result<Self, mlxcel_artifacts::Error> {
        let manifest = bundle.manifest();
        let plan = manifest.model_spec()?;
        let target = &manifest.targets[&device.target];
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
        Ok(Self {
            model: format!("{} {kind}{kv}", manifest.model),
            bundle: bundle.path().display().to_string(),
            precision: plan.precision,
            quant: plan.quant,
            cache_type: plan.cache_type,
            target: device.target.clone(),
            device: device.name.clone(),
            threads: device.threads,
            parameters: manifest.parameters.iter().map(|parameter| elements(&parameter.shape)).sum(),
            bytes: match &target.packing {
                Some(packing) => bytes(&mut packing.steps.iter().flat_map(|step| &step.results)),
                None => bytes(&mut manifest.parameters.iter()),
            },
            step_bytes: target.step_bytes,
            position_bytes: plan.position_bytes,
            windows: plan.windows.clone(),
            dispatches: target.dispatches.clone(),
        })
    }

    /// Returns the facts as a JSON object.
    pub(crate) fn json(&self) -> Value {
        json!({
            "model": self.model,
            "bundle": self.bundle,
            "size_bytes": self.bytes,
            "parameters": self.parameters,
            "precision": self.precision,
            "quant": self.quant,
            "kv": self.cache_type,
            "target": self.target,
            "device": self.device,
            "threads": self.threads,
        })
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
        let all =
            moved(Traffic { bytes: self.step_bytes, position_bytes: self.position_bytes }, case.middle());
        let of_window = |window: &Window| in_window(case, window.positions) * window.position_bytes as f64;
        all + self.windows.iter().map(of_window).sum::<f64>()
    }

    /// Returns the bytes that all calls of a dispatch move, if its traffic is known. Kernels of GPUs have one name for all sizes:
    /// theirs is known by function.
    #[expect(clippy::cast_precision_loss, reason = "a number of calls")]
    fn bytes_of_calls(&self, positions: f64, dispatch: &Dispatch) -> Option<f64> {
        let of = |name: &str, calls: u64| Some(moved(*self.dispatches.get(name)?, positions) * calls as f64);
        let in_functions = || {
            let functions = dispatch.functions.iter();
            let each =
                functions.map(|(function, &calls)| of(&format!("{function}.{}", dispatch.name), calls));
            each.sum::<Option<f64>>().filter(|_| !dispatch.functions.is_empty())
        };
        of(&dispatch.name, dispatch.calls).or_else(in_functions)
    }
}

/// Returns the positions that a layer with a window reads in a step, on average over all steps of a test. While the window fills,
/// a step reads one more than the step before.
#[expect(clippy::cast_precision_loss, reason = "numbers of positions")]
fn in_window(case: &BenchCase, window: usize) -> f64 {
    let (first, tokens, window) = (case.depth as f64, case.tokens() as f64, window as f64);
    let last = first + tokens;
    let full = window.clamp(first, last);
    (f64::midpoint(first, full) * (full - first) + window * (last - full)) / tokens
}

/// Returns the bytes that a call moves with so many positions in the cache.
#[expect(clippy::cast_precision_loss, reason = "bytes of a memory")]
fn moved(traffic: Traffic, positions: f64) -> f64 {
    traffic.bytes as f64 + positions * traffic.position_bytes as f64
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
        let share = |sample: &BenchSample| Some(sample.tok_s * bytes / sample.memory_bytes_s?);
        let shares: Option<Vec<_>> = self.samples.iter().map(share).collect();
        shares.map(|shares| Statistics::of_samples(&shares))
    }
}

/// Renders results one by one, so that each is shown while the rest is measured.
pub(crate) struct Rows<'a> {
    model: &'a ModelInfo,
    output: Output,
    columns: Vec<Column>,
    array: Array,
    has_names: bool,
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
        Self { model, output, columns: columns.collect(), array: Array::default(), has_names: false }
    }

    /// Renders the header.
    pub(crate) fn begin(&self) -> String {
        match self.output {
            Output::Md => header(&self.columns),
            Output::Csv => String::new(),
            Output::Json => self.array.begin(),
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
                let first = if self.has_names { String::new() } else { values(&names) };
                self.has_names = true;
                first + &values(&cells)
            }
            Output::Json => self.array.value(&row_json(self.model, row)),
        }
    }

    /// Renders the end, which an array needs after an error too.
    pub(crate) fn end(&self) -> String {
        match self.output {
            Output::Json => self.array.end(),
            Output::Md | Output::Csv => String::new(),
        }
    }
}

/// Returns a result as a JSON object.
fn row_json(model: &ModelInfo, row: &Row) -> Value {
    let Statistics { mean, deviation } = row.speed();
    let reads: Option<Vec<_>> = row.samples.iter().map(|sample| sample.memory_bytes_s).collect();
    let steps = matches!(row.case.work, BenchWork::Decode(_));
    let mut object = model.json();
    let own = json!({
        "test": row.case.to_string(),
        "depth": row.case.depth,
        "tokens": row.case.tokens(),
        "mean_tok_s": mean,
        "deviation_tok_s": deviation,
        "samples_tok_s": row.samples.iter().map(|sample| sample.tok_s).collect::<Vec<_>>(),
        "bytes_a_token": steps.then(|| model.bytes_per_token(&row.case)),
        "bandwidth_share": row.share(model).map(|share| share.mean),
        "memory_bytes_s": reads,
    });
    if let (Value::Object(fields), Value::Object(own)) = (&mut object, own) {
        fields.extend(own);
    }
    object
}

/// Renders profiles one by one, so that each is shown while the rest is measured.
pub(crate) struct Profiles<'a> {
    model: &'a ModelInfo,
    output: Output,
    array: Array,
    /// Profiles that were rendered.
    count: usize,
}

impl<'a> Profiles<'a> {
    pub(crate) fn new(model: &'a ModelInfo, output: Output) -> Self {
        Self { model, output, array: Array::default(), count: 0 }
    }

    /// Renders the beginning.
    pub(crate) fn begin(&self) -> String {
        if self.output == Output::Json { self.array.begin() } else { String::new() }
    }

    /// Renders a profile. In Markdown it is a table of its own.
    pub(crate) fn row(&mut self, profile: &Profile) -> String {
        let is_first = self.count == 0;
        self.count += 1;
        match self.output {
            Output::Json => self.array.value(&profile_json(self.model, profile)),
            Output::Csv => {
                let names = values(&["test", "dispatch", "calls", "time_ms", "share", "bytes", "bytes_s"]);
                let rows = profile_cells(self.model, profile, true);
                let rows = rows.iter().map(|row| values(row)).collect::<String>();
                if is_first { names + &rows } else { rows }
            }
            Output::Md => {
                let names = ["test", "dispatch", "calls", "ms", "share", "MB a call", "GB/s"];
                let table = table(&names, &profile_cells(self.model, profile, false));
                if is_first { table } else { format!("\n{table}") }
            }
        }
    }

    /// Renders the end, which an array needs after an error too.
    pub(crate) fn end(&self) -> String {
        if self.output == Output::Json { self.array.end() } else { String::new() }
    }
}

/// Returns a profile as a JSON object.
fn profile_json(model: &ModelInfo, Profile { work, positions, total, dispatches }: &Profile) -> Value {
    let dispatches = dispatches.iter().map(|dispatch| {
        let bytes = model.bytes_of_calls(*positions, dispatch);
        json!({
            "name": dispatch.name,
            "calls": dispatch.calls,
            "time_ms": dispatch.time.as_secs_f64() * 1e3,
            "bytes": bytes,
            "bytes_s": bytes.map(|bytes| bytes / dispatch.time.as_secs_f64()),
        })
    });
    json!({
        "test": work,
        "total_ms": total.as_secs_f64() * 1e3,
        "dispatches": dispatches.collect::<Vec<_>>(),
    })
}

/// Returns a row of a profile for each dispatch, and one for the time between them.
#[expect(clippy::cast_precision_loss, reason = "a number of calls")]
fn profile_cells(model: &ModelInfo, profile: &Profile, csv: bool) -> Vec<Vec<String>> {
    let Profile { work, positions, total, dispatches } = profile;
    let mut cells = Vec::new();
    let mut row = |name: &str, calls: Option<u64>, time: f64, bytes: Option<f64>| {
        let share = time / total.as_secs_f64();
        let of_call = bytes.zip(calls).map(|(bytes, calls)| bytes / calls as f64);
        let text = |number: Option<f64>, none: &str, digits: usize| {
            number.map_or(none.to_owned(), |number| format!("{number:.digits$}"))
        };
        let numbers = if csv {
            let [bytes, bytes_s] = [bytes, bytes.map(|bytes| bytes / time)];
            let calls = calls.map(|calls| calls.to_string()).unwrap_or_default();
            let exact = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
            [calls, (time * 1e3).to_string(), share.to_string(), exact(bytes), exact(bytes_s)]
        } else {
            [
                calls.map_or("-".into(), |calls| calls.to_string()),
                format!("{:.3}", time * 1e3),
                format!("{:.1} %", 100.0 * share),
                text(of_call.map(|bytes| bytes / 1e6), "-", 2),
                text(bytes.map(|bytes| bytes / time / 1e9), "-", 1),
            ]
        };
        cells.push([&[work.clone(), name.to_owned()], &numbers[..]].concat());
    };
    let mut rest = total.as_secs_f64();
    for dispatch in dispatches {
        let time = dispatch.time.as_secs_f64();
        row(&dispatch.name, Some(dispatch.calls), time, model.bytes_of_calls(*positions, dispatch));
        rest -= time;
    }
    row("between dispatches", None, rest.max(0.0), None);
    cells
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

pub(crate) fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
pub(crate) mod tests;
