//! Timelines of the programs, as another program reads them, with the demo model.

use std::{fs, path::Path, process::Command};

use crate::{
    emulated::{for_gpu, on_emulator},
    emulated_calls::LAUNCHES,
    real::{Built, Fixture, built, models, program, request},
};
use serde_json::Value;

/// Threads of local-task.
const THREADS: u64 = 2;

/// An event with a length, in nanoseconds.
#[derive(Debug, Clone)]
struct Event {
    name: String,
    category: String,
    /// Process and thread.
    track: (u64, u64),
    start: u64,
    end: u64,
    arguments: Value,
}

impl Event {
    fn contains(&self, other: &Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    fn length(&self) -> u64 {
        self.end - self.start
    }
}

fn demo() -> Built {
    built(&request(&models().join("demo"), &["cpu"]))
}

/// Returns the events of a file, and the rest of it.
fn read(path: &Path) -> (Vec<Event>, Value) {
    let file: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times are not negative")]
    let nanoseconds = |value: &Value| (value.as_f64().unwrap() * 1e3).round() as u64;
    let event = |value: &Value| {
        let text = |name: &str| value[name].as_str().unwrap().to_owned();
        let start = nanoseconds(&value["ts"]);
        Event {
            name: text("name"),
            category: text("cat"),
            track: (value["pid"].as_u64().unwrap(), value["tid"].as_u64().unwrap()),
            start,
            end: start + nanoseconds(&value["dur"]),
            arguments: value["args"].clone(),
        }
    };
    let all = file["traceEvents"].as_array().unwrap();
    let events: Vec<Event> = all.iter().filter(|value| value["ph"] == "X").map(event).collect();
    (events, file)
}

fn of<'e>(events: &'e [Event], category: &str) -> Vec<&'e Event> {
    events.iter().filter(|event| event.category == category).collect()
}

