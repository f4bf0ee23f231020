//! Rendered results.

use std::time::Duration;

use super::*;

pub(crate) fn model() -> ModelInfo {
    ModelInfo {
        model: "tiny, 1 \"b\" q8".into(),
        bundle: "b".into(),
        precision: Float::Bf16,
        quant: Quant::Q8,
        cache_type: CacheType::Float(Float::Bf16),
        device: "local-task".into(),
        target: "cpu".into(),
        threads: 2,
        parameters: 1_235_814_400,
        bytes: 3 << 29,
        step_bytes: 1_000,
        position_bytes: 10,
        windows: vec![],
        dispatches: [
            ("matmul".into(), Traffic { bytes: 7_000, position_bytes: 100 }),
            ("step_1.cuda_add".into(), Traffic { bytes: 1_000_000, position_bytes: 0 }),
            ("step_8.cuda_add".into(), Traffic { bytes: 4_000_000, position_bytes: 0 }),
        ]
        .into(),
    }
}

fn tests() -> Vec<Row> {
    let samples =
        |speeds: [f64; 2]| speeds.map(|tok_s| BenchSample { tok_s, memory_bytes_s: Some(21_280.0) }).to_vec();
    vec![
        Row { case: BenchCase { work: BenchWork::Prompt(512), depth: 0 }, samples: samples([100.0, 104.0]) },
        Row { case: BenchCase { work: BenchWork::Decode(128), depth: 0 }, samples: samples([9.0, 11.0]) },
    ]
}

fn rows(output: Output) -> String {
    let (model, tests) = (model(), tests());
    let cases: Vec<_> = tests.iter().map(|row| row.case).collect();
    let mut rows = Rows::new(&model, &cases, output);
    let begin = rows.begin();
    let all: String = tests.iter().map(|row| rows.row(row)).collect();
    begin + &all + &rows.end()
}

