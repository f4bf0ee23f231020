//! Speed of a session, in the form of llama-bench: a prompt of n tokens, or n decode steps, at a depth.

use std::{
    fmt,
    time::{Duration, Instant},
};

use mlxcel_artifacts::Cancel;

use crate::{error::Error, session::Session, weights::Weights};

/// The work that a benchmark measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchWork {
    /// One prompt of this many tokens (`pp`).
    Prompt(usize),
    /// This many decode steps of one token (`tg`).
    Decode(usize),
}

/// A benchmark: work, and its position in the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BenchCase {
    /// The work.
    pub work: BenchWork,
    /// Tokens in the cache before it.
    pub depth: usize,
}

/// The result of one repetition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BenchSample {
    /// Tokens per second.
    pub tok_s: f64,
    /// Bytes per second of the read of the weights just before, if there was one.
    pub read_bytes_s: Option<f64>,
}

/// Mean and sample standard deviation, with the divisor n - 1 as in llama-bench.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistics {
    /// The mean.
    pub mean: f64,
    /// The standard deviation; 0 for one value.
    pub deviation: f64,
}

impl BenchCase {
    /// Returns the number of tokens of the work.
    #[must_use]
    pub fn tokens(&self) -> usize {
        let (BenchWork::Prompt(tokens) | BenchWork::Decode(tokens)) = self.work;
        tokens
    }

    /// Runs the work once to warm up, then `repetitions` times. Measures `read` before each, if there is one.
    ///
    /// # Errors
    /// The sequence does not fit the session, the session fails, or `cancel` is set.
    pub fn run(
        &self,
        session: &mut dyn Session,
        repetitions: usize,
        read: Option<&ReadBandwidth>,
        cancel: &Cancel,
    ) -> Result<Vec<BenchSample>, Error> {
        self.prepare(session)?;
        let mut samples = Vec::with_capacity(repetitions);
        for repetition in 0..=repetitions {
            let read_bytes_s = read.map(ReadBandwidth::bytes_per_second);
            let took = self.once(session, cancel)?;
            #[expect(clippy::cast_precision_loss, reason = "a number of tokens")]
            let tok_s = self.tokens() as f64 / took.as_secs_f64();
            if repetition > 0 {
                samples.push(BenchSample { tok_s, read_bytes_s });
            }
        }
        Ok(samples)
    }

    /// Fills the sequence up to the depth.
    ///
    /// # Errors
    /// The sequence does not fit the session, or the session fails.
    pub fn prepare(&self, session: &mut dyn Session) -> Result<(), Error> {
        let (context, needed) = (session.capabilities().context, self.depth.saturating_add(self.tokens()));
        if needed > context {
            return Err(Error::BenchTooLong { case: self.to_string(), needed, context });
        }
        // Tokens that are in the cache already serve as well as others: their ids do not change the time.
        session.rewind(session.position().min(self.depth))?;
        let missing = self.depth - session.position();
        if missing > 0 {
            session.prefill(&tokens(missing, session.capabilities().vocab))?;
        }
        Ok(())
    }

    /// Does the work at the depth and rewinds. Returns the time of the work.
    ///
    /// # Errors
    /// The session fails, or `cancel` is set.
    pub fn once(&self, session: &mut dyn Session, cancel: &Cancel) -> Result<Duration, Error> {
        let tokens = tokens(self.tokens(), session.capabilities().vocab);
        let start = Instant::now();
        match self.work {
            BenchWork::Prompt(_) => _ = session.prefill(&tokens)?,
            BenchWork::Decode(_) => {
                for &token in &tokens {
                    if cancel.is_cancelled() {
                        break;
                    }
                    session.decode_step(token)?;
                }
            }
        }
        let took = start.elapsed();
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        session.rewind(self.depth)?;
        Ok(took)
    }
}

impl fmt::Display for BenchCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.work {
            BenchWork::Prompt(tokens) => format!("pp{tokens}"),
            BenchWork::Decode(tokens) => format!("tg{tokens}"),
        };
        f.pad(&if self.depth == 0 { text } else { format!("{text} @ d{}", self.depth) })
    }
}

impl Statistics {
    /// Computes the statistics of at least one value.
    #[must_use]
    pub fn of_samples(values: &[f64]) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a number of repetitions")]
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        Self { mean, deviation }
    }
}

