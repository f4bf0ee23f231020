//! A bundle as text and as JSON.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    path::Path,
};

use anyhow::{Context as _, Result, bail};

use mlxcel_artifacts::{
    Blob, Bundle, EmbeddingSpec, GpuNeeds, Manifest, ModelSpec, Packing, PublicKey, SelfTestCase, Signed,
    TargetArtifact, Window,
    entry::{Entry, Parameter, type_text},
};
use serde::Serialize;

/// The bundle for a program: the manifest's fields, and `path`.
pub(crate) fn json(bundle: &Bundle) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Shown<'a> {
        path: String,
        #[serde(flatten)]
        manifest: &'a Manifest,
    }
    let path = bundle.path().display().to_string();
    Ok(serde_json::to_string_pretty(&Shown { path, manifest: bundle.manifest() })? + "\n")
}

/// A file of it or a document, as it is.
pub(crate) fn file(bundle: &Bundle, name: &str) -> Result<String> {
    let bytes = match bundle.read_file(name)? {
        None => bundle.read_document(name)?,
        file => file,
    };
    let Some(bytes) = bytes else {
        let Manifest { files, documents, .. } = bundle.manifest();
        let names: Vec<_> = files.keys().chain(documents.keys()).map(String::as_str).collect();
        bail!(
            "the bundle has no `{}`, expected one of {}\nhint: mlxcel-bundle inspect shows what it has",
            name.escape_debug(),
            names.join(", ")
        );
    };
    String::from_utf8(bytes).with_context(|| {
        format!(
            "cannot show {name}, expected text in utf-8\nhint: mlxcel-bundle inspect says which blob it is"
        )
    })
}

/// That the bundle is whole, and how much that is; and whose it is, as far as that is known.
pub(crate) fn verdict(bundle: &Bundle, verified: Option<&Signed>, signed: Option<&Signed>) -> String {
    let sizes: HashMap<_, _> = bundle.manifest().blobs().map(|(_, b)| (b.digest, b.size)).collect();
    let bytes = Size(sizes.values().sum());
    let origin = match (verified, signed) {
        (Some(signed), _) => format!("ok: signed by the key {}{}", signed.key, comment(signed)),
        (None, Some(signed)) => {
            format!("not checked: it says that the key {} signed it; --key checks that", signed.key)
        }
        (None, None) => "not signed: it is whole, but nothing says who made it".into(),
    };
    format!("ok: {} is whole, {} blobs, {bytes}\n{origin}\n", bundle.display_name(), sizes.len())
}

/// The signer's words, if there are any.
fn comment(Signed { comment, .. }: &Signed) -> String {
    if comment.is_empty() { String::new() } else { format!(": {}", comment.escape_debug()) }
}

/// New keys.
pub(crate) fn keys(secret: &Path, public: &Path, key: &PublicKey) -> String {
    format!(
        "key     {}\nsecret  {}: keep it to yourself\npublic  {}: give it to those who verify\n",
        key.id(),
        secret.display(),
        public.display()
    )
}

/// A new signature.
pub(crate) fn signed(bundle: &Path, signed: &Signed) -> String {
    format!("signed {} with the key {}{}\n", bundle.display(), signed.key, comment(signed))
}

/// The bundle for a person.
pub(crate) fn text(bundle: &Bundle) -> String {
    let Manifest {
        format,
        model,
        family,
        plan,
        compiler,
        targets,
        files,
        weights,
        documents,
        parameters,
        replays,
    } = bundle.manifest();
    let mut out = String::new();
    let mut line = |name: &str, value: &dyn fmt::Display| out += &format!("{name:<11} {value}\n");
    line("bundle", &bundle.display_name());
    line("format", format);
    line("model", model);
    line("family", family);
    let ModelSpec { precision, quant, kv, batch, context, vocab, position_bytes, windows, embedding } = plan;
    let sizes = format!("batch {batch}, context {context}, vocab {vocab}");
    match embedding {
        None => {
            line("plan", &format!("precision {precision}, quant {quant}, kv {kv}"));
            line("", &sizes);
            line("cache", &format!("{} a position", Size(*position_bytes)));
        }
        Some(EmbeddingSpec { width, pooling, normalised }) => {
            line("plan", &format!("precision {precision}, quant {quant}"));
            line("", &sizes);
            let length = if *normalised { ", normalised" } else { "" };
            line("embedding", &format!("{width} numbers, {pooling} of the tokens{length}"));
        }
    }
    for Window { positions, position_bytes } in windows {
        line("", &format!("{} of each of the last {positions}", Size(*position_bytes)));
    }
    line("compiler", &format!("iree {}", compiler.version));
    line("", &compiler.digest);
    let count = |replay: &SelfTestCase| replay.tokens.len();
    match replays.as_slice() {
        [] => line("self-test", &"none recorded"),
        [..] if plan.embedding.is_some() => line("self-test", &format!("{} embeddings", replays.len())),
        [..] => {
            let tokens: usize = replays.iter().map(count).sum();
            line("self-test", &format!("{tokens} tokens after {} prompts", replays.len()));
        }
    }
    out += "\ntargets\n";
    for (name, target) in targets {
        out += &target_text(name, target);
    }
    out += "\nparameters\n";
    out += &parameters_text(parameters);
    out += "\nfiles\n";
    out += &blobs_text(files, "none");
    out += "\nweights\n";
    let none = if bundle.is_packed() {
        "none but the packed ones"
    } else {
        "none: give them when the bundle is run"
    };
    out += &blobs_text(weights, none);
    out += "\ndocuments\n";
    out += &blobs_text(documents, "none: nothing says how it was made");
    out
}

