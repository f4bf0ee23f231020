//! The bandwidth of reading memory, which limits the speed of a decode step.

use std::{io, thread, time::Instant};

use memmap2::MmapMut;

use crate::error::Error;

/// Bytes that a measurement reads: many times what caches hold.
const BYTES: usize = 1 << 30;

/// Measures how fast this machine reads memory.
///
/// Reads memory of its own in large pages, as fast as a program can, so that no step that reads weights is faster.
#[derive(Debug)]
pub struct ReadBandwidth {
    memory: MmapMut,
    threads: usize,
}

impl ReadBandwidth {
    /// Prepares to read with `threads` threads.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(threads: usize) -> Result<Self, Error> {
        let failed = |source: io::Error| Error::Memory { bytes: BYTES, source };
        let mut memory = MmapMut::map_anon(BYTES).map_err(failed)?;
        // Where large pages are not to be had, small ones do.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        memory.fill(1);
        Ok(Self { memory, threads: threads.max(1) })
    }

    /// Reads all of the memory once and returns bytes per second.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        let part = self.memory.len().div_ceil(self.threads).max(1);
        let start = Instant::now();
        thread::scope(|scope| {
            for part in self.memory.chunks(part) {
                scope.spawn(|| std::hint::black_box(sum(part)));
            }
        });
        #[expect(clippy::cast_precision_loss, reason = "a number of bytes")]
        let bytes = self.memory.len() as f64;
        bytes / start.elapsed().as_secs_f64()
    }
}

/// Sums all words, reading at four places at once as the kernels do.
fn sum(bytes: &[u8]) -> u64 {
    /// Bytes of one sweep over all four places.
    const BLOCK: usize = 256 << 10;
    const LINE: usize = 64;
    let mut sums = [[0u64; LINE / 8]; 4];
    for block in bytes.chunks(BLOCK) {
        let part = block.len() / 4 / LINE * LINE;
        let (front, back) = block.split_at(2 * part);
        let ((a, b), (c, rest)) = (front.split_at(part), back.split_at(part));
        let (d, rest) = rest.split_at(part);
        let [a, b, c, d] = [a, b, c, d].map(|part| part.chunks_exact(LINE));
        for (((a, b), c), d) in a.zip(b).zip(c).zip(d) {
            for (sums, line) in sums.iter_mut().zip([a, b, c, d]) {
                add_words(sums, line);
            }
        }
        rest.chunks(LINE).for_each(|line| add_words(&mut sums[0], line));
    }
    sums.iter().flatten().fold(0, |all, sum| all.wrapping_add(*sum))
}

/// Adds the words of a line to the sums.
fn add_words(sums: &mut [u64], line: &[u8]) {
    for (sum, word) in sums.iter_mut().zip(line.chunks_exact(8)) {
        *sum = sum.wrapping_add(u64::from_le_bytes(word.try_into().unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_reads_every_byte() {
        for words in [1, 7, 8, 9, 128, 32_768, 32_769, 100_003] {
            let word = |at: usize| u64::try_from(at * at).unwrap().to_le_bytes();
            let bytes: Vec<u8> = (0..words).flat_map(word).collect();
            let expected = (0..words).map(|at| u64::try_from(at * at).unwrap()).sum::<u64>();
            assert_eq!(sum(&bytes), expected, "{words}");
        }
    }
}
