//! Validation of manifests. All other code relies on it.

mod checks;
mod packing;
mod program;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::Display,
};

use safetensors::Dtype;

use self::{
    checks::{Check, check_tensors, ensure, file_name, text, within_target},
    packing::check_packing,
    program::check_program,
};
use super::{
    EmbeddingSpec, FORMAT, FORMAT_IN_PLACE, FORMAT_OF_PAGES, FORMAT_OF_PROGRAMS, Manifest, ModelSpec,
    SMALL_FILE_LIMIT_BYTES, SelfTestCase, Serving, TargetArtifact, Traffic, Window,
    entry::{ArgumentSpec, CallSizes, Entry, Interface, PAGE, Parameter, Pool, ResultSpec, Role},
    program::BundleKind,
};
use crate::{
    blob::{Blob, BlobRole},
    digest::Digest,
    driver::Driver,
    error::Error,
    tensor::{tensor_bits, type_text},
};

impl Manifest {
    /// Checks everything that other code relies on.
    ///
    /// Names are plain, sizes do not overflow, no blob has two sizes, and entries have the types of [`Entry::new`] and cover the
    /// context.
    ///
    /// # Errors
    /// The first problem.
    pub fn validate(&self) -> Result<(), Error> {
        validate(self)
    }
}

fn validate(manifest: &Manifest) -> Check {
    // Names every field, so that a new one cannot be forgotten.
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
    } = manifest;
    ensure((1..=FORMAT).contains(format), || format!("format is {format}, expected 1 to {FORMAT}"))?;
    ensure(*format >= 2 || documents.is_empty(), || {
        format!("format {format} has documents, expected none before format 2")
    })?;
    text("model", model)?;
    text("compiler version", &compiler.version)?;
    ensure(!targets.is_empty(), || "no target, expected at least one".into())?;
    for (name, target) in targets {
        file_name("target", name)?;
        check_target(name, target)?;
    }
    for name in files.keys().chain(weights.keys()).chain(documents.keys()) {
        file_name("file", name)?;
    }
    for (name, Blob { size, .. }) in files.iter().chain(documents) {
        ensure(*size <= SMALL_FILE_LIMIT_BYTES, || {
            format!("file `{name}` has {size} bytes, expected at most {SMALL_FILE_LIMIT_BYTES}")
        })?;
    }
    for name in weights.keys() {
        ensure(!files.contains_key(name), || format!("file `{name}` is listed in files and in weights"))?;
    }
    check_blobs(manifest)?;
    check_parameters(parameters)?;
    match (kind, plan, program) {
        (BundleKind::Model, Some(plan), None) => {
            ensure(goldens.is_empty(), || "a model has goldens, expected none".into())?;
            text("family", family)?;
            check_model(*format, plan, targets, parameters)?;
            replays.iter().try_for_each(|replay| check_replay(plan, replay))
        }
        (BundleKind::Program, None, Some(program)) => {
            ensure(*format >= FORMAT_OF_PROGRAMS, || {
                format!("format {format} has a program, expected none before format {FORMAT_OF_PROGRAMS}")
            })?;
            ensure(family.is_empty() && replays.is_empty() && files.is_empty(), || {
                "a program has family, replays or files, expected none".into()
            })?;
            check_program(program, targets, goldens)
        }
        (BundleKind::Model, ..) => Err(Error::Invalid("a model needs a plan and no program".into())),
        (BundleKind::Program, ..) => Err(Error::Invalid("a program needs no plan, but `program`".into())),
    }
}

/// Checks the plan of a model, and that every target follows it.
fn check_model(
    format: u32,
    plan: &ModelSpec,
    targets: &BTreeMap<String, TargetArtifact>,
    parameters: &[Parameter],
) -> Check {
    check_plan(format, plan)?;
    for (name, target) in targets {
        check_entries(format, plan, target).map_err(|error| within_target(name, error))?;
        if let Some(packing) = &target.packing {
            check_packing(format, name, packing, parameters)?;
        }
    }
    Ok(())
}

