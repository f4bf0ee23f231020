//! The script with programs that stand for those of a GPU.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use super::{
    kit::{Kit, REHEARSAL, WHOLE, name_of},
    pack::{IN_4_BITS, SCRIPTS, cases_of, clear, filled, read, write, write_predictions, write_scripts},
    predictions::{self, Prediction},
};

#[test]
fn both_formats_of_expected_json_are_read() {
    let demo = r#"{"cases": [{"prompt": "a", "prompt_tokens": [1, 2], "tokens": [3], "text": "b"}]}"#;
    assert_eq!(cases_of("demo", demo, 0.0, &WHOLE).unwrap(), "demo 1,2 3\n");
    let oracle = r#"{"prompts": [{"prompt": [4], "tokens": [5, 6]}, {"prompt": [7], "tokens": [8]}]}"#;
    assert_eq!(cases_of("gqa", oracle, 0.0, &WHOLE).unwrap(), "gqa 4 5,6\ngqa 7 8\n");
    assert_eq!(
        cases_of("x", r#"{"prompts": []}"#, 0.0, &WHOLE).unwrap_err().to_string(),
        "expected.json of x: found no case, expected at least one"
    );
}

#[test]
fn a_rehearsal_has_fewer_prompts_and_tokens() {
    let kit = Kit { prompts: 1, tokens: 2, ..REHEARSAL };
    let oracle = r#"{"prompts": [{"prompt": [4], "tokens": [5, 6, 9]}, {"prompt": [7], "tokens": [8]}]}"#;
    assert_eq!(cases_of("gqa", oracle, 0.0, &kit).unwrap(), "gqa 4 5,6\n");
}

#[test]
fn tokens_end_where_another_one_is_as_good() {
    let oracle = r#"{"prompts": [
        {"prompt": [4], "tokens": [5, 6, 7], "best": [[[5, 1.0], [3, 0.5]], [[6, 1.0], [2, 0.97]], [[7, 2.0], [1, 0.0]]]},
        {"prompt": [7], "tokens": [8], "best": [[[8, 0.5], [9, 0.49]]]}
    ]}"#;
    assert_eq!(cases_of("gqa", oracle, 0.05, &WHOLE).unwrap(), "gqa 4 5\n");
    assert_eq!(cases_of("gqa", oracle, 0.02, &WHOLE).unwrap(), "gqa 4 5,6,7\n");
    assert_eq!(cases_of("gqa", oracle, 0.0, &WHOLE).unwrap(), "gqa 4 5,6,7\ngqa 7 8\n");
}

#[test]
fn the_committed_files_have_cases() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models");
    for kit in [WHOLE, REHEARSAL] {
        for case in kit.cases {
            let text = read(&models.join(case).join("expected.json")).unwrap();
            let count = cases_of(name_of(case), &text, 0.0, &WHOLE).unwrap().lines().count();
            let expected = if *case == "demo" { 5..=5 } else { 6..=7 };
            assert!(expected.contains(&count), "{case}: {count}");
        }
        assert!(kit.overlapped.iter().all(|case| kit.cases.contains(case)));
        let in_4_bits = |cases: &[&str]| cases.iter().any(|case| case.ends_with(IN_4_BITS));
        assert!(in_4_bits(kit.cases) && in_4_bits(kit.overlapped));
    }
}

#[test]
fn every_place_of_a_script_is_filled() {
    for kit in [WHOLE, REHEARSAL] {
        for (name, script) in SCRIPTS {
            let text = filled(script, &kit, "1", &predictions());
            let place = text.split('@').nth(1).filter(|word| word.chars().all(|c| c.is_ascii_uppercase()));
            assert_eq!(place, None, "{name}");
        }
    }
}

/// Returns what steps of two variants should take.
fn predictions() -> Vec<Prediction> {
    let table = "variant step kernel calls registers us_H200\n\
        bf16 step_1 cuda_argmax 1 20/24 8.0\n\
        bf16 step_1 cuda_norm_gated_bf16 16 40/48 320.0\n\
        bf16 step_1 cuda 17 -/- 1000.0\n\
        bf16 step_1 cuda-sm_90 17 -/- 800.0\n\
        bf16 step_512 cuda_argmax 1 20/24 9.0\n\
        bf16 step_512 cuda 1 -/- 5120.0\n\
        q8 step_1 cuda 17 -/- 500.0\n";
    predictions::of(table).unwrap()
}