#[test]
fn the_table_is_aligned() {
    insta::assert_snapshot!(rows(Output::Md), @r#"
    | model          |     size | params | target | threads | test  |              t/s | bandwidth |
    | -------------- | -------: | -----: | ------ | ------: | ----- | ---------------: | --------: |
    | tiny, 1 "b" q8 | 1.50 GiB | 1.24 B | cpu    |       2 | pp512 |    102.00 ± 2.83 |         - |
    | tiny, 1 "b" q8 | 1.50 GiB | 1.24 B | cpu    |       2 | tg128 |     10.00 ± 1.41 |      77 % |
    "#);
}

#[test]
fn counts_have_a_unit() {
    assert_eq!([999_999, 1_869_504, 1_235_814_400].map(count), ["1000.00 K", "1.87 M", "1.24 B"]);
}

#[test]
fn weights_that_fit_a_cache_have_no_share() {
    let small = ModelInfo { bytes: CACHED_BYTES - 1, ..model() };
    assert!(tests().iter().all(|row| row.share(&small).is_none()));
}

#[test]
fn csv_and_json_have_all_fields() {
    insta::assert_snapshot!(rows(Output::Csv), @r#"
    model,bundle,size_bytes,parameters,precision,quant,kv,target,device,threads,test,depth,tokens,mean_tok_s,deviation_tok_s,bytes_a_token,bandwidth_share
    "tiny, 1 ""b"" q8",b,1610612736,1235814400,bf16,q8,bf16,cpu,local-task,2,pp512,0,512,102.0,2.8284271247461903,,
    "tiny, 1 ""b"" q8",b,1610612736,1235814400,bf16,q8,bf16,cpu,local-task,2,tg128,0,128,10.0,1.4142135623730951,1640.0,0.7706766917293233
    "#);
    let json: Value = serde_json::from_str(&rows(Output::Json)).unwrap();
    assert_eq!(json[1]["test"], "tg128");
    assert_eq!(json[1]["mean_tok_s"], 10.0);
    // 1,000 bytes of weights and 64 positions of 10, ten times a second, of 21,280.
    assert!((json[1]["bandwidth_share"].as_f64().unwrap() - 1640.0 * 10.0 / 21_280.0).abs() < 1e-9);
    assert_eq!(json[0]["bandwidth_share"], Value::Null);
}

#[test]
fn what_was_measured_before_an_error_is_a_whole_array() {
    let (model, tests) = (model(), tests());
    let cases: Vec<_> = tests.iter().map(|row| row.case).collect();
    let mut rows = Rows::new(&model, &cases, Output::Json);
    let text = [rows.begin(), rows.row(&tests[0]), rows.end()].concat();
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((json.as_array().unwrap().len(), &json[0]["test"]), (1, &json!("pp512")));
    let none = Rows::new(&model, &cases, Output::Json);
    assert_eq!(none.begin() + &none.end(), "[]\n");
}

#[test]
fn a_window_fills_first_and_is_read_as_a_whole_then() {
    let of = |depth, window| in_window(&BenchCase { work: BenchWork::Decode(128), depth }, window);
    // 64 steps with 32 positions on average, and 64 with 64.
    assert_eq!(of(0, 64), 48.0);
    assert_eq!([of(0, 4096), of(100, 4096), of(100, 50)], [64.0, 164.0, 50.0]);
    let window = Window { positions: 64, position_bytes: 100 };
    let model = ModelInfo { windows: vec![window], ..model() };
    // 1,000 bytes of weights, 64 positions of 10 and 48 of 100.
    assert_eq!(model.bytes_per_token(&tests()[1].case), 1_000.0 + 640.0 + 4_800.0);
}

#[test]
fn profiles_are_rendered_one_by_one() {
    let profile = |work: &str| Profile {
        work: work.into(),
        positions: 0.0,
        total: Duration::from_millis(2),
        dispatches: vec![],
    };
    let model = model();
    let rendered = |output| {
        let mut profiles = Profiles::new(&model, output);
        let begin = profiles.begin();
        let rows = ["pp1", "tg1"].map(|work| profiles.row(&profile(work))).concat();
        begin + &rows + &profiles.end()
    };
    assert_eq!(
        rendered(Output::Csv),
        "test,dispatch,calls,time_ms,share,bytes,bytes_s\npp1,between dispatches,,2,1,,\ntg1,between dispatches,,2,1,,\n"
    );
    assert_eq!(rendered(Output::Md).matches("| test ").count(), 2);
    assert!(rendered(Output::Md).contains(" |\n\n| test "), "{}", rendered(Output::Md));
    let json: Value = serde_json::from_str(&rendered(Output::Json)).unwrap();
    assert_eq!([&json[0]["test"], &json[1]["test"]], ["pp1", "tg1"]);
}

/// Returns a profile of decode steps with these dispatches.
fn profile(dispatches: Vec<Dispatch>) -> Profile {
    let case = BenchCase { work: BenchWork::Decode(10), depth: 625_000 };
    let total = Duration::from_millis(10);
    Profile { work: case.to_string(), positions: case.middle(), total, dispatches }
}

fn dispatch(name: &str, calls: u64, ms: u64) -> Dispatch {
    Dispatch { calls, time: Duration::from_millis(ms), ..Dispatch::new(name) }
}

#[test]
fn a_profile_sums_to_its_total() {
    // 16 calls move 7,000 bytes, and 100 bytes for each of 625,005 positions, in 7 ms.
    let profile = profile(vec![dispatch("matmul", 16, 7), dispatch("norm", 33, 1)]);
    let model = model();
    insta::assert_snapshot!(Profiles::new(&model, Output::Md).row(&profile), @r#"
    | test           | dispatch           | calls |    ms |  share | MB a call |  GB/s |
    | -------------- | ------------------ | ----: | ----: | -----: | --------: | ----: |
    | tg10 @ d625000 | matmul             |    16 | 7.000 | 70.0 % |     62.51 | 142.9 |
    | tg10 @ d625000 | norm               |    33 | 1.000 | 10.0 % |         - |     - |
    | tg10 @ d625000 | between dispatches |     - | 2.000 | 20.0 % |         - |     - |
    "#);
}

#[test]
fn kernels_of_a_gpu_move_what_each_function_makes_them_move() {
    let of = |functions: &[(&str, u64)]| {
        let functions = functions.iter().map(|&(function, calls)| (function.to_owned(), calls)).collect();
        let dispatches = vec![Dispatch { functions, ..dispatch("cuda_add", 5, 1) }];
        let model = model();
        let mut profiles = Profiles::new(&model, Output::Json);
        let text = profiles.begin() + &profiles.row(&profile(dispatches)) + &profiles.end();
        let json: Value = serde_json::from_str(&text).unwrap();
        json[0]["dispatches"][0].clone()
    };
    let found = of(&[("step_1", 3), ("step_8", 2)]);
    assert_eq!((&found["bytes"], &found["bytes_s"]), (&json!(11e6), &json!(11e9)));
    // Nothing is said if something is not known.
    assert_eq!(of(&[("step_1", 3), ("step_64", 2)])["bytes"], Value::Null);
    assert_eq!(of(&[])["bytes_s"], Value::Null);
}

#[test]
fn quality_is_compared_with_a_reference() {
    let comparison = QualityComparison {
        reference_perplexity: 5.0,
        mean_kl: 0.0005,
        p99_kl: 0.004,
        top_1_agreement: 0.985,
    };
    let found = Quality { tokens: 1000, perplexity: 5.01, comparison: Some(comparison) };
    insta::assert_snapshot!(quality(&found, Output::Md), @r#"
    | tokens | perplexity | reference_perplexity |  mean_kl |   p99_kl | top_1_agreement |
    | -----: | ---------: | -------------------: | -------: | -------: | --------------: |
    |   1000 |     5.0100 |               5.0000 | 0.000500 | 0.004000 |         98.50 % |
    "#);
    let alone = Quality { comparison: None, ..found };
    assert_eq!(quality(&alone, Output::Csv), "tokens,perplexity\n1000,5.01\n");
}
