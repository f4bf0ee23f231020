//! Measurements as ratios.

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};

use super::stats::{median, sorted, spread};
use crate::shell;

/// The results of both programs in one test.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Measurement {
    /// `q8 tg64 @ d4096`.
    pub(crate) test: String,
    /// llama.cpp's name of the format.
    pub(crate) beside: &'static str,
    /// `tok/s` or `req/s`, where more is better, or `s` or `ms`.
    pub(crate) unit: &'static str,
    pub(crate) ours: f64,
    pub(crate) theirs: f64,
    /// Our share of the memory bandwidth.
    pub(crate) share: Option<f64>,
}

/// The summary of all repeats of a test.
#[derive(Debug, PartialEq)]
pub(crate) struct Ratio {
    test: String,
    beside: &'static str,
    unit: &'static str,
    ours: f64,
    theirs: f64,
    /// How many times faster ours is: lowest, median and highest of the repeats.
    ratio: [f64; 3],
    share: Option<f64>,
}

impl Ratio {
    /// Summarizes by test, in the order of first appearance.
    pub(crate) fn of(measured: &[Measurement]) -> Vec<Self> {
        let mut tests: Vec<&str> = Vec::new();
        for one in measured {
            if !tests.contains(&one.test.as_str()) {
                tests.push(&one.test);
            }
        }
        let of_test = |test: &str| {
            let of: Vec<_> = measured.iter().filter(|one| one.test == test).collect();
            let first = of.first()?;
            let ratios = of.iter().map(|one| match one.unit {
                "s" | "ms" => one.theirs / one.ours,
                _ => one.ours / one.theirs,
            });
            let shares: Option<Vec<_>> = of.iter().map(|one| one.share).collect();
            Some(Self {
                test: test.to_owned(),
                beside: first.beside,
                unit: first.unit,
                ours: median(&sorted(of.iter().map(|one| one.ours))),
                theirs: median(&sorted(of.iter().map(|one| one.theirs))),
                ratio: spread(ratios.collect()),
                share: shares.map(|shares| median(&sorted(shares.into_iter()))),
            })
        };
        tests.into_iter().filter_map(of_test).collect()
    }

    /// Returns it as an object.
    pub(crate) fn to_json(&self) -> Value {
        let Self { test, beside, unit, ours, theirs, ratio: [low, median, high], share } = self;
        json!({
            "test": test, "beside": beside, "unit": unit, "ours": ours, "theirs": theirs,
            "ratio": median, "lowest": low, "highest": high, "bandwidth_share": share,
        })
    }
}

/// Runs both programs, one right after the other. What runs first in one repeat runs second in the next, because the first one
/// leaves caches and clocks of the processor to the second one.
pub(crate) fn in_turn<T, U>(
    repeat: usize,
    ours: impl FnOnce() -> Result<T>,
    theirs: impl FnOnce() -> Result<U>,
) -> Result<(T, U)> {
    if repeat % 2 == 1 {
        let ours = ours()?;
        return Ok((ours, theirs()?));
    }
    let theirs = theirs()?;
    Ok((ours()?, theirs))
}

/// Formats an aligned Markdown table.
pub(crate) fn render(ratios: &[Ratio]) -> String {
    let head = ["test", "ours", "llama.cpp", "unit", "ratio", "lowest to highest", "bandwidth"];
    let row = |ratio: &Ratio| {
        let Ratio { test, beside, unit, ours, theirs, ratio: [low, median, high], share } = ratio;
        [
            test.clone(),
            format!("{ours:.2}"),
            format!("{theirs:.2} ({beside})"),
            (*unit).to_owned(),
            format!("{median:.2}"),
            format!("{low:.2} to {high:.2}"),
            share.map_or("-".into(), |share| format!("{:.0} %", share * 100.0)),
        ]
    };
    shell::markdown_table(head, ratios.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(test: &str, unit: &'static str, ours: f64, theirs: f64) -> Measurement {
        Measurement { test: test.into(), beside: "Q8_0", unit, ours, theirs, share: Some(ours / 20.0) }
    }

    #[test]
    fn programs_take_turns_in_being_first() {
        let order = |repeat| {
            let order = std::cell::RefCell::new(vec![]);
            let run = |name: &'static str| {
                order.borrow_mut().push(name);
                Ok(name)
            };
            assert_eq!(in_turn(repeat, || run("ours"), || run("theirs")).unwrap(), ("ours", "theirs"));
            order.into_inner()
        };
        assert_eq!([order(1), order(2)], [["ours", "theirs"], ["theirs", "ours"]]);
    }

    #[test]
    fn ratios_are_computed_in_pairs() {
        let all = [
            measured("tg", "tok/s", 10.0, 5.0),
            measured("first", "s", 0.5, 1.0),
            measured("tg", "tok/s", 12.0, 12.0),
            measured("tg", "tok/s", 9.0, 6.0),
        ];
        insta::assert_snapshot!(render(&Ratio::of(&all)), @"
        | test   | ours   | llama.cpp    | unit   | ratio  | lowest to highest  | bandwidth |
        |---     |---     |---           |---     |---     |---                 |---|
        | tg     | 10.00  | 6.00 (Q8_0)  | tok/s  | 1.50   | 1.00 to 2.00       | 50 % |
        | first  | 0.50   | 1.00 (Q8_0)  | s      | 2.00   | 2.00 to 2.00       | 2 % |
        ");
    }
}
