use std::{fs, thread, time::Duration};

use serde_json::Value;
use tempfile::TempDir;

use super::{chrome, *};

/// Returns the events of the timeline, as another program reads them.
pub(crate) fn json(trace: &Trace) -> Value {
    let mut bytes = Vec::new();
    chrome::write(&trace.0.as_ref().unwrap().lock(), &mut bytes).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// Returns the events of a phase: `X` have a length, `C` are counts, `M` names.
pub(crate) fn events<'v>(json: &'v Value, phase: &str) -> Vec<&'v Value> {
    let all = json["traceEvents"].as_array().unwrap();
    all.iter().filter(|event| event["ph"] == phase).collect()
}

/// Adds an event of a device.
fn add(trace: &Trace, track: Track, kind: Kind, name: &str, times: [u64; 2], detail: Detail) {
    trace.add(|events| events.event(Some(track), kind, name, times, detail));
}

#[test]
fn events_are_in_microseconds_with_all_digits() {
    let trace = Trace::new();
    trace.name_device("local-task, 2 threads");
    let detail = Detail::Dispatch { workgroups: [8, 2, 1], busy: 1_500 };
    add(&trace, Track::Dispatches, Kind::Dispatch, "mat\"mul", [1_234_567, 1_235_567], detail);
    trace.add(|events| {
        events.buffers(1_000, 64);
        events.pool(7, 2_000, 100);
        events.pool(8, 3_000, 20);
        events.pool(7, 4_000, 0);
    });
    let json = json(&trace);
    let expected = serde_json::json!({"ph": "X", "name": "mat\"mul", "cat": "dispatch", "pid": 2, "tid": 1,
        "ts": 1234.567, "dur": 1.0, "args": {"workgroups": [8, 2, 1], "busy_us": 1.5}});
    assert_eq!(events(&json, "X"), [&expected]);
    let counts = events(&json, "C");
    let counts = counts.iter().map(|count| {
        (count["name"].as_str().unwrap(), count["ts"].as_f64().unwrap(), &count["args"]["bytes"])
    });
    let counts: Vec<_> = counts.map(|(name, at, bytes)| (name, at, bytes.as_u64().unwrap())).collect();
    // The pools together.
    let calls = "memory of calls";
    assert_eq!(
        counts,
        [("memory of buffers", 1.0, 64), (calls, 2.0, 100), (calls, 3.0, 120), (calls, 4.0, 20)]
    );
    let names = events(&json, "M");
    let names: Vec<_> = names.iter().filter_map(|name| name["args"]["name"].as_str()).collect();
    assert_eq!(names, ["host", "local-task, 2 threads", "dispatches"]);
}

#[test]
fn phases_contain_each_other_on_the_thread_that_made_them() {
    let trace = Trace::new();
    {
        let mut outer = trace.span("outer");
        outer.set(Detail::Rows { rows: 3, sequences: 2 });
        {
            let _inner = trace.span("inner");
            thread::sleep(Duration::from_millis(1));
        }
        trace.span("nothing").discard();
    }
    let other = trace.clone();
    thread::Builder::new()
        .name("engine".to_owned())
        .spawn(move || drop(other.span("elsewhere")))
        .unwrap()
        .join()
        .unwrap();
    let json = json(&trace);
    let events = events(&json, "X");
    let names: Vec<_> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["outer", "inner", "elsewhere"]);
    let span = |index: usize| {
        let number = |name: &str| events[index][name].as_f64().unwrap();
        (number("ts"), number("ts") + number("dur"))
    };
    assert!(span(0).0 <= span(1).0 && span(1).1 <= span(0).1 && span(1).1 - span(1).0 >= 1000.0);
    assert_eq!(events[0]["args"], serde_json::json!({"rows": 3, "sequences": 2}));
    assert_eq!(events[0]["tid"], events[1]["tid"]);
    assert_ne!(events[0]["tid"], events[2]["tid"]);
}