/// Returns pseudorandom token ids, the same every time. Ids do not change the time, and no id ends a benchmark.
fn tokens(count: usize, vocab: usize) -> Vec<u32> {
    let mut state = 1u32;
    let mut next = || {
        // The linear congruential generator of Numerical Recipes; any would do.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % u32::try_from(vocab).unwrap_or(u32::MAX)
    };
    (0..count).map(|_| next()).collect()
}

/// Measures the bandwidth of reading weights, which limits the speed of a decode step.
#[derive(Debug)]
pub struct ReadBandwidth {
    weights: Weights,
    threads: usize,
}

impl ReadBandwidth {
    /// Prepares to read `weights` with `threads` threads.
    #[must_use]
    pub fn new(weights: Weights, threads: usize) -> Self {
        Self { weights, threads: threads.max(1) }
    }

    /// Reads all weights once and returns bytes per second.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        let start = Instant::now();
        let mut bytes = 0;
        for file in self.weights.files() {
            bytes += file.len();
            let part = file.len().div_ceil(self.threads).max(1);
            std::thread::scope(|scope| {
                for part in file.chunks(part) {
                    scope.spawn(|| std::hint::black_box(sum(part)));
                }
            });
        }
        #[expect(clippy::cast_precision_loss, reason = "a number of bytes")]
        let bytes = bytes as f64;
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
    use crate::scripted::{Call, ScriptedSession};

    fn session() -> ScriptedSession {
        ScriptedSession::new(64, 10, |_| vec![0.0; 10])
    }

    fn case(work: BenchWork, depth: usize) -> BenchCase {
        BenchCase { work, depth }
    }

    #[test]
    fn names_are_as_in_llama_bench() {
        assert_eq!(case(BenchWork::Prompt(512), 0).to_string(), "pp512");
        assert_eq!(case(BenchWork::Decode(128), 4096).to_string(), "tg128 @ d4096");
    }

    #[test]
    fn the_work_runs_at_its_depth_after_one_warm_up() {
        let mut session = session();
        let samples = case(BenchWork::Decode(2), 5).run(&mut session, 2, None, &Cancel::new()).unwrap();
        assert_eq!(samples.len(), 2);
        assert!(samples.iter().all(|sample| sample.tok_s > 0.0 && sample.read_bytes_s.is_none()));
        let [decode, rewind] = [|c: &Call| matches!(c, Call::Decode(_)), |c: &Call| *c == Call::Rewind(5)]
            .map(|kind: fn(&Call) -> bool| session.calls().iter().filter(|call| kind(call)).count());
        assert_eq!((decode, rewind), (6, 3));
        assert!(session.calls().contains(&Call::Prefill(5)));
        // The cache is not filled again up to the depth.
        case(BenchWork::Prompt(7), 5).run(&mut session, 1, None, &Cancel::new()).unwrap();
        assert_eq!(session.calls().iter().filter(|call| **call == Call::Prefill(5)).count(), 1);
        assert_eq!(session.calls().iter().filter(|call| **call == Call::Prefill(7)).count(), 2);
        case(BenchWork::Prompt(7), 3).run(&mut session, 1, None, &Cancel::new()).unwrap();
        assert_eq!(session.position(), 3);
    }

    #[test]
    fn a_sequence_longer_than_the_context_is_refused() {
        let error = case(BenchWork::Prompt(60), 5).run(&mut session(), 1, None, &Cancel::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "pp60 @ d5 needs 65 positions, the context has 64\nhint: lower -p, -n or -d, raise --ctx-size if it was given, or compile the bundle again with a larger one"
        );
    }

    #[test]
    fn cancelled_work_gives_no_sample() {
        let cancel = Cancel::new();
        cancel.cancel();
        let error = case(BenchWork::Decode(3), 0).run(&mut session(), 1, None, &cancel).unwrap_err();
        assert!(matches!(error, Error::Cancelled));
    }

    #[test]
    fn deviations_have_the_divisor_of_samples() {
        assert_eq!(Statistics::of_samples(&[2.0]), Statistics { mean: 2.0, deviation: 0.0 });
        let two = Statistics::of_samples(&[1.0, 3.0]);
        assert_eq!((two.mean, two.deviation), (2.0, 2f64.sqrt()));
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
