//! Results of several sequences at once, with the columns of llama-batched-bench.

use std::time::Duration;

use mlxcel_runtime::{BatchCase, BatchSample};
use serde_json::{Value, json};

use crate::{
    array::Array,
    options::Output,
    render::ModelInfo,
    table::{Column, header, line, values},
};

/// The names of the columns, and the widest cell that they are laid out for.
const COLUMNS: [(&str, &str); 10] = [
    ("PP", "131072"),
    ("TG", "131072"),
    ("B", "128"),
    ("N_KV", "131072"),
    ("T_PP s", "1234.567"),
    ("S_PP t/s", "12345.67"),
    ("T_TG s", "1234.567"),
    ("S_TG t/s", "12345.67"),
    ("T s", "1234.567"),
    ("S t/s", "12345.67"),
];

/// Renders results one by one, so that each is shown while the rest is measured.
pub(crate) struct BatchRows<'a> {
    model: &'a ModelInfo,
    output: Output,
    columns: Vec<Column>,
    array: Array,
    has_names: bool,
}

/// Means over the repetitions: times in seconds, and tokens per second of all sequences together.
struct Means {
    prompt: f64,
    generate: f64,
    prompt_tok_s: f64,
    generate_tok_s: f64,
    tok_s: f64,
}

impl Means {
    #[expect(clippy::cast_precision_loss, reason = "numbers of tokens and repetitions")]
    fn new(case: &BatchCase, samples: &[BatchSample]) -> Self {
        let mean = |of: fn(&BatchSample) -> Duration| {
            samples.iter().map(|sample| of(sample).as_secs_f64()).sum::<f64>() / samples.len() as f64
        };
        let (prompt, generate) = (mean(|sample| sample.prompt), mean(|sample| sample.generate));
        let tokens = |of_sequence: usize| (case.sequences * of_sequence) as f64;
        Self {
            prompt,
            generate,
            prompt_tok_s: tokens(case.prompt) / prompt,
            generate_tok_s: tokens(case.generate) / generate,
            tok_s: case.tokens() as f64 / (prompt + generate),
        }
    }
}

impl<'a> BatchRows<'a> {
    pub(crate) fn new(model: &'a ModelInfo, output: Output) -> Self {
        let columns = COLUMNS.map(|(name, widest)| Column::new(name, [widest].into_iter(), true)).into();
        Self { model, output, columns, array: Array::default(), has_names: false }
    }

    /// Renders the header.
    pub(crate) fn begin(&self) -> String {
        match self.output {
            Output::Md => header(&self.columns),
            Output::Csv => String::new(),
            Output::Json => self.array.begin(),
        }
    }

    /// Renders a result.
    pub(crate) fn row(&mut self, case: &BatchCase, samples: &[BatchSample]) -> String {
        let &BatchCase { prompt, generate, sequences } = case;
        let means = Means::new(case, samples);
        let whole = [prompt, generate, sequences, case.tokens()].map(|number| number.to_string());
        let total = means.prompt + means.generate;
        match self.output {
            Output::Md => {
                let times = [
                    format!("{:.3}", means.prompt),
                    format!("{:.2}", means.prompt_tok_s),
                    format!("{:.3}", means.generate),
                    format!("{:.2}", means.generate_tok_s),
                    format!("{total:.3}"),
                    format!("{:.2}", means.tok_s),
                ];
                line(&self.columns, &[&whole[..], &times[..]].concat())
            }
            Output::Csv => {
                const NAMES: [&str; 10] =
                    ["pp", "tg", "pl", "n_kv", "t_pp", "speed_pp", "t_tg", "speed_tg", "t", "speed"];
                let times = [
                    means.prompt,
                    means.prompt_tok_s,
                    means.generate,
                    means.generate_tok_s,
                    total,
                    means.tok_s,
                ];
                let cells = [&whole[..], &times.map(|number| number.to_string())[..]].concat();
                let names = if self.has_names { String::new() } else { values(&NAMES) };
                self.has_names = true;
                names + &values(&cells)
            }
            Output::Json => {
                let seconds = |of: fn(&BatchSample) -> Duration| {
                    samples.iter().map(|sample| of(sample).as_secs_f64()).collect::<Vec<_>>()
                };
                let mut object = json!({
                    "pp": prompt,
                    "tg": generate,
                    "pl": sequences,
                    "n_kv": case.tokens(),
                    "t_pp": means.prompt,
                    "speed_pp": means.prompt_tok_s,
                    "t_tg": means.generate,
                    "speed_tg": means.generate_tok_s,
                    "t": total,
                    "speed": means.tok_s,
                    "samples_t_pp": seconds(|sample| sample.prompt),
                    "samples_t_tg": seconds(|sample| sample.generate),
                });
                if let (Value::Object(fields), Value::Object(model)) = (&mut object, self.model.json()) {
                    fields.extend(model);
                }
                self.array.value(&object)
            }
        }
    }

    /// Renders the end, which an array needs after an error too.
    pub(crate) fn end(&self) -> String {
        match self.output {
            Output::Json => self.array.end(),
            Output::Md | Output::Csv => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::tests::model;

    const CASE: BatchCase = BatchCase { prompt: 128, generate: 64, sequences: 4 };

    fn sample(prompt: u64, generate: u64) -> BatchSample {
        BatchSample { prompt: Duration::from_millis(prompt), generate: Duration::from_millis(generate) }
    }

    fn rendered(output: Output) -> String {
        let model = model();
        let mut rows = BatchRows::new(&model, output);
        let begin = rows.begin();
        let row = rows.row(&CASE, &[sample(900, 2100), sample(1100, 1900)]);
        begin + &row + &rows.end()
    }

    #[test]
    fn tables_have_the_columns_of_llama_batched_bench() {
        insta::assert_snapshot!(rendered(Output::Md), @r"
        |     PP |     TG |   B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
        | -----: | -----: | --: | -----: | -------: | -------: | -------: | -------: | -------: | -------: |
        |    128 |     64 |   4 |    768 |    1.000 |   512.00 |    2.000 |   128.00 |    3.000 |   256.00 |
        ");
        insta::assert_snapshot!(rendered(Output::Csv), @r"
        pp,tg,pl,n_kv,t_pp,speed_pp,t_tg,speed_tg,t,speed
        128,64,4,768,1,512,2,128,3,256
        ");
    }

    #[test]
    fn json_has_the_names_of_llama_batched_bench() {
        let found: Value = serde_json::from_str(&rendered(Output::Json)).unwrap();
        let row = &found[0];
        assert_eq!((&row["pl"], &row["speed_tg"], &row["n_kv"]), (&json!(4), &json!(128.0), &json!(768)));
        assert_eq!(row["samples_t_pp"], json!([0.9, 1.1]));
        assert!(row["model"].is_string() && row["threads"].is_number());
    }
}
