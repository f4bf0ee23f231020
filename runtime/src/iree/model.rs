//! A model on IREE, whose calls follow the manifest and whose results stay on the device.

use std::{collections::VecDeque, time::Duration};

use mlxcel_artifacts::{
    Bundle, Driver,
    entry::{Pool, ResultKind},
};

use super::{
    best::BestEntry,
    entry_point::{Cache, EntryPoint},
    loaded::LoadedModule,
    lost,
    memory::free_memory,
    options::LoadOptions,
    pages,
};
use crate::{
    device::DeviceInfo,
    error::Error,
    ffi::{Device, Tensor},
    model::{Batch, BestTokens, ModelLimits, ModelRunner, PoolLimits, SelectedRow, SequenceRows},
    trace::Trace,
    weights::Weights,
};

/// Bytes that [`ModelRunner::copy_bandwidth`] copies at a time: more than caches hold, and little beside a GPU's memory.
const COPIED_BYTES: usize = 256 << 20;
/// How long it copies at least, so that starting and waiting do not count.
const COPIED_TIME: Duration = Duration::from_millis(20);

/// A model on IREE: a module with its cache.
pub(super) struct IreeModel {
    limits: ModelLimits,
    info: DeviceInfo,
    /// In the order of the limits' steps.
    entries: Vec<EntryPoint>,
    bests: Vec<BestEntry>,
    cache: Cache,
    /// Steps that have not ended, the oldest first.
    begun: VecDeque<Begun>,
    last: Option<Last>,
    device: Device,
    is_gpu: bool,
}

/// A step that was begun.
#[derive(Debug, PartialEq, Eq)]
struct Begun {
    /// The index of its entry.
    size: usize,
    rows: usize,
    /// The rows that were selected.
    selected: usize,
}

impl Begun {
    fn of(batch: &Batch<'_>) -> Self {
        let sum = |count: fn(&SequenceRows<'_>) -> usize| batch.sequences.iter().map(count).sum();
        let (rows, selected) = (sum(|rows| rows.tokens.len()), sum(|rows| rows.selected.len()));
        Self { size: batch.size, rows, selected }
    }
}

/// The results of the last step that are on the device.
struct Last {
    logits: Tensor,
    /// The rows that were selected.
    selected: usize,
    /// The best tokens of these rows, once they were asked for.
    best: Option<Vec<BestTokens>>,
}

impl IreeModel {
    pub(super) fn load(
        bundle: &Bundle,
        weights: Option<Weights>,
        options: &LoadOptions,
    ) -> Result<Self, Error> {
        let spec = bundle.manifest().model_spec()?;
        if spec.embedding.is_some() {
            return Err(Error::OnlyEmbedding { model: bundle.manifest().model.clone() });
        }
        let free = free_memory();
        let LoadedModule {
            module,
            info,
            serving,
            entries,
            bests,
            device,
            driver,
            context,
            weight_bytes,
            gpu_bytes,
        } = LoadedModule::new(bundle, weights, options)?;
        let mut limits = ModelLimits {
            model: bundle.digest(),
            context,
            vocab: spec.vocab,
            pools: serving.pools.iter().map(pool_limits).collect(),
            steps: entries.iter().map(EntryPoint::sizes).collect(),
            exact: serving.exact,
        };
        let is_local = driver == Driver::Local;
        // Where the driver of a GPU does not say, and the default does not fit, reserving fails.
        let free = if is_local { free } else { gpu_bytes };
        let free = free.map(|free| free.saturating_sub(weight_bytes));
        let own = options.cache_memory.filter(|_| is_local);
        let free = free.into_iter().chain(own).min();
        pages::set_pages(options.cache, &mut limits, free)?;
        // Page 0 is for padding.
        let pages: Vec<usize> = limits.pools.iter().map(|pool| pool.pages + 1).collect();
        // Calls that skip padding read no more of a page than was written. Others read whole pages, whose rest must be numbers.
        let zeros = limits.steps.iter().any(|size| size.uniform && !size.in_place);
        let _span = options.trace.span("reserve the cache");
        let cache = Cache::reserve(&module, &serving.pools, &pages, zeros)?;
        Ok(Self {
            limits,
            info,
            entries,
            bests,
            cache,
            begun: VecDeque::new(),
            last: None,
            device,
            is_gpu: !is_local,
        })
    }
}

/// Returns the limits of a pool without pages.
fn pool_limits(pool: &Pool) -> PoolLimits {
    // The bytes of a page of a valid manifest are whole.
    PoolLimits { window: pool.window, pages: 0, page_bytes: pool.page_bytes().unwrap_or(0) }
}

impl ModelRunner for IreeModel {
    fn limits(&self) -> &ModelLimits {
        &self.limits
    }

    fn device(&self) -> &DeviceInfo {
        &self.info
    }

    fn is_host(&self) -> bool {
        !self.is_gpu
    }

    fn begin(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        lost::named(self.begin_batch(batch), &self.info)
    }

    fn begin_next(&mut self, batch: &Batch<'_>) -> Result<bool, Error> {
        lost::named(self.begin_next_batch(batch), &self.info)
    }

    fn end(&mut self) -> Result<Vec<SelectedRow>, Error> {
        lost::named(self.end_first(), &self.info)
    }

    fn logits(&mut self, selected: usize) -> Result<Vec<f32>, Error> {
        lost::named(self.read_logits(selected), &self.info)
    }

