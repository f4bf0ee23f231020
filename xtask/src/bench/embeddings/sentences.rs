//! Sentences for measurements: the same on every machine.

/// Words that sentences consist of: frequent ones, and some that tokenizers cut.
const WORDS: &str = "the of and to in a is that for it was on are as with his they be at one have this from or had by \
    not but what some we can out other were all there when up use your how said an each she which do their time if will \
    way about many then them write would like so these her long make thing see him two has look more day could go come \
    did number sound no most people my over know water than call first who may down side been now find any new work \
    part take get place made live where after back little only round man year came show every good me give our under \
    name very through just form sentence great think say help low line differ turn cause much mean before move right \
    boy old too same tell does set three want air well also play small end put home read hand port large spell add even \
    land here must big high such follow act why ask men change went light kind off need house picture try us again \
    animal point mother world near build self earth father head stand own page should country found answer school grow \
    study still learn plant cover food sun four between state keep eye never last let thought city tree cross farm \
    architecture temperature significant government university development environment photosynthesis \
    telecommunications biodiversity uncharacteristically semiconductor archipelago kaleidoscope Reykjavik Mississippi \
    thermodynamics electroencephalography counterintuitive metamorphosis";

/// The middle of the numbers of words: as many sentences are shorter as are longer.
const MEDIAN_WORDS: f64 = 16.0;

/// The standard deviation of the logarithm of the number of words, which is about that of English prose.
const SPREAD: f64 = 0.55;

/// Returns `count` sentences of 2 to 80 words.
pub(super) fn sentences(count: usize) -> Vec<String> {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let mut random = Random(1);
    (0..count).map(|_| sentence(&words, &mut random)).collect()
}

fn sentence(words: &[&str], random: &mut Random) -> String {
    // The sum of twelve numbers up to one is almost normally distributed, with a deviation of one.
    let normal = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
    let count = ((MEDIAN_WORDS * (SPREAD * normal).exp()) as usize).clamp(2, 80);
    let mut text = String::new();
    for index in 0..count {
        if index > 0 {
            text.push_str(if random.below(12) == 0 { ", " } else { " " });
        }
        text.push_str(words[random.below(words.len())]);
    }
    text[..1].make_ascii_uppercase();
    text.push('.');
    text
}

/// A linear congruential generator, with Knuth's constants of MMIX.
struct Random(u64);

impl Random {
    /// Returns a number from 0 to below 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as f64 / (1u64 << 32) as f64
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.unit() * limit as f64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_the_same_each_time_and_have_natural_lengths() {
        let first = sentences(2000);
        assert_eq!(first, sentences(2000));
        let mut lengths: Vec<usize> = first.iter().map(|text| text.split(' ').count()).collect();
        lengths.sort_unstable();
        assert!((14..=18).contains(&lengths[1000]), "{}", lengths[1000]);
        assert!(lengths[100] < 9 && lengths[1900] > 30, "{} {}", lengths[100], lengths[1900]);
        let distinct: std::collections::BTreeSet<_> = first.iter().collect();
        assert!(distinct.len() > 1990 && first.iter().all(|text| !text.contains('\n')));
    }
}
