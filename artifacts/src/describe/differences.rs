//! The differences between two bundles, in words.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Display},
};

use super::{byte_count::ByteCount, describe_serving, describe_signature};
use crate::{
    blob::Blob,
    bundle::{Bundle, sign::SignatureInfo},
    digest::Digest,
    error::Error,
    manifest::{
        CalibratedBy, Compiler, EmbeddingSpec, GpuNeeds, Manifest, ModelSpec, Packing, Serving,
        TargetArtifact, Traffic, Window,
        entry::{Calibration, CalibrationStep, Entry, PackCall, PackStep, Parameter},
        program::ProgramSpec,
    },
    tensor::type_text,
};

/// The most items of a list that are shown.
const SHOWN_ITEMS: usize = 8;

/// Hex digits that tell one digest from another.
const SHORT_DIGEST_CHARS: usize = 12;

/// Differences, each with the field's name, the first bundle's value and then the second's.
#[derive(Debug, Default)]
pub struct Differences(Vec<(String, String)>);

impl Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|(field, _)| field.chars().count()).max().unwrap_or(0);
        self.0.iter().try_for_each(|(field, text)| writeln!(f, "{field:<width$}  {text}"))
    }
}

impl Differences {
    /// Compares two bundles.
    ///
    /// # Errors
    /// A bundle's signature is malformed.
    pub fn between(a: &Bundle, b: &Bundle) -> Result<Self, Error> {
        let mut found = Self::default();
        found.manifests(a.manifest(), b.manifest());
        let text = |signed: Option<SignatureInfo>| match signed {
            None => "none".to_owned(),
            Some(SignatureInfo { key, comment }) if comment.is_empty() => format!("by key {key}"),
            Some(SignatureInfo { key, comment }) => format!("by key {key}: {}", comment.escape_debug()),
        };
        found.values("signature", &text(a.signature_info()?), &text(b.signature_info()?));
        Ok(found)
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns each field that differs, with a text that says how.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(field, text)| (field.as_str(), text.as_str()))
    }

    fn manifests(&mut self, a: &Manifest, b: &Manifest) {
        // No `..` here and below, so that a new field is not forgotten.
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
        } = a;
        self.values("format", format, &b.format);
        self.values("kind", kind, &b.kind);
        self.values("model", model, &b.model);
        self.values("family", family, &b.family);
        if let (Some(a), Some(b)) = (plan, &b.plan) {
            self.models(a, b);
        }
        if let (Some(a), Some(b)) = (program, &b.program) {
            self.programs(a, b);
        }
        self.compilers(compiler, &b.compiler);
        self.parameters(parameters, &b.parameters);
        self.maps("target", targets, &b.targets, |found, name, a, b| {
            found.targets(&format!("target {name}"), a, b);
        });
        self.maps("file", files, &b.files, |found, name, a, b| found.blobs(&format!("file {name}"), a, b));
        self.maps("weights", weights, &b.weights, |found, name, a, b| {
            found.blobs(&format!("weights {name}"), a, b);
        });
        self.self_tests(replays, &b.replays);
        self.self_tests(goldens, &b.goldens);
        if self.is_empty() {
            // Documents list the other files, so they differ whenever anything else does.
            self.maps("document", documents, &b.documents, |found, name, a, b| {
                found.blobs(&format!("document {name}"), a, b);
            });
        }
    }

    fn models(&mut self, a: &ModelSpec, b: &ModelSpec) {
        let ModelSpec {
            precision,
            quant,
            cache_type,
            batch,
            context,
            vocab,
            position_bytes,
            windows,
            embedding,
        } = a;
        self.values("precision", precision, &b.precision);
        self.values("quant", quant, &b.quant);
        self.values("kv", cache_type, &b.cache_type);
        self.values("batch", &optional(batch), &optional(&b.batch));
        self.values("context", context, &b.context);
        self.values("vocabulary", vocab, &b.vocab);
        let text = |bytes: &u64| format!("{bytes} bytes per position");
        self.values("cache", &text(position_bytes), &text(&b.position_bytes));
        let text = |windows: &[Window]| {
            let text = |Window { positions, position_bytes }: &Window| {
                format!("{positions} positions of {position_bytes} bytes")
            };
            join_or_none(windows.iter().map(text))
        };
        self.values("windows", &text(windows), &text(&b.windows));
        let text = |embedding: &Option<EmbeddingSpec>| match embedding {
            None => "none".to_owned(),
            Some(EmbeddingSpec { width, pooling, normalized }) => {
                format!(
                    "{width} dimensions, {pooling} pooling{}",
                    if *normalized { ", normalized" } else { "" }
                )
            }
        };
        self.values("embedding", &text(embedding), &text(&b.embedding));
    }

    fn programs(&mut self, a: &ProgramSpec, b: &ProgramSpec) {
        let ProgramSpec { stablehlo, source } = a;
        let text = |version: &Option<String>| version.clone().unwrap_or_else(|| "text".into());
        self.values("stablehlo", &text(stablehlo), &text(&b.stablehlo));
        if *source != b.source {
            self.add("program", format!("different: {}", arrow(short(source), short(&b.source))));
        }
    }

    fn compilers(&mut self, a: &Compiler, b: &Compiler) {
        let Compiler { version, digest } = a;
        self.values("compiler", version, &b.version);
        if *digest != b.digest {
            self.add("compiler", format!("different builds: {}", arrow(short(digest), short(&b.digest))));
        }
    }

    fn self_tests<C: PartialEq>(&mut self, a: &[C], b: &[C]) {
        match (a, b) {
            (a, b) if a == b => {}
            (_, []) => self.add("self-test", "only in the first"),
            ([], _) => self.add("self-test", "only in the second"),
            _ => self.add("self-test", "different cases or answers"),
        }
    }

    fn targets(&mut self, target: &str, a: &TargetArtifact, b: &TargetArtifact) {
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
            rewind,
            dispatches,
            packing,
        } = a;
        let field = |name: &str| format!("{target} {name}");
        self.values(&field("driver"), driver, &b.driver);
        self.values(&field("cpu"), arch, &b.arch);
        self.lists(&field("cpu features"), cpu_features, &b.cpu_features);
        let text = |gpu: &Option<GpuNeeds>| match gpu {
            None => "none".to_owned(),
            Some(GpuNeeds { compute_capability, ptx }) => {
                format!("compute capability {compute_capability}, PTX {ptx}")
            }
        };
        self.values(&field("gpu"), &text(gpu), &text(&b.gpu));
        self.lists(&field("flags"), flags, &b.flags);
        // With equal flags, the program differs or the compiler does.
        if *build_key != b.build_key && *flags == b.flags {
            let keys = arrow(short(build_key), short(&b.build_key));
            self.add(field("build key"), format!("different program or compiler: {keys}"));
        }
        self.blobs(&field("vmfb"), vmfb, &b.vmfb);
        self.entries(&field("entry"), entries, &b.entries);
        let text = |serving: &Option<Serving>, entries: &[Entry]| {
            serving.as_ref().map_or("none".into(), |serving| describe_serving(serving, entries))
        };
        self.values(&field("serving"), &text(serving, entries), &text(&b.serving, &b.entries));
        let text = |bytes: &u64| ByteCount(*bytes).to_string();
        self.values(&field("step reads"), &text(step_bytes), &text(&b.step_bytes));
        self.values(&field("rewind"), &optional(rewind), &optional(&b.rewind));
        self.dispatches(&field("dispatches"), dispatches, &b.dispatches);
        match (packing, &b.packing) {
            (None, None) => {}
            (Some(_), None) => self.add(field("packing"), "only in the first"),
            (None, Some(_)) => self.add(field("packing"), "only in the second"),
            (Some(a), Some(b)) => self.packings(&field("packing"), a, b),
        }
    }

    fn entries(&mut self, field: &str, a: &[Entry], b: &[Entry]) {
        let by_name = |entries: &[Entry]| -> BTreeMap<String, String> {
            entries.iter().map(|entry| (entry.name.clone(), describe_signature(entry))).collect()
        };
        self.maps(field, &by_name(a), &by_name(b), |found, name, a, b| {
            found.values(&format!("{field} {name}"), a, b);
        });
    }

    fn dispatches(&mut self, field: &str, a: &BTreeMap<String, Traffic>, b: &BTreeMap<String, Traffic>) {
        let lines = |dispatches: &BTreeMap<String, Traffic>| {
            let line = |(name, Traffic { bytes, position_bytes }): (&String, &Traffic)| {
                format!("{name}: {bytes} + {position_bytes} bytes per position")
            };
            dispatches.iter().map(line).collect::<Vec<_>>()
        };
        self.lists(field, &lines(a), &lines(b));
    }

    fn packings(&mut self, field: &str, a: &Packing, b: &Packing) {
        let Packing { build_key, vmfb, weights, made_from, calibrated_by, calibration, steps } = a;
        if *build_key != b.build_key && *vmfb == b.vmfb {
            let keys = arrow(short(build_key), short(&b.build_key));
            self.add(field, format!("equal code from different inputs: {keys}"));
        }
        self.blobs(&format!("{field} vmfb"), vmfb, &b.vmfb);
        match (weights, &b.weights) {
            (None, None) => {}
            (Some(_), None) => self.add(format!("{field} weights"), "packed only in the first"),
            (None, Some(_)) => self.add(format!("{field} weights"), "packed only in the second"),
            (Some(a), Some(b)) => self.blobs(&format!("{field} weights"), a, b),
        }
        let text = |files: &BTreeMap<String, Blob>| {
            join_or_none(files.iter().map(|(name, blob)| format!("{name} {}", short(&blob.digest))))
        };
        self.values(&format!("{field} from"), &text(made_from), &text(&b.made_from));
        let by = |by: &Option<CalibratedBy>| {
            let text = |CalibratedBy { text, tokens, moments }: &CalibratedBy| {
                format!("{tokens} tokens of {}, moments {}", short(text), short(moments))
            };
            by.as_ref().map_or_else(|| "none".to_owned(), text)
        };
        self.values(&format!("{field} calibrated by"), &by(calibrated_by), &by(&b.calibrated_by));
        let collected = |calibration: &Option<Calibration>| {
            let steps = calibration.iter().flat_map(|calibration| &calibration.steps);
            let line = |CalibrationStep { entry, sources, moments }: &CalibrationStep| {
                let moments: Vec<_> = moments.iter().map(|moments| moments.name.as_str()).collect();
                format!("{entry} {} -> {}", sources.join(" "), moments.join(" "))
            };
            let sizes =
                |Calibration { window, hidden, steps: _ }: &Calibration| format!("{window} x {hidden}");
            calibration.iter().map(sizes).chain(steps.map(line)).collect::<Vec<_>>()
        };
        self.lists(&format!("{field} calibration"), &collected(calibration), &collected(&b.calibration));
        let lines = |steps: &[PackStep]| steps.iter().map(step_text).collect::<Vec<_>>();
        self.lists(&format!("{field} steps"), &lines(steps), &lines(&b.steps));
    }

    fn blobs(&mut self, field: &str, a: &Blob, b: &Blob) {
        if a == b {
            return;
        }
        let digests = arrow(short(&a.digest), short(&b.digest));
        let sizes = if a.size == b.size {
            format!("equal size {}", ByteCount(a.size))
        } else {
            arrow(ByteCount(a.size), ByteCount(b.size))
        };
        self.add(field, format!("different content: {digests}, {sizes}"));
    }

    fn parameters(&mut self, a: &[Parameter], b: &[Parameter]) {
        let by_name = |list: &[Parameter]| -> BTreeMap<String, Parameter> {
            list.iter().map(|parameter| (parameter.name.clone(), parameter.clone())).collect()
        };
        let (mut types, mut contents) = (vec![], vec![]);
        self.maps("parameters", &by_name(a), &by_name(b), |_, name, a, b| {
            let Parameter { name: _, dtype, shape, source, aliases: _ } = a;
            if (dtype, shape) != (&b.dtype, &b.shape) {
                let change = arrow(type_text(*dtype, shape), type_text(b.dtype, &b.shape));
                types.push(format!("{name} {change}"));
            } else if source.is_some() && b.source.is_some() && *source != b.source {
                contents.push(name.to_owned());
            }
        });
        for (kind, names) in [("different types", types), ("different content", contents)] {
            if !names.is_empty() {
                self.add("parameters", format!("{kind}: {}", join_some(&names)));
            }
        }
    }

    /// Adds the names that only one of two maps has, and what `compare` finds for the others.
    fn maps<T>(
        &mut self,
        field: &str,
        a: &BTreeMap<String, T>,
        b: &BTreeMap<String, T>,
        mut compare: impl FnMut(&mut Self, &str, &T, &T),
    ) {
        let only = |a: &BTreeMap<String, T>, b: &BTreeMap<String, T>| {
            a.keys().filter(|name| !b.contains_key(*name)).cloned().collect::<Vec<_>>()
        };
        self.only_in(field, [only(a, b), only(b, a)]);
        for (name, a) in a {
            if let Some(b) = b.get(name) {
                compare(self, name, a, b);
            }
        }
    }

    /// Adds the items that only one of two lists has, or that the lists have different orders.
    fn lists(&mut self, field: &str, a: &[String], b: &[String]) {
        let [in_a, in_b] = [a, b].map(|list| list.iter().collect::<BTreeSet<_>>());
        let only = |list: &[String], other: &BTreeSet<&String>| {
            list.iter().filter(|item| !other.contains(item)).cloned().collect::<Vec<_>>()
        };
        self.only_in(field, [only(a, &in_b), only(b, &in_a)]);
        if a != b && in_a == in_b {
            self.add(field, "different order");
        }
    }

    fn only_in(&mut self, field: &str, items: [Vec<String>; 2]) {
        for (bundle, items) in ["first", "second"].into_iter().zip(items) {
            if !items.is_empty() {
                self.add(field, format!("only in the {bundle}: {}", join_some(&items)));
            }
        }
    }

    fn values<T: PartialEq + Display>(&mut self, field: &str, a: &T, b: &T) {
        if a != b {
            self.add(field, arrow(a, b));
        }
    }

    fn add(&mut self, field: impl Into<String>, text: impl Into<String>) {
        self.0.push((field.into(), text.into()));
    }
}

