//! Signatures of a module's entry points, which emitter, manifest and runtime share.
//!
//! The emitter builds a function's arguments from [`Entry::arguments`], and the runtime fills a call from the same list.

mod best;
mod parameter;
mod pool;

use std::fmt;

use safetensors::Dtype;
use serde::{Deserialize, Serialize};

pub use best::{BEST, best_count};
pub use parameter::{Calibration, CalibrationStep, PackCall, PackStep, Parameter};
pub use pool::{CallSizes, PAGE, PagePart, Pool};

/// An entry point of a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The name of the exported function without the module's, such as `prefill_128`.
    pub name: String,
    /// The entry point's purpose.
    pub role: Role,
    /// The arguments in order.
    pub arguments: Vec<ArgumentSpec>,
    /// The results in order.
    pub results: Vec<ResultSpec>,
}

/// The purpose of an entry point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Role {
    /// Processes rows of several sequences, appends them to pages of the cache, and attends to each row's own sequence.
    Step(CallSizes),
    /// Processes whole texts, without a cache.
    Embed(CallSizes),
    /// Finds the best tokens and the logsumexp of logits that a step computed, so that sampling need not read all of them.
    Best {
        /// The rows of logits: as many as a step selects.
        rows: usize,
    },
    /// Up to format 2: processes several tokens of one sequence, and attends to all earlier positions.
    Prefill {
        /// The tokens of a row. Shorter rows are padded.
        tokens: usize,
    },
    /// Up to format 2: processes one token of one sequence, and attends to the first positions.
    Decode {
        /// The number of positions. Every row's position is below it.
        cache: usize,
    },
    /// Up to format 2: processes one text, without a cache.
    Encode {
        /// The tokens of a row. Shorter rows are padded.
        tokens: usize,
    },
}

/// What the shapes of arguments and results depend on besides [`CallSizes`].
#[derive(Debug, Clone, Copy)]
pub struct Interface<'a> {
    /// The longest sequence, in tokens.
    pub context: usize,
    /// The number of logits, or the dimensions of the embedding.
    pub width: usize,
    /// The cache.
    pub pools: &'a [Pool],
}

/// An argument of an entry point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgumentSpec {
    /// The argument's meaning.
    pub kind: ArgumentKind,
    /// The element type.
    pub dtype: Dtype,
    /// The shape. That of a scalar is empty. A first dimension of 0 is chosen at load.
    pub shape: Vec<usize>,
}

/// The meaning of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ArgumentKind {
    /// The token id of each row, `[rows]`; up to format 2 `[batch, tokens]`.
    Tokens,
    /// The position of each row in its sequence, `[rows]`; up to format 2 that of the first token, `[batch]`.
    Positions,
    /// The first row of each sequence, and the end of the last one, `[sequences + 1]`. Rows from there on are padding.
    Begins,
    /// The position of each sequence's first row, `[sequences]`.
    Starts,
    /// The number of rows without padding, `[1]`.
    Rows,
    /// The page of each 64 positions of a sequence, `[sequences, pages of the context]`.
    ///
    /// In a uniform call, those of a pool with a window begin at [`ArgumentKind::FirstPages`].
    Pages {
        /// The pool's index.
        pool: usize,
    },
    /// In a uniform call, the number of pages of each sequence that lie before the first one of the table, `[sequences]`.
    FirstPages {
        /// The pool's index.
        pool: usize,
    },
    /// In a uniform call, where each row's keys and values go: the page times 64, plus the place in the page, `[rows]`.
    Slots {
        /// The pool's index.
        pool: usize,
    },
    /// The rows whose logits are wanted, `[selected]`.
    Selected,
    /// How many of the selected rows are wanted, `[1]`.
    SelectedCount,
    /// The logits of a step, `[rows, vocab]`.
    Logits,
    /// A tensor of the cache, `[pages, …]`. The call overwrites it.
    Cache {
        /// The pool's index.
        pool: usize,
        /// The index of the tensor in the pool.
        part: usize,
    },
    /// The number of tokens of each text, `[sequences]`; up to format 2 `[batch]`.
    Lengths,
    /// One past the last position that the call attends to or writes.
    ///
    /// A scalar of the host, because the host must know how much of the cache to read without waiting for the device.
    End,
}

/// A result of an entry point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultSpec {
    /// The result's meaning.
    pub kind: ResultKind,
    /// The element type.
    pub dtype: Dtype,
    /// The shape.
    pub shape: Vec<usize>,
}

