//! What an engine has, and what it has done.

use std::time::Duration;

use super::generation::Timings;

/// What an engine has at the moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Requests that wait for pages or for their turn.
    pub waiting: usize,
    /// Requests that run.
    pub running: usize,
    /// Whether the device failed for good, so that every request fails.
    pub is_stopped: bool,
    /// The pages of each pool.
    pub pools: Vec<PoolUsage>,
    /// What the engine has done.
    pub work: Work,
}

/// What an engine has done since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Calls of the device.
    pub steps: u64,
    /// Rows of these calls, without padding.
    pub rows: u64,
    /// Time of these calls.
    pub time: Duration,
    /// Tokens of prompts that were run.
    pub prompt_tokens: u64,
    /// Tokens of prompts that were not run, because pages of an earlier request had them.
    pub cached_tokens: u64,
    /// Tokens of answers.
    pub generated_tokens: u64,
    /// Tokens that were guessed and verified.
    pub drafted_tokens: u64,
    /// Guessed tokens that are part of an answer.
    pub accepted_tokens: u64,
}

/// The pages of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolUsage {
    /// All pages.
    pub pages: usize,
    /// Pages that nothing keeps.
    pub free: usize,
    /// Pages of earlier requests, which go when others need them.
    pub cached: usize,
}

impl Work {
    /// Adds what a step did for a request that had `before` and has `after`.
    pub(super) fn add(&mut self, before: &Timings, after: &Timings, generated: usize) {
        self.prompt_tokens += (after.prompt_tokens - before.prompt_tokens) as u64;
        self.drafted_tokens += (after.drafted - before.drafted) as u64;
        self.accepted_tokens += (after.accepted - before.accepted) as u64;
        self.generated_tokens += generated as u64;
    }
}
