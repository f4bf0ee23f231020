//! Perplexity of a model on a text, and its divergence from a reference.

use mlxcel_artifacts::{Cancel, entry::PAGE};

use crate::{
    engine::Engine,
    error::{Error, MeasureError},
    model::ModelRunner,
};

/// The quality of a model on a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Quality {
    /// Predicted tokens: all but the first of every window.
    pub tokens: usize,
    /// The exponential of the mean negative log-likelihood.
    pub perplexity: f64,
    /// The comparison with the reference, if there was one.
    pub comparison: Option<QualityComparison>,
}

/// Differences between a model's predictions and a reference's on the same tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct QualityComparison {
    /// The reference's perplexity.
    pub reference_perplexity: f64,
    /// The mean Kullback-Leibler divergence of the model's distribution from the reference's, in nats.
    pub mean_kl: f64,
    /// The 99th percentile of the divergences.
    pub p99_kl: f64,
    /// The share of positions at which both give the same most likely token.
    pub top_1_agreement: f64,
}

/// Predicts every token of `text` from the tokens before it in its window of `window` tokens.
///
/// Runs `engine`, and `reference` beside it if there is one. `progress` gets the tokens done and their total.
///
/// # Errors
/// The text has fewer than two tokens, the window does not fit a model, the vocabularies differ, a device fails, or
/// `cancel` is set.
pub fn measure_quality<R: ModelRunner>(
    engine: &mut Engine<R>,
    mut reference: Option<&mut Engine<R>>,
    text: &[u32],
    window: usize,
    progress: &mut dyn FnMut(usize, usize),
    cancel: &Cancel,
) -> Result<Quality, Error> {
    check(engine, reference.as_deref(), text, window)?;
    let mut sums = Sums::default();
    let mut done = 0;
    for tokens in text.chunks(window) {
        // The last token of a window predicts nothing. A piece is what a page holds: the pages before it are kept.
        let predicting = tokens.len() - 1;
        for from in (0..predicting).step_by(PAGE) {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let end = (from + PAGE).min(predicting);
            let found = engine.score(&tokens[..end], from)?;
            let expected =
                reference.as_mut().map(|reference| reference.score(&tokens[..end], from)).transpose()?;
            for (index, found) in found.iter().enumerate() {
                let (token, found) = (tokens[from + index + 1], log_softmax(found));
                sums.add(token, &found);
                if let Some(expected) = &expected {
                    sums.compare(token, &found, &log_softmax(&expected[index]));
                }
            }
            progress(done + end, text.len());
        }
        done += tokens.len();
        progress(done, text.len());
    }
    Ok(sums.quality(reference.is_some()))
}

/// Checks that the text, the window and the models fit each other.
fn check<R: ModelRunner>(
    engine: &Engine<R>,
    reference: Option<&Engine<R>>,
    text: &[u32],
    window: usize,
) -> Result<(), Error> {
    let mut context = engine.limits().context;
    if let Some(reference) = reference {
        context = context.min(reference.limits().context);
        let (found, expected) = (engine.limits().vocab, reference.limits().vocab);
        if found != expected {
            return Err(MeasureError::OtherVocabulary { found, expected }.into());
        }
    }
    if !(2..=context).contains(&window) {
        return Err(MeasureError::Window { window, context }.into());
    }
    if text.len() < 2 {
        return Err(MeasureError::ShortText { tokens: text.len() }.into());
    }
    Ok(())
}

/// Sums over the predicted tokens.
#[derive(Default)]
struct Sums {
    predicted: usize,
    loss: f64,
    reference_loss: f64,
    divergences: Vec<f64>,
    agreed: usize,
}

impl Sums {
    /// Adds the prediction of a token.
    fn add(&mut self, token: u32, found: &[f64]) {
        self.loss -= found[token as usize];
        self.predicted += 1;
    }

    /// Adds the comparison of a prediction with the reference's.
    fn compare(&mut self, token: u32, found: &[f64], expected: &[f64]) {
        self.reference_loss -= expected[token as usize];
        self.divergences.push(divergence(expected, found));
        self.agreed += usize::from(most_likely(expected) == most_likely(found));
    }

    /// Computes the means.
    #[expect(clippy::cast_precision_loss, reason = "a number of tokens")]
    fn quality(mut self, is_compared: bool) -> Quality {
        let count = self.predicted.max(1) as f64;
        self.divergences.sort_by(f64::total_cmp);
        let comparison = is_compared.then(|| QualityComparison {
            reference_perplexity: (self.reference_loss / count).exp(),
            mean_kl: self.divergences.iter().sum::<f64>() / count,
            // The nearest-rank percentile.
            p99_kl: self.divergences[(self.divergences.len() * 99).div_ceil(100).saturating_sub(1)],
            top_1_agreement: self.agreed as f64 / count,
        });
        Quality { tokens: self.predicted, perplexity: (self.loss / count).exp(), comparison }
    }
}

