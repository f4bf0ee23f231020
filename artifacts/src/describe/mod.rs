//! A bundle's manifest in words.

pub(crate) mod byte_count;
pub(crate) mod differences;

use std::{collections::BTreeMap, fmt};

use self::byte_count::ByteCount;
use crate::{
    blob::Blob,
    bundle::Bundle,
    driver::NEVER_RUN,
    manifest::{
        CalibratedBy, EmbeddingSpec, GpuNeeds, Manifest, ModelSpec, Packing, SelfTestCase, Serving,
        TargetArtifact, Window,
        entry::{Calibration, Entry, Parameter, ResultSpec, Role},
        program::{BundleKind, Golden, ProgramSpec},
    },
    tensor::type_text,
};

/// Rows of a name and a value.
struct Rows {
    text: String,
    indent: usize,
    /// The width of names.
    width: usize,
}

impl Rows {
    fn new(indent: usize, width: usize) -> Self {
        Self { text: String::new(), indent, width }
    }

    fn add(&mut self, name: &str, value: impl fmt::Display) {
        let Self { indent, width, .. } = *self;
        self.text += &format!("{:indent$}{name:<width$} {value}\n", "");
    }

    /// Adds a row for each value; only the first one has the name.
    fn add_list<V: fmt::Display>(&mut self, name: &str, values: impl IntoIterator<Item = V>) {
        for (index, value) in values.into_iter().enumerate() {
            self.add(if index == 0 { name } else { "" }, value);
        }
    }
}

/// Describes a bundle for people.
#[must_use]
pub fn describe(bundle: &Bundle) -> String {
    // No `..`, so that a new field is not forgotten here.
    let Manifest {
        format,
        kind,
        model,
        family,
        plan,
        program,
        compiler,
        targets,
        files,
        weights,
        documents,
        parameters,
        replays,
        goldens,
    } = bundle.manifest();
    let mut rows = Rows::new(0, 11);
    rows.add("bundle", bundle.display_name());
    rows.add("format", format);
    rows.add(&kind.to_string(), model);
    if let Some(plan) = plan {
        rows.add("family", family);
        add_model(&mut rows, plan);
    }
    if let Some(ProgramSpec { stablehlo, source }) = program {
        rows.add("stablehlo", stablehlo.as_deref().unwrap_or("text, of no version"));
        rows.add("source", source);
    }
    rows.add("compiler", format!("iree {}", compiler.version));
    rows.add("", compiler.digest);
    rows.add(
        "self-test",
        match plan {
            Some(plan) => self_test(replays, plan.embedding.is_some()),
            None => calls(goldens),
        },
    );
    let mut text = rows.text;
    if let Ok(functions) = bundle.manifest().functions() {
        text += "\nfunctions\n";
        text.extend(functions.iter().map(describe_function));
    }
    text += "\ntargets\n";
    text.extend(targets.iter().map(|(name, target)| describe_target(name, target)));
    text += "\nparameters\n";
    text += &describe_parameters(parameters);
    if *kind == BundleKind::Model {
        text += "\nfiles\n";
        text += &list_blobs(files, "none");
    }
    text += "\nweights\n";
    let none = match (bundle.is_packed(), parameters.is_empty()) {
        (true, _) => "none: only packed weights",
        (false, true) => "none: the program has no parameters",
        (false, false) => "none: pass --weights when you run the bundle",
    };
    text += &list_blobs(weights, none);
    text += "\ndocuments\n";
    text += &list_blobs(documents, "none: no SBOM, no provenance");
    text
}

fn add_model(rows: &mut Rows, model: &ModelSpec) {
    let ModelSpec { precision, quant, cache_type, batch, context, vocab, position_bytes, windows, embedding } =
        model;
    let batch = batch.map_or_else(String::new, |batch| format!("batch {batch}, "));
    let sizes = format!("{batch}context {context}, vocab {vocab}");
    match embedding {
        None => {
            rows.add("plan", format!("precision {precision}, quant {quant}, kv {cache_type}"));
            rows.add("", sizes);
            rows.add("cache", format!("{} per position", ByteCount(*position_bytes)));
        }
        Some(EmbeddingSpec { width, pooling, normalized }) => {
            rows.add("plan", format!("precision {precision}, quant {quant}"));
            rows.add("", sizes);
            let length = if *normalized { ", normalized" } else { "" };
            rows.add("embedding", format!("{width} dimensions, {pooling} pooling{length}"));
        }
    }
    for Window { positions, position_bytes } in windows {
        rows.add("", format!("{} for each of the last {positions} positions", ByteCount(*position_bytes)));
    }
}

