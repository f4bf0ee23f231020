//! How texts are split into words before tokens are merged: `tokenizer.ggml.pre`.
//!
//! Each name stands for the tokenizer.json of the models that llama.cpp's converter gives it to, and what is here is what those
//! files have. llama.cpp itself splits by regular expressions of its own and normalizes nothing.

use serde_json::{Value, json};

use super::parts::Refused;
use crate::error::displayed;

/// A tokenizer's way to split texts.
pub(super) struct Splitting {
    /// Values of `tokenizer.ggml.pre`.
    names: &'static [&'static str],
    /// Whether texts are normalized to Unicode's form C.
    pub(super) normalizes: bool,
    steps: &'static [Step],
    /// Whether a word that is a token is not split, whatever the merges say.
    pub(super) keeps_words: bool,
    /// Whether a text begins with a token if no key says so.
    pub(super) begins: bool,
}

/// A step, which splits what those before it left.
enum Step {
    /// Each match is a word.
    Regex(&'static str),
    /// Each digit is a word, or all adjacent ones are.
    Digits { alone: bool },
    /// Adjacent punctuation is a word.
    Punctuation,
    /// Characters stand for bytes from here on. Words are split as GPT-2 does before, or not.
    Bytes { in_words: bool },
}

/// GPT-4's words, with digits in groups of up to three (`cl100k_base` of tiktoken).
const CL100K: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The same with single digits.
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The same, where punctuation ends before a new line.
const SEED: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+";
/// GPT-4o's words, which end where capital letters begin (`o200k_base` of tiktoken).
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Mistral's Tekken: the same without contractions, and with single digits.
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// New lines, of which each is a word.
const NEW_LINE: Step = Step::Regex("[\r\n]");
/// Letters with an upper and a lower case, as the first DeepSeek's tokenizer lists them.
const CASED: Step = Step::Regex(concat!(
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿ",
    "\u{386}\u{388}-\u{38A}\u{38C}\u{38E}-\u{3A1}\u{3A3}-\u{3F5}\u{3F7}-\u{481}\u{48A}-\u{52F}\u{531}-\u{556}",
    "\u{10A0}-\u{10C5}\u{13A0}-\u{13F5}\u{13F8}-\u{13FD}\u{1C90}-\u{1CBA}\u{1CBD}-\u{1CBF}\u{1D00}-\u{1D2B}",
    "\u{1D6B}-\u{1D77}\u{1D79}-\u{1D9A}\u{1E00}-\u{1F15}\u{1F18}-\u{1F1D}\u{1F20}-\u{1F45}\u{1F48}-\u{1F4D}",
    "\u{1F50}-\u{1F57}\u{1F59}\u{1F5B}\u{1F5D}\u{1F5F}-\u{1F7D}\u{1F80}-\u{1FB4}\u{1FB6}-\u{1FBC}\u{1FBE}",
    "\u{1FC2}-\u{1FC4}\u{1FC6}-\u{1FCC}\u{1FD0}-\u{1FD3}\u{1FD6}-\u{1FDB}\u{1FE0}-\u{1FEC}\u{1FF2}-\u{1FF4}",
    "\u{1FF6}-\u{1FFC}\u{2102}\u{2107}\u{210A}-\u{2113}\u{2115}\u{2119}-\u{211D}\u{2124}\u{2126}\u{2128}",
    "\u{212A}-\u{212D}\u{212F}-\u{2134}\u{2139}\u{213C}-\u{213F}\u{2145}-\u{2149}\u{214E}\u{2183}\u{2184}",
    "\u{2C00}-\u{2C7B}\u{2C7E}-\u{2CE4}\u{2CEB}-\u{2CEE}\u{2CF2}\u{2CF3}\u{A640}-\u{A66D}\u{A680}-\u{A69B}",
    "\u{A722}-\u{A76F}\u{A771}-\u{A787}\u{A78B}-\u{A78E}\u{AB70}-\u{ABBF}\u{FB00}-\u{FB06}\u{FB13}-\u{FB17}",
    "\u{FF21}-\u{FF3A}\u{FF41}-\u{FF5A}\u{10400}-\u{1044F}\u{104B0}-\u{104D3}\u{104D8}-\u{104FB}",
    "\u{10C80}-\u{10CB2}\u{10CC0}-\u{10CF2}\u{118A0}-\u{118DF}\u{1E900}-\u{1E943}]+",
));
/// Punctuation, as the first DeepSeek's tokenizer lists it.
const LISTED_PUNCTUATION: Step =
    Step::Regex("\\s?[!-/:-~\u{FF01}-\u{FF0F}\u{FF1A}-\u{FF5E}\u{2018}-\u{201F}\u{3000}-\u{3002}]+");
/// Chinese characters and Hangul, with everything from Samaritan on between them.
const EAST_ASIAN: Step = Step::Regex("[\u{4E00}-\u{9FA5}\u{800}-\u{4E00}\u{AC00}-\u{D7FF}]+");
/// Chinese characters and kana.
const CHINESE_AND_KANA: Step = Step::Regex("[\u{4E00}-\u{9FA5}\u{3040}-\u{309F}\u{30A0}-\u{30FF}]+");
/// DeepSeek V3's words, in texts without digits, Chinese and kana.
const DEEPSEEK_V3: Step = Step::Regex(concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"##,
    "[^\r\n",
    r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[",
    "\r\n",
    r"]*|\s*[",
    "\r\n",
    r"]+|\s+(?!\S)|\s+",
));

const GPT2_WORDS: Step = Step::Bytes { in_words: true };
const BYTES: Step = Step::Bytes { in_words: false };
const SINGLE_DIGITS: Step = Step::Digits { alone: true };

const fn splitting(names: &'static [&'static str], steps: &'static [Step]) -> Splitting {
    Splitting { names, normalizes: false, steps, keeps_words: false, begins: false }
}