fn target_text(name: &str, target: &TargetArtifact) -> String {
    let TargetArtifact {
        driver,
        arch,
        cpu_features,
        gpu,
        flags,
        build_key,
        vmfb,
        entries,
        step_bytes,
        rewind: _,
        dispatches: _,
        packing,
    } = target;
    let mut out = format!("  {name}\n");
    let mut line = |name: &str, value: &dyn fmt::Display| out += &format!("    {name:<9} {value}\n");
    line("driver", driver);
    if !arch.is_empty() {
        line("cpu", arch);
    }
    if !cpu_features.is_empty() {
        line("needs", &cpu_features.join(" "));
    }
    if let Some(GpuNeeds { compute_capability, ptx }) = gpu {
        line("needs", &format!("compute capability {compute_capability}, PTX {ptx}"));
    }
    line("vmfb", &format!("{}  {}", vmfb.digest, Size(vmfb.size)));
    line("build key", build_key);
    line("step", &format!("reads {} of weights", Size(*step_bytes)));
    if let Some(Packing { build_key: _, vmfb, weights, made_from, steps }) = packing {
        let results: Vec<_> = steps.iter().flat_map(|step| &step.results).collect();
        let bytes: u64 = results.iter().filter_map(|result| result.bytes()).map(|bytes| bytes as u64).sum();
        line("packing", &format!("{}  {}", vmfb.digest, Size(vmfb.size)));
        match weights {
            Some(blob) => line("packed", &format!("{}  {}", blob.digest, Size(blob.size))),
            None => line("packed", &format!("not yet: {} tensors, {}", results.len(), Size(bytes))),
        }
        for (index, (file, blob)) in made_from.iter().enumerate() {
            line(if index == 0 { "from" } else { "" }, &format!("{}  {file}", blob.digest));
        }
    }
    for (i, flag) in flags.iter().enumerate() {
        line(if i == 0 { "flags" } else { "" }, flag);
    }
    for (i, entry) in entries_text(entries).into_iter().enumerate() {
        line(if i == 0 { "entries" } else { "" }, &entry);
    }
    out
}

fn entries_text(entries: &[Entry]) -> Vec<String> {
    let width = entries.iter().map(|e| e.name.len()).max().unwrap_or(0);
    let text = |Entry { name, role: _, arguments, results }: &Entry| {
        let takes = arguments.iter().map(|a| format!("{} {}", a.kind, type_text(a.dtype, &a.shape)));
        let gives = results.iter().map(|r| format!("{} {}", r.kind, type_text(r.dtype, &r.shape)));
        let (takes, gives): (Vec<_>, Vec<_>) = (takes.collect(), gives.collect());
        format!("{name:<width$}  ({}) -> ({})", takes.join(", "), gives.join(", "))
    };
    entries.iter().map(text).collect()
}

fn parameters_text(parameters: &[Parameter]) -> String {
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
        format!("  {name:<5} {count:>6} {tensors}  {}\n", Size(total))
    };
    let mut out: String = dtypes.iter().map(|(name, (count, total))| row(name, *count, *total)).collect();
    if dtypes.len() != 1 {
        out += &row("all", parameters.len(), parameters.iter().map(bytes).sum());
    }
    if let Some(largest) = parameters.iter().max_by_key(|p| bytes(p)) {
        let shape = type_text(largest.dtype, &largest.shape);
        out += &format!("  the largest is {} {shape}\n", largest.name);
    }
    out
}

fn blobs_text(blobs: &BTreeMap<String, Blob>, none: &str) -> String {
    if blobs.is_empty() {
        return format!("  {none}\n");
    }
    let width = blobs.keys().map(|name| name.chars().count()).max().unwrap_or(0);
    let text =
        |(name, blob): (&String, &Blob)| format!("  {name:<width$}  {}  {}\n", blob.digest, Size(blob.size));
    blobs.iter().map(text).collect()
}

/// A number of bytes: `412.1 KiB (421990 bytes)`.
pub(crate) struct Size(pub(crate) u64);

impl Size {
    /// Without the exact number: `412.1 KiB`.
    pub(crate) fn short(bytes: u64) -> String {
        let text = Self(bytes).to_string();
        text.split(" (").next().unwrap_or_default().to_owned()
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["KiB", "MiB", "GiB", "TiB"];
        let Some(unit) = (0..4).rev().find(|i| self.0 >> (10 * (i + 1)) > 0) else {
            return write!(f, "{} bytes", self.0);
        };
        let value = self.0 as f64 / (1u64 << (10 * (unit + 1))) as f64;
        write!(f, "{value:.1} {} ({} bytes)", units[unit], self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let sizes = [0, 1023, 1024, 421_990, 2_471_628_800].map(|n| Size(n).to_string());
        assert_eq!(
            sizes,
            [
                "0 bytes",
                "1023 bytes",
                "1.0 KiB (1024 bytes)",
                "412.1 KiB (421990 bytes)",
                "2.3 GiB (2471628800 bytes)"
            ]
        );
    }
}