/// The meaning of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ResultKind {
    /// The token id with the largest logit after each selected row, `[selected]`. Of equal ones, the lowest id.
    NextToken,
    /// The logits after each selected row, `[selected, vocab]`.
    Logits,
    /// The token ids with the largest logits of each row, best first, `[rows, best]`; see [`BEST`].
    ///
    /// Of equal logits the lowest id comes first. NaN counts as −∞. Rows that are not wanted are not defined.
    BestTokens,
    /// The logits of [`ResultKind::BestTokens`], `[rows, best]`.
    BestLogits,
    /// The natural logarithm of the sum of the exponentials of each row's logits, `[rows]`: NaN if one of them is NaN, otherwise
    /// infinite if the largest is.
    LogSumExp,
    /// The embedding of each text, `[sequences, hidden]`.
    Embedding,
    /// A tensor of the cache after the call. The next call takes it.
    Cache {
        /// The pool's index.
        pool: usize,
        /// The index of the tensor in the pool.
        part: usize,
    },
}

/// The scope of the parameters of modules.
pub const PARAMETER_SCOPE: &str = "model";

/// The name of every model's module, as in `model.prefill_128`.
pub const MODULE_NAME: &str = "model";

/// The name of every packing module.
pub const PACKING_MODULE_NAME: &str = "packing";

impl Entry {
    /// Returns the entry for `role`.
    #[must_use]
    pub fn new(role: Role, interface: &Interface<'_>) -> Self {
        let argument = |kind| ArgumentSpec::new(kind, role, interface);
        let result = |kind| ResultSpec::new(kind, role, interface);
        Self {
            name: role.entry_name(),
            role,
            arguments: role.arguments(interface.pools).into_iter().filter_map(argument).collect(),
            results: role.results(interface.pools).into_iter().filter_map(result).collect(),
        }
    }
}

impl Role {
    /// Returns the name of the function, such as `step_512`.
    #[must_use]
    pub fn entry_name(self) -> String {
        match self {
            Self::Step(sizes) => format!("step_{}", sizes.rows),
            Self::Embed(sizes) => format!("embed_{}", sizes.rows),
            Self::Best { rows } => format!("best_{rows}"),
            Self::Prefill { tokens } => format!("prefill_{tokens}"),
            Self::Decode { cache } => format!("decode_{cache}"),
            Self::Encode { tokens } => format!("encode_{tokens}"),
        }
    }

    /// Returns what fits in a call, or `None` for roles that process no tokens, or only did so up to format 2.
    #[must_use]
    pub fn sizes(self) -> Option<CallSizes> {
        match self {
            Self::Step(sizes) | Self::Embed(sizes) => Some(sizes),
            Self::Best { .. } | Self::Prefill { .. } | Self::Decode { .. } | Self::Encode { .. } => None,
        }
    }

    /// Returns whether only bundles up to format 2 have entries in this role, which no longer run.
    #[must_use]
    pub fn is_old(self) -> bool {
        match self {
            Self::Step(_) | Self::Embed(_) | Self::Best { .. } => false,
            Self::Prefill { .. } | Self::Decode { .. } | Self::Encode { .. } => true,
        }
    }

    /// Returns the arguments that an entry in this role has.
    pub(crate) fn arguments(self, pools: &[Pool]) -> Vec<ArgumentKind> {
        use ArgumentKind::{
            Begins, Cache, End, FirstPages, Lengths, Logits, Pages, Positions, Rows, Selected, SelectedCount,
            Slots, Starts, Tokens,
        };
        let tables = |uniform: bool| {
            pools.iter().enumerate().flat_map(move |(pool, spec)| {
                let first = (uniform && spec.window.is_some()).then_some(FirstPages { pool });
                let slots = uniform.then_some(Slots { pool });
                [Some(Pages { pool }), first, slots].into_iter().flatten()
            })
        };
        let cache = pools
            .iter()
            .enumerate()
            .flat_map(|(pool, spec)| (0..spec.parts.len()).map(move |part| Cache { pool, part }));
        let (own, tail): (&[_], &[_]) = match self {
            Self::Step(sizes) if sizes.uniform => (&[Tokens, Positions, End], &[Selected]),
            Self::Step(_) => (&[Tokens, Positions, Begins, Starts, Rows], &[Selected, SelectedCount]),
            Self::Embed(sizes) if sizes.uniform => return vec![Tokens, Positions, Lengths],
            Self::Embed(_) => return vec![Tokens, Positions, Begins, Starts, Rows, Pages { pool: 0 }],
            Self::Best { .. } => return vec![Logits, SelectedCount],
            Self::Prefill { .. } | Self::Decode { .. } => return vec![Tokens, Positions],
            Self::Encode { .. } => return vec![Tokens, Lengths],
        };
        let uniform = self.sizes().is_some_and(|sizes| sizes.uniform);
        let tail = tail.iter().copied();
        own.iter().copied().chain(tables(uniform)).chain(tail).chain(cache).collect()
    }

