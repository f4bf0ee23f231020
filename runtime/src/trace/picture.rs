//! Timelines as pictures in SVG, of a few calls from the middle of the run.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use super::{
    chrome::lane_name,
    event::{Event, Kind, Track},
    lanes::{Lane, lanes},
    recorder::Recorder,
};

/// The calls that a picture shows at most.
const CALLS: usize = 4;
/// Sizes in pixels: the picture, the names of rows, a row, the gap between tracks, and the scale above them.
const WIDTH: f64 = 1200.0;
const LEFT: f64 = 120.0;
const RIGHT: f64 = 12.0;
const ROW: f64 = 20.0;
const GAP: f64 = 8.0;
const TOP: f64 = 60.0;
/// The width of a character of a label.
const CHARACTER: f64 = 6.3;
/// Events of one kind that are closer than this are drawn as one.
const NEAR: f64 = 0.6;

/// An event as it is drawn.
#[derive(Debug, Clone, Copy)]
struct Bar {
    row: usize,
    kind: Kind,
    /// The number of the name; `None` if it stands for several events.
    name: Option<u32>,
    left: f64,
    right: f64,
}

/// The part of the timeline that is drawn.
struct Window {
    start: u64,
    end: u64,
}

impl Window {
    /// Chooses the calls to show, with the phases that they are in.
    fn choose(events: &[Event]) -> Self {
        let calls: Vec<&Event> = events.iter().filter(|event| event.kind == Kind::Call).collect();
        let first = (calls.len().saturating_sub(CALLS)) / 2;
        let shown = &calls[first..calls.len().min(first + CALLS)];
        let (Some(first), Some(last)) = (shown.first(), shown.last()) else {
            let start = events.iter().map(|event| event.start).min().unwrap_or(0);
            let end = events.iter().map(Event::end).max().unwrap_or(1);
            return Self { start, end: end.max(start + 1) };
        };
        let (start, end) = (first.start, last.end());
        // The innermost phase of a call is its step; those further out contain all calls.
        let around = |at: &Event| {
            let contains = |event: &&Event| {
                event.kind == Kind::Phase
                    && event.track == at.track
                    && event.start <= at.start
                    && event.end() >= at.end()
            };
            let phases = events.iter().filter(contains);
            phases
                .filter(|phase| phase.duration < 2 * (end - start))
                .max_by_key(|phase| phase.duration)
                .copied()
        };
        let start = around(first).map_or(start, |phase| phase.start);
        let end = around(last).map_or(end, |phase| phase.end()).max(start + 1);
        let margin = (end - start) / 100;
        Self { start: start.saturating_sub(margin), end: end + margin }
    }

    #[expect(clippy::cast_precision_loss, reason = "pixels of a picture")]
    fn x(&self, at: u64) -> f64 {
        let at = at.clamp(self.start, self.end) - self.start;
        LEFT + at as f64 / (self.end - self.start) as f64 * (WIDTH - LEFT - RIGHT)
    }
}

/// Writes the picture.
pub(super) fn write(recorder: &Recorder, out: &mut dyn Write) -> io::Result<()> {
    let mut events = recorder.events.clone();
    events.sort_by_key(|event| (event.start, std::cmp::Reverse(event.duration)));
    let window = Window::choose(&events);
    events.retain(|event| event.end() > window.start && event.start < window.end);
    let rows = Rows::new(&events);
    let height = TOP + rows.height() + GAP;
    write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"{WIDTH}\" height=\"{height}\" rx=\"6\" fill=\"#fff\"/>\n"
    )?;
    write_head(recorder, &window, height, out)?;
    for (index, (lane, depth)) in rows.names() {
        let y = rows.top(index) + ROW * 0.7;
        if depth == 0 {
            let name = escape(&lane_name(recorder, lane));
            writeln!(out, "<text x=\"8\" y=\"{y:.0}\" fill=\"#333\">{name}</text>")?;
        }
    }
    for bar in bars(&events, &rows, &window) {
        write_bar(recorder, &bar, rows.top(bar.row), out)?;
    }
    writeln!(out, "</svg>")
}

/// The rows of a picture, from top to bottom.
struct Rows {
    /// The row of each event.
    of_event: Vec<usize>,
    /// The lanes of the rows, and for those of threads how many events are around.
    lanes: Vec<(Lane, u32)>,
    tops: Vec<f64>,
}

impl Rows {
    fn new(events: &[Event]) -> Self {
        let lanes = lanes(events);
        let mut open: BTreeMap<Lane, Vec<u64>> = BTreeMap::new();
        let keys: Vec<(Lane, u32)> = events
            .iter()
            .zip(lanes)
            .map(|(event, lane)| {
                let ends = open.entry(lane).or_default();
                ends.retain(|&end| end > event.start);
                let is_nested = matches!(lane.track, Track::Thread(_));
                let depth = if is_nested { ends.len() as u32 } else { 0 };
                ends.push(event.end());
                (lane, depth)
            })
            .collect();
        let numbers: BTreeMap<(Lane, u32), usize> = keys.iter().map(|&key| (key, 0)).collect();
        let lanes: Vec<(Lane, u32)> = numbers.into_keys().collect();
        let of_event = keys.iter().map(|key| lanes.binary_search(key).unwrap_or(0)).collect();
        let mut y = TOP;
        let mut tops = Vec::new();
        for (index, (lane, _)) in lanes.iter().enumerate() {
            let is_next_track = index > 0 && lanes[index - 1].0.track != lane.track;
            y += if is_next_track { GAP } else { 0.0 };
            tops.push(y);
            y += ROW;
        }
        Self { of_event, lanes, tops }
    }

