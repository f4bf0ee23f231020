//! A model that follows a script over real page tables, for tests of code that uses the engine.

mod encoder;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use mlxcel_artifacts::{
    Digest,
    entry::{CallSizes, PAGE},
};

use crate::{
    device::DeviceInfo,
    error::Error,
    model::{Batch, BestTokens, ModelLimits, ModelRunner, PoolLimits, SelectedRow, SequenceRows},
};

pub use encoder::ScriptedEncoder;

/// Computes logits from the tokens of the first pool that a row sees, and the row's state.
type Script = Box<dyn Fn(&[u32], u64) -> Vec<f32> + Send>;

/// A model without weights that stores what it is given in pages and answers from what it finds there.
///
/// Every position stores its token and a state, which depends on the token, the position and the states of all positions
/// that the row sees. So a wrong page table, a page that another sequence got, and a page that was not written give
/// another state, and a script that uses it gives other logits.
pub struct ScriptedModel {
    limits: ModelLimits,
    info: DeviceInfo,
    script: Script,
    /// For each pool, its positions: page after page.
    slots: Vec<Vec<(u32, u64)>>,
    logits: Vec<Vec<f32>>,
    /// Calls so far.
    steps: usize,
    /// Reads of logits so far.
    reads: usize,
    failing_steps: HashSet<usize>,
    failing_reads: HashSet<usize>,
    clock: Arc<AtomicU64>,
    sizes: Vec<(usize, usize)>,
    /// Whether a call can be begun before the last one has ended, and how many were.
    is_ahead: bool,
    aheads: usize,
    /// Calls that have not ended, the oldest first.
    begun: VecDeque<Begun>,
    /// The tokens that the last call found.
    found: Vec<u32>,
}

/// A call that was begun.
struct Begun {
    size: usize,
    rows: Vec<OwnedRows>,
    /// Its number if it fails at its end.
    failing: Option<usize>,
    /// Whether its tokens are those that the call before it finds.
    follows: bool,
}

/// The rows of a sequence, as of [`SequenceRows`].
struct OwnedRows {
    tokens: Vec<u32>,
    start: usize,
    pages: Vec<Vec<u32>>,
    selected: Vec<usize>,
}

impl OwnedRows {
    fn of(rows: &SequenceRows<'_>) -> Self {
        Self {
            tokens: rows.tokens.clone(),
            start: rows.start,
            pages: rows.pages.iter().map(|pages| pages.to_vec()).collect(),
            selected: rows.selected.clone(),
        }
    }

    fn with_tokens(&self, tokens: Vec<u32>) -> SequenceRows<'_> {
        let pages = self.pages.iter().map(Vec::as_slice).collect();
        SequenceRows { tokens, start: self.start, pages, selected: self.selected.clone() }
    }
}

impl ScriptedModel {
    /// The time of a call.
    pub const CALL: Duration = Duration::from_micros(100);
    /// The time of a row.
    pub const ROW: Duration = Duration::from_micros(10);

    /// The number of tokens of [`ModelRunner::best`].
    pub const BEST: usize = 4;

    /// Makes a model with empty pages. `script` returns one logit per id.
    pub fn new(limits: ModelLimits, script: impl Fn(&[u32], u64) -> Vec<f32> + Send + 'static) -> Self {
        let slots = limits.pools.iter().map(|pool| vec![(0, 0); (pool.pages + 1) * PAGE]);
        Self {
            slots: slots.collect(),
            limits,
            info: DeviceInfo { name: "scripted".to_owned(), threads: 1, ..DeviceInfo::default() },
            script: Box::new(script),
            logits: vec![],
            steps: 0,
            reads: 0,
            failing_steps: HashSet::new(),
            failing_reads: HashSet::new(),
            clock: Arc::default(),
            sizes: vec![],
            is_ahead: false,
            aheads: 0,
            begun: VecDeque::new(),
            found: vec![],
        }
    }

    /// Makes a model of one pool whose logits are `script` of all tokens so far. Its calls have up to 8 rows.
    pub fn of_tokens(
        context: usize,
        vocab: usize,
        script: impl Fn(&[u32]) -> Vec<f32> + Send + 'static,
    ) -> Self {
        let size =
            |rows| CallSizes { rows, sequences: rows, selected: rows, uniform: false, in_place: false };
        let limits = ModelLimits {
            model: Digest::of(b"scripted"),
            context,
            vocab,
            pools: vec![PoolLimits { window: None, pages: context.div_ceil(PAGE), page_bytes: 1 }],
            steps: vec![size(1), size(8)],
            exact: true,
        };
        Self::new(limits, move |tokens, _| script(tokens))
    }

    /// Makes a model that answers a prompt of `prompt` tokens with `answer`, then repeats the answer's last token.
    ///
    /// # Panics
    /// `answer` is empty.
    pub fn answering(context: usize, vocab: usize, prompt: usize, answer: &[u32]) -> Self {
        assert!(!answer.is_empty(), "an answer has at least one token");
        let answer = answer.to_vec();
        Self::of_tokens(context, vocab, move |tokens| {
            let token = answer[tokens.len().saturating_sub(prompt).min(answer.len() - 1)];
            (0..vocab).map(|id| if id == token as usize { 10.0 } else { 0.0 }).collect()
        })
    }

