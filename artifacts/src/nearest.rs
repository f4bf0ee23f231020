//! Suggestions for a name that is not known.

/// The number of names that are suggested.
pub(crate) const SUGGESTIONS: usize = 3;

/// Returns the known names that are most similar to one that is not known, the most similar one first.
#[must_use]
pub fn nearest_names<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    nearest(found, known, SUGGESTIONS)
}

/// Characters of a name that are compared: a longer one is no name, and comparing it would take long.
const LONGEST: usize = 64;

/// Returns the `count` candidates most similar to `found`, the most similar one first.
///
/// Upper and lower case count as alike, and what surrounds a name, such as `../`, does not count. Candidates that are
/// equally similar stay in their order. mlxcel-models ranks alike.
pub(crate) fn nearest<'a>(
    found: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    count: usize,
) -> Vec<&'a str> {
    let comparable = |name: &str| {
        let name = name.trim_matches(|c: char| !c.is_alphanumeric());
        name.chars().take(LONGEST).collect::<String>().to_lowercase()
    };
    let found = comparable(found);
    // Pairs of letters find a name within a longer one, Jaro-Winkler finds letters in the wrong order.
    let similarity = |candidate: &str| {
        let candidate = comparable(candidate);
        strsim::sorensen_dice(&found, &candidate) + strsim::jaro_winkler(&found, &candidate)
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
    fn the_most_similar_names_come_first() {
        let known = ["demo", "llama-3.2-1b:q4", "llama-3.2-1b:q8", "r.example/models/demo:1"];
        let nearest = |found| nearest(found, known, SUGGESTIONS);
        assert_eq!(nearest("dmeo")[0], "demo");
        assert_eq!(nearest("DEMO")[0], "demo");
        assert_eq!(nearest("./demo")[0], "demo");
        assert_eq!(nearest("llama-3.2-1b")[..2], ["llama-3.2-1b:q4", "llama-3.2-1b:q8"]);
        assert_eq!(nearest("llama").len(), SUGGESTIONS);
        assert_eq!(nearest("models/demo")[0], "r.example/models/demo:1");
    }

    #[test]
    fn any_text_has_neighbors() {
        assert_eq!(nearest("../..", ["b", "a"], SUGGESTIONS), ["b", "a"]);
        assert_eq!(nearest("demo", [], SUGGESTIONS), [""; 0]);
    }
}