#[test]
fn dispatches_that_overlap_are_on_rows_of_their_own() {
    let trace = Trace::new();
    for times in [[0, 10], [5, 15], [10, 20], [16, 18]] {
        add(&trace, Track::Dispatches, Kind::Dispatch, "d", times, Detail::None);
    }
    let json = json(&trace);
    let rows: Vec<_> = events(&json, "X").iter().map(|event| event["tid"].as_u64().unwrap()).collect();
    assert_eq!(rows, [1, 2, 1, 2]);
    let names = events(&json, "M");
    let names = names.iter().filter(|name| name["name"] == "thread_name");
    let names: Vec<_> = names.map(|name| name["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["dispatches", "dispatches (2)"]);
}

#[test]
fn a_long_run_is_cut_and_says_so() {
    let trace = Trace::with_limit(2);
    for at in 0..5 {
        add(&trace, Track::Dispatches, Kind::Dispatch, "d", [at * 10, at * 10 + 4], Detail::None);
    }
    // A phase around events that are kept is kept too.
    add(&trace, Track::Thread(0), Kind::Phase, "step", [0, 50], Detail::None);
    let json = json(&trace);
    assert_eq!(events(&json, "X").len(), 3);
    assert_eq!(json["otherData"]["left_out"], 3);
    assert_eq!(json["otherData"]["notes"], serde_json::json!(trace.notes()));
    assert_eq!(trace.notes(), ["the first 3 events are kept, and 3 later ones were left out"]);
    // Sums are those of all events.
    let expected = Dispatch { calls: 5, time: Duration::from_nanos(20), ..Dispatch::new("d") };
    assert_eq!(trace.dispatches(), [expected]);
}

#[test]
fn dispatches_are_counted_by_function() {
    let trace = Trace::with_limit(0);
    for (function, calls) in [("step_512", 1), ("step_1", 2), ("step_1", 1)] {
        trace.add(|events| {
            events.name_function(function);
            for _ in 0..calls {
                events.event(Some(Track::Dispatches), Kind::Dispatch, "d", [0, 3], Detail::None);
            }
        });
    }
    let functions = [("step_1".to_owned(), 3), ("step_512".to_owned(), 1)].into();
    let expected = Dispatch { calls: 4, time: Duration::from_nanos(12), functions, ..Dispatch::new("d") };
    assert_eq!(trace.dispatches(), [expected]);
}

#[test]
fn a_trace_that_is_off_records_nothing() {
    let trace = Trace::off();
    drop(trace.span("phase"));
    trace.note("note");
    assert!(!trace.is_on() && trace.notes().is_empty() && trace.dispatches().is_empty());
}

#[test]
fn a_file_is_there_whole_or_not_at_all() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("run.json");
    let names = || fs::read_dir(folder.path()).unwrap().count();
    fs::write(&path, "before").unwrap();
    // A run that ends early leaves what was there.
    drop(TraceFile::create(&path).unwrap());
    assert_eq!((names(), fs::read_to_string(&path).unwrap().as_str()), (1, "before"));
    let file = TraceFile::create(&path).unwrap();
    drop(file.trace().span("phase"));
    file.finish().unwrap();
    let json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!((names(), events(&json, "X").len()), (1, 1));
}

#[test]
fn a_place_that_cannot_be_written_is_refused_at_once() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("missing/run.json");
    let report = |path: &std::path::Path| {
        let error = TraceFile::create(path).unwrap_err();
        mlxcel_artifacts::report(&error).replace(&folder.path().display().to_string(), "FOLDER")
    };
    assert_eq!(
        report(&missing),
        "error: cannot write the timeline FOLDER/missing/run.json: entity not found\n\
         hint: name a file in a folder that exists and may be written, on a disk with room"
    );
    assert_eq!(
        report(folder.path()),
        "error: cannot write the timeline FOLDER: is a directory\n\
         hint: name a file in a folder that exists and may be written, on a disk with room"
    );
    assert!(report("/dev/null".as_ref()).contains("found a device or a pipe, expected a file"));
}

#[test]
fn a_picture_shows_the_calls_in_the_middle() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("run.svg");
    let file = TraceFile::create(&path).unwrap();
    let trace = file.trace();
    trace.name_device("cpu & more");
    for call in 0..40u64 {
        let at = call * 1_000_000;
        add(trace, Track::Thread(0), Kind::Phase, "step", [at, at + 900_000], Detail::None);
        add(
            trace,
            Track::Thread(0),
            Kind::Call,
            &format!("call_{call}"),
            [at + 100_000, at + 800_000],
            Detail::None,
        );
        for dispatch in 0..200 {
            let start = at + 200_000 + dispatch * 2_000;
            add(trace, Track::Dispatches, Kind::Dispatch, "dispatch", [start, start + 1_900], Detail::None);
        }
    }
    file.finish().unwrap();
    let svg = fs::read_to_string(&path).unwrap();
    let shown: Vec<bool> = (0..40).map(|call| svg.contains(&format!(">call_{call}<"))).collect();
    let expected: Vec<bool> = (0..40).map(|call| (18..22).contains(&call)).collect();
    assert_eq!(shown, expected);
    assert!(svg.contains("cpu &amp; more") && svg.len() < 60_000);
}
