//! Suggestions for unknown names.

/// The number of names that are suggested.
const SUGGESTIONS: usize = 3;

/// Returns the known names most similar to `unknown`, best first.
pub(crate) fn nearest<'n>(unknown: &str, known: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    // Pairs of letters find a part of a name, Jaro-Winkler finds misspellings.
    let similarity = |name: &str| strsim::sorensen_dice(unknown, name) + strsim::jaro_winkler(unknown, name);
    let mut ranked: Vec<_> = known.into_iter().map(|name| (similarity(name), name)).collect();
    ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    ranked.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_names_come_first() {
        let known = ["demo", "llama-3.2-1b:q4", "llama-3.2-1b:q8", "r.example/models/demo:1"];
        assert_eq!(nearest("dmeo", known)[0], "demo");
        assert_eq!(nearest("llama-3.2-1b", known)[..2], ["llama-3.2-1b:q4", "llama-3.2-1b:q8"]);
        assert_eq!(nearest("llama", known).len(), SUGGESTIONS);
        assert_eq!(nearest("models/demo", known)[0], "r.example/models/demo:1");
        assert!(nearest("demo", []).is_empty());
    }
}
