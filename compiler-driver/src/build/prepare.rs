//! Checks a request before the compiler starts.

use std::{collections::BTreeMap, time::Instant};

use mlxcel_artifacts::{
    Blob, BundleKind, BundleWriter, CONFIG_FILE, CacheType, Cancel, Float, Machine, Quant, entry::Parameter,
};
use mlxcel_emitter::{Numerics, Plan, Products, Program};
use mlxcel_models::{Head, ModelConfig, SmallFiles, Weight};
use safetensors::Dtype;

use crate::{
    build::{
        event::{Event, Progress},
        plan::model_spec,
        request::{DEFAULT_CONTEXT, Request},
        source::{Contents, Source, find_targets},
        weights::{BundledWeights, Weights},
    },
    documents::provenance::ExternalParameters,
    error::Error,
    input_bits::InputBits,
    model::{
        files::{SmallFile, check_json_object},
        sentence,
        source::Model,
    },
    stored::{StoredWeights, in_words},
    target::{Precision, ResolvedTarget, Target, float_name},
};

/// A request, checked against its model, weights and targets.
pub(crate) struct Prepared<'r> {
    request: &'r Request,
    model: Model,
    weights: Weights,
    /// Each small file by name.
    small_files: Vec<(&'static str, SmallFile)>,
    targets: Vec<Target>,
    plan: Plan,
}

impl<'r> Prepared<'r> {
    /// Loads model and weights of a request, and plans the build.
    pub(crate) fn new(request: &'r Request, progress: &mut Progress<'_>) -> Result<Self, Error> {
        let targets = find_targets(&request.targets)?;
        let mut model = request.model.load()?;
        model.warning.take().into_iter().for_each(|text| progress(Event::Warning(text)));
        let weights = Weights::find(&request.weights, &mut model, &request.cancel, progress)?;
        let checkpoint_dtype = weights.main_dtype().unwrap_or(model.config.dtype);
        let precision = choose_precision(request.precision, checkpoint_dtype, &targets, progress)?;
        if let (None, Some(folder)) = (&model.folder, weights.folder()) {
            // The folder of a preset's weights says how long texts may be; the preset does not.
            let settings = sentence::read(folder, &mut model.config)?;
            model.max_seq_length = settings.max_seq_length;
            settings.warning.into_iter().for_each(|text| progress(Event::Warning(text)));
        }
        let quant = match request.quant {
            Quant::Auto if !weights.are_coded() => Quant::None,
            asked => asked,
        };
        let plan = plan(request, &model, (precision, quant), &targets)?;
        let small_files = small_files(&model, &weights, progress)?;
        Ok(Self { request, model, weights, small_files, targets, plan })
    }

    /// Returns the weights in few bits that [`Quant::Auto`] decodes on targets of these numerics, in words.
    fn decoded(&self, numerics: Numerics) -> Option<String> {
        if self.plan.quant != Quant::Auto {
            return None;
        }
        let config = &self.model.config;
        let storage_of = |weight: &Weight| self.weights.storage(weight, config);
        let all = StoredWeights::of(config, &self.plan.for_target(numerics), &storage_of);
        let total: usize = all.iter().map(|weights| weights.names.len()).sum();
        let decoded: Vec<_> = all.into_iter().filter(|weights| weights.form.is_none()).collect();
        let some: usize = decoded.iter().map(|weights| weights.names.len()).sum();
        let to_words =
            |StoredWeights { coding, names, .. }: &StoredWeights| format!("{} ({coding})", in_words(names));
        let words: Vec<_> = decoded.iter().map(to_words).collect();
        let (floats, words) = (self.plan.precision, words.join(", "));
        (some > 0).then(|| {
            format!(
                "no kernel reads {some} of {total} quantized weights as stored, decoded to {floats}: {words}"
            )
        })
    }

    /// Adds config.json and the other small files to a bundle.
    fn write_small_files(&self, writer: &mut BundleWriter) -> Result<BTreeMap<String, Blob>, Error> {
        let mut files = BTreeMap::new();
        files.insert(CONFIG_FILE.to_owned(), writer.add_bytes(self.model.json.as_bytes())?);
        for (name, file) in &self.small_files {
            let blob = match file {
                SmallFile::Path(path) => writer.add_file(path)?,
                SmallFile::Text(text) => writer.add_bytes(text.as_bytes())?,
            };
            files.insert((*name).to_owned(), blob);
        }
        Ok(files)
    }
}

impl Source for Prepared<'_> {
    fn name(&self) -> &str {
        &self.model.name
    }

    fn targets(&self, machine: &Machine) -> Vec<ResolvedTarget> {
        let Plan { precision, quant, .. } = self.plan;
        self.targets.iter().map(|target| target.resolve(machine, precision, quant)).collect()
    }

    fn warnings(&self, target: &ResolvedTarget) -> Vec<String> {
        let decoded = self.decoded(target.numerics);
        let decoded = decoded.map(|words| format!("target {}: {words}", target.name));
        without_kernels(target, self.plan.quant).into_iter().chain(decoded).collect()
    }

    fn emit(&self, target: &ResolvedTarget, progress: &mut Progress<'_>) -> Result<Program, Error> {
        let start = Instant::now();
        let config = &self.model.config;
        let plan = self.plan.for_target(target.numerics);
        let storage_of = |weight: &Weight| self.weights.storage(weight, config);
        let program = mlxcel_emitter::emit(config, &plan, &storage_of)
            .map_err(|source| Error::Emit { model: self.model.name.clone(), source: Box::new(source) })?;
        progress(Event::Emitted { bytes: program.mlir.len(), took: start.elapsed() });
        Ok(program)
    }

    fn write(
        self: Box<Self>,
        mut parameters: Vec<Parameter>,
        writer: &mut BundleWriter,
        cancel: &Cancel,
        progress: &mut Progress<'_>,
    ) -> Result<Contents, Error> {
        let files = self.write_small_files(writer)?;
        let Self { model, weights, plan, request, .. } = *self;
        let snapshot = model.snapshot.clone();
        let BundledWeights { blobs, tensors, sources } =
            weights.write(&model.config, writer, cancel, progress)?;
        for parameter in &mut parameters {
            parameter.source = tensors.get(&parameter.name).copied();
        }
        let Request { ref targets, ref weights, input_bits, chunk, separate_kernels, pack_elements, .. } =
            *request;
        let options =
            ExternalParameters { targets, weights, input_bits, chunk, separate_kernels, pack_elements };
        Ok(Contents {
            kind: BundleKind::Model,
            plan: Some(model_spec(&model.config, &plan)),
            family: model.config.family,
            program: None,
            files,
            weights: blobs,
            parameters,
            goldens: vec![],
            recorded: options.recorded(),
            sources,
            snapshot,
        })
    }
}

