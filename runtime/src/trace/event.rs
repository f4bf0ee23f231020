//! The events of a timeline.

use std::{collections::BTreeMap, time::Duration};

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A phase of the program, such as a step of the engine.
    Phase,
    /// A call of a function of the module.
    Call,
    /// Bytes that move between host and device, or within the device.
    Transfer,
    /// The host waits for the device.
    Wait,
    /// Memory is reserved or given back.
    Allocation,
    /// Commands that the device's queue runs.
    Queue,
    /// A dispatch, from its first workgroup to its last.
    Dispatch,
    /// Workgroups of a dispatch that one thread of the device runs.
    Workgroups,
}

impl Kind {
    /// Returns the name, which is the category in files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Phase => "phase",
            Self::Call => "call",
            Self::Transfer => "transfer",
            Self::Wait => "wait",
            Self::Allocation => "allocation",
            Self::Queue => "queue",
            Self::Dispatch => "dispatch",
            Self::Workgroups => "workgroups",
        }
    }
}

/// Where an event happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Track {
    /// A thread of the program, by its number in the timeline.
    Thread(u16),
    /// The queue of the device.
    Queue,
    /// The dispatches of the device.
    Dispatches,
    /// A thread of the device.
    Worker(u16),
}

/// Numbers of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// None.
    #[default]
    None,
    /// The bytes that are moved or reserved.
    Bytes(u64),
    /// The tokens of a text.
    Tokens(u64),
    /// The rows of a step, and of how many sequences they are.
    Rows {
        /// Rows without padding.
        rows: u32,
        /// Sequences.
        sequences: u32,
    },
    /// The size of a dispatch.
    Dispatch {
        /// Workgroups in each dimension.
        workgroups: [u32; 3],
        /// The time of all threads together, in nanoseconds; 0 if the device does not tell.
        busy: u64,
    },
    /// The number of workgroups.
    Workgroups(u64),
}

/// An event with a beginning and a length, in nanoseconds since the timeline began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) track: Track,
    pub(crate) kind: Kind,
    /// The number of the name.
    pub(crate) name: u32,
    pub(crate) start: u64,
    pub(crate) duration: u64,
    pub(crate) detail: Detail,
}

impl Event {
    /// Returns the time at which it ends.
    pub(super) fn end(&self) -> u64 {
        self.start.saturating_add(self.duration)
    }
}

/// What a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Counted {
    /// Bytes of buffers: arguments, the cache, copied weights.
    Buffers,
    /// Bytes of the pools, from which calls take memory while they run and for their results.
    Pools,
}

/// A number at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) what: Counted,
    pub(crate) at: u64,
    pub(crate) value: u64,
}

/// The calls of one dispatch, in a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// The dispatch's name.
    pub name: String,
    /// The number of calls.
    pub calls: u64,
    /// The time from start to end, summed over the calls.
    pub time: Duration,
    /// The calls by each function of the module, such as `step_1`, as far as that is known.
    pub functions: BTreeMap<String, u64>,
}

impl Dispatch {
    /// Returns the dispatch before its first call.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), calls: 0, time: Duration::ZERO, functions: BTreeMap::new() }
    }
}