    fn names(&self) -> impl Iterator<Item = (usize, (Lane, u32))> {
        self.lanes.iter().copied().enumerate()
    }

    fn top(&self, row: usize) -> f64 {
        self.tops.get(row).copied().unwrap_or(TOP)
    }

    fn height(&self) -> f64 {
        self.tops.last().map_or(0.0, |top| top + ROW - TOP)
    }
}

/// Places the events, and draws those of one kind as one that cannot be told apart.
fn bars(events: &[Event], rows: &Rows, window: &Window) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    let mut last: BTreeMap<usize, usize> = BTreeMap::new();
    for (event, &row) in events.iter().zip(&rows.of_event) {
        let (left, right) = (window.x(event.start), window.x(event.end()));
        let before = last.get(&row).and_then(|&index| bars.get_mut(index));
        if let Some(before) = before
            && before.kind == event.kind
            && left - before.right < NEAR
            && right - before.right < 2.0
        {
            before.name = before.name.filter(|&name| name == event.name);
            before.right = before.right.max(right);
            continue;
        }
        last.insert(row, bars.len());
        bars.push(Bar { row, kind: event.kind, name: Some(event.name), left, right });
    }
    bars
}

fn color(kind: Kind) -> &'static str {
    match kind {
        Kind::Phase => "#cbd5e1",
        Kind::Call => "#93c5fd",
        Kind::Transfer => "#fdba74",
        Kind::Wait => "#e5e7eb",
        Kind::Allocation => "#d8b4fe",
        Kind::Queue => "#a5f3fc",
        Kind::Dispatch => "#86efac",
        Kind::Workgroups => "#4ade80",
    }
}

fn write_bar(recorder: &Recorder, bar: &Bar, top: f64, out: &mut dyn Write) -> io::Result<()> {
    let &Bar { row: _, kind, name, left, right } = bar;
    let (width, height) = ((right - left).max(0.5), ROW - 2.0);
    let color = color(kind);
    let name = name.and_then(|name| recorder.names.get(name as usize));
    // Viewers show it when the pointer is there.
    let title = name.map_or_else(String::new, |name| format!("<title>{}</title>", escape(name)));
    writeln!(
        out,
        "<rect x=\"{left:.1}\" y=\"{top:.0}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{color}\" \
         stroke=\"#fff\" stroke-width=\".4\">{title}</rect>"
    )?;
    let Some(name) = name else { return Ok(()) };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels")]
    let room = ((width - 6.0) / CHARACTER).max(0.0) as usize;
    if room < 4 {
        return Ok(());
    }
    let length = name.chars().count();
    let label: String =
        if length <= room { name.clone() } else { name.chars().take(room - 1).chain(['…']).collect() };
    let (x, y) = (left + 3.0, top + ROW * 0.65);
    writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.0}\" fill=\"#111\">{}</text>", escape(&label))
}

/// Writes the legend and the scale.
#[expect(clippy::cast_precision_loss, reason = "pixels of a picture")]
fn write_head(recorder: &Recorder, window: &Window, height: f64, out: &mut dyn Write) -> io::Result<()> {
    const KINDS: [Kind; 8] = [
        Kind::Phase,
        Kind::Call,
        Kind::Transfer,
        Kind::Wait,
        Kind::Allocation,
        Kind::Queue,
        Kind::Dispatch,
        Kind::Workgroups,
    ];
    let title = escape(recorder.device.as_deref().unwrap_or("device"));
    writeln!(out, "<text x=\"8\" y=\"20\" font-size=\"13\" fill=\"#111\">{title}</text>")?;
    let mut x = 420.0;
    for kind in KINDS {
        let (color, name) = (color(kind), kind.name());
        writeln!(out, "<rect x=\"{x}\" y=\"10\" width=\"12\" height=\"12\" fill=\"{color}\"/>")?;
        writeln!(out, "<text x=\"{}\" y=\"20\" fill=\"#333\">{name}</text>", x + 16.0)?;
        x += 32.0 + CHARACTER * name.len() as f64;
    }
    let step = tick((window.end - window.start) / 10);
    let mut at = window.start.div_ceil(step) * step;
    // The last label has room.
    while at <= window.end && window.x(at) < WIDTH - 2.0 * RIGHT {
        let (x, label) = (window.x(at), at as f64 / 1e6);
        writeln!(
            out,
            "<path d=\"M{x:.1} 46V{height}\" stroke=\"#e5e7eb\"/><text x=\"{x:.1}\" y=\"42\" fill=\"#666\" \
             text-anchor=\"middle\">{label} ms</text>"
        )?;
        at += step;
    }
    Ok(())
}

/// Returns 1, 2 or 5 times a power of ten, at least `length`.
fn tick(length: u64) -> u64 {
    let mut power = 1;
    loop {
        if let Some(step) = [1, 2, 5].map(|digit| digit * power).into_iter().find(|&step| step >= length) {
            return step;
        }
        power *= 10;
    }
}

/// Escapes a text for XML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
