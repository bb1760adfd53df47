//! Traces whose slow slices have a cause that is planted, and what the command says of them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use hairline_formats::Value;
use hairline_formats::proto::{put_message, put_str, put_uint};
use hairline_formats::track_event::fields::{trace, trace_packet};
use hairline_formats::track_event::{
    self as te, CustomTrack, Event, EventType, Name, SequenceId, ThreadTrack, TrackUuid,
};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SERVER: u64 = 101;
pub(crate) const OTHER: u64 = 102;
pub(crate) const HOG: u64 = 900;
/// A track that is no thread.
pub(crate) const LIVES: u64 = 7;
pub(crate) const SEQUENCE: SequenceId = SequenceId(1);

/// How a trace says what the scheduler did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A packet for each state.
    States,
    /// Bundles of ftrace events, as Perfetto's own tracing service writes them.
    Ftrace,
    /// Not at all.
    Nothing,
}

/// A trace in the making.
pub(crate) struct Planted {
    pub(crate) out: Vec<u8>,
    /// Time, thread that leaves with its state, thread that comes; all on processor 0.
    pub(crate) switches: Vec<(u64, (u64, State), u64)>,
    pub(crate) now: u64,
    /// The flow of the slices that begin now.
    pub(crate) flow: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Preempted,
    Asleep,
    Disk,
    Stopped,
}

impl Planted {
    pub(crate) fn new() -> Self {
        let mut out = Vec::new();
        for (tid, name) in [(SERVER, "server"), (OTHER, "rebuilder")] {
            let (uuid, parent_uuid) = (TrackUuid(tid), TrackUuid(0));
            let thread = ThreadTrack { uuid, parent_uuid, pid: 100, tid: tid as i64, name };
            te::thread_descriptor(&mut out, SEQUENCE, &thread);
        }
        let track = CustomTrack { uuid: TrackUuid(LIVES), name: "lives", ..CustomTrack::default() };
        te::custom_descriptor(&mut out, SEQUENCE, &track);
        Self { out, switches: Vec::new(), now: 1_000 * MS, flow: None }
    }

    pub(crate) fn slice(&mut self, track: u64, times: (u64, u64), category: &str, name: &str) {
        self.slice_with(track, times, (category, name), [&[], &[]]);
    }

