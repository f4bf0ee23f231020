//! Lanes of a track: events that overlap are drawn beside each other.

use super::event::{Event, Track};

/// A row of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Lane {
    pub(super) track: Track,
    /// The number of the row among those of the track.
    pub(super) row: u32,
}

/// Returns the lane of each event. The events must be in the order of their starts.
///
/// Events of a thread contain each other, so that they have one lane. Others get the first lane that is free.
pub(super) fn lanes(events: &[Event]) -> Vec<Lane> {
    let mut ends: std::collections::HashMap<Track, Vec<u64>> = std::collections::HashMap::new();
    let lane = |event: &Event| {
        let track = event.track;
        if matches!(track, Track::Thread(_)) {
            return Lane { track, row: 0 };
        }
        let ends = ends.entry(track).or_default();
        let free = ends.iter().position(|&end| end <= event.start);
        let row = free.unwrap_or_else(|| {
            ends.push(0);
            ends.len() - 1
        });
        ends[row] = event.end();
        Lane { track, row: row as u32 }
    };
    events.iter().map(lane).collect()
}