fn check_plan(format: u32, plan: &ModelSpec) -> Check {
    let ModelSpec {
        precision: _,
        quant: _,
        cache_type: _,
        batch,
        context,
        vocab,
        position_bytes,
        windows,
        embedding,
    } = plan;
    fits_memory("plan.position_bytes", *position_bytes)?;
    for Window { positions, position_bytes } in windows {
        fits_memory("position_bytes of a window", *position_bytes)?;
        ensure(*positions > 0, || "a window has 0 positions, expected more".into())?;
    }
    let width = embedding
        .as_ref()
        .map(|EmbeddingSpec { width, pooling: _, normalized: _ }| ("embedding.width", width));
    ensure(*batch == (format < FORMAT_OF_PAGES).then_some(1), || match batch {
        Some(batch) => format!("plan.batch is {batch}, expected 1 up to format 2 and none later"),
        None => format!("format {format} has no plan.batch, expected 1"),
    })?;
    for (what, value) in [("context", context), ("vocab", vocab)].into_iter().chain(width) {
        // The module has token ids and positions as i32.
        let fits = (1..=i32::MAX as usize).contains(value);
        ensure(fits, || format!("plan.{what} is {value}, expected 1 to {}", i32::MAX))?;
    }
    Ok(())
}

fn check_target(name: &str, target: &TargetArtifact) -> Check {
    let TargetArtifact {
        driver,
        arch,
        cpu_features,
        gpu,
        flags,
        build_key: _,
        vmfb,
        entries: _,
        serving: _,
        step_bytes,
        rewind,
        dispatches,
        packing: _,
    } = target;
    if *driver == Driver::Local {
        text(format_args!("arch of target {name}"), arch)?;
    } else {
        ensure(arch.is_empty() && cpu_features.is_empty(), || {
            format!("target {name} has the driver {driver}, expected no arch and no cpu_features")
        })?;
    }
    ensure(gpu.is_none() || *driver == Driver::Cuda, || {
        format!("target {name} has the driver {driver}, expected no compute capability and no PTX")
    })?;
    let mut seen = HashSet::new();
    for feature in cpu_features {
        text(format_args!("cpu feature of target {name}"), feature)?;
        ensure(seen.insert(feature), || format!("cpu feature `{feature}` of target {name} is listed twice"))?;
    }
    for flag in flags {
        ensure(!flag.contains(char::is_control), || {
            format!("flag `{}` of target {name} has a control character", flag.escape_default())
        })?;
    }
    fits_memory(format_args!("step_bytes of target {name}"), *step_bytes)?;
    if let Some(rewind) = rewind {
        // Numbers of positions are added.
        ensure(*rewind <= i32::MAX as usize, || {
            format!("rewind of target {name} is {rewind}, expected at most {}", i32::MAX)
        })?;
    }
    for (dispatch, Traffic { bytes, position_bytes }) in dispatches {
        ensure(!dispatch.contains(char::is_control), || {
            format!("dispatch `{}` of target {name} has a control character", dispatch.escape_default())
        })?;
        fits_memory(format_args!("bytes of dispatch `{dispatch}` of target {name}"), *bytes)?;
        fits_memory(
            format_args!("position_bytes of dispatch `{dispatch}` of target {name}"),
            *position_bytes,
        )?;
    }
    ensure(vmfb.size > 0, || format!("vmfb of target {name} has 0 bytes, expected more"))
}

fn check_replay(plan: &ModelSpec, replay: &SelfTestCase) -> Check {
    let SelfTestCase { prompt, tokens, gaps, embedding } = replay;
    ensure(!prompt.is_empty(), || "a replay has no prompt, expected token ids".into())?;
    let ids = prompt.iter().chain(tokens);
    for &id in ids {
        ensure((id as usize) < plan.vocab, || {
            format!("a replay has the token {id}, expected 0 to {}", plan.vocab - 1)
        })?;
    }
    // The last token is not appended to the cache.
    let positions = prompt.len() + tokens.len().saturating_sub(1);
    ensure(positions <= plan.context, || {
        format!("a replay has {positions} positions, expected at most the context, {}", plan.context)
    })?;
    let width = plan.embedding.as_ref().map_or(0, |embedding| embedding.width);
    ensure(
        embedding.len() == width && tokens.is_empty() == (width > 0) && gaps.len() == tokens.len(),
        || {
            format!(
                "a replay has {} tokens, {} gaps and {} numbers, expected what the model gives",
                tokens.len(),
                gaps.len(),
                embedding.len()
            )
        },
    )?;
    let finite = embedding.iter().chain(gaps).all(|number| number.is_finite());
    ensure(finite, || "a replay has a number that is infinite or none".into())
}

/// Checks that a number of bytes fits some memory.
fn fits_memory(what: impl Display, bytes: u64) -> Check {
    ensure(i64::try_from(bytes).is_ok(), || format!("{what} is {bytes}: more than any memory has"))
}