    /// Makes the calls with these numbers fail, counted from 0. They leave their rows half written.
    #[must_use]
    pub fn failing(mut self, steps: impl IntoIterator<Item = usize>) -> Self {
        self.failing_steps.extend(steps);
        self
    }

    /// Lets calls begin before the last one has ended, as GPUs do. They run as late as they can.
    #[must_use]
    pub fn ahead(mut self) -> Self {
        self.is_ahead = true;
        self
    }

    /// Returns how many calls were begun before the last one had ended.
    #[must_use]
    pub fn aheads(&self) -> usize {
        self.aheads
    }

    /// Makes these reads of logits fail, counted from 0.
    #[must_use]
    pub fn failing_reads(mut self, reads: impl IntoIterator<Item = usize>) -> Self {
        self.failing_reads.extend(reads);
        self
    }

    /// Returns a clock that calls move on, by [`CALL`](Self::CALL) and [`ROW`](Self::ROW).
    pub fn clock(&self) -> impl Fn() -> Duration + Send + 'static {
        let clock = self.clock.clone();
        move || Duration::from_nanos(clock.load(Ordering::Relaxed))
    }

    /// Returns the index of the size and the number of rows of every call so far.
    #[must_use]
    pub fn calls(&self) -> &[(usize, usize)] {
        &self.sizes
    }

    /// Checks what a device relies on.
    fn check(&self, batch: &Batch<'_>) {
        let size = self.limits.steps[batch.size];
        let rows: usize = batch.sequences.iter().map(|rows| rows.tokens.len()).sum();
        let selected: usize = batch.sequences.iter().map(|rows| rows.selected.len()).sum();
        assert!(rows <= size.rows && selected <= size.selected, "{rows} rows, {selected} selected: {size:?}");
        assert!((1..=size.sequences).contains(&batch.sequences.len()), "sequences fit {size:?}");
        let mut readers: HashMap<(usize, u32), usize> = HashMap::new();
        for rows in &batch.sequences {
            assert!((1..=size.rows_of_a_sequence()).contains(&rows.tokens.len()), "rows fit {size:?}");
            assert!(rows.start + rows.tokens.len() <= self.limits.context, "rows fit the context");
            assert!(rows.tokens.iter().all(|&token| (token as usize) < self.limits.vocab));
            assert!(rows.selected.is_sorted() && rows.selected.iter().all(|&row| row < rows.tokens.len()));
            assert_eq!(rows.pages.len(), self.limits.pools.len());
            for (pool, pages) in rows.pages.iter().enumerate() {
                pages
                    .iter()
                    .filter(|&&id| id > 0)
                    .for_each(|&id| *readers.entry((pool, id)).or_default() += 1);
            }
        }
        for rows in &batch.sequences {
            for (pool, pages) in rows.pages.iter().enumerate() {
                let written = rows.start / PAGE..=(rows.start + rows.tokens.len() - 1) / PAGE;
                for &id in &pages[written] {
                    assert!(id > 0 && id as usize <= self.limits.pools[pool].pages, "page {id} exists");
                    assert_eq!(
                        readers[&(pool, id)],
                        1,
                        "page {id} of pool {pool} is written by its one holder"
                    );
                }
            }
        }
    }

    /// Writes a row. Returns the tokens of the first pool that it sees, and its state.
    fn write(&mut self, rows: &SequenceRows<'_>, index: usize) -> (Vec<u32>, u64) {
        let (position, token) = (rows.start + index, rows.tokens[index]);
        let mut state = mix(u64::from(token), position as u64);
        let mut seen = Vec::new();
        for (pool, (limits, pages)) in self.limits.pools.iter().zip(&rows.pages).enumerate() {
            let first = limits.window.map_or(0, |window| (position + 1).saturating_sub(window));
            for earlier in first..position {
                let id = pages[earlier / PAGE];
                assert!(id > 0, "position {earlier} of pool {pool} has a page");
                let (found, its_state) = self.slots[pool][slot(id, earlier)];
                state = mix(state, its_state);
                if pool == 0 {
                    seen.push(found);
                }
            }
        }
        for (pool, pages) in rows.pages.iter().enumerate() {
            self.slots[pool][slot(pages[position / PAGE], position)] = (token, state);
        }
        seen.push(token);
        (seen, state)
    }

    /// Counts a call and its time. Returns its number if it is to fail.
    fn count(&mut self, batch: &Batch<'_>) -> Option<usize> {
        let count: usize = batch.sequences.iter().map(|rows| rows.tokens.len()).sum();
        self.sizes.push((batch.size, count));
        let time = Self::CALL + Self::ROW * u32::try_from(count).unwrap_or(u32::MAX);
        self.clock.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        let step = self.steps;
        self.steps += 1;
        self.failing_steps.contains(&step).then_some(step)
    }

    /// Writes what nobody may read.
    fn spoil(&mut self, sequences: &[SequenceRows<'_>]) {
        for rows in sequences {
            for position in rows.start..rows.start + rows.tokens.len() {
                for (pool, pages) in rows.pages.iter().enumerate() {
                    self.slots[pool][slot(pages[position / PAGE], position)] = (0, position as u64);
                }
            }
        }
    }
}