const fn normalized(splitting: Splitting) -> Splitting {
    Splitting { normalizes: true, ..splitting }
}

const fn whole_words(splitting: Splitting) -> Splitting {
    Splitting { keeps_words: true, ..splitting }
}

const fn begun(splitting: Splitting) -> Splitting {
    Splitting { begins: true, ..splitting }
}

const SPLITTINGS: [Splitting; 15] = [
    splitting(&["gpt-2", "phi-2"], &[GPT2_WORDS]),
    normalized(splitting(&["olmo"], &[GPT2_WORDS])),
    splitting(&["starcoder", "smollm", "refact"], &[SINGLE_DIGITS, GPT2_WORDS]),
    normalized(splitting(&["command-r"], &[SINGLE_DIGITS, GPT2_WORDS])),
    begun(whole_words(splitting(&["llama-bpe", "llama3", "llama-v3"], &[Step::Regex(CL100K), BYTES]))),
    whole_words(splitting(&["smaug-bpe"], &[Step::Regex(CL100K), BYTES])),
    splitting(&["dbrx", "glm4", "chatglm-bpe"], &[Step::Regex(CL100K), BYTES]),
    normalized(splitting(&["qwen2", "deepseek-r1-qwen", "stablelm2"], &[Step::Regex(QWEN2), BYTES])),
    splitting(&["seed-coder"], &[Step::Regex(SEED), BYTES]),
    whole_words(splitting(&["gpt-4o"], &[Step::Regex(O200K), BYTES])),
    begun(whole_words(splitting(&["tekken"], &[Step::Regex(TEKKEN), BYTES]))),
    splitting(
        &["falcon"],
        &[Step::Punctuation, GPT2_WORDS, Step::Digits { alone: false }, Step::Regex("[0-9][0-9][0-9]")],
    ),
    splitting(
        &["deepseek-llm"],
        &[NEW_LINE, CASED, LISTED_PUNCTUATION, Step::Regex(r"\s+$"), EAST_ASIAN, SINGLE_DIGITS, BYTES],
    ),
    splitting(
        &["deepseek-coder"],
        &[NEW_LINE, Step::Regex(r"\s?\p{L}+"), Step::Regex(r"\s?\p{P}+"), EAST_ASIAN, SINGLE_DIGITS, BYTES],
    ),
    splitting(&["deepseek-v3"], &[Step::Regex(r"\p{N}{1,3}"), CHINESE_AND_KANA, DEEPSEEK_V3, BYTES]),
];

/// The splitting of architectures whose files may be older than the key, where all published models have one tokenizer.
const OF_ARCHITECTURES: [(&str, &str); 6] = [
    ("command-r", "command-r"),
    ("gpt2", "gpt-2"),
    ("gptneox", "olmo"),
    ("qwen2", "qwen2"),
    ("qwen2moe", "qwen2"),
    ("starcoder2", "starcoder"),
];

impl Splitting {
    /// Returns the splitting of a name, or that of the architecture if there is no name. `default` is what converters write
    /// that know none.
    pub(super) fn find(
        name: Option<&str>,
        architecture: &str,
        warnings: &mut Vec<String>,
    ) -> Result<&'static Self, Refused> {
        let find = |name: &str| SPLITTINGS.iter().find(|splitting| splitting.names.contains(&name));
        let written = name.map_or_else(|| "missing".into(), |name| displayed(&name.into()));
        if let None | Some("default") = name {
            let known = OF_ARCHITECTURES.iter().find(|(known, _)| *known == architecture);
            if let Some((name, splitting)) = known.and_then(|(_, name)| Some((name, find(name)?))) {
                warnings.push(format!(
                    "`tokenizer.ggml.pre` is {written}: texts are split as {name} does, which published {architecture} \
                     models have"
                ));
                return Ok(splitting);
            }
        }
        name.and_then(find).ok_or_else(|| {
            let names: Vec<_> = SPLITTINGS.iter().flat_map(|splitting| splitting.names).copied().collect();
            Refused::Unknown(format!(
                "`tokenizer.ggml.pre` is {written}, expected one of {}",
                names.join(", ")
            ))
        })
    }

    /// Returns the pre-tokenizer.
    pub(super) fn pre_tokenizer(&self) -> Value {
        let steps: Vec<_> = self.steps.iter().map(Step::pre_tokenizer).collect();
        match <[Value; 1]>::try_from(steps) {
            Ok([only]) => only,
            Err(steps) => json!({ "type": "Sequence", "pretokenizers": steps }),
        }
    }
}

impl Step {
    fn pre_tokenizer(&self) -> Value {
        match *self {
            Self::Regex(regex) => json!({
                "type": "Split", "pattern": { "Regex": regex }, "behavior": "Isolated", "invert": false,
            }),
            Self::Digits { alone } => json!({ "type": "Digits", "individual_digits": alone }),
            Self::Punctuation => json!({ "type": "Punctuation", "behavior": "Contiguous" }),
            Self::Bytes { in_words } => json!({
                "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": in_words,
            }),
        }
    }
}
