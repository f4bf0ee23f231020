//! American spelling, as the field writes it.

/// Verbs whose British form has an `s` in place of the `z`.
const VERBS: [&str; 21] = [
    "authori",
    "customi",
    "emphasi",
    "finali",
    "generali",
    "initiali",
    "locali",
    "materiali",
    "maximi",
    "minimi",
    "normali",
    "optimi",
    "organi",
    "penali",
    "quanti",
    "recogni",
    "seriali",
    "speciali",
    "summari",
    "synchroni",
    "vectori",
];

/// Other British words and the American ones. The first is split, so that this file passes.
const WORDS: [([&str; 2], &str); 14] = [
    (["analy", "se"], "analyze"),
    (["arte", "fact"], "artifact"),
    (["behav", "iour"], "behavior"),
    (["cata", "logue"], "catalog"),
    (["cen", "tre"], "center"),
    (["col", "our"], "color"),
    (["fav", "our"], "favor"),
    (["hon", "our"], "honor"),
    (["judge", "ment"], "judgment"),
    (["label", "led"], "labeled"),
    (["licen", "ce"], "license"),
    (["model", "led"], "modeled"),
    (["neighb", "our"], "neighbor"),
    (["spe", "lt"], "spelled"),
];

/// Fields of the manifest and of `--json` output, whose names stay.
const FIELDS: [[&str; 2]; 2] = [["judge", "ments"], ["normali", "sed"]];

/// Returns a line for each British spelling in a file that we write.
pub(super) fn check(file: &str, kind: &str, text: &str) -> Vec<String> {
    if !["rs", "c", "h", "py", "sh", "js", "css", "html", "md", "toml"].contains(&kind) {
        return Vec::new();
    }
    let verbs = VERBS.iter().flat_map(|verb| {
        ["se", "sa", "si"].map(|ending| (format!("{verb}{ending}"), format!("{verb}z{}", &ending[1..])))
    });
    let words = WORDS.iter().map(|(british, american)| (british.concat(), (*american).to_owned()));
    let spellings: Vec<(String, String)> = verbs.chain(words).collect();
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let lower = line.to_lowercase();
        for (british, american) in &spellings {
            if lower.contains(british) && !is_name_of_a_format(&lower, british) {
                found.push(format!("{file}:{}: found {british}…, expected {american}…", index + 1));
            }
        }
    }
    found
}

/// Returns whether the word is a field of a format, as a key or in quotes.
fn is_name_of_a_format(line: &str, british: &str) -> bool {
    FIELDS.iter().map(|field| field.concat()).filter(|field| field.starts_with(british)).any(|field| {
        let names = [format!("\"{field}\""), format!("{field} = "), format!("`{field}`")];
        names.iter().any(|name| line.contains(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn british_words_are_named_with_the_american_ones() {
        let (verb, noun, field) =
            (concat!("Quanti", "sed"), concat!("COL", "OUR"), concat!("normali", "sed"));
        let text = format!("fn a() {{}}\n// {verb}\n{noun}\n");
        let expected = [
            format!("a.rs:2: found {}…, expected quantize…", &verb.to_lowercase()[..8]),
            format!("a.rs:3: found {}…, expected color…", noun.to_lowercase()),
        ];
        assert_eq!(check("a.rs", "rs", &text), expected);
        assert_eq!(check("a.snap", "snap", &text), [""; 0]);
        assert_eq!(check("a.rs", "rs", &format!("#[serde(rename = \"{field}\")]")), [""; 0]);
        assert_eq!(
            check("a.md", "md", "optimism, organisms, specialists and quantiles; wise disguise"),
            [""; 0]
        );
    }
}