impl ModelRunner for ScriptedModel {
    fn limits(&self) -> &ModelLimits {
        &self.limits
    }

    fn device(&self) -> &DeviceInfo {
        &self.info
    }

    /// # Panics
    /// The batch is larger than its size, has no page for a position, or writes a page that two sequences have. Another call
    /// has not ended.
    fn begin(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        assert!(self.begun.is_empty(), "a call has not ended");
        self.logits.clear();
        self.check(batch);
        if let Some(step) = self.count(batch) {
            self.spoil(&batch.sequences);
            return Err(failure(format!("run step {step}")));
        }
        let rows = batch.sequences.iter().map(OwnedRows::of).collect();
        self.begun.push_back(Begun { size: batch.size, rows, failing: None, follows: false });
        Ok(())
    }

    /// # Panics
    /// As `begin`, or the rows are not as many as those of the call before.
    fn begin_next(&mut self, batch: &Batch<'_>) -> Result<bool, Error> {
        if !self.is_ahead {
            return Ok(false);
        }
        self.logits.clear();
        let [last] = self.begun.make_contiguous() else { panic!("one call has not ended") };
        let rows = |rows: &OwnedRows| (rows.tokens.len(), rows.start + 1);
        let next = |rows: &SequenceRows<'_>| (rows.tokens.len(), rows.start);
        assert!(last.size == batch.size && last.rows.iter().map(rows).eq(batch.sequences.iter().map(next)));
        self.check(batch);
        let rows = batch.sequences.iter().map(OwnedRows::of).collect();
        let failing = self.count(batch);
        self.aheads += 1;
        self.begun.push_back(Begun { size: batch.size, rows, failing, follows: true });
        Ok(true)
    }

    /// # Panics
    /// No call was begun.
    fn end(&mut self) -> Result<Vec<SelectedRow>, Error> {
        let Begun { rows, failing, follows, .. } = self.begun.pop_front().expect("a call was begun");
        let last = self.limits.vocab as u32 - 1;
        let mut found = std::mem::take(&mut self.found).into_iter();
        let sequences = rows.iter().map(|rows| match follows {
            // What follows a failure or a NaN has any token.
            true => rows.with_tokens(vec![found.next().unwrap_or(0).min(last)]),
            false => rows.with_tokens(rows.tokens.clone()),
        });
        let sequences: Vec<_> = sequences.collect();
        if let Some(step) = failing {
            self.spoil(&sequences);
            return Err(failure(format!("run step {step}")));
        }
        self.logits.clear();
        let mut results = Vec::new();
        for rows in &sequences {
            for index in 0..rows.tokens.len() {
                let (seen, state) = self.write(rows, index);
                if rows.selected.contains(&index) {
                    let logits = (self.script)(&seen, state);
                    results.push(SelectedRow { token: best(&logits) });
                    self.logits.push(logits);
                }
            }
        }
        self.found = results.iter().map(|row| row.token).collect();
        Ok(results)
    }

    fn logits(&mut self, selected: usize) -> Result<Vec<f32>, Error> {
        let read = self.reads;
        self.reads += 1;
        if self.failing_reads.contains(&read) {
            return Err(failure(format!("read logits {read}")));
        }
        self.logits.get(selected).cloned().ok_or(Error::NoLogits)
    }

    fn best(&mut self, selected: usize) -> Result<Option<BestTokens>, Error> {
        let logits = self.logits.get(selected).ok_or(Error::NoLogits)?;
        let mut ids: Vec<usize> = (0..logits.len()).collect();
        // The sort is stable: of equal ones the lowest id comes first.
        ids.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
        ids.truncate(Self::BEST);
        let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
        Ok(Some(BestTokens {
            logits: ids.iter().map(|&id| logits[id]).collect(),
            ids: ids.into_iter().map(|id| id as u32).collect(),
            log_sum_exp: sum.ln() as f32,
        }))
    }
}

/// Returns the id with the largest logit, as devices do: the lowest on a tie, and the number of logits if one is NaN.
fn best(logits: &[f32]) -> u32 {
    if logits.iter().any(|logit| logit.is_nan()) {
        return u32::try_from(logits.len()).unwrap_or(u32::MAX);
    }
    let best = (0..logits.len()).reduce(|best, id| if logits[id] > logits[best] { id } else { best });
    best.map_or(0, |id| u32::try_from(id).unwrap_or(u32::MAX))
}

/// Returns the index of a position in its pool.
fn slot(page: u32, position: usize) -> usize {
    page as usize * PAGE + position % PAGE
}

fn failure(doing: String) -> Error {
    Error::Iree { doing, source: "the script says so".into() }
}

/// Mixes two numbers, as the finalizer of SplitMix64 does.
fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.rotate_left(5).wrapping_add(b).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedModel").field("limits", &self.limits).finish_non_exhaustive()
    }
}
