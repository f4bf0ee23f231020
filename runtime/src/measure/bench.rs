//! How fast a session is, in the form of llama-bench: so many tokens of a prompt, or so many steps, at a depth.

use std::{
    fmt,
    time::{Duration, Instant},
};

use mlxcel_artifacts::Cancel;

use crate::{error::Error, session::Session, weights::Weights};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchWork {
    /// One prompt of this many tokens.
    Prompt(usize),
    /// This many steps of one token.
    Decode(usize),
}

/// What is measured, and where in the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BenchCase {
    /// The work.
    pub work: BenchWork,
    /// Tokens in the cache before it.
    pub depth: usize,
}

/// What one repetition took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BenchSample {
    /// Tokens a second.
    pub tok_s: f64,
    /// Bytes a second of a plain read of the weights just before, where there was one.
    pub read_bytes_s: Option<f64>,
}

/// Mean and standard deviation, with the divisor n - 1 as llama-bench has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistics {
    /// The mean.
    pub mean: f64,
    /// The deviation; 0 of one value.
    pub deviation: f64,
}

impl BenchCase {
    /// Tokens of the work.
    #[must_use]
    pub fn tokens(&self) -> usize {
        let (BenchWork::Prompt(tokens) | BenchWork::Decode(tokens)) = self.work;
        tokens
    }

    /// Runs it once to warm up and `repetitions` times. `read`, where there is one, is read before each of them.
    ///
    /// # Errors
    /// When the sequence does not fit the session, the session fails, or `cancel` ends it.
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
    /// When it does not fit the session, or the session fails.
    pub fn prepare(&self, session: &mut dyn Session) -> Result<(), Error> {
        let (context, needed) = (session.capabilities().context, self.depth.saturating_add(self.tokens()));
        if needed > context {
            return Err(Error::BenchTooLong { case: self.to_string(), needed, context });
        }
        // What is there is as good as what would come there.
        session.rewind(session.position().min(self.depth))?;
        let missing = self.depth - session.position();
        if missing > 0 {
            session.prefill(&tokens(missing, session.capabilities().vocab))?;
        }
        Ok(())
    }

    /// Does the work from the depth on, and goes back there.
    ///
    /// # Errors
    /// When the session fails, or `cancel` ends it.
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
    /// Of `values`, at least one.
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

/// Token ids that are the same every time: which ones makes no difference to the time, and none is an end of text here.
fn tokens(count: usize, vocab: usize) -> Vec<u32> {
    let mut state = 1u32;
    let mut next = || {
        // Numerical Recipes' generator: any will do.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % u32::try_from(vocab).unwrap_or(u32::MAX)
    };
    (0..count).map(|_| next()).collect()
}

/// A plain read of weights, as fast as the memory gives them: the limit of a decode step.
#[derive(Debug)]
pub struct ReadBandwidth {
    weights: Weights,
    threads: usize,
}

impl ReadBandwidth {
    /// Reads `weights` with `threads` threads.
    #[must_use]
    pub fn new(weights: Weights, threads: usize) -> Self {
        Self { weights, threads: threads.max(1) }
    }

    /// Reads all of it once.
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

/// Of all words, in four places at once: a core gets a sixth more out of the memory than by reading in one (Zen 3).
fn sum(bytes: &[u8]) -> u64 {
    /// What is read in one sweep of all four.
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
    fn names_are_llama_benchs() {
        assert_eq!(case(BenchWork::Prompt(512), 0).to_string(), "pp512");
        assert_eq!(case(BenchWork::Decode(128), 4096).to_string(), "tg128 @ d4096");
    }

    #[test]
    fn the_work_is_done_at_its_depth_and_once_more_to_warm_up() {
        let mut session = session();
        let samples = case(BenchWork::Decode(2), 5).run(&mut session, 2, None, &Cancel::new()).unwrap();
        assert_eq!(samples.len(), 2);
        assert!(samples.iter().all(|sample| sample.tok_s > 0.0 && sample.read_bytes_s.is_none()));
        let [decode, rewind] = [|c: &Call| matches!(c, Call::Decode(_)), |c: &Call| *c == Call::Rewind(5)]
            .map(|kind: fn(&Call) -> bool| session.calls().iter().filter(|call| kind(call)).count());
        assert_eq!((decode, rewind), (6, 3));
        assert!(session.calls().contains(&Call::Prefill(5)));
        // What is there already is not filled in again.
        case(BenchWork::Prompt(7), 5).run(&mut session, 1, None, &Cancel::new()).unwrap();
        assert_eq!(session.calls().iter().filter(|call| **call == Call::Prefill(5)).count(), 1);
        assert_eq!(session.calls().iter().filter(|call| **call == Call::Prefill(7)).count(), 2);
        case(BenchWork::Prompt(7), 3).run(&mut session, 1, None, &Cancel::new()).unwrap();
        assert_eq!(session.position(), 3);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let error = case(BenchWork::Prompt(60), 5).run(&mut session(), 1, None, &Cancel::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "pp60 @ d5 needs 65 positions, the context has 64\nhint: choose less, raise --ctx-size if it was given, or compile the bundle with a larger --ctx-size"
        );
    }

    #[test]
    fn cancelled_work_is_no_sample() {
        let cancel = Cancel::new();
        cancel.cancel();
        let error = case(BenchWork::Decode(3), 0).run(&mut session(), 1, None, &cancel).unwrap_err();
        assert!(matches!(error, Error::Cancelled));
    }

    #[test]
    fn deviations_are_of_samples() {
        assert_eq!(Statistics::of_samples(&[2.0]), Statistics { mean: 2.0, deviation: 0.0 });
        let two = Statistics::of_samples(&[1.0, 3.0]);
        assert_eq!((two.mean, two.deviation), (2.0, 2f64.sqrt()));
    }

    #[test]
    fn every_byte_counts() {
        for words in [1, 7, 8, 9, 128, 32_768, 32_769, 100_003] {
            let word = |at: usize| u64::try_from(at * at).unwrap().to_le_bytes();
            let bytes: Vec<u8> = (0..words).flat_map(word).collect();
            let expected = (0..words).map(|at| u64::try_from(at * at).unwrap()).sum::<u64>();
            assert_eq!(sum(&bytes), expected, "{words}");
        }
    }
}
