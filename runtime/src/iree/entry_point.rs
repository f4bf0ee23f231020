//! Entry points of a module, and the pages that they share.

use mlxcel_artifacts::entry::{
    ArgumentKind, ArgumentSpec, CallSizes, Entry, PAGE, PagePart, Pool, ResultKind,
};

use super::function::Function;
use crate::{
    error::Error,
    ffi::{self, Input, Module, Tensor},
    model::SequenceRows,
};

/// The pages of all pools on the device.
#[derive(Debug)]
pub(super) struct Cache {
    pools: Vec<Pool>,
    /// The tensors of each pool, `[pages, …]`.
    tensors: Vec<Vec<Tensor>>,
    /// Their first pages, which calls in place take.
    firsts: Vec<Vec<Tensor>>,
}

impl Cache {
    /// Makes a cache without pools, for texts that attend to themselves alone.
    pub(super) fn none() -> Self {
        Self { pools: Vec::new(), tensors: Vec::new(), firsts: Vec::new() }
    }

    /// Allocates `pages` of each pool, page 0 included; with `zeros`, their elements are zero.
    pub(super) fn reserve(
        module: &Module,
        pools: &[Pool],
        pages: &[usize],
        zeros: bool,
    ) -> Result<Self, Error> {
        let tensor = |part: &PagePart, pages: usize| {
            let shape = [&[pages], part.shape.as_slice()].concat();
            Tensor::allocate(module, part.dtype, &shape, zeros)
        };
        let pool = |(pool, &pages): (&Pool, &usize)| {
            pool.parts.iter().map(|part| tensor(part, pages)).collect::<Result<Vec<_>, _>>()
        };
        let reserved = || {
            let tensors = pools.iter().zip(pages).map(pool).collect::<Result<Vec<_>, ffi::Error>>()?;
            let firsts = |pool: &Vec<Tensor>| pool.iter().map(Tensor::first).collect();
            let firsts = tensors.iter().map(firsts).collect::<Result<_, _>>()?;
            Ok::<_, ffi::Error>(Self { pools: pools.to_vec(), tensors, firsts })
        };
        reserved().map_err(Error::iree(|| "reserve the cache".into()))
    }
}

/// An entry point of the module.
pub(super) struct EntryPoint {
    sizes: CallSizes,
    /// Calls of the function, in turns. Two if each can take the tokens that the other finds, and one otherwise.
    calls: Vec<EntryCall>,
    /// The index of the call whose turn is next.
    next: usize,
    /// Calls that were begun and have not ended.
    running: usize,
}

/// A call of an entry point's function.
struct EntryCall {
    function: Function,
    /// Values of the arguments, in their order. Tensors have none, but for tokens that the host writes to one.
    values: Vec<Vec<i32>>,
    /// Arguments that are tensors of this call, in their order: where a call in place writes results, and the tokens that
    /// another call writes.
    places: Vec<Option<Tensor>>,
}

impl EntryPoint {
    /// Finds the function of `entry` and allocates its arguments.
    pub(super) fn new(module: &Module, entry: &Entry) -> Result<Self, Error> {
        let sizes = entry.role.sizes();
        let sizes =
            sizes.ok_or_else(|| Error::Unsupported(format!("{} is of an older format", entry.name)))?;
        let calls = if takes_its_own_tokens(entry, sizes) {
            let mut calls = [(); 2].map(|()| EntryCall::new(module, entry, &[ArgumentKind::Tokens]));
            if let [Ok(first), Ok(second)] = &mut calls {
                first.take_tokens_of(second);
                second.take_tokens_of(first);
            }
            calls.into_iter().collect()
        } else {
            EntryCall::new(module, entry, &[]).map(|call| vec![call])
        };
        Ok(Self { sizes, calls: calls?, next: 0, running: 0 })
    }

    /// Returns what fits in a call.
    pub(super) fn sizes(&self) -> CallSizes {
        self.sizes
    }

    /// Returns the function.
    pub(super) fn function(&self) -> &Function {
        &self.calls[0].function
    }