    fn best(&mut self, selected: usize) -> Result<Option<BestTokens>, Error> {
        lost::named(self.find_best(selected), &self.info)
    }

    fn copy_bandwidth(&self) -> Result<Option<f64>, Error> {
        if !self.is_gpu {
            return Ok(None);
        }
        match self.device.time_copies(COPIED_BYTES, COPIED_TIME) {
            // Each byte is read and written.
            Ok((bytes, time)) => Ok(Some(2.0 * bytes as f64 / time.as_secs_f64())),
            Err(error) if error.is_of_memory() => Ok(None),
            Err(error) => Err(Error::iree(|| "copy memory".into())(error)),
        }
    }

    fn trace(&self) -> Trace {
        self.device.trace()
    }

    fn start_trace(&mut self, trace: &Trace) -> Result<(), Error> {
        if self.device.record(trace).map_err(Error::iree(|| "record the device".into()))? {
            return Ok(());
        }
        self.device.end_recording();
        Err(Error::NoProfile { device: self.info.name.clone() })
    }

    fn end_trace(&mut self) {
        self.device.end_recording();
    }
}

/// What may find that the device is lost.
impl IreeModel {
    fn begin_batch(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        // Left by a panic between a beginning and its end.
        while !self.begun.is_empty() {
            let _ = self.end_first();
        }
        self.device.check().map_err(Error::iree(|| "begin a step".into()))?;
        // Dropped first, so that this call can use the memory.
        self.last = None;
        self.entries[batch.size].begin(&batch.sequences, &self.cache)?;
        self.begun.push_back(Begun::of(batch));
        Ok(())
    }

    fn begin_next_batch(&mut self, batch: &Batch<'_>) -> Result<bool, Error> {
        self.device.check().map_err(Error::iree(|| "begin a step".into()))?;
        let next = Begun::of(batch);
        if self.begun.iter().ne([&next]) || next.rows != next.selected {
            return Ok(false);
        }
        // It writes to where the results of the last step that has ended are.
        self.last = None;
        let is_begun = self.entries[batch.size].begin_next(&batch.sequences, &self.cache)?;
        self.begun.extend(is_begun.then_some(next));
        Ok(is_begun)
    }

    fn end_first(&mut self) -> Result<Vec<SelectedRow>, Error> {
        let begun = self.begun.pop_front();
        let Begun { size, selected, .. } = begun
            .ok_or_else(|| Error::Iree { doing: "run a step".to_owned(), source: "none was begun".into() })?;
        let entry = &mut self.entries[size];
        let mut results = entry.end(&mut self.cache)?;
        if selected == 0 {
            return Ok(Vec::new());
        }
        let rows = next_tokens(entry, &mut results, selected, self.limits.vocab)?;
        let logits = entry.function().take(ResultKind::Logits, &mut results)?;
        self.last = Some(Last { logits, selected, best: None });
        Ok(rows)
    }

    fn read_logits(&mut self, selected: usize) -> Result<Vec<f32>, Error> {
        let last = self.last.as_ref().filter(|last| selected < last.selected);
        let Last { logits, .. } = last.ok_or(Error::NoLogits)?;
        let values = logits.read_row::<f32>(selected).map_err(Error::iree(|| "read the logits".into()))?;
        if values.len() != self.limits.vocab {
            let (found, expected) = (values.len(), self.limits.vocab);
            return Err(Error::Unsupported(format!("it returns {found} logits, expected {expected}")));
        }
        Ok(values)
    }

    fn find_best(&mut self, selected: usize) -> Result<Option<BestTokens>, Error> {
        let last = self.last.as_mut().filter(|last| selected < last.selected);
        let Last { logits, selected: count, best } = last.ok_or(Error::NoLogits)?;
        let rows = match best {
            Some(rows) => rows,
            None => {
                let shape = logits.shape();
                let entry = self.bests.iter_mut().find(|entry| shape.first() == Some(&entry.rows()));
                let Some(entry) = entry else { return Ok(None) };
                best.insert(entry.run(logits, *count, self.limits.vocab)?)
            }
        };
        Ok(rows.get(selected).cloned())
    }
}

/// Reads the tokens of the first `selected` rows.
fn next_tokens(
    entry: &EntryPoint,
    results: &mut [Option<Tensor>],
    selected: usize,
    vocab: usize,
) -> Result<Vec<SelectedRow>, Error> {
    let name = &entry.function().entry().name;
    let next = entry.function().take(ResultKind::NextToken, results)?;
    let next = next.read::<i32>().map_err(Error::iree(|| format!("read from {name}")))?;
    selected_rows(&next, selected, vocab)
        .ok_or_else(|| Error::Unsupported(format!("{name} returns no token of the vocabulary")))
}

/// Returns the results of the first `selected` rows; `None` if there are fewer, or an id is none.
///
/// The id `vocab` is one: devices answer it if a logit is NaN, which concerns the request of that row alone.
fn selected_rows(ids: &[i32], selected: usize, vocab: usize) -> Option<Vec<SelectedRow>> {
    let row = |&id: &i32| {
        let token = u32::try_from(id).ok().filter(|&id| id as usize <= vocab)?;
        Some(SelectedRow { token })
    };
    ids.get(..selected)?.iter().map(row).collect()
}

#[cfg(test)]
mod tests;