/// Shows the first bundle's value and the second's.
fn arrow(a: impl Display, b: impl Display) -> String {
    format!("{a} → {b}")
}

/// Shortens a digest to what tells it from others.
fn short(digest: &Digest) -> String {
    digest.hex().chars().take(SHORT_DIGEST_CHARS).collect()
}

/// Returns a step of packing in one line.
fn step_text(step: &PackStep) -> String {
    let PackStep { entry, sources, calibrated_entry, moments, calls, results } = step;
    let sources = sources.join(" ");
    let made = match (entry, calls.as_slice()) {
        (Some(entry), _) => format!("{entry} {sources}"),
        (None, []) => format!("keep {sources}"),
        (None, calls) => {
            let text = |PackCall { entry, sources, shared, parts }: &PackCall| {
                let whole = shared.iter().map(|name| format!(" with {name}"));
                format!("{entry} {} in {parts} parts{}", sources.join(" "), whole.collect::<String>())
            };
            calls.iter().map(text).collect::<Vec<_>>().join(", ")
        }
    };
    let calibrated = calibrated_entry.iter().zip(moments);
    let calibrated = calibrated.map(|(entry, moments)| format!(", or {entry} with {moments}"));
    let results = results.iter().map(|p| format!("{} {}", p.name, type_text(p.dtype, &p.shape)));
    let results: Vec<_> = results.collect();
    format!("{made}{} -> {}", calibrated.collect::<String>(), results.join(" "))
}

fn join_or_none(items: impl Iterator<Item = String>) -> String {
    let items: Vec<_> = items.collect();
    if items.is_empty() { "none".into() } else { items.join("; ") }
}

/// Joins the first [`SHOWN_ITEMS`] items, and counts the rest.
fn join_some(items: &[String]) -> String {
    let more = items.len().saturating_sub(SHOWN_ITEMS);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", items[..items.len() - more].join(", "))
}

/// Returns a number of an older format, which newer ones do not have.
fn optional(value: &Option<usize>) -> String {
    value.map_or("none".into(), |value| value.to_string())
}