/// What a GPU without a fault answers.
const RIGHT: &str = r#"for line in 1 2; do
    echo '{"line":'$line',"prompt_tokens":[1],"tokens":[3,4],"text":"\"tokens\":[9]","timings":{},"device":"cuda, A"}'
    case " $* " in *' -f '*) ;; *) exit ;; esac
    done"#;

/// Makes an executable. Another process writes it: what a test writes itself could still be open in a child process of
/// another test when it is run.
fn program(folder: &Path, name: &str, text: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(folder.join(name));
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Answers as [`RIGHT`] when the machine is diagnosed, and is the shell script `then` for every case.
fn once_right(then: &str) -> String {
    format!("case \" $* \" in *' -n 1 '*) {RIGHT}\nexit;; esac\n{then}")
}

/// An nvidia-smi that has the lines `field value` of smi.txt, and knows no field that `unknown` names there.
const SMI: &str = r#"#!/bin/sh
folder=$(dirname "$0") line=
for argument; do case "$argument" in --query-gpu=*) list=${argument#*=};; esac; done
case "$*" in
  -L) echo 'GPU 0: A (UUID: GPU-1)'; exit;;
  *--query-compute-apps=*) sed -n 's/^app //p' "$folder/smi.txt"; exit;;
  '') echo '| NVIDIA-SMI 580.95.05    CUDA Version: 13.0 |'; exit;;
esac
IFS=,
for field in $list; do
  ! grep -q "^unknown $field\$" "$folder/smi.txt" || { echo "Field \"$field\" is not a valid field to query."; exit 2; }
  value=$(sed -n "s/^$field //p" "$folder/smi.txt")
  line="$line, ${value:-[N/A]}"
done
echo "${line#, }"
"#;

/// Returns a folder with the scripts, an `mlxcel-run` that starts and is then the shell script `answer`, and an `mlxcel-bench` that
/// is `bench`.
fn packed(answer: &str, bench: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let predictions = predictions();
    write_scripts(at, &WHOLE, "1", &predictions).unwrap();
    // What this process wrote could still be open: see `program`.
    fs::remove_file(at.join("run.sh")).unwrap();
    program(at, "run.sh", &filled(SCRIPTS[0].1, &WHOLE, "1", &predictions));
    write_predictions(&at.join("predictions"), &predictions).unwrap();
    // The last argument is the folder.
    program(at, "random-weights", "#!/bin/sh\nfor out; do :; done\nmkdir -p \"$out\"\n");
    program(at, "mlxcel-run", &format!("#!/bin/sh\ntest \"$1\" = --version && exit\n{answer}\n"));
    program(at, "mlxcel-bench", &format!("#!/bin/sh\n{bench}\n"));
    // Its GPU is older than those that overlap kernels.
    program(at, "nvidia-smi", SMI);
    write(&at.join("smi.txt"), "name A\ncompute_cap 8.9\nmemory.total 24564\nmemory.free 24000\n").unwrap();
    program(at, "dmesg", "#!/bin/sh\n");
    fs::create_dir_all(at.join("bundles")).unwrap();
    write(&at.join("cases.txt"), "demo 1,2 3,4\ndemo-sm_90 1,2 3,4\n").unwrap();
    folder
}

/// Runs the script with the folder's programs before those of `path`. Returns success, stdout after the diagnosis, and stderr.
fn run(folder: &Path, path: &str) -> (bool, String, String) {
    run_stage(folder, path, &[])
}

/// Runs a stage of the script.
fn run_stage(folder: &Path, path: &str, stage: &[&str]) -> (bool, String, String) {
    let (success, stdout, stderr) = run_with(folder, path, stage, &[]);
    let (_, rest) = stdout.split_once("\n\n").unwrap_or_default();
    (success, rest.to_owned(), stderr)
}