fn success(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_dispatches_of_each_token_lie_in_its_step() {
    let (demo, folder) = (demo(), tempfile::tempdir().unwrap());
    let path = folder.path().join("run.json");
    for (device, workers) in [("local-task", THREADS), ("local-sync", 1)] {
        let mut command = Command::new(program("mlxcel-run"));
        command.arg(demo.bundle.path()).args(["-p", "The sea was", "-n", "12", "--seed", "1", "-t", "2"]);
        success(command.args(["--device", device, "--trace"]).arg(&path));
        let (events, file) = read(&path);
        assert_eq!(file["otherData"]["left_out"], 0);
        for event in &events {
            assert!(event.length() > 0 || event.category != "dispatch", "{event:?}");
        }

        // One step takes the prompt, and each further token one more.
        let steps = |name: &str| events.iter().filter(|event| event.name == name).collect::<Vec<_>>();
        let (prompts, decodes) = (steps("prompt step"), steps("decode step"));
        assert_eq!((prompts.len(), decodes.len()), (1, 11));
        for step in prompts.into_iter().chain(decodes) {
            let calls = of(&events, "call").into_iter().filter(|call| step.contains(call));
            let calls: Vec<&Event> = calls.collect();
            let names: Vec<&str> = calls.iter().map(|call| call.name.split('_').next().unwrap()).collect();
            // Sampling asks for the best tokens.
            assert_eq!(names, ["step", "best"]);
            assert!(calls.iter().all(|call| call.track == step.track));
            for call in calls {
                let inside = |category: &str| -> Vec<&Event> {
                    of(&events, category).into_iter().filter(|event| call.contains(event)).collect()
                };
                let busy: u64 = inside("dispatch").iter().map(|dispatch| dispatch.length()).sum();
                assert!(0 < busy && busy <= call.length() * workers, "{device}, {call:?}: {busy} ns");
                assert!(!inside("wait").is_empty() && !inside("queue").is_empty(), "{call:?}");
            }
        }

        let (calls, dispatches) = (of(&events, "call"), of(&events, "dispatch"));
        let of_calls = dispatches.iter().filter(|dispatch| calls.iter().any(|call| call.contains(dispatch)));
        assert_eq!(of_calls.count(), dispatches.len(), "every dispatch is of a call");
        check_workers(&events, if device == "local-task" { workers } else { 0 });
        check_tracks(&events);
        let counts = file["traceEvents"].as_array().unwrap().iter().filter(|value| value["ph"] == "C");
        assert!(counts.clone().any(|count| count["args"]["bytes"].as_u64().unwrap() > 0));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no other file is left");
    }
}

/// Kernels are told by events of the stream, and steps are launched kernel by kernel.
#[test]
fn the_kernels_of_each_token_lie_in_its_step() {
    let built = built(&for_gpu(&Fixture::find("gqa"), "cuda"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    let mut command = on_emulator(program("mlxcel-run"));
    command.arg(built.bundle.path()).args(["--device", "cuda", "--tokens", "63", "-n", "7", "--ignore-eos"]);
    success(command.arg("--trace").arg(&path));
    let (events, _) = read(&path);
    let steps: Vec<_> = events.iter().filter(|event| event.name.ends_with(" step")).collect();
    assert_eq!(steps.len(), 7);
    let kernels = of(&events, "dispatch");
    for step in steps {
        let own: Vec<_> = kernels.iter().filter(|kernel| step.contains(kernel)).collect();
        assert_eq!(own.len(), LAUNCHES, "{step:?}: {own:?}");
        assert!(own.iter().all(|kernel| kernel.name.starts_with("cuda_")), "{own:?}");
        assert!(own.iter().all(|kernel| kernel.length() > 0), "{own:?}");
    }
    assert_eq!(kernels.len(), 7 * LAUNCHES, "every kernel is of a step");
    check_tracks(&events);
}

/// Checks that the workers ran all workgroups of each dispatch within its time.
fn check_workers(events: &[Event], workers: u64) {
    let parts = of(events, "workgroups");
    let mut tracks: Vec<_> = parts.iter().map(|part| part.track).collect();
    tracks.sort_unstable();
    tracks.dedup();
    assert!(tracks.len() as u64 <= workers && (workers == 0 || !tracks.is_empty()), "{tracks:?}");
    for dispatch in of(events, "dispatch").into_iter().filter(|_| workers > 0) {
        let counts = dispatch.arguments["workgroups"].as_array().unwrap();
        let expected: u64 = counts.iter().map(|count| count.as_u64().unwrap()).product();
        let own = parts.iter().filter(|part| part.name == dispatch.name && dispatch.contains(part));
        let found: u64 = own.map(|part| part.arguments["workgroups"].as_u64().unwrap()).sum();
        assert_eq!(found, expected, "{dispatch:?}");
    }
}

/// Checks that two events of a track contain each other or do not overlap, as viewers expect.
fn check_tracks(events: &[Event]) {
    let mut open: std::collections::HashMap<(u64, u64), Vec<&Event>> = std::collections::HashMap::new();
    for event in events {
        let stack = open.entry(event.track).or_default();
        stack.retain(|outer| outer.end > event.start);
        if let Some(outer) = stack.last() {
            assert!(outer.contains(event), "{event:?} in {outer:?}");
        }
        stack.push(event);
    }
}

#[test]
fn profiles_are_sums_of_the_timeline() {
    let (demo, folder) = (demo(), tempfile::tempdir().unwrap());
    let path = folder.path().join("bench.json");
    let mut command = Command::new(program("mlxcel-bench"));
    command.arg(demo.bundle.path()).args(["-p", "0", "-n", "8", "--profile", "-o", "json", "-t", "2"]);
    let profiles: Value = serde_json::from_str(&success(command.arg("--trace").arg(&path))).unwrap();
    let (events, _) = read(&path);
    let phase = events.iter().find(|event| event.name == "tg8, 1").unwrap();
    // The steps after the first, which is not part of the time.
    let first = events
        .iter()
        .filter(|event| event.name.ends_with(" step") && phase.contains(event))
        .min_by_key(|e| e.start);
    let first = first.unwrap().end;
    let dispatches = profiles[0]["dispatches"].as_array().unwrap();
    assert!(!dispatches.is_empty());
    for dispatch in dispatches {
        let own = of(&events, "dispatch").into_iter();
        let own = own
            .filter(|event| event.start > first && phase.contains(event) && event.name == dispatch["name"]);
        let lengths: Vec<u64> = own.map(Event::length).collect();
        assert_eq!(dispatch["calls"].as_u64().unwrap(), lengths.len() as u64);
        let expected = dispatch["time_ms"].as_f64().unwrap() * 1e6;
        assert!((lengths.iter().sum::<u64>() as f64 - expected).abs() < 1.0, "{dispatch}");
    }
}

#[test]
fn calls_of_programs_have_their_dispatches() {
    const PROGRAM: &str = "module @double {\n  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n    \
        %0 = stablehlo.add %x, %x : tensor<4xf32>\n    return %0 : tensor<4xf32>\n  }\n}\n";
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    fs::write(place("double.mlir"), PROGRAM).unwrap();
    let mut compile = Command::new(env!("CARGO_BIN_EXE_mlxcel-compile"));
    compile.env("MLXCEL_STORE", place("store")).args([
        "double.mlir",
        "--target",
        "cpu",
        "--out",
        "double.bundle",
    ]);
    success(compile.current_dir(folder.path()));
    let mut run = Command::new(program("mlxcel-run"));
    run.args(["double.bundle", "--input", "arg0=4xf32=1 2 3 4", "--repeat", "5", "--trace", "run.json"]);
    success(run.current_dir(folder.path()));
    let (events, _) = read(&place("run.json"));
    let calls = of(&events, "call");
    assert_eq!(calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["main"; 5]);
    let dispatches = of(&events, "dispatch");
    for call in &calls {
        assert_eq!(dispatches.iter().filter(|dispatch| call.contains(dispatch)).count(), 1, "{call:?}");
    }
    let transfers = of(&events, "transfer").into_iter().filter(|transfer| transfer.arguments["bytes"] == 16);
    let names: Vec<&str> = transfers.map(|transfer| transfer.name.as_str()).collect();
    assert_eq!(names, ["write", "read"]);
    let phases: Vec<&str> = of(&events, "phase").iter().map(|phase| phase.name.as_str()).collect();
    assert!(["load", "copy the inputs", "write the results"].iter().all(|name| phases.contains(name)));
    check_tracks(&events);
}

#[test]
fn a_timeline_that_cannot_be_written_is_refused_before_anything_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing/run.json");
    for name in ["mlxcel-run", "mlxcel-bench"] {
        let output = Command::new(program(name)).args(["nothing", "--trace"]).arg(&path).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        let message = message.replace(&folder.path().display().to_string(), "…");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(
            message,
            "error: cannot write the timeline …/missing/run.json: entity not found\n\
             hint: name a file in a folder that exists and may be written, on a disk with room\n"
        );
    }
    // A run that fails leaves no file.
    let output = Command::new(program("mlxcel-run"))
        .args(["nothing", "-p", "a", "--trace", "run.json"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!((output.status.code(), fs::read_dir(folder.path()).unwrap().count()), (Some(1), 0));
}

#[test]
fn a_picture_is_small() {
    let (demo, folder) = (demo(), tempfile::tempdir().unwrap());
    let path = folder.path().join("run.svg");
    let mut command = Command::new(program("mlxcel-run"));
    command.arg(demo.bundle.path()).args(["-p", "The sea was", "-n", "40", "-t", "2", "--trace"]);
    success(command.arg(&path));
    let svg = fs::read_to_string(&path).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.len() < 60_000);
    assert!(["decode step", "step_1", "worker 0"].iter().all(|text| svg.contains(text)), "{svg}");
}