    /// Runs the function on rows that fit, and returns its results without the cache.
    pub(super) fn run(
        &mut self,
        sequences: &[SequenceRows<'_>],
        cache: &mut Cache,
    ) -> Result<Vec<Option<Tensor>>, Error> {
        self.begin(sequences, cache)?;
        self.end(cache)
    }

    /// Begins to run the function on rows that fit. No call was begun that has not ended.
    pub(super) fn begin(&mut self, sequences: &[SequenceRows<'_>], cache: &Cache) -> Result<(), Error> {
        let rows = RowPlaces::new(self.sizes, sequences);
        let call = &mut self.calls[self.next];
        call.fill(&rows, cache);
        call.write_tokens()?;
        self.start(cache)
    }

    /// Begins to run the function on as many rows as those of the call that was begun, with the tokens which that finds.
    /// Returns whether it can.
    pub(super) fn begin_next(
        &mut self,
        sequences: &[SequenceRows<'_>],
        cache: &Cache,
    ) -> Result<bool, Error> {
        let is_ready = self.calls.len() > self.running && self.running > 0;
        if !is_ready || !self.calls.iter().all(|call| call.function.is_replayed()) {
            return Ok(false);
        }
        self.calls[self.next].fill(&RowPlaces::new(self.sizes, sequences), cache);
        self.start(cache)?;
        Ok(true)
    }

    fn start(&mut self, cache: &Cache) -> Result<(), Error> {
        self.calls[self.next].start(if self.sizes.in_place { &cache.firsts } else { &cache.tensors })?;
        self.next = (self.next + 1) % self.calls.len();
        self.running += 1;
        Ok(())
    }

    /// Waits for the call that was begun first, and returns its results without the cache.
    pub(super) fn end(&mut self, cache: &mut Cache) -> Result<Vec<Option<Tensor>>, Error> {
        let count = self.calls.len();
        let function = &mut self.calls[(self.next + count - self.running) % count].function;
        self.running -= 1;
        let mut results = function.end()?;
        for (spec, result) in function.entry().results.iter().zip(&mut results) {
            if let ResultKind::Cache { pool, part } = spec.kind
                && let Some(written) = result.take()
            {
                cache.tensors[pool][part] = written;
            }
        }
        Ok(results)
    }
}

/// Returns whether a call can take its tokens from where another one writes those that it finds: the token of each row is to be
/// in its place, so that every row is of another sequence.
fn takes_its_own_tokens(entry: &Entry, sizes: CallSizes) -> bool {
    let shape_of = |kind| entry.arguments.iter().find(|a| a.kind == kind).map(|a| (a.dtype, &a.shape));
    let [tokens, found] = [ArgumentKind::Tokens, ArgumentKind::NextToken].map(shape_of);
    sizes.in_place && sizes.rows_of_a_sequence() == 1 && tokens.is_some() && tokens == found
}

impl EntryCall {
    fn new(module: &Module, entry: &Entry, passed: &[ArgumentKind]) -> Result<Self, Error> {
        let function = Function::new(module, entry, passed)?;
        let values = entry.arguments.iter().map(|argument| match argument.kind {
            // Megabytes, which every call would clear.
            ArgumentKind::Cache { .. } | ArgumentKind::Logits | ArgumentKind::NextToken => Vec::new(),
            _ => vec![0; argument.shape.iter().product()],
        });
        let values = values.collect();
        let place = |argument: &ArgumentSpec| {
            let ArgumentSpec { dtype, shape, .. } = argument;
            Ok(match argument.kind {
                // The host reads it after every call.
                ArgumentKind::NextToken => Some(Tensor::allocate_on_host(module, *dtype, shape)?),
                ArgumentKind::Logits => Some(Tensor::allocate(module, *dtype, shape, false)?),
                _ => None,
            })
        };
        let places = entry.arguments.iter().map(place).collect::<Result<_, ffi::Error>>();
        let places = places.map_err(Error::iree(|| format!("prepare {}", entry.name)))?;
        Ok(Self { function, values, places })
    }

    /// Takes tokens from where `other` writes those that it finds.
    fn take_tokens_of(&mut self, other: &Self) {
        let index = |call: &Self, kind| call.function.entry().arguments.iter().position(|a| a.kind == kind);
        let (tokens, found) = (index(self, ArgumentKind::Tokens), index(other, ArgumentKind::NextToken));
        if let (Some(tokens), Some(found)) = (tokens, found) {
            self.places[tokens] = other.places[found].as_ref().map(Tensor::share);
        }
    }

    /// Sets the values of the arguments.
    fn fill(&mut self, rows: &RowPlaces<'_>, cache: &Cache) {
        for (argument, values) in self.function.entry().arguments.iter().zip(&mut self.values) {
            rows.fill(argument.kind, &argument.shape, values, &cache.pools);
        }
    }

    /// Writes the tokens to where another call would write them, if this one takes them from there.
    fn write_tokens(&mut self) -> Result<(), Error> {
        let entry = self.function.entry();
        for ((argument, values), place) in entry.arguments.iter().zip(&self.values).zip(&mut self.places) {
            if let (ArgumentKind::Tokens, Some(place)) = (argument.kind, place) {
                place
                    .write(ffi::bytes(values))
                    .map_err(Error::iree(|| format!("write the tokens of {}", entry.name)))?;
            }
        }
        Ok(())
    }

    /// Begins the call with these tensors of the cache.
    fn start(&mut self, cache: &[Vec<Tensor>]) -> Result<(), Error> {
        let Self { function, values, places } = self;
        let arguments = function.entry().arguments.iter().zip(values.iter().zip(&*places));
        let inputs = arguments.map(|(argument, (values, place))| match (argument.kind, place) {
            (ArgumentKind::Cache { pool, part }, _) => Input::Tensor(&cache[pool][part]),
            (_, Some(place)) => Input::Tensor(place),
            (_, None) => Input::Bytes(ffi::bytes(values)),
        });
        let inputs: Vec<_> = inputs.collect();
        function.begin(inputs)
    }
}

/// Where the rows of each sequence are in a call.
struct RowPlaces<'a> {
    sequences: &'a [SequenceRows<'a>],
    /// The first row of each sequence.
    begins: Vec<usize>,
    /// The rows of all sequences.
    count: usize,
    /// Whether the call is uniform, see [`CallSizes::uniform`].
    uniform: bool,
}

impl<'a> RowPlaces<'a> {
    fn new(sizes: CallSizes, sequences: &'a [SequenceRows<'a>]) -> Self {
        let mut count = 0;
        let begin = |(index, rows): (usize, &SequenceRows<'_>)| {
            let begin = if sizes.uniform { index * sizes.rows_of_a_sequence() } else { count };
            count += rows.tokens.len();
            begin
        };
        let begins = sequences.iter().enumerate().map(begin).collect();
        Self { sequences, begins, count, uniform: sizes.uniform }
    }

