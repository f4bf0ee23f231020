//! Provenance of a bundle: an in-toto statement (<https://in-toto.io/Statement/v1>) with SLSA's predicate
//! (<https://slsa.dev/provenance/v1>).

use std::collections::BTreeMap;

use mlxcel_artifacts::{BundleKind, Compiler, Digest, Manifest};
use serde::Serialize;

use crate::{
    documents::program::{CRATES, REPOSITORY, VERSION},
    hub::{
        digest::HubDigest,
        snapshot::{Snapshot, SnapshotFile},
    },
    input_bits::InputBits,
    model::source::WeightSource,
};

/// Options of a build that are recorded besides those in the manifest. None names a path on this machine.
pub(crate) struct ExternalParameters<'p> {
    pub(crate) targets: &'p [String],
    pub(crate) weights: &'p WeightSource,
    pub(crate) input_bits: Option<InputBits>,
    pub(crate) chunk: Option<usize>,
    pub(crate) separate_kernels: bool,
    pub(crate) pack_elements: Option<usize>,
}

/// A file that a bundle was made from.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    pub(crate) name: String,
    /// Digest of the file before it was copied into the bundle.
    pub(crate) digest: Digest,
}

impl ExternalParameters<'_> {
    /// Returns the options by name.
    pub(crate) fn recorded(&self) -> BTreeMap<&'static str, String> {
        let Self { targets, weights, input_bits, chunk, separate_kernels, pack_elements } = self;
        let weights = match weights {
            WeightSource::None => "none".to_owned(),
            WeightSource::Random(seed) => format!("random:{seed}"),
            WeightSource::Folder(_) | WeightSource::Gguf(_) | WeightSource::Model => "files".to_owned(),
        };
        let mut recorded = BTreeMap::from([("weights", weights), ("targets", targets.join(","))]);
        recorded.extend(input_bits.map(|bits| ("input-bits", bits.to_string())));
        recorded.extend(chunk.map(|chunk| ("chunk", chunk.to_string())));
        recorded.extend(pack_elements.map(|elements| ("pack-elements", elements.to_string())));
        recorded.extend(separate_kernels.then(|| ("separate-kernels", "true".to_owned())));
        recorded
    }
}

/// An in-toto statement about a bundle.
#[derive(Serialize)]
pub(super) struct Statement {
    #[serde(rename = "_type")]
    kind: &'static str,
    /// Filled in by [`mlxcel_artifacts::with_file_list`].
    subject: [Resource; 0],
    #[serde(rename = "predicateType")]
    predicate_type: &'static str,
    predicate: Predicate,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Predicate {
    build_definition: BuildDefinition,
    run_details: RunDetails,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BuildDefinition {
    build_type: String,
    external_parameters: BTreeMap<&'static str, String>,
    internal_parameters: BTreeMap<String, InternalParameters>,
    resolved_dependencies: Vec<Resource>,
}

/// How a target was compiled.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InternalParameters {
    flags: Vec<String>,
    build_key: String,
}

#[derive(Serialize)]
struct RunDetails {
    builder: Builder,
}

#[derive(Serialize)]
struct Builder {
    id: &'static str,
    version: BTreeMap<&'static str, String>,
}

/// in-toto's `ResourceDescriptor`.
#[derive(Serialize)]
struct Resource {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    digest: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Annotations>,
}

/// What is recorded of a file of the hub beside its digests.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Annotations {
    size: u64,
    /// The kind of the digest that the hub states. All digests are of the bytes that were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    stated_by_hub: Option<&'static str>,
}

impl Resource {
    fn file(name: impl Into<String>, digest: &Digest) -> Self {
        Self {
            name: Some(name.into()),
            uri: None,
            digest: [("blake3", digest.hex())].into(),
            annotations: None,
        }
    }

    /// Lists a model of the hub: its commit, then each of its files.
    ///
    /// The URL is that of no server, because mirrors and the cache have the same bytes.
    fn of_hub(snapshot: &Snapshot) -> Vec<Self> {
        let Snapshot { name, commit, files, folder: _ } = snapshot;
        let uri = format!("pkg:huggingface/{}@{commit}", name.repo());
        let repository = Self {
            name: Some(name.repo().to_owned()),
            uri: Some(uri.clone()),
            digest: [("gitCommit", commit.clone())].into(),
            annotations: None,
        };
        let file = |SnapshotFile { name, stated, computed }: &SnapshotFile| {
            let mut digest = BTreeMap::from([("sha256", computed.sha256.clone())]);
            digest.extend(stated.as_ref().map(|stated| (stated.kind(), stated.hex().to_owned())));
            let stated_by_hub = stated.as_ref().map(HubDigest::kind);
            let annotations = Some(Annotations { size: computed.size, stated_by_hub });
            Self { name: Some(name.clone()), uri: Some(format!("{uri}#{name}")), digest, annotations }
        };
        [repository].into_iter().chain(files.iter().map(file)).collect()
    }
}

/// Returns the statement about a bundle that was built with `options` from these files, which may be those of a model of
/// the hub.
pub(super) fn statement(
    manifest: &Manifest,
    options: BTreeMap<&'static str, String>,
    sources: &[SourceFile],
    snapshot: Option<&Snapshot>,
) -> Statement {
    let Manifest {
        kind, model, family, plan, compiler: Compiler { version, digest }, targets, files, ..
    } = manifest;
    let mut external = options;
    let subject = match kind {
        BundleKind::Model => "model",
        BundleKind::Program => "program",
    };
    external.insert(subject, model.clone());
    external.extend(snapshot.map(|snapshot| ("hub", snapshot.name.to_string())));
    if let Some(plan) = plan {
        external.extend([
            ("family", family.clone()),
            ("precision", plan.precision.to_string()),
            ("quant", plan.quant.to_string()),
            ("kv", plan.cache_type.to_string()),
            ("context", plan.context.to_string()),
        ]);
    }
    let internal = targets.iter().map(|(name, target)| {
        let internal =
            InternalParameters { flags: target.flags.clone(), build_key: target.build_key.to_string() };
        (name.clone(), internal)
    });
    let compiler = Resource {
        name: Some("iree-compile".into()),
        uri: Some(format!("pkg:pypi/iree-base-compiler@{version}")),
        digest: [("blake3", digest.hex())].into(),
        annotations: None,
    };
    let crates = CRATES.iter().map(|(name, version, sha256)| Resource {
        name: None,
        uri: Some(format!("pkg:cargo/{name}@{version}")),
        digest: [("sha256", (*sha256).to_owned())].into(),
        annotations: None,
    });
    let files = files.iter().map(|(name, blob)| Resource::file(name, &blob.digest));
    let sources = sources.iter().map(|SourceFile { name, digest }| Resource::file(name, digest));
    let hub = snapshot.map(Resource::of_hub).unwrap_or_default();
    Statement {
        kind: "https://in-toto.io/Statement/v1",
        subject: [],
        predicate_type: "https://slsa.dev/provenance/v1",
        predicate: Predicate {
            build_definition: BuildDefinition {
                build_type: format!("{REPOSITORY}/compile/v1"),
                external_parameters: external,
                internal_parameters: internal.collect(),
                resolved_dependencies: files
                    .chain(sources)
                    .chain(hub)
                    .chain([compiler])
                    .chain(crates)
                    .collect(),
            },
            run_details: RunDetails {
                builder: Builder { id: REPOSITORY, version: [("mlxcel-compile", VERSION.to_owned())].into() },
            },
        },
    }
}