    /// Returns the results of an entry in this role.
    pub(crate) fn results(self, pools: &[Pool]) -> Vec<ResultKind> {
        let logits = [ResultKind::NextToken, ResultKind::Logits];
        let cache = pools
            .iter()
            .enumerate()
            .flat_map(|(pool, spec)| (0..spec.parts.len()).map(move |part| ResultKind::Cache { pool, part }));
        match self {
            Self::Step(_) => logits.into_iter().chain(cache).collect(),
            Self::Prefill { .. } | Self::Decode { .. } => logits.to_vec(),
            Self::Best { .. } => vec![ResultKind::BestTokens, ResultKind::BestLogits, ResultKind::LogSumExp],
            Self::Embed(_) | Self::Encode { .. } => vec![ResultKind::Embedding],
        }
    }
}

impl ArgumentSpec {
    /// Returns the argument of this kind of an entry in `role`, or `None` if it has no such argument.
    #[must_use]
    pub fn new(kind: ArgumentKind, role: Role, interface: &Interface<'_>) -> Option<Self> {
        let Interface { context, width, pools } = *interface;
        let spec = |shape: &[usize]| Some(Self { kind, dtype: Dtype::I32, shape: shape.to_vec() });
        if let Role::Best { rows } = role {
            let (dtype, shape) = match kind {
                ArgumentKind::Logits => (Dtype::F32, vec![rows, width]),
                ArgumentKind::SelectedCount => (Dtype::I32, vec![1]),
                _ => return None,
            };
            return Some(Self { kind, dtype, shape });
        }
        let Some(sizes) = role.sizes() else {
            // Up to format 2, every call had one sequence.
            return match (kind, role) {
                (ArgumentKind::Tokens, Role::Prefill { tokens } | Role::Encode { tokens }) => {
                    spec(&[1, tokens])
                }
                (ArgumentKind::Tokens, _) => spec(&[1, 1]),
                (ArgumentKind::Positions | ArgumentKind::Lengths, _) => spec(&[1]),
                (ArgumentKind::End, _) => spec(&[]),
                _ => None,
            };
        };
        let CallSizes { rows, sequences, selected, uniform: _ } = sizes;
        match kind {
            ArgumentKind::Tokens | ArgumentKind::Positions | ArgumentKind::Slots { .. } => spec(&[rows]),
            ArgumentKind::Begins => spec(&[sequences.checked_add(1)?]),
            ArgumentKind::Starts | ArgumentKind::Lengths | ArgumentKind::FirstPages { .. } => {
                spec(&[sequences])
            }
            ArgumentKind::Pages { pool } => match (role, pools.get(pool)) {
                (Role::Embed(_), _) => spec(&[sequences, context.div_ceil(PAGE)]),
                (_, pool) => spec(&[sequences, pool?.table_pages(context, sizes)]),
            },
            ArgumentKind::Rows | ArgumentKind::SelectedCount => spec(&[1]),
            ArgumentKind::Selected => spec(&[selected]),
            ArgumentKind::End => spec(&[]),
            ArgumentKind::Logits => None,
            ArgumentKind::Cache { pool, part } => {
                let (dtype, shape) = cache_tensor(pools, pool, part)?;
                Some(Self { kind, dtype, shape })
            }
        }
    }
}

impl ResultSpec {
    /// Returns the result of this kind of an entry in `role`, or `None` if it has no such result.
    #[must_use]
    pub fn new(kind: ResultKind, role: Role, interface: &Interface<'_>) -> Option<Self> {
        let Interface { context: _, width, pools } = *interface;
        // Up to format 2, every call had one sequence.
        let (sequences, selected) = role.sizes().map_or((1, 1), |sizes| (sizes.sequences, sizes.selected));
        let spec = |dtype, shape: &[usize]| Some(Self { kind, dtype, shape: shape.to_vec() });
        if let Role::Best { rows } = role {
            let (dtype, shape) = match kind {
                ResultKind::BestTokens => (Dtype::I32, vec![rows, best_count(width)]),
                ResultKind::BestLogits => (Dtype::F32, vec![rows, best_count(width)]),
                ResultKind::LogSumExp => (Dtype::F32, vec![rows]),
                _ => return None,
            };
            return Some(Self { kind, dtype, shape });
        }
        match kind {
            ResultKind::BestTokens | ResultKind::BestLogits | ResultKind::LogSumExp => None,
            ResultKind::NextToken => spec(Dtype::I32, &[selected]),
            ResultKind::Logits => spec(Dtype::F32, &[selected, width]),
            ResultKind::Embedding => spec(Dtype::F32, &[sequences, width]),
            ResultKind::Cache { pool, part } => {
                let (dtype, shape) = cache_tensor(pools, pool, part)?;
                Some(Self { kind, dtype, shape })
            }
        }
    }
}