/// Returns a warning if quantized weights are multiplied without kernels.
fn without_kernels(target: &ResolvedTarget, quant: Quant) -> Option<String> {
    let has_kernels =
        matches!(target.numerics.products, Products::Kernels(_)) || target.numerics.gpu.is_some();
    if matches!(quant, Quant::None | Quant::Auto) || has_kernels {
        return None;
    }
    let name = &target.name;
    Some(format!("target {name} has no {quant} kernels: it uses plain StableHLO, which is slower"))
}

/// Finds the small files of a model or of its weights, and checks that those of folders are objects.
fn small_files(
    model: &Model,
    weights: &Weights,
    progress: &mut Progress<'_>,
) -> Result<Vec<(&'static str, SmallFile)>, Error> {
    let SmallFiles { texts, warnings } =
        if model.gguf.is_some() { SmallFiles::default() } else { weights.small_files()? };
    warnings.into_iter().for_each(|text| progress(Event::Warning(text)));
    let files = model.small_files(weights.folder(), texts);
    for (name, file) in &files {
        if let (true, SmallFile::Path(path)) = (name.ends_with(".json"), file) {
            check_json_object(path)?;
        }
    }
    Ok(files)
}

/// Chooses the element type of products, and warns if it is not the checkpoint's because of a target.
fn choose_precision(
    asked: Precision,
    checkpoint: Dtype,
    targets: &[Target],
    progress: &mut Progress<'_>,
) -> Result<Float, Error> {
    let precision = asked.choose(checkpoint, targets)?;
    let can = |target: &Target| Float::of_dtype(checkpoint).is_some_and(|float| target.computes(float));
    let unable = targets.iter().find(|target| !can(target));
    if let (Precision::Auto, Some(Target { name, .. })) = (asked, unable) {
        progress(Event::Warning(format!(
            "computing in {precision} on every target: {name} cannot compute in the checkpoint's {}",
            float_name(checkpoint),
        )));
    }
    Ok(precision)
}

/// Plans context, chunks, cache and quantization.
fn plan(
    request: &Request,
    model: &Model,
    (precision, quant): (Float, Quant),
    targets: &[Target],
) -> Result<Plan, Error> {
    let context = context(request.context, model)?;
    if let Some(found) = request.chunk.filter(|chunk| !(1..=context).contains(chunk)) {
        return Err(Error::Chunk { found, context });
    }
    let cache_type = match (&model.config.head, request.cache_type) {
        (Head::Pooling(_), Some(_)) => return Err(Error::NoCache { model: model.name.clone() }),
        (_, asked) => asked.unwrap_or(CacheType::Float(precision)),
    };
    targets.iter().try_for_each(|target| target.check_cache_type(cache_type))?;
    if !matches!(quant, Quant::None | Quant::Auto) {
        targets.iter().try_for_each(Target::check_quant)?;
    }
    let input_terms = input_terms(request.input_bits, quant, &model.config)?;
    let plan = Plan::new(&model.config, precision, context);
    let chains = !request.separate_kernels;
    let Request { calibration, chunk, pack_elements, .. } = *request;
    Ok(Plan { quant, calibration, input_terms, cache_type, chunk, chains, pack_elements, ..plan })
}

/// Returns how many rows of 8 bits an input of weights in groups is the sum of.
///
/// llama.cpp's kernels take inputs in 8 bits; the tools of other schemes leave them in floats.
fn input_terms(asked: Option<InputBits>, quant: Quant, model: &ModelConfig) -> Result<usize, Error> {
    let has_groups = matches!(quant, Quant::Auto | Quant::Q4 | Quant::Q4K);
    match asked {
        Some(found) if !has_groups => Err(Error::InputBits(found, quant)),
        Some(found) => Ok(found.terms()),
        None => {
            let in_floats = model.scheme.as_ref().is_some_and(|scheme| !scheme.is_container());
            Ok(if quant == Quant::Auto && in_floats { 2 } else { 1 })
        }
    }
}

/// Returns the context size to plan for.
fn context(asked: Option<usize>, model: &Model) -> Result<usize, Error> {
    let limit = model.config.max_positions;
    let default = model.max_seq_length.unwrap_or(DEFAULT_CONTEXT);
    let found = asked.unwrap_or_else(|| limit.min(default));
    if (1..=limit).contains(&found) {
        Ok(found)
    } else {
        let notes = model.config.notes.clone();
        Err(Error::Context { model: model.name.clone(), found, limit, notes })
    }
}
