//! The bandwidth of reading memory, which limits the speed of a decode step.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use memmap2::MmapMut;

use crate::error::Error;

/// Bytes that a measurement reads: many times what caches hold.
const BYTES: usize = 1 << 30;

/// The size of large pages, of which each thread has whole ones.
const PAGE: usize = 2 << 20;

/// The shortest time of a measurement: where memory is fast, one read of all ends before the threads are up to speed.
const LEAST: Duration = Duration::from_millis(200);

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
        let threads = threads.max(1);
        // Each thread fills what it will read, because a page lies near the processor that wrote to it first.
        thread::scope(|scope| {
            for part in memory.chunks_mut(part(BYTES, threads)) {
                scope.spawn(move || part.fill(1));
            }
        });
        Ok(Self { memory, threads })
    }

    /// Reads all of the memory, again and again for a while, and returns bytes per second.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        let start = Instant::now();
        let mut bytes = 0.0;
        while start.elapsed() < LEAST {
            thread::scope(|scope| {
                for part in self.memory.chunks(part(self.memory.len(), self.threads)) {
                    scope.spawn(|| std::hint::black_box(sum(part)));
                }
            });
            #[expect(clippy::cast_precision_loss, reason = "a number of bytes")]
            let all = self.memory.len() as f64;
            bytes += all;
        }
        bytes / start.elapsed().as_secs_f64()
    }
}

/// Returns the bytes of each of so many threads: whole pages, of which the last thread may have fewer.
fn part(bytes: usize, threads: usize) -> usize {
    bytes.div_ceil(threads).next_multiple_of(PAGE)
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
    fn every_thread_has_whole_pages_and_all_of_them_have_all() {
        for threads in [1, 2, 3, 7, 64, 511, 512, 1000] {
            let part = part(BYTES, threads);
            assert!(part.is_multiple_of(PAGE), "{threads}");
            assert!(BYTES.div_ceil(part) <= threads, "{threads}");
        }
        assert_eq!([part(BYTES, 1), part(BYTES, 2)], [BYTES, BYTES / 2]);
    }

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
