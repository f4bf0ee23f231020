//! What differs between two bundles, in words.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Display},
};

use mlxcel_artifacts::{
    Blob, Bundle, Compiler, Digest, EmbeddingSpec, Error, GpuNeeds, Manifest, ModelSpec, Packing, Signed,
    TargetArtifact, Traffic, Window,
    entry::{ArgumentSpec, Entry, PackStep, Parameter, ResultSpec, type_text},
};

use crate::show::Size;

/// Of lists that differ in many places, so many are shown.
const SHOWN: usize = 8;

/// What differs, with what the first bundle has and then the second.
#[derive(Debug, Default)]
pub(crate) struct Differences(Vec<(String, String)>);

impl Display for Differences {
    /// A line for each; parts that are alike in name follow each other.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|(what, _)| what.chars().count()).max().unwrap_or(0);
        self.0.iter().try_for_each(|(what, text)| writeln!(f, "{what:<width$}  {text}"))
    }
}

impl Differences {
    /// Those of two bundles.
    ///
    /// # Errors
    /// When a signature is none.
    pub(crate) fn of(a: &Bundle, b: &Bundle) -> Result<Self, Error> {
        let mut found = Self::of_manifests(a.manifest(), b.manifest());
        let text = |signed: Option<Signed>| match signed {
            None => "none".to_owned(),
            Some(Signed { key, comment }) if comment.is_empty() => format!("by the key {key}"),
            Some(Signed { key, comment }) => format!("by the key {key}: {}", comment.escape_debug()),
        };
        found.value("signature", &text(a.signed()?), &text(b.signed()?));
        Ok(found)
    }

