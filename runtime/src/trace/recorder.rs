//! The events of a timeline while it is recorded.

use std::{
    collections::HashMap,
    thread::{self, ThreadId},
    time::Duration,
};

use super::event::{Count, Counted, Dispatch, Event, Track};

/// What was recorded, behind a lock.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    pub(super) events: Vec<Event>,
    pub(super) counts: Vec<Count>,
    /// The names of events, by their numbers.
    pub(super) names: Vec<String>,
    numbers: HashMap<String, u32>,
    threads: Vec<ThreadId>,
    /// The names of threads, by their numbers.
    pub(super) thread_names: Vec<String>,
    /// What the events are of.
    pub(super) device: Option<String>,
    pub(super) notes: Vec<String>,
    /// The most events.
    limit: usize,
    /// When there were so many. What begins later is left out.
    cut: Option<u64>,
    pub(super) left_out: u64,
    /// Records that the device lost.
    pub(super) lost: u64,
    /// Calls and time of the dispatches, by the numbers of their names and of their functions'. Those that are left out count too.
    totals: HashMap<(u32, Option<u32>), (u64, u64)>,
    /// The bytes of each pool.
    pools: HashMap<u64, u64>,
    /// The last number of each counter.
    last: HashMap<Counted, u64>,
}

impl Recorder {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Returns the number of a name.
    pub(super) fn name(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// Returns the track of the calling thread.
    pub(super) fn thread(&mut self) -> Track {
        let current = thread::current();
        let known = self.threads.iter().position(|&id| id == current.id());
        let number = known.unwrap_or_else(|| {
            self.threads.push(current.id());
            let number = self.threads.len();
            self.thread_names.push(current.name().map_or_else(|| format!("thread {number}"), str::to_owned));
            number - 1
        });
        Track::Thread(u16::try_from(number).unwrap_or(u16::MAX))
    }

    /// Adds a dispatch, with the number of the function that made it, if that is known.
    pub(super) fn add_dispatch(&mut self, event: Event, function: Option<u32>) {
        let (calls, time) = self.totals.entry((event.name, function)).or_default();
        (*calls, *time) = (*calls + 1, *time + event.duration);
        self.add(event);
    }

    /// Adds an event.
    pub(super) fn add(&mut self, event: Event) {
        if self.has_room(event.start) {
            self.events.push(event);
        }
    }

    /// Adds the bytes of buffers at a moment.
    pub(super) fn count_buffers(&mut self, at: u64, value: u64) {
        self.count(Counted::Buffers, at, value);
    }

    /// Adds the bytes of one pool at a moment.
    pub(super) fn count_pool(&mut self, pool: u64, at: u64, value: u64) {
        self.pools.insert(pool, value);
        let value = self.pools.values().sum();
        self.count(Counted::Pools, at, value);
    }

    /// Adds a number that is not the last one again.
    fn count(&mut self, what: Counted, at: u64, value: u64) {
        let last = self.last.insert(what, value);
        if last != Some(value) && self.has_room(at) {
            self.counts.push(Count { what, at, value });
        }
    }

    /// Returns whether an event that begins at `start` is kept. Those that began before the cut end the phases around it.
    fn has_room(&mut self, start: u64) -> bool {
        if self.cut.is_none() && self.events.len() + self.counts.len() >= self.limit {
            self.cut = Some(start);
        }
        let is_kept = self.cut.is_none_or(|cut| start < cut);
        self.left_out += u64::from(!is_kept);
        is_kept
    }

    /// Adds a number of records that the device lost.
    pub(super) fn lose(&mut self, records: u64) {
        self.lost += records;
    }

    /// Adds a note, once.
    pub(super) fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Returns calls and time of all dispatches so far, by name.
    pub(super) fn dispatches(&self) -> Vec<Dispatch> {
        let mut found: HashMap<u32, Dispatch> = HashMap::new();
        for (&(name, function), &(calls, time)) in &self.totals {
            let dispatch = found.entry(name).or_insert_with(|| Dispatch::new(&self.names[name as usize]));
            dispatch.calls += calls;
            dispatch.time += Duration::from_nanos(time);
            if let Some(function) = function {
                dispatch.functions.insert(self.names[function as usize].clone(), calls);
            }
        }
        found.into_values().collect()
    }

    /// Returns all notes, with those that follow from the numbers.
    pub(super) fn all_notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if self.left_out > 0 {
            notes.push(format!(
                "the first {} events are kept, and {} later ones were left out",
                self.events.len() + self.counts.len(),
                self.left_out
            ));
        }
        if self.lost > 0 {
            notes.push(format!("the device lost {} records of what it ran", self.lost));
        }
        notes
    }
}
