//! Errors of measurements.

/// A measurement that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// A benchmark does not fit the context.
    #[error(
        "{case} needs {needed} positions, the context has {context}\n\
         hint: lower -p, -n or -d, raise --ctx-size if it was given, or compile the bundle again with a larger one"
    )]
    BenchTooLong {
        /// The benchmark: `pp512 @ d4096`.
        case: String,
        /// Positions that it takes.
        needed: usize,
        /// Tokens that the cache holds.
        context: usize,
    },

    /// A benchmark has too many sequences.
    #[error(
        "{case} does not fit the cache or a call, which takes up to {sequences} sequences\n\
         hint: lower --parallel, or give a larger --cache-size"
    )]
    BenchTooMany {
        /// The benchmark: `pp128 + tg64 × 16`.
        case: String,
        /// Sequences that a call takes.
        sequences: usize,
    },

    /// The device lost records, because too many came at once.
    #[error(
        "{device} lost {records} records of its dispatches, expected all\n\
         hint: profile a bundle that was compiled without --separate-kernels"
    )]
    LostRecords {
        /// The device.
        device: String,
        /// How many.
        records: u64,
    },

    /// Two models to compare have different vocabularies.
    #[error(
        "the bundle has a vocabulary of {found} tokens, its reference one of {expected}\n\
         hint: compare bundles of the same checkpoint"
    )]
    OtherVocabulary {
        /// The size of the bundle's.
        found: usize,
        /// The size of the reference's.
        expected: usize,
    },

    /// The window is too short to predict a token, or larger than the context.
    #[error(
        "windows of {window} token{}, expected 2 to {context}\nhint: choose another --window",
        if *window == 1 { "" } else { "s" }
    )]
    Window {
        /// Tokens requested.
        window: usize,
        /// Tokens that the cache holds.
        context: usize,
    },

    /// The text is too short to predict a token.
    #[error(
        "the text has {tokens} token{}, expected at least 2\nhint: choose a longer text, or leave out --tokens",
        if *tokens == 1 { "" } else { "s" }
    )]
    ShortText {
        /// Its length.
        tokens: usize,
    },
}