fn check_blobs(manifest: &Manifest) -> Check {
    let mut sizes: HashMap<Digest, (BlobRole, u64)> = HashMap::new();
    let mut total = 0u64;
    for (role, blob) in manifest.blobs() {
        // TOML's integers and the offsets of files are i64.
        total = total.saturating_add(blob.size);
        ensure(total <= i64::MAX as u64, || {
            format!("{role} has {} bytes: more than any disk holds", blob.size)
        })?;
        let (first, size) = sizes.entry(blob.digest).or_insert_with(|| (role.clone(), blob.size));
        ensure(*size == blob.size, || {
            format!("{role} has {} bytes, expected {size}: {first} is the same blob", blob.size)
        })?;
    }
    Ok(())
}

/// Checks a target's entry points and its cache.
fn check_entries(format: u32, plan: &ModelSpec, target: &TargetArtifact) -> Check {
    let TargetArtifact { entries, serving, .. } = target;
    let pools = check_serving(format, plan, serving.as_ref())?;
    let mut names = HashSet::new();
    for entry in entries {
        let found = entry.name.escape_default();
        let Some(name) = entry.role.entry_name() else {
            return Err(Error::Invalid(format!("entry `{found}` is a function, expected none in a model")));
        };
        ensure(entry.name == name, || format!("entry is named `{found}`, expected `{name}` by its role"))?;
        ensure(entry.function.is_none() && entry.work == 0, || {
            format!("entry {name} has what functions of programs have")
        })?;
        ensure(names.insert(name), || format!("entry {} is listed twice", entry.name))?;
        ensure(entry.role.is_old() != (format >= FORMAT_OF_PAGES), || {
            let expected = "expected step, best and embed since format 3";
            format!("format {format} has the entry {}, {expected}", entry.name)
        })?;
        let is_in_place = entry.role.sizes().is_some_and(|sizes| sizes.in_place);
        let can_be = format >= FORMAT_IN_PLACE && matches!(entry.role, Role::Step(sizes) if sizes.uniform);
        ensure(!is_in_place || can_be, || {
            format!(
                "entry {} is in place, expected that of uniform steps since format {FORMAT_IN_PLACE}",
                entry.name
            )
        })?;
        check_entry(plan, pools, entry)?;
    }
    let embeds = |entry: &Entry| matches!(entry.role, Role::Embed(_) | Role::Encode { .. });
    if let Some(entry) = entries.iter().find(|entry| embeds(entry) != plan.embedding.is_some()) {
        let says = if plan.embedding.is_some() { "has" } else { "has no" };
        return Err(Error::Invalid(format!("entry {} in a bundle whose plan {says} embedding", entry.name)));
    }
    ensure(!entries.is_empty(), || "no entry, expected at least one".into())?;
    for entry in entries {
        let Role::Best { rows } = entry.role else { continue };
        let selects = |entry: &Entry| matches!(entry.role, Role::Step(sizes) if sizes.selected == rows);
        ensure(entries.iter().any(selects), || {
            format!("entry {} is for {rows} rows of logits, expected as many as a step selects", entry.name)
        })?;
    }
    if plan.embedding.is_none() {
        return Ok(());
    }
    // A text is embedded whole.
    let reach = entries.iter().map(|entry| match entry.role {
        Role::Encode { tokens } => tokens,
        role => role.sizes().map_or(0, CallSizes::rows_of_a_sequence),
    });
    let reach = reach.max().unwrap_or(0);
    ensure(reach >= plan.context, || {
        format!("the largest entry takes texts of {reach} tokens, expected the context, {}", plan.context)
    })
}

/// Checks the cache of a target and returns its pools.
fn check_serving<'m>(
    format: u32,
    plan: &ModelSpec,
    serving: Option<&'m Serving>,
) -> Result<&'m [Pool], Error> {
    let Some(Serving { page, exact: _, pools }) = serving else {
        ensure(format < FORMAT_OF_PAGES, || format!("format {format} has no serving, expected it"))?;
        return Ok(&[]);
    };
    ensure(format >= FORMAT_OF_PAGES, || {
        format!("format {format} has serving, expected none before format {FORMAT_OF_PAGES}")
    })?;
    ensure(*page == PAGE, || format!("a page has {page} positions, expected {PAGE}"))?;
    ensure(pools.is_empty() == plan.embedding.is_some(), || {
        format!("found {} pools, expected some if and only if the model continues texts", pools.len())
    })?;
    let mut windows = HashSet::new();
    for pool in pools {
        let Pool { window, parts } = pool;
        ensure(windows.insert(window), || "two pools have the same window, expected one".into())?;
        // Positions are added to a window.
        ensure(window.is_none_or(|window| (1..=i32::MAX as usize).contains(&window)), || {
            format!("the window of a pool is {}, expected 1 to {}", window.unwrap_or(0), i32::MAX)
        })?;
        ensure(!parts.is_empty() && !parts.iter().any(|part| part.shape.contains(&0)), || {
            "a page has no elements, expected some".into()
        })?;
        let bytes = pool.page_bytes().and_then(|bytes| i64::try_from(bytes).ok());
        ensure(bytes.is_some(), || "the size of a page overflows or is not whole bytes".into())?;
    }
    Ok(pools)
}