/// Runs a stage with these variables. Returns success, all of stdout, and stderr.
fn run_with(folder: &Path, path: &str, stage: &[&str], variables: &[(&str, &str)]) -> (bool, String, String) {
    let path = format!("{}:{path}", folder.display());
    let mut command = Command::new(folder.join("run.sh"));
    for name in ["CUDA_VISIBLE_DEVICES", "MLXCEL_PEER_PYTHON", "MLXCEL_LLAMA_BENCH", "MLXCEL_GPU_DEVICE"] {
        command.env_remove(name);
    }
    command.args(stage).env("PATH", path).env("MLXCEL_GPU_SECONDS", "20").envs(variables.iter().copied());
    // No Python that this machine may have is measured.
    let python = ("MLXCEL_PEER_PYTHON", "no-python");
    if !variables.iter().any(|(name, _)| *name == python.0) {
        command.env(python.0, python.1);
    }
    let output = command.output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.success(), stdout, stderr)
}

/// Runs the script of a folder with these programs. Returns success and stdout.
fn check(answer: &str, bench: &str) -> (bool, String) {
    let (success, stdout, _) = run(packed(answer, bench).path(), &std::env::var("PATH").unwrap());
    (success, stdout)
}

/// What mlxcel-bench prints of a GPU without a fault.
const FAST: &str = r#"echo '[{"bandwidth_share": null, "mean_tok_s": 66988.4, "samples_tok_s": [1.0], "test": "pp512"},
    {"bandwidth_share": 0.774, "mean_tok_s": 910.6, "samples_tok_s": [1.0], "test": "tg256"}]'"#;

