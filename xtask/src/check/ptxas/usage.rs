//! What a kernel takes of a multiprocessor, as ptxas says.

use std::fmt;

use anyhow::{Result, bail};

/// Registers of a thread, and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) registers: u32,
    /// Static shared memory of a block.
    pub(super) shared: u32,
    /// Local memory of a thread.
    pub(super) stack: u32,
    pub(super) spill_stores: u32,
    pub(super) spill_loads: u32,
}

impl Usage {
    /// Reads what `ptxas -v` prints of PTX with one kernel.
    pub(super) fn of_output(text: &str) -> Result<Self> {
        let (Some(registers), Some(stack)) = (before(text, " registers"), before(text, " bytes stack frame"))
        else {
            bail!("found no registers and stack in what ptxas says, expected both\n{}", text.trim_end());
        };
        Ok(Self {
            registers,
            shared: before(text, " bytes smem").unwrap_or(0),
            stack,
            spill_stores: before(text, " bytes spill stores").unwrap_or(0),
            spill_loads: before(text, " bytes spill loads").unwrap_or(0),
        })
    }

    /// Returns whether registers do not hold all that a thread needs.
    pub(super) fn spills(&self) -> bool {
        self.spill_stores > 0 || self.spill_loads > 0
    }

    /// Reads what [`fmt::Display`] writes.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split('/').map(|number| number.parse().ok());
        let mut next = || numbers.next().unwrap_or(Some(0));
        let usage = Self {
            registers: next()?,
            shared: next()?,
            stack: next()?,
            spill_stores: next()?,
            spill_loads: next()?,
        };
        numbers.next().is_none().then_some(usage)
    }
}

/// Writes `registers/shared/stack/stores/loads`, without the zeros at the end.
impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { registers, shared, stack, spill_stores, spill_loads } = self;
        let bytes = [shared, stack, spill_stores, spill_loads];
        let count = bytes.iter().rposition(|&&number| number > 0).map_or(0, |last| last + 1);
        let rest: String = bytes[..count].iter().map(|number| format!("/{number}")).collect();
        f.pad(&format!("{registers}{rest}"))
    }
}

/// Returns the number before the first place with these words.
fn before(text: &str, words: &str) -> Option<u32> {
    let (start, _) = text.split_once(words)?;
    start.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What ptxas 12.9 prints.
    const SPILLING: &str = "ptxas info    : 0 bytes gmem\n\
        ptxas info    : Compiling entry function 'cuda_a' for 'sm_90'\n\
        ptxas info    : Function properties for cuda_a\n    \
        56 bytes stack frame, 48 bytes spill stores, 52 bytes spill loads\n\
        ptxas info    : Used 255 registers, used 1 barriers, 56 bytes cumulative stack size, 16384 bytes smem, 400 bytes cmem[0]\n\
        ptxas info    : Compile time = 9.000 ms\n";

    #[test]
    fn what_ptxas_says_is_read() {
        let usage = Usage::of_output(SPILLING).unwrap();
        assert_eq!(usage.to_string(), "255/16384/56/48/52");
        assert!(usage.spills());
        let plain = SPILLING.replace("16384 bytes smem, ", "").replace("48", "0").replace("52", "0");
        let usage = Usage::of_output(&plain.replace("56", "0")).unwrap();
        assert_eq!((usage.to_string().as_str(), usage.spills()), ("255", false));
        let error = Usage::of_output("ptxas fatal   : no").unwrap_err().to_string();
        assert_eq!(
            error,
            "found no registers and stack in what ptxas says, expected both\nptxas fatal   : no"
        );
    }

    #[test]
    fn a_cell_is_read_as_it_is_written() {
        for text in ["32", "40/1024", "40/0/16", "255/16384/56/48/52"] {
            assert_eq!(Usage::read(text).unwrap().to_string(), text);
        }
        for text in ["", "-", "32/", "1/2/3/4/5/6", "a"] {
            assert_eq!(Usage::read(text), None, "{text}");
        }
    }
}
