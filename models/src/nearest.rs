//! Suggestions for a name that is not known.

/// Characters of a name that are compared: a longer one is no name, and comparing it would take long.
const LONGEST: usize = 64;

/// Returns the `count` candidates most similar to `found`, the most similar one first.
///
/// Upper and lower case count as alike, and what surrounds a name, such as `../`, does not count. Candidates that are
/// equally similar stay in their order. mlxcel-artifacts ranks alike.
#[must_use]
pub fn nearest<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let comparable = |name: &str| {
        let name = name.trim_matches(|c: char| !c.is_alphanumeric());
        name.chars().take(LONGEST).collect::<String>().to_lowercase()
    };
    let found = comparable(found);
    // Pairs of letters find a name within a longer one, Jaro-Winkler finds letters in the wrong order. A name that is wholly within
    // another is surely meant.
    let similarity = |candidate: &str| {
        let candidate = comparable(candidate);
        let is_within = f64::from(!found.is_empty() && candidate.contains(&found));
        strsim::sorensen_dice(&found, &candidate) + strsim::jaro_winkler(&found, &candidate) + is_within
    };
    let mut ranked: Vec<_> =
        candidates.into_iter().map(|candidate| (similarity(candidate), candidate)).collect();
    ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    ranked.into_iter().take(count).map(|(_, candidate)| candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_name_is_found_first() {
        let presets = ["gemma-2-2b", "llama-2-13b", "llama-3.2-1b", "llama-3.2-3b", "qwen2.5-0.5b"];
        let preset = |found| nearest(found, presets, 3);
        assert_eq!(preset("llama3.2-1b"), ["llama-3.2-1b", "llama-3.2-3b", "llama-2-13b"]);
        assert_eq!(preset("Llama-3.2-1B")[0], "llama-3.2-1b");
        assert_eq!(preset("qwen2.5-0.5b-instruct")[0], "qwen2.5-0.5b");
        let family = |found| nearest(found, ["bert", "gemma", "gemma2", "gemma3_text", "llama", "phi3"], 3);
        assert_eq!(family("gemma3"), ["gemma3_text", "gemma", "gemma2"]);
        assert_eq!(family("lalma")[0], "llama");
        let target = |found| nearest(found, ["cpu", "cuda", "cuda-sm_86", "cuda-sm_89", "cuda-sm_90"], 3);
        assert_eq!(target("../cuda"), ["cuda", "cuda-sm_86", "cuda-sm_89"]);
        assert_eq!(target("sm_89")[0], "cuda-sm_89");
    }

    #[test]
    fn any_text_has_neighbors() {
        assert_eq!(nearest("", ["b", "a"], 3), ["b", "a"]);
        assert_eq!(nearest("../..", ["b", "a"], 3), ["b", "a"]);
        assert_eq!(nearest(&"ä".repeat(10_000_000), ["a", "b", "c", "d"], 2), ["a", "b"]);
        assert_eq!(nearest("a", [], 3), [""; 0]);
    }
}