#[test]
fn equal_tokens_pass() {
    let (success, text) = check(RIGHT, FAST);
    assert!(success, "{text}");
    insta::assert_snapshot!(text, @r"
    ok      demo, 2 prompt tokens, 2 generated
    ok      demo, prompts side by side: 2
    making the weights of llama-3.2-1b from seed 0
    ok      llama-3.2-1b-f32 on cuda, against this machine's CPU

    llama-3.2-1b on cuda, A
    variant       prompts  predicted      steps  predicted    of copy
    f32             66988          -        911          -         77
    bf16            66988     100000        911       1000         77
    q8              66988          -        911       2000         77
    q4              66988          -        911          -         77

    llama-3.2-1b in bf16, tokens per second of other programs and of ours; the ratio is how many times as fast we are
    program                   prompts       ours   ratio      steps       ours   ratio
    transformers            not here: found no no-python
    transformers, compiled  not here: found no no-python
    vLLM                    not here: found no no-python
    llama.cpp               not here: found no llama-bench
    tokens of transformers  not here: found no no-python

    3 passed, 0 failed
    ");
}

#[test]
fn stages_run_alone_and_keep_the_results_of_others() {
    let path = std::env::var("PATH").unwrap();
    let packed = packed(RIGHT, FAST);
    let folder = packed.path();
    fs::create_dir_all(folder.join("bundles/llama-3.2-1b-bf16")).unwrap();
    let result = |name: &str| read(&folder.join("results").join(name)).unwrap_or_default();
    let (success, text, errors) = run_stage(folder, &path, &["cases"]);
    assert!(success, "{text}{errors}");
    let passed = "ok      demo, 2 prompt tokens, 2 generated\nok      demo, prompts side by side: 2\n";
    assert_eq!(text, format!("{passed}2 passed, 0 failed\n"));
    let (_, text, _) = run_stage(folder, &path, &["full"]);
    assert!(text.ends_with("cuda, against this machine's CPU\n1 passed, 0 failed\n"), "{text}");
    let (success, text, _) = run_stage(folder, &path, &["speed", "bf16"]);
    assert!(
        success && text.contains("bf16            66988     100000        911       1000         77\n"),
        "{text}"
    );
    assert!(!text.contains("\nq8 "), "{text}");
    assert_eq!(result("cases.txt"), passed);
    assert_eq!(result("full.txt").lines().count(), 1);
    assert!(result("bf16.json").contains("pp512") && result("bf16-kernels.json").contains("pp512"));
    // The case, the CPU and the GPU at full shape, the speed, the kernels and what was predicted of them.
    let all = result("all.jsonl");
    let all: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(all.len(), 6);
    assert_eq!(all[0]["bundle"], "demo");
    assert_eq!(all[0]["found"]["tokens"][1], 4);
    assert_eq!(all[3]["found"][1]["test"], "tg256");
    assert_eq!(all[5]["predicted"][0]["us_H200"], 8.0);
    for (stage, error) in [
        (
            &["typo"][..],
            "error: found the arguments typo, expected none, diagnose, cases, full, peers, or speed and a variant\n",
        ),
        (
            &["speed", "q3"][..],
            "error: found no bundles/llama-3.2-1b-q3, expected a bundle for each variant\n",
        ),
    ] {
        let (success, _, errors) = run_stage(folder, &path, stage);
        assert!(!success && errors.starts_with(error), "{errors}");
    }
    // Everything begins with empty results.
    run(folder, &path);
    assert_eq!(result("cases.txt"), passed);
}

/// The kernels of a prompt and of a step, as mlxcel-bench prints them.
const KERNELS: [(&str, &str); 2] = [
    ("pp512", r#"{"bytes": 0.0, "bytes_s": null, "calls": 1, "name": "other", "time_ms": 0.0021}"#),
    (
        "tg32",
        r#"{"bytes": 6e7, "bytes_s": 3355443200000.0, "calls": 32, "name": "cuda_norm_gated_bf16", "time_ms": 0.64},
        {"bytes": 5e5, "bytes_s": 64128000000.0, "calls": 2, "name": "cuda_argmax", "time_ms": 0.0161}"#,
    ),
];

#[test]
fn kernels_are_beside_what_was_predicted_of_them() {
    // Builds of mlxcel-bench differ in the order of keys.
    let sorted = KERNELS
        .map(|(test, rows)| format!(r#"{{"dispatches": [{rows}], "test": "{test}", "total_ms": 1.0}}"#));
    let unsorted = KERNELS
        .map(|(test, rows)| format!(r#"{{"test": "{test}", "total_ms": 1.0, "dispatches": [{rows}]}}"#));
    let [sorted, unsorted] = [sorted, unsorted].map(|tests| {
        let kernels = format!("echo '[{}]'", tests.join(", "));
        let bench =
            format!("for last; do :; done\ntest \"$last\" = --profile || {{ {FAST}; exit; }}\n{kernels}");
        let packed = packed(RIGHT, &bench);
        let folder = packed.path();
        fs::create_dir_all(folder.join("bundles/llama-3.2-1b-bf16")).unwrap();
        let path = std::env::var("PATH").unwrap();
        let (success, text, errors) = run_stage(folder, &path, &["speed", "bf16"]);
        assert!(success, "{text}{errors}");
        text.split_once("\n\n").unwrap().1.to_owned()
    });
    assert_eq!(sorted, unsorted);
    insta::assert_snapshot!(sorted, @r"
    bf16 pp512                                 calls        us  predicted    GB/s  registers
    other                                          1       2.1          -       -          -
    bf16 tg32                                  calls        us  predicted    GB/s  registers
    cuda_norm_gated_bf16                          32      20.0       20.0    3355      40/48
    cuda_argmax                                    2       8.0        8.0      64      20/24
    0 passed, 0 failed
    ");
}

#[test]
fn a_speed_is_kept_without_a_profile() {
    let bench = format!("for last; do :; done\ntest \"$last\" = --profile && exit 1\n{FAST}");
    let packed = packed(RIGHT, &bench);
    let (success, text, _) = run(packed.path(), &std::env::var("PATH").unwrap());
    assert!(!success && text.contains("FAILED  the kernels of llama-3.2-1b-q4\n"), "{text}");
    assert!(text.contains("q4              66988"), "{text}");
    assert!(packed.path().join("results/q4.json").is_file());
    assert!(!packed.path().join("results/q4-kernels.json").exists());
}

#[test]
fn a_program_that_does_not_end_is_ended() {
    let packed = packed(&once_right("exec sleep 60"), "exit 1");
    let path = std::env::var("PATH").unwrap();
    let (_, text, errors) = run_with(packed.path(), &path, &["cases"], &[("MLXCEL_GPU_SECONDS", "1")]);
    assert!(text.ends_with("0 passed, 2 failed\n"), "{text}");
    assert_eq!(errors, "demo on cuda: found no end after 1 s\ndemo on cuda: found no end after 5 s\n");
}

#[test]
fn programs_that_do_not_start_are_told_once() {
    let packed = packed(RIGHT, FAST);
    let no_glibc = "#!/bin/sh\necho \"version 'GLIBC_2.34' not found\" >&2; exit 1\n";
    program(packed.path(), "mlxcel-run", no_glibc);
    let (success, text, errors) = run(packed.path(), &std::env::var("PATH").unwrap());
    assert!(!success && text.is_empty(), "{text}");
    assert!(
        errors.starts_with("error: mlxcel-run does not start (version 'GLIBC_2.34' not found): found "),
        "{errors}"
    );
    assert!(errors.contains(", expected glibc 2.34 or newer\n"), "{errors}");
}

#[test]
fn a_gpu_of_an_unknown_kind_is_taken_for_a_new_one() {
    let packed = packed(RIGHT, FAST);
    write(&packed.path().join("smi.txt"), "").unwrap();
    let (_, text, errors) = run_stage(packed.path(), &std::env::var("PATH").unwrap(), &["cases"]);
    assert!(text.contains("ok      demo-sm_90, "), "{text}{errors}");
    assert!(text.ends_with("4 passed, 0 failed\n"), "{text}{errors}");
}

#[test]
fn nothing_of_an_earlier_folder_stays() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    clear(&at.join("new")).unwrap();
    for name in ["bundles/old", "results"] {
        fs::create_dir_all(at.join(name)).unwrap();
    }
    for name in ["run.sh", "results/old.json", "mine"] {
        write(&at.join(name), "").unwrap();
    }
    clear(at).unwrap();
    let names: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["mine"]);
}

#[test]
fn cases_that_do_not_run_are_failures() {
    let path = std::env::var("PATH").unwrap();
    // One that starts nothing.
    let folder = packed(RIGHT, "echo '[]'");
    program(folder.path(), "xargs", "#!/bin/sh\nexit 1\n");
    let (success, text, _) = run(folder.path(), &path);
    assert!(!success, "{text}");
    assert!(text.starts_with("FAILED  cases.txt\n  found    0 results\n  expected 2\n"), "{text}");
    assert!(text.ends_with("1 passed, 1 failed\n"), "{text}");
    // No case at all.
    let folder = packed(RIGHT, "echo '[]'");
    write(&folder.path().join("cases.txt"), "demo-sm_90 1,2 3,4\n").unwrap();
    let (success, text, errors) = run(folder.path(), &path);
    assert!(!success && text.is_empty(), "{text}");
    assert!(errors.starts_with("error: found no case for this GPU in cases.txt, "), "{errors}");
    // Without xargs, and with every other program that the script calls.
    let folder = packed(RIGHT, "echo '[]'");
    for name in ["bash", "dirname", "mktemp", "rm", "mkdir", "cat", "grep", "head", "tr", "wc", "cut", "cp"] {
        let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
        symlink(places.find(|file| file.is_file()).unwrap(), folder.path().join(name)).unwrap();
    }
    let (success, text, errors) = run(folder.path(), "/nowhere");
    assert!(!success && text.is_empty(), "{text}");
    assert_eq!(errors, "error: found no xargs, expected one in PATH\nhint: install findutils\n");
}

#[test]
fn wrong_tokens_and_failures_are_reported() {
    // $3 is the device.
    let (success, text) = check(
        r#"test $3 = cuda && id=5 || id=4; echo "{\"tokens\":[3,$id],\"timings\":{},\"device\":\"$3\"}""#,
        "echo '[]'",
    );
    assert!(!success && text.contains("  found    3,5\n  expected 3,4\n"), "{text}");
    assert!(text.ends_with("0 passed, 3 failed\n"), "{text}");
    let broken = once_right("echo no memory >&2; exit 1");
    let (success, text) = check(&broken, "exit 1");
    assert!(!success && text.contains("  found    nothing\n  expected 3,4\n"), "{text}");
    assert!(text.ends_with("0 passed, 7 failed\n"), "{text}");
    // Errors tell where they come from.
    let path = std::env::var("PATH").unwrap();
    let (_, _, errors) = run_stage(packed(&broken, "exit 1").path(), &path, &["cases"]);
    assert_eq!(errors, "demo on cuda: no memory\n".repeat(2));
}

mod diagnosis;
mod peers;
