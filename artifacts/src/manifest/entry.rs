//! Signatures of a module's entry points, which emitter, manifest and runtime share.
//!
//! The emitter builds a function's arguments from [`Entry::arguments`], and the runtime fills a call from the same list.

mod best;
mod function;
mod parameter;
mod pool;

use std::fmt;

use safetensors::Dtype;
use serde::{Deserialize, Serialize};

pub use best::{BEST, best_count};
pub use function::{argument_name, result_name};
pub use parameter::{Calibration, CalibrationStep, PackCall, PackStep, Parameter};
pub use pool::{CallSizes, PAGE, PagePart, Pool};

/// An entry point of a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The name of the exported function without the module's, such as `prefill_128`.
    pub name: String,
    /// The function of a program, if it has an entry point for each of several shapes, with names of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The entry point's purpose.
    pub role: Role,
    /// An estimate of the numbers that a call of a program's function reads, computes and writes. 0 is unknown.
    #[serde(default, skip_serializing_if = "function::is_unknown")]
    pub work: u64,
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
    /// Is the function of a program. Its arguments and results are what the program says.
    Function,
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
    /// The argument's name in the program, if it says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
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
    /// The logits of a step, `[rows, vocab]`. A call in place writes its own here, `[selected, vocab]`.
    Logits,
    /// Where a call in place writes [`ResultKind::NextToken`], `[selected]`: memory that the host reads too.
    NextToken,
    /// A tensor of the cache, `[pages, …]`. The call overwrites it. A call in place takes its first page, `[1, …]`, and reaches
    /// the others from there.
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
    /// A tensor that a program's function reads.
    Input,
    /// A tensor that the caller gives away: the next call takes the result in its place.
    State {
        /// The index of the result.
        result: usize,
    },
    /// A buffer that the result of a state is written to. It is never the one that the state is read from.
    ///
    /// The storages of a function follow its other arguments, one for each state.
    Storage {
        /// The index of the result.
        result: usize,
    },
}

/// A result of an entry point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultSpec {
    /// The result's name in the program, if it says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
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
    /// A tensor that a program's function returns.
    Output,
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
    /// Returns the entry for a role of a model.
    #[must_use]
    pub fn new(role: Role, interface: &Interface<'_>) -> Self {
        let argument = |kind| ArgumentSpec::new(kind, role, interface);
        let result = |kind| ResultSpec::new(kind, role, interface);
        Self {
            name: role.entry_name().unwrap_or_default(),
            function: None,
            role,
            work: 0,
            arguments: role.arguments(interface.pools).into_iter().filter_map(argument).collect(),
            results: role.results(interface.pools).into_iter().filter_map(result).collect(),
        }
    }
}

impl Role {
    /// Returns the name of the function, such as `step_512`. Those of programs have names of their own.
    #[must_use]
    pub fn entry_name(self) -> Option<String> {
        Some(match self {
            Self::Function => return None,
            Self::Step(sizes) => format!("step_{}", sizes.rows),
            Self::Embed(sizes) => format!("embed_{}", sizes.rows),
            Self::Best { rows } => format!("best_{rows}"),
            Self::Prefill { tokens } => format!("prefill_{tokens}"),
            Self::Decode { cache } => format!("decode_{cache}"),
            Self::Encode { tokens } => format!("encode_{tokens}"),
        })
    }

    /// Returns what fits in a call, or `None` for roles that process no tokens, or only did so up to format 2.
    #[must_use]
    pub fn sizes(self) -> Option<CallSizes> {
        match self {
            Self::Step(sizes) | Self::Embed(sizes) => Some(sizes),
            Self::Best { .. }
            | Self::Function
            | Self::Prefill { .. }
            | Self::Decode { .. }
            | Self::Encode { .. } => None,
        }
    }

    /// Returns whether only bundles up to format 2 have entries in this role, which no longer run.
    #[must_use]
    pub fn is_old(self) -> bool {
        match self {
            Self::Step(_) | Self::Embed(_) | Self::Best { .. } | Self::Function => false,
            Self::Prefill { .. } | Self::Decode { .. } | Self::Encode { .. } => true,
        }
    }