fn check_entry(plan: &ModelSpec, pools: &[Pool], entry: &Entry) -> Check {
    let Entry { name, function: _, role, work: _, arguments, results } = entry;
    check_sizes(name, *role)?;
    let width = plan.embedding.as_ref().map_or(plan.vocab, |embedding| embedding.width);
    let interface = Interface { context: plan.context, width, pools };
    // Up to format 2, an entry may have others.
    let exact = !role.is_old();
    let (takes, gives) = (role.arguments(pools), role.results(pools));
    let allowed: HashSet<_> = takes.iter().copied().collect();
    let mut kinds = HashSet::new();
    for argument in arguments {
        let ArgumentSpec { name: given, kind, dtype, shape } = argument;
        ensure(given.is_none(), || format!("{kind} of entry {name} has a name, expected none in a model"))?;
        ensure(kinds.insert(*kind), || format!("entry {name} takes {kind} twice"))?;
        let right = ArgumentSpec::new(*kind, *role, &interface).filter(|_| !exact || allowed.contains(kind));
        let right =
            right.ok_or_else(|| Error::Invalid(format!("entry {name} takes {kind}, expected none")))?;
        check_type(name, kind, (*dtype, shape), (right.dtype, &right.shape))?;
    }
    let allowed: HashSet<_> = gives.iter().copied().collect();
    let mut given = HashSet::new();
    for outcome in results {
        let ResultSpec { name: given_name, kind, dtype, shape } = outcome;
        ensure(given_name.is_none(), || {
            format!("{kind} of entry {name} has a name, expected none in a model")
        })?;
        ensure(given.insert(*kind), || format!("entry {name} gives {kind} twice"))?;
        let right = ResultSpec::new(*kind, *role, &interface).filter(|_| !exact || allowed.contains(kind));
        let right =
            right.ok_or_else(|| Error::Invalid(format!("entry {name} gives {kind}, expected none")))?;
        check_type(name, kind, (*dtype, shape), (right.dtype, &right.shape))?;
    }
    for kind in takes {
        ensure(kinds.contains(&kind), || format!("entry {name} takes no {kind}"))?;
    }
    for kind in gives {
        ensure(given.contains(&kind), || format!("entry {name} gives no {kind}"))?;
    }
    Ok(())
}

/// Checks what fits in a call of an entry.
fn check_sizes(name: &str, role: Role) -> Check {
    let sizes: &[(&str, usize)] = match role {
        Role::Step(CallSizes { rows, sequences, selected, .. }) => {
            &[("rows", rows), ("sequences", sequences), ("selected rows", selected)]
        }
        Role::Embed(CallSizes { rows, sequences, .. }) => &[("rows", rows), ("sequences", sequences)],
        Role::Best { rows } => &[("rows", rows)],
        Role::Function => &[],
        Role::Prefill { tokens: size } | Role::Decode { cache: size } | Role::Encode { tokens: size } => {
            &[("positions", size)]
        }
    };
    for &(what, size) in sizes {
        ensure((1..=i32::MAX as usize).contains(&size), || {
            format!("entry {name} is for {size} {what}, expected 1 to {}", i32::MAX)
        })?;
    }
    let Some(CallSizes { rows, sequences, uniform, .. }) = role.sizes() else { return Ok(()) };
    ensure(sequences <= rows && (!uniform || rows.is_multiple_of(sequences)), || {
        format!("entry {name} has {rows} rows for {sequences} sequences, expected some for each")
    })
}

type Type<'a> = (Dtype, &'a [usize]);

fn check_type(entry: &str, what: &dyn Display, found: Type<'_>, right: Type<'_>) -> Check {
    let shown = type_text(found.0, found.1);
    ensure(found == right, || {
        format!("{what} of entry {entry} is {shown}, expected {}", type_text(right.0, right.1))
    })?;
    ensure(tensor_bits(found.0, found.1).is_some(), || {
        format!("{what} of entry {entry} is {shown}: its size overflows")
    })
}

fn check_parameters(parameters: &[Parameter]) -> Check {
    check_tensors(parameters)?;
    let with_source = parameters.iter().filter(|parameter| parameter.source.is_some()).count();
    ensure([0, parameters.len()].contains(&with_source), || {
        format!("{with_source} of {} parameters have a source, expected all or none", parameters.len())
    })?;
    Ok(())
}

#[cfg(test)]
mod tests;