fn self_test(cases: &[SelfTestCase], embeds: bool) -> String {
    match cases.len() {
        0 => "none recorded".into(),
        count if embeds => format!("{count} embeddings"),
        count => {
            let tokens: usize = cases.iter().map(|case| case.tokens.len()).sum();
            format!("{tokens} tokens after {count} prompts")
        }
    }
}

fn calls(goldens: &[Golden]) -> String {
    match goldens.len() {
        0 => "none recorded".into(),
        1 => "1 call".into(),
        count => format!("{count} calls"),
    }
}

/// Returns the lines of a function: its arguments and results by name.
fn describe_function(entry: &Entry) -> String {
    let next = |result: usize| entry.outputs().nth(result).map(|(name, _)| format!("  next from {name}"));
    let inputs = entry.inputs().map(|(name, spec)| {
        let note = spec.next_state().and_then(next).unwrap_or_default();
        let kind = if note.is_empty() { "argument" } else { "state" };
        [kind.to_owned(), name, type_text(spec.dtype, &spec.shape), note]
    });
    let result = |(name, spec): (String, &ResultSpec)| {
        ["result".to_owned(), name, type_text(spec.dtype, &spec.shape), String::new()]
    };
    let rows: Vec<_> = inputs.chain(entry.outputs().map(result)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let line = |[kind, name, ty, note]: &[String; 4]| {
        let line = format!("    {kind:<8}  {name:<0$}  {ty:<1$}{note}", width(1), width(2));
        format!("{}\n", line.trim_end())
    };
    let of = entry.function.iter().map(|name| format!(" of {name}")).collect::<String>();
    format!("  {}{of}\n{}", entry.name, rows.iter().map(line).collect::<String>())
}

fn describe_target(name: &str, target: &TargetArtifact) -> String {
    let TargetArtifact {
        driver,
        arch,
        cpu_features,
        gpu,
        flags,
        build_key,
        vmfb,
        entries,
        serving,
        step_bytes,
        rewind: _,
        dispatches: _,
        packing,
    } = target;
    let mut rows = Rows::new(4, 9);
    if driver.is_run() {
        rows.add("driver", driver);
    } else {
        rows.add("driver", format!("{driver} ({NEVER_RUN})"));
    }
    if !arch.is_empty() {
        rows.add("cpu", arch);
    }
    if !cpu_features.is_empty() {
        rows.add("needs", cpu_features.join(" "));
    }
    if let Some(GpuNeeds { compute_capability, ptx }) = gpu {
        rows.add("needs", format!("compute capability {compute_capability}, PTX {ptx}"));
    }
    rows.add("vmfb", describe_blob(vmfb));
    rows.add("build key", build_key);
    if *step_bytes > 0 {
        rows.add("step", format!("reads {} of weights", ByteCount(*step_bytes)));
    }
    if let Some(serving) = serving {
        rows.add("serving", describe_serving(serving, entries));
    }
    if let Some(packing) = packing {
        add_packing(&mut rows, packing);
    }
    rows.add_list("flags", flags);
    if entries.iter().any(|entry| entry.role != Role::Function) {
        rows.add_list("entries", describe_entries(entries));
    }
    format!("  {name}\n{}", rows.text)
}

/// Returns how many sequences a call takes, what a page takes, and whether answers depend on what else a call computes.
pub(crate) fn describe_serving(serving: &Serving, entries: &[Entry]) -> String {
    let Serving { page, exact, pools } = serving;
    let sequences = entries.iter().filter_map(|entry| Some(entry.role.sizes()?.sequences)).max();
    let exact = if *exact { "exact" } else { "not exact: an answer may depend on the others" };
    let pages = pools.iter().map(|pool| {
        let bytes = ByteCount(pool.page_bytes().unwrap_or(0) as u64);
        let window = pool.window.map_or_else(String::new, |window| format!(" within {window}"));
        format!(", {bytes} for {page} positions{window}")
    });
    format!("up to {} sequences in a call, {exact}{}", sequences.unwrap_or(1), pages.collect::<String>())
}

fn add_packing(rows: &mut Rows, packing: &Packing) {
    let Packing { build_key: _, vmfb, weights, made_from, calibrated_by, calibration, steps } = packing;
    rows.add("packing", describe_blob(vmfb));
    match weights {
        Some(blob) => rows.add("packed", describe_blob(blob)),
        None => {
            let results = || steps.iter().flat_map(|step| &step.results);
            let bytes: u64 = results().filter_map(Parameter::bytes).map(|bytes| bytes as u64).sum();
            rows.add("packed", format!("not yet: {} tensors, {}", results().count(), ByteCount(bytes)));
        }
    }
    if let Some(CalibratedBy { text, tokens, moments: _ }) = calibrated_by {
        rows.add("calibrated", format!("by {tokens} tokens of {text}"));
    } else if let Some(Calibration { window, .. }) = calibration {
        rows.add(
            "calibrated",
            format!("no: mlxcel-pack --calibrate can, by texts of at least {window} tokens"),
        );
    }
    rows.add_list("from", made_from.iter().map(|(file, blob)| format!("{}  {file}", blob.digest)));
}

fn describe_entries(entries: &[Entry]) -> Vec<String> {
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let describe = |entry: &Entry| format!("{:<width$}  {}", entry.name, describe_signature(entry));
    entries.iter().map(describe).collect()
}

/// Returns the types that an entry takes and returns: `(tokens i32[1,1]) -> (logits f32[1,100])`.
pub(crate) fn describe_signature(entry: &Entry) -> String {
    let Entry { name: _, function: _, role: _, work: _, arguments, results } = entry;
    let named = |name: &Option<String>| name.iter().map(|name| format!("{name} ")).collect::<String>();
    let arguments =
        arguments.iter().map(|a| format!("{}{} {}", named(&a.name), a.kind, type_text(a.dtype, &a.shape)));
    let results =
        results.iter().map(|r| format!("{}{} {}", named(&r.name), r.kind, type_text(r.dtype, &r.shape)));
    let (arguments, results): (Vec<_>, Vec<_>) = (arguments.collect(), results.collect());
    format!("({}) -> ({})", arguments.join(", "), results.join(", "))
}

fn describe_parameters(parameters: &[Parameter]) -> String {
    if parameters.is_empty() {
        return "  none\n".into();
    }
    // A validated manifest's sizes do not overflow.
    let bytes = |p: &Parameter| p.bytes().unwrap_or(0) as u64;
    let mut dtypes: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for parameter in parameters {
        let (count, total) = dtypes.entry(parameter.dtype.to_string().to_lowercase()).or_default();
        *count += 1;
        *total += bytes(parameter);
    }
    let row = |name: &str, count: usize, total: u64| {
        let tensors = if count == 1 { "tensor " } else { "tensors" };
        format!("  {name:<5} {count:>6} {tensors}  {}\n", ByteCount(total))
    };
    let mut text: String = dtypes.iter().map(|(name, (count, total))| row(name, *count, *total)).collect();
    if dtypes.len() != 1 {
        text += &row("all", parameters.len(), parameters.iter().map(bytes).sum());
    }
    if let Some(largest) = parameters.iter().max_by_key(|p| bytes(p)) {
        let shape = type_text(largest.dtype, &largest.shape);
        text += &format!("  the largest is {} {shape}\n", largest.name);
    }
    text
}

fn list_blobs(blobs: &BTreeMap<String, Blob>, none: &str) -> String {
    if blobs.is_empty() {
        return format!("  {none}\n");
    }
    let width = blobs.keys().map(|name| name.chars().count()).max().unwrap_or(0);
    let row = |(name, blob): (&String, &Blob)| format!("  {name:<width$}  {}\n", describe_blob(blob));
    blobs.iter().map(row).collect()
}

fn describe_blob(blob: &Blob) -> String {
    format!("{}  {}", blob.digest, ByteCount(blob.size))
}