    /// Sets the values of an argument. Values of padding are zeros, so that it writes to page 0.
    ///
    /// In a valid manifest token ids, positions and pages fit an i32.
    fn fill(&self, kind: ArgumentKind, shape: &[usize], values: &mut [i32], pools: &[Pool]) {
        values.fill(0);
        match kind {
            ArgumentKind::Tokens => self.each_row(|row, sequence, index| {
                values[row] = sequence.tokens[index] as i32;
            }),
            ArgumentKind::Positions => self.each_row(|row, sequence, index| {
                values[row] = (sequence.start + index) as i32;
            }),
            ArgumentKind::Slots { pool } => self.each_row(|row, sequence, index| {
                let position = sequence.start + index;
                let page = sequence.pages[pool][position / PAGE] as usize;
                values[row] = (page * PAGE + position % PAGE) as i32;
            }),
            ArgumentKind::Begins => {
                values.fill(self.count as i32);
                values.iter_mut().zip(&self.begins).for_each(|(value, &begin)| *value = begin as i32);
            }
            ArgumentKind::Starts => self.each_sequence(values, |sequence| sequence.start),
            ArgumentKind::Lengths => {
                values.fill(1);
                self.each_sequence(values, |sequence| sequence.tokens.len());
            }
            ArgumentKind::Rows => values[0] = self.count as i32,
            ArgumentKind::Pages { pool } => {
                for (table, sequence) in values.chunks_mut(shape[1]).zip(self.sequences) {
                    let first = self.first_page(sequence, pool, pools);
                    let pages = sequence.pages[pool].iter().skip(first);
                    table.iter_mut().zip(pages).for_each(|(value, &page)| *value = page as i32);
                }
            }
            ArgumentKind::FirstPages { pool } => {
                self.each_sequence(values, |sequence| self.first_page(sequence, pool, pools));
            }
            ArgumentKind::Selected => {
                let rows = self.sequences.iter().zip(&self.begins);
                let rows =
                    rows.flat_map(|(sequence, begin)| sequence.selected.iter().map(move |row| begin + row));
                values.iter_mut().zip(rows).for_each(|(value, row)| *value = row as i32);
            }
            ArgumentKind::SelectedCount => {
                values[0] =
                    self.sequences.iter().map(|sequence| sequence.selected.len()).sum::<usize>() as i32;
            }
            ArgumentKind::End => {
                let ends = self.sequences.iter().map(|sequence| sequence.start + sequence.tokens.len());
                values[0] = ends.max().unwrap_or(1) as i32;
            }
            // Tensors of the device.
            ArgumentKind::Cache { .. }
            | ArgumentKind::Logits
            | ArgumentKind::NextToken
            | ArgumentKind::Input
            | ArgumentKind::State { .. }
            | ArgumentKind::Storage { .. } => {}
        }
    }

    /// Calls `each` with every row, its sequence and its index in the sequence.
    fn each_row(&self, mut each: impl FnMut(usize, &SequenceRows<'_>, usize)) {
        for (sequence, begin) in self.sequences.iter().zip(&self.begins) {
            for index in 0..sequence.tokens.len() {
                each(begin + index, sequence, index);
            }
        }
    }

    fn each_sequence(&self, values: &mut [i32], number: impl Fn(&SequenceRows<'_>) -> usize) {
        values.iter_mut().zip(self.sequences).for_each(|(value, sequence)| *value = number(sequence) as i32);
    }

    /// Returns how many pages of a sequence lie before its table.
    fn first_page(&self, sequence: &SequenceRows<'_>, pool: usize, pools: &[Pool]) -> usize {
        let window = pools.get(pool).and_then(|pool| pool.window).filter(|_| self.uniform);
        window.map_or(0, |window| (sequence.start + 1).saturating_sub(window) / PAGE)
    }
}

#[cfg(test)]
mod tests;