/// Computes log-probabilities in `f64`.
fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let shifted: Vec<f64> = logits.iter().map(|&logit| f64::from(logit) - f64::from(max)).collect();
    let sum = shifted.iter().map(|x| x.exp()).sum::<f64>().ln();
    shifted.into_iter().map(|x| x - sum).collect()
}

/// Returns the Kullback-Leibler divergence of `found` from `expected`, both log-probabilities.
fn divergence(expected: &[f64], found: &[f64]) -> f64 {
    // Tokens of probability 0 add nothing, whatever `found` gives them.
    let terms = expected.iter().zip(found).filter(|(e, _)| **e > f64::NEG_INFINITY);
    terms.map(|(expected, found)| expected.exp() * (expected - found)).sum()
}

/// Returns the id with the largest logit; the lowest one on a tie.
fn most_likely(logits: &[f64]) -> usize {
    (0..logits.len()).reduce(|best, id| if logits[id] > logits[best] { id } else { best }).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EngineSettings, scripted::ScriptedModel};

    type Scripted = Engine<ScriptedModel>;

    fn engine(vocab: usize, script: impl Fn(&[u32]) -> Vec<f32> + Send + 'static) -> Scripted {
        Engine::new(ScriptedModel::of_tokens(8, vocab, script), EngineSettings::default()).unwrap()
    }

    /// Gives the probabilities 1/2, 1/4, 1/8 and 1/8 at every token.
    fn halves() -> Scripted {
        engine(4, |_| [0.5f32, 0.25, 0.125, 0.125].map(f32::ln).to_vec())
    }

    fn even() -> Scripted {
        engine(4, |_| vec![3.0; 4])
    }

    fn of(model: &mut Scripted, reference: Option<&mut Scripted>, text: &[u32]) -> Quality {
        measure_quality(model, reference, text, 4, &mut |_, _| (), &Cancel::new()).unwrap()
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "found {found}, expected {expected}");
    }

    #[test]
    fn perplexity_is_the_inverse_geometric_mean_of_the_probabilities() {
        let found = of(&mut even(), None, &[0, 1, 2, 3, 0, 1]);
        // Two windows, whose first tokens are not predicted.
        assert_eq!((found.tokens, found.comparison), (4, None));
        near(found.perplexity, 4.0);
        near(of(&mut halves(), None, &[3, 0, 1, 2]).perplexity, 4.0);
        near(of(&mut halves(), None, &[3, 0, 0]).perplexity, 2.0);
    }

    #[test]
    fn a_model_does_not_diverge_from_itself() {
        let found = of(&mut halves(), Some(&mut halves()), &[0, 1, 2]);
        let QualityComparison { reference_perplexity, mean_kl, p99_kl, top_1_agreement } =
            found.comparison.unwrap();
        near(reference_perplexity, found.perplexity);
        assert_eq!((mean_kl, p99_kl, top_1_agreement), (0.0, 0.0, 1.0));
    }

    #[test]
    fn the_divergence_is_from_the_reference() {
        // sum p ln(p / q) with p = 1/2, 1/4, 1/8, 1/8 and q = 1/4: 1.25 ln 2 off the entropy of q.
        let found = of(&mut even(), Some(&mut halves()), &[1, 1, 1]).comparison.unwrap();
        near(found.mean_kl, 0.25 * 2f64.ln());
        near(found.p99_kl, 0.25 * 2f64.ln());
        near(found.top_1_agreement, 1.0);
        let mut last = engine(4, |_| vec![0.0, 0.0, 0.0, 1.0]);
        near(of(&mut last, Some(&mut halves()), &[1, 1, 1]).comparison.unwrap().top_1_agreement, 0.0);
    }

    #[test]
    fn texts_and_windows_without_predictions_are_refused() {
        let refused = |text: &[u32], window, reference: &mut Scripted| {
            let found =
                measure_quality(&mut even(), Some(reference), text, window, &mut |_, _| (), &Cancel::new());
            found.unwrap_err().to_string()
        };
        assert_eq!(
            refused(&[1], 4, &mut even()),
            "the text has 1 token, expected at least 2\nhint: choose a longer text, or leave out --tokens"
        );
        assert_eq!(
            refused(&[1, 2], 1, &mut even()),
            "windows of 1 token, expected 2 to 8\nhint: choose another --window"
        );
        assert_eq!(
            refused(&[1, 2], 9, &mut even()),
            "windows of 9 tokens, expected 2 to 8\nhint: choose another --window"
        );
        let mut other = engine(5, |_| vec![0.0; 5]);
        assert_eq!(
            refused(&[1, 2], 4, &mut other),
            "the bundle has a vocabulary of 4 tokens, its reference one of 5\nhint: compare bundles of the same checkpoint"
        );
    }
}
