//! The size of the cache.

use std::str::FromStr;

use bytesize::ByteSize;

/// The size of the cache, which is reserved when a model is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheSize {
    /// Room for so many sequences of the whole context, or for what the memory allows if that is less.
    Sequences(usize),
    /// At most so many bytes.
    Bytes(u64),
}

/// The text is no size of a cache.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found {0:?}, expected a size\nhint: give bytes with a unit, as in 4GiB or 500MiB")]
pub struct ParseCacheSizeError(String);

impl Default for CacheSize {
    fn default() -> Self {
        Self::Sequences(1)
    }
}

impl FromStr for CacheSize {
    type Err = ParseCacheSizeError;

    /// Parses a number of bytes: `4GiB`, `500MB`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let size: Result<ByteSize, _> = text.parse();
        let bytes = size.map(|size| size.as_u64()).ok().filter(|&bytes| bytes > 0);
        bytes.map(Self::Bytes).ok_or_else(|| ParseCacheSizeError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed() {
        assert_eq!("4GiB".parse(), Ok(CacheSize::Bytes(4 << 30)));
        assert_eq!("500 MB".parse(), Ok(CacheSize::Bytes(500_000_000)));
        for text in ["", "0", "four", "-1GiB", "4 apples"] {
            let error = text.parse::<CacheSize>().unwrap_err().to_string();
            assert_eq!(
                error,
                format!(
                    "found {text:?}, expected a size\nhint: give bytes with a unit, as in 4GiB or 500MiB"
                )
            );
        }
    }
}