    fn of_manifests(a: &Manifest, b: &Manifest) -> Self {
        // Every field by name, so that a new one cannot be forgotten here.
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
        } = a;
        let mut found = Self::default();
        found.value("format", format, &b.format);
        found.value("model", model, &b.model);
        found.value("family", family, &b.family);
        found.plan(plan, &b.plan);
        let Compiler { version, digest } = compiler;
        found.value("compiler", version, &b.compiler.version);
        if *digest != b.compiler.digest {
            found.add(
                "compiler",
                format!("another build of it: {}, {}", brief(digest), brief(&b.compiler.digest)),
            );
        }
        found.parameters("parameters", parameters, &b.parameters);
        found.maps("target", targets, &b.targets, |found, name, a, b| found.target(name, a, b));
        found.maps("file", files, &b.files, |found, name, a, b| found.blob(&format!("file {name}"), a, b));
        found.maps("weights", weights, &b.weights, |found, name, a, b| {
            found.blob(&format!("weights {name}"), a, b);
        });
        match (replays.as_slice(), b.replays.as_slice()) {
            (a, b) if a == b => {}
            (_, []) => found.add("self-test", "only in the first"),
            ([], _) => found.add("self-test", "only in the second"),
            _ => found.add("self-test", "other prompts or answers"),
        }
        if found.is_empty() {
            // They tell of every other difference too.
            found.maps("document", documents, &b.documents, |found, name, a, b| {
                found.blob(&format!("document {name}"), a, b);
            });
        }
        found
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, what: impl Into<String>, text: impl Into<String>) {
        self.0.push((what.into(), text.into()));
    }

    fn value<T: PartialEq + Display>(&mut self, what: &str, a: &T, b: &T) {
        if a != b {
            self.add(what, format!("{a}, {b}"));
        }
    }

    fn plan(&mut self, a: &ModelSpec, b: &ModelSpec) {
        let ModelSpec { precision, quant, kv, batch, context, vocab, position_bytes, windows, embedding } = a;
        self.value("precision", precision, &b.precision);
        self.value("quant", quant, &b.quant);
        self.value("kv", kv, &b.kv);
        self.value("batch", batch, &b.batch);
        self.value("context", context, &b.context);
        self.value("vocabulary", vocab, &b.vocab);
        self.value(
            "cache",
            &format!("{position_bytes} bytes a position"),
            &format!("{} bytes a position", b.position_bytes),
        );
        let text = |windows: &[Window]| {
            let each = |Window { positions, position_bytes }: &Window| {
                format!("{positions} of {position_bytes} bytes")
            };
            or_none(windows.iter().map(each).collect())
        };
        self.value("windows", &text(windows), &text(&b.windows));
        let text = |embedding: &Option<EmbeddingSpec>| match embedding {
            None => "none".to_owned(),
            Some(EmbeddingSpec { width, pooling, normalised }) => {
                format!("{width} numbers, {pooling}{}", if *normalised { ", normalised" } else { "" })
            }
        };
        self.value("embedding", &text(embedding), &text(&b.embedding));
    }

    fn target(&mut self, name: &str, a: &TargetArtifact, b: &TargetArtifact) {
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
            rewind,
            dispatches,
            packing,
        } = a;
        let what = format!("target {name}");
        let of = |part: &str| format!("{what} {part}");
        self.value(&of("driver"), driver, &b.driver);
        self.value(&of("cpu"), arch, &b.arch);
        self.lists(&of("cpu features"), cpu_features, &b.cpu_features);
        let needs = |gpu: &Option<GpuNeeds>| match gpu {
            None => "none".to_owned(),
            Some(GpuNeeds { compute_capability, ptx }) => {
                format!("compute capability {compute_capability}, PTX {ptx}")
            }
        };
        self.value(&of("gpu"), &needs(gpu), &needs(&b.gpu));
        self.lists(&of("flags"), flags, &b.flags);
        // Whatever else it is made of is the program: the same flags and compiler, and other code.
        if *build_key != b.build_key && *flags == b.flags {
            self.add(
                of("build key"),
                format!("made of something else: {}, {}", brief(build_key), brief(&b.build_key)),
            );
        }
        self.blob(&of("vmfb"), vmfb, &b.vmfb);
        let by_name = |entries: &[Entry]| -> BTreeMap<String, String> {
            entries.iter().map(|entry| (entry.name.clone(), signature(entry))).collect()
        };
        let (ours, theirs) = (by_name(entries), by_name(&b.entries));
        self.maps(&of("entry"), &ours, &theirs, |found, name, a, b| {
            found.value(&of(&format!("entry {name}")), a, b)
        });
        self.value(
            &of("step"),
            &format!("reads {}", Size(*step_bytes)),
            &format!("reads {}", Size(b.step_bytes)),
        );
        let text = |rewind: &Option<usize>| rewind.map_or("any".into(), |positions| positions.to_string());
        self.value(&of("rewind"), &text(rewind), &text(&b.rewind));
        let moved = |dispatches: &BTreeMap<String, Traffic>| {
            let each = |(name, Traffic { bytes, position_bytes }): (&String, &Traffic)| {
                format!("{name}: {bytes} + {position_bytes} bytes")
            };
            dispatches.iter().map(each).collect::<Vec<_>>()
        };
        self.lists(&of("dispatches"), &moved(dispatches), &moved(&b.dispatches));
        match (packing, &b.packing) {
            (None, None) => {}
            (Some(_), None) => self.add(of("packing"), "only in the first"),
            (None, Some(_)) => self.add(of("packing"), "only in the second"),
            (Some(a), Some(b)) => self.packing(&of("packing"), a, b),
        }
    }

    fn packing(&mut self, what: &str, a: &Packing, b: &Packing) {
        let Packing { build_key, vmfb, weights, made_from, steps } = a;
        if *build_key != b.build_key && *vmfb == b.vmfb {
            self.add(
                what,
                format!("the same code of something else: {}, {}", brief(build_key), brief(&b.build_key)),
            );
        }
        self.blob(&format!("{what} vmfb"), vmfb, &b.vmfb);
        match (weights, &b.weights) {
            (None, None) => {}
            (Some(_), None) => self.add(format!("{what} weights"), "only the first has packed ones"),
            (None, Some(_)) => self.add(format!("{what} weights"), "only the second has packed ones"),
            (Some(a), Some(b)) => self.blob(&format!("{what} weights"), a, b),
        }
        let from = |files: &BTreeMap<String, Blob>| {
            or_none(files.iter().map(|(name, blob)| format!("{name} {}", brief(&blob.digest))).collect())
        };
        self.value(&format!("{what} from"), &from(made_from), &from(&b.made_from));
        let texts = |steps: &[PackStep]| {
            let each = |PackStep { entry, sources, results }: &PackStep| {
                let results: Vec<_> =
                    results.iter().map(|p| format!("{} {}", p.name, type_text(p.dtype, &p.shape))).collect();
                format!(
                    "{} {} -> {}",
                    entry.as_deref().unwrap_or("keep"),
                    sources.join(" "),
                    results.join(" ")
                )
            };
            steps.iter().map(each).collect::<Vec<_>>()
        };
        self.lists(&format!("{what} steps"), &texts(steps), &texts(&b.steps));
    }

    fn blob(&mut self, what: &str, a: &Blob, b: &Blob) {
        if a == b {
            return;
        }
        let size = if a.size == b.size {
            format!("of {}", Size(a.size))
        } else {
            format!("{}, {}", Size(a.size), Size(b.size))
        };
        self.add(what, format!("other bytes, {size}: {}, {}", brief(&a.digest), brief(&b.digest)));
    }

    fn parameters(&mut self, what: &str, a: &[Parameter], b: &[Parameter]) {
        let by_name = |list: &[Parameter]| {
            list.iter()
                .map(|parameter| (parameter.name.clone(), parameter.clone()))
                .collect::<BTreeMap<_, _>>()
        };
        let (a, b) = (by_name(a), by_name(b));
        let (mut others, mut types) = (vec![], vec![]);
        self.maps(what, &a, &b, |_, name, a, b| {
            let Parameter { name: _, dtype, shape, source, aliases: _ } = a;
            if (dtype, shape) != (&b.dtype, &b.shape) {
                types.push(format!("{name}: {}, {}", type_text(*dtype, shape), type_text(b.dtype, &b.shape)));
            } else if source.is_some() && b.source.is_some() && *source != b.source {
                others.push(name.to_owned());
            }
        });
        for (kind, found) in [("other types", types), ("other bytes", others)] {
            if !found.is_empty() {
                self.add(what, format!("{kind}: {}", listed(&found)));
            }
        }
    }

    /// What only one of two maps has, and of what both have what `compare` finds.
    fn maps<T>(
        &mut self,
        what: &str,
        a: &BTreeMap<String, T>,
        b: &BTreeMap<String, T>,
        mut compare: impl FnMut(&mut Self, &str, &T, &T),
    ) {
        let only = |a: &BTreeMap<String, T>, b: &BTreeMap<String, T>| {
            a.keys().filter(|name| !b.contains_key(*name)).cloned().collect::<Vec<_>>()
        };
        for (place, names) in [("first", only(a, b)), ("second", only(b, a))] {
            if !names.is_empty() {
                self.add(what, format!("only in the {place}: {}", listed(&names)));
            }
        }
        for (name, a) in a {
            if let Some(b) = b.get(name) {
                compare(self, name, a, b);
            }
        }
    }

    /// What only one of two lists has, or that their orders differ.
    fn lists(&mut self, what: &str, a: &[String], b: &[String]) {
        let [ours, theirs] = [a, b].map(|list| list.iter().collect::<BTreeSet<_>>());
        let only = |list: &[String], other: &BTreeSet<&String>| {
            list.iter().filter(|item| !other.contains(item)).cloned().collect::<Vec<_>>()
        };
        for (place, items) in [("first", only(a, &theirs)), ("second", only(b, &ours))] {
            if !items.is_empty() {
                self.add(what, format!("only in the {place}: {}", listed(&items)));
            }
        }
        if a != b && ours == theirs {
            self.add(what, "in another order");
        }
    }
}

/// Types of what an entry takes and gives.
fn signature(entry: &Entry) -> String {
    let Entry { name: _, role: _, arguments, results } = entry;
    let takes = arguments
        .iter()
        .map(|ArgumentSpec { kind, dtype, shape }| format!("{kind} {}", type_text(*dtype, shape)));
    let gives = results
        .iter()
        .map(|ResultSpec { kind, dtype, shape }| format!("{kind} {}", type_text(*dtype, shape)));
    let (takes, gives): (Vec<_>, Vec<_>) = (takes.collect(), gives.collect());
    format!("({}) -> ({})", takes.join(", "), gives.join(", "))
}

/// Enough of a digest to tell it from others.
fn brief(digest: &Digest) -> String {
    digest.hex().chars().take(12).collect()
}

fn or_none(items: Vec<String>) -> String {
    if items.is_empty() { "none".into() } else { items.join("; ") }
}

fn listed(items: &[String]) -> String {
    let more = items.len().saturating_sub(SHOWN);
    let dots = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{dots}", items[..items.len() - more].join(", "))
}
