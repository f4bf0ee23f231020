//! Timelines as Chrome's trace events, which Perfetto and chrome://tracing open.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use serde_json::{Value, json};

use super::{
    event::{Count, Counted, Detail, Event, Track},
    lanes::{Lane, lanes},
    recorder::Recorder,
};

/// The process of the program's threads.
const HOST: u32 = 1;
/// The process of the device.
const DEVICE: u32 = 2;

/// Writes the timeline.
pub(super) fn write(recorder: &Recorder, out: &mut dyn Write) -> io::Result<()> {
    let mut events = recorder.events.clone();
    // One that contains others comes before them.
    events.sort_by_key(|event| (event.start, std::cmp::Reverse(event.duration)));
    let lanes = lanes(&events);
    let numbers: BTreeMap<Lane, u32> =
        lanes.iter().map(|&lane| (lane, 0)).collect::<BTreeMap<_, _>>().into_keys().zip(1..).collect();

    let notes = recorder.all_notes();
    let about = json!({ "notes": notes, "left_out": recorder.left_out });
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[")?;
    let mut separator = "\n";
    for value in metadata(recorder, &numbers) {
        write!(out, "{separator}{value}")?;
        separator = ",\n";
    }
    for (event, lane) in events.iter().zip(&lanes) {
        write!(out, "{separator}")?;
        write_event(recorder, event, numbers[lane], out)?;
        separator = ",\n";
    }
    for count in &recorder.counts {
        write!(out, "{separator}")?;
        write_count(count, out)?;
        separator = ",\n";
    }
    writeln!(out, "\n]}}")
}

/// Returns the names of processes and threads, in the order in which they are shown.
fn metadata(recorder: &Recorder, lanes: &BTreeMap<Lane, u32>) -> Vec<Value> {
    let device = recorder.device.as_deref().unwrap_or("device");
    let entry = |name: &str, pid: u32, tid: u32, args: Value| json!({ "ph": "M", "name": name, "pid": pid, "tid": tid, "args": args });
    let mut values = Vec::new();
    for (pid, name) in [(HOST, "host"), (DEVICE, device)] {
        values.push(entry("process_name", pid, 0, json!({ "name": name })));
        values.push(entry("process_sort_index", pid, 0, json!({ "sort_index": pid })));
    }
    for (lane, &tid) in lanes {
        let pid = process(lane.track);
        values.push(entry("thread_name", pid, tid, json!({ "name": lane_name(recorder, *lane) })));
        values.push(entry("thread_sort_index", pid, tid, json!({ "sort_index": tid })));
    }
    values
}

fn process(track: Track) -> u32 {
    if matches!(track, Track::Thread(_)) { HOST } else { DEVICE }
}

/// Returns the name of a lane.
pub(super) fn lane_name(recorder: &Recorder, lane: Lane) -> String {
    let name = match lane.track {
        Track::Thread(number) => {
            let name = recorder.thread_names.get(usize::from(number));
            return name.cloned().unwrap_or_else(|| "other threads".to_owned());
        }
        Track::Queue => "queue".to_owned(),
        Track::Dispatches => "dispatches".to_owned(),
        Track::Worker(number) => format!("worker {number}"),
    };
    if lane.row == 0 { name } else { format!("{name} ({})", lane.row + 1) }
}

/// Writes an event: `{"ph":"X","name":…,"cat":…,"pid":1,"tid":1,"ts":1.5,"dur":0.25,"args":{…}}`.
fn write_event(recorder: &Recorder, event: &Event, tid: u32, out: &mut dyn Write) -> io::Result<()> {
    let &Event { track, kind, name, start, duration, detail } = event;
    let name = recorder.names.get(name as usize).map_or("", String::as_str);
    write!(out, "{{\"ph\":\"X\",\"name\":")?;
    serde_json::to_writer(&mut *out, name)?;
    write!(out, ",\"cat\":\"{}\",\"pid\":{},\"tid\":{tid},\"ts\":", kind.name(), process(track))?;
    write_micros(start, out)?;
    write!(out, ",\"dur\":")?;
    write_micros(duration, out)?;
    match detail {
        Detail::None => {}
        Detail::Bytes(bytes) => write!(out, ",\"args\":{{\"bytes\":{bytes}}}")?,
        Detail::Tokens(tokens) => write!(out, ",\"args\":{{\"tokens\":{tokens}}}")?,
        Detail::Rows { rows, sequences } => {
            write!(out, ",\"args\":{{\"rows\":{rows},\"sequences\":{sequences}}}")?;
        }
        Detail::Dispatch { workgroups: [x, y, z], busy } => {
            write!(out, ",\"args\":{{\"workgroups\":[{x},{y},{z}]")?;
            if busy > 0 {
                write!(out, ",\"busy_us\":")?;
                write_micros(busy, out)?;
            }
            write!(out, "}}")?;
        }
        Detail::Workgroups(count) => write!(out, ",\"args\":{{\"workgroups\":{count}}}")?,
    }
    write!(out, "}}")
}

/// Writes a point of a counter.
fn write_count(count: &Count, out: &mut dyn Write) -> io::Result<()> {
    let &Count { what, at, value } = count;
    let name = match what {
        Counted::Buffers => "memory of buffers",
        Counted::Pools => "memory of calls",
    };
    write!(out, "{{\"ph\":\"C\",\"name\":\"{name}\",\"cat\":\"memory\",\"pid\":{DEVICE},\"tid\":0,\"ts\":")?;
    write_micros(at, out)?;
    write!(out, ",\"args\":{{\"bytes\":{value}}}}}")
}

/// Writes nanoseconds as microseconds, the unit of the format, without losing a digit.
fn write_micros(nanoseconds: u64, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
}