    /// A slice with arguments at its begin and at its end.
    pub(crate) fn slice_with(
        &mut self,
        track: u64,
        (start, end): (u64, u64),
        name: (&str, &str),
        [first, last]: [&[(&str, Value<'_>)]; 2],
    ) {
        self.event(track, (EventType::SliceBegin, start), name, first);
        self.event(track, (EventType::SliceEnd, end), name, last);
    }

    /// An event, of which an end has no name.
    pub(crate) fn event(
        &mut self,
        track: u64,
        (kind, time): (EventType, u64),
        (category, name): (&str, &str),
        arguments: &[(&str, Value<'_>)],
    ) {
        let categories = [Name::Text(category)];
        let annotations: Vec<_> = arguments.iter().map(|(name, value)| (Name::Text(name), *value)).collect();
        let is_end = kind == EventType::SliceEnd;
        let event = Event {
            needs_state: false,
            track_uuid: Some(TrackUuid(track)),
            name: (!is_end).then_some(Name::Text(name)),
            categories: if is_end { &[] } else { &categories },
            annotations: &annotations,
            flow_ids: if is_end { &[] } else { self.flow.as_slice() },
            ..Event::new(SEQUENCE, kind, time)
        };
        te::event(&mut self.out, &event);
    }

    pub(crate) fn switch(&mut self, time: u64, from: (u64, State), to: u64) {
        self.switches.push((time, from, to));
    }

    /// The trace with its scheduling in a shape.
    pub(crate) fn finish(mut self, shape: Shape) -> Vec<u8> {
        match shape {
            Shape::Nothing => {}
            Shape::States => {
                for (time, (from, state), to) in std::mem::take(&mut self.switches) {
                    let state = match state {
                        State::Preempted => 2,
                        State::Asleep => 4,
                        State::Disk => 5,
                        State::Stopped => 6,
                    };
                    for (tid, state) in [(from, state), (to, 3)].into_iter().filter(|(tid, _)| *tid != 0) {
                        put_message(&mut self.out, trace::PACKET, |out| {
                            put_uint(out, trace_packet::TIMESTAMP, time);
                            put_message(out, 117, |out| {
                                put_uint(out, 1, 0);
                                put_str(out, 2, if tid == HOG { "hog" } else { "server" });
                                put_uint(out, 3, tid);
                                put_uint(out, 4, state);
                            });
                        });
                    }
                }
            }
            Shape::Ftrace => put_message(&mut self.out, trace::PACKET, |out| {
                put_message(out, 1, |out| {
                    put_uint(out, 1, 0);
                    for (time, (from, state), to) in &self.switches {
                        put_ftrace_switch(out, *time, (*from, *state), *to);
                    }
                });
            }),
        }
        self.out
    }
}

pub(crate) fn put_ftrace_switch(out: &mut Vec<u8>, time: u64, (from, state): (u64, State), to: u64) {
    let name = |tid| if tid == HOG { "hog" } else { "some" };
    put_message(out, 2, |out| {
        put_uint(out, 1, time);
        put_message(out, 4, |out| {
            put_str(out, 1, name(from));
            put_uint(out, 2, from);
            put_uint(
                out,
                4,
                match state {
                    State::Preempted => 0,
                    State::Asleep => 1,
                    State::Disk => 2,
                    State::Stopped => 4,
                },
            );
            put_str(out, 5, name(to));
            put_uint(out, 6, to);
        });
    });
}

/// 200 requests of 5 ms, of which one in a hundred takes 50 ms longer, as `plant` says. It gets the time at
/// which the request is in the middle of its work, and returns the name of the inner slice around the delay.
pub(crate) fn requests(
    name: &str,
    mut plant: impl FnMut(&mut Planted, u64) -> Option<(&'static str, &'static str)>,
) -> Planted {
    let mut trace = Planted::new();
    trace.switch(trace.now, (0, State::Preempted), SERVER);
    for number in 0..200 {
        let start = trace.now;
        let middle = start + 2 * MS;
        let is_slow = number % 100 == 50;
        let until = if is_slow { middle + 50 * MS } else { middle };
        let inner = if is_slow { plant(&mut trace, middle) } else { None };
        if let Some((category, name)) = inner {
            trace.slice(SERVER, (middle - MS / 10, until + MS / 10), category, name);
        }
        let end = until + 3 * MS;
        trace.slice(SERVER, (start, end), "net", name);
        trace.now = end + MS;
    }
    let now = trace.now;
    trace.switch(now, (SERVER, State::Asleep), 0);
    // The order of the slices in the file is that of their begins.
    trace
}

/// The output of `hairline explain`.
pub(crate) fn explain(folder: &Path, trace: &[u8], more: &[&str]) -> String {
    fs::write(folder.join("t.pftrace"), trace).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    let command = command.current_dir(folder).args(["explain", "t.pftrace"]).args(more).stdin(Stdio::null());
    let output = command.output().expect("it ran");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The output of `hairline explain` for the trace, and for the same one in the other format.
pub(crate) fn explain_both(trace: &[u8], more: &[&str]) -> [String; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let text = explain(folder.path(), trace, more);
    command(folder.path(), &["convert", "t.pftrace", "t.fxt"]);
    [text, command(folder.path(), &[&["explain", "t.fxt"], more].concat())]
}

/// The output of another command on the same trace.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    let output = command.current_dir(folder).args(arguments).stdin(Stdio::null()).output().expect("it ran");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A sleep of 50 ms, in which another thread may run.
pub(crate) fn sleeps(trace: &mut Planted, from: u64, state: State, other: u64) {
    trace.switch(from, (SERVER, state), other);
    trace.switch(from + 50 * MS, (other, State::Asleep), SERVER);
}