/// Returns the type of a tensor of the cache. Its first dimension, the number of pages, is chosen at load.
fn cache_tensor(pools: &[Pool], pool: usize, part: usize) -> Option<(Dtype, Vec<usize>)> {
    let part = pools.get(pool)?.parts.get(part)?;
    Some((part.dtype, [&[0], part.shape.as_slice()].concat()))
}

impl fmt::Display for ArgumentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tokens => "tokens",
            Self::Positions => "positions",
            Self::Begins => "begins",
            Self::Starts => "starts",
            Self::Rows => "rows",
            Self::Pages { pool } => return write!(f, "pages of pool {pool}"),
            Self::FirstPages { pool } => return write!(f, "first pages of pool {pool}"),
            Self::Slots { pool } => return write!(f, "slots of pool {pool}"),
            Self::Selected => "selected",
            Self::SelectedCount => "selected_count",
            Self::Logits => "logits",
            Self::Cache { pool, part } => return write!(f, "cache {pool}.{part}"),
            Self::Lengths => "lengths",
            Self::End => "end",
        })
    }
}

impl fmt::Display for ResultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NextToken => "next_token",
            Self::Logits => "logits",
            Self::BestTokens => "best_tokens",
            Self::BestLogits => "best_logits",
            Self::LogSumExp => "log_sum_exp",
            Self::Embedding => "embedding",
            Self::Cache { pool, part } => return write!(f, "cache {pool}.{part}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::type_text;

    #[test]
    fn entries_by_role() {
        let part = |dtype, width| PagePart { dtype, shape: vec![4, 8, PAGE, width] };
        let pools = [
            Pool { window: None, parts: vec![part(Dtype::I8, 64), part(Dtype::F16, 2)] },
            Pool { window: Some(100), parts: vec![part(Dtype::BF16, 64)] },
        ];
        let text = |role, pools: &[Pool]| {
            let entry = Entry::new(role, &Interface { context: 1000, width: 50, pools });
            let arguments =
                entry.arguments.iter().map(|a| format!("{} {}", a.kind, type_text(a.dtype, &a.shape)));
            let results =
                entry.results.iter().map(|r| format!("{} {}", r.kind, type_text(r.dtype, &r.shape)));
            format!(
                "{}: {} -> {}",
                entry.name,
                arguments.collect::<Vec<_>>().join(", "),
                results.collect::<Vec<_>>().join(", ")
            )
        };
        let sizes = |uniform| CallSizes { rows: 32, sequences: 2, selected: 3, uniform };
        assert_eq!(
            text(Role::Step(sizes(false)), &pools),
            "step_32: tokens i32[32], positions i32[32], begins i32[3], starts i32[2], rows i32[1], \
             pages of pool 0 i32[2,16], pages of pool 1 i32[2,16], selected i32[3], selected_count i32[1], \
             cache 0.0 i8[0,4,8,64,64], cache 0.1 f16[0,4,8,64,2], cache 1.0 bf16[0,4,8,64,64] \
             -> next_token i32[3], logits f32[3,50], cache 0.0 i8[0,4,8,64,64], cache 0.1 f16[0,4,8,64,2], \
             cache 1.0 bf16[0,4,8,64,64]"
        );
        assert_eq!(
            text(Role::Step(sizes(true)), &pools[1..]),
            "step_32: tokens i32[32], positions i32[32], end i32[], pages of pool 0 i32[2,3], \
             first pages of pool 0 i32[2], slots of pool 0 i32[32], selected i32[3], \
             cache 0.0 bf16[0,4,8,64,64] -> next_token i32[3], logits f32[3,50], cache 0.0 bf16[0,4,8,64,64]"
        );
        assert_eq!(
            text(Role::Embed(sizes(false)), &[]),
            "embed_32: tokens i32[32], positions i32[32], begins i32[3], starts i32[2], rows i32[1], \
             pages of pool 0 i32[2,16] -> embedding f32[2,50]"
        );
        assert_eq!(
            text(Role::Embed(sizes(true)), &[]),
            "embed_32: tokens i32[32], positions i32[32], lengths i32[2] -> embedding f32[2,50]"
        );
        assert_eq!(
            text(Role::Best { rows: 3 }, &pools),
            "best_3: logits f32[3,50], selected_count i32[1] \
             -> best_tokens i32[3,50], best_logits f32[3,50], log_sum_exp f32[3]"
        );
        assert_eq!(
            text(Role::Prefill { tokens: 128 }, &[]),
            "prefill_128: tokens i32[1,128], positions i32[1] -> next_token i32[1], logits f32[1,50]"
        );
    }
}