    /// Returns the arguments that an entry in this role has.
    pub(crate) fn arguments(self, pools: &[Pool]) -> Vec<ArgumentKind> {
        use ArgumentKind::{
            Begins, Cache, End, FirstPages, Lengths, Logits, NextToken, Pages, Positions, Rows, Selected,
            SelectedCount, Slots, Starts, Tokens,
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
            Self::Step(sizes) if sizes.in_place => (&[Tokens, Positions], &[Selected, NextToken, Logits]),
            Self::Step(sizes) if sizes.uniform => (&[Tokens, Positions, End], &[Selected]),
            Self::Step(_) => (&[Tokens, Positions, Begins, Starts, Rows], &[Selected, SelectedCount]),
            Self::Embed(sizes) if sizes.uniform => return vec![Tokens, Positions, Lengths],
            Self::Embed(_) => return vec![Tokens, Positions, Begins, Starts, Rows, Pages { pool: 0 }],
            Self::Best { .. } => return vec![Logits, SelectedCount],
            Self::Function => return vec![],
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
            Self::Step(sizes) if sizes.in_place => logits.to_vec(),
            Self::Step(_) => logits.into_iter().chain(cache).collect(),
            Self::Prefill { .. } | Self::Decode { .. } => logits.to_vec(),
            Self::Best { .. } => vec![ResultKind::BestTokens, ResultKind::BestLogits, ResultKind::LogSumExp],
            Self::Embed(_) | Self::Encode { .. } => vec![ResultKind::Embedding],
            Self::Function => vec![],
        }
    }
}

impl ArgumentSpec {
    /// Returns the argument of this kind of an entry in `role`, or `None` if it has no such argument.
    #[must_use]
    pub fn new(kind: ArgumentKind, role: Role, interface: &Interface<'_>) -> Option<Self> {
        let Interface { context, width, pools } = *interface;
        let spec =
            |shape: &[usize]| Some(Self { name: None, kind, dtype: Dtype::I32, shape: shape.to_vec() });
        if let Role::Best { rows } = role {
            let (dtype, shape) = match kind {
                ArgumentKind::Logits => (Dtype::F32, vec![rows, width]),
                ArgumentKind::SelectedCount => (Dtype::I32, vec![1]),
                _ => return None,
            };
            return Some(Self { name: None, kind, dtype, shape });
        }
        let Some(sizes) = role.sizes() else {
            if role == Role::Function {
                return None;
            }
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
        let CallSizes { rows, sequences, selected, uniform: _, in_place } = sizes;
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
            ArgumentKind::Selected | ArgumentKind::NextToken => spec(&[selected]),
            ArgumentKind::End => spec(&[]),
            ArgumentKind::Logits => {
                Some(Self { name: None, kind, dtype: Dtype::F32, shape: vec![selected, width] })
            }
            ArgumentKind::Input | ArgumentKind::State { .. } | ArgumentKind::Storage { .. } => None,
            ArgumentKind::Cache { pool, part } => {
                let (dtype, mut shape) = cache_tensor(pools, pool, part)?;
                shape[0] = usize::from(in_place);
                Some(Self { name: None, kind, dtype, shape })
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
        let spec = |dtype, shape: &[usize]| Some(Self { name: None, kind, dtype, shape: shape.to_vec() });
        if let Role::Best { rows } = role {
            let (dtype, shape) = match kind {
                ResultKind::BestTokens => (Dtype::I32, vec![rows, best_count(width)]),
                ResultKind::BestLogits => (Dtype::F32, vec![rows, best_count(width)]),
                ResultKind::LogSumExp => (Dtype::F32, vec![rows]),
                _ => return None,
            };
            return Some(Self { name: None, kind, dtype, shape });
        }
        match kind {
            ResultKind::BestTokens | ResultKind::BestLogits | ResultKind::LogSumExp | ResultKind::Output => {
                None
            }
            ResultKind::NextToken => spec(Dtype::I32, &[selected]),
            ResultKind::Logits => spec(Dtype::F32, &[selected, width]),
            ResultKind::Embedding => spec(Dtype::F32, &[sequences, width]),
            ResultKind::Cache { pool, part } => {
                let (dtype, shape) = cache_tensor(pools, pool, part)?;
                Some(Self { name: None, kind, dtype, shape })
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
            Self::NextToken => "next_token",
            Self::Cache { pool, part } => return write!(f, "cache {pool}.{part}"),
            Self::Lengths => "lengths",
            Self::End => "end",
            Self::Input => "input",
            Self::State { .. } => "state",
            Self::Storage { .. } => "storage",
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
            Self::Output => "output",
            Self::Cache { pool, part } => return write!(f, "cache {pool}.{part}"),
        })
    }
}

#[cfg(test)]
mod tests;
