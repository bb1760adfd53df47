//! The threads, with their samples and markers.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use hairline_convert::SampleKind;
use hairline_convert::sampled::StackId;
use serde_json::{Value, json};

use crate::profiles::firefox::collected::Collected;
use crate::profiles::firefox::columns::{column, milliseconds};
use crate::profiles::firefox::markers::{Marker, Types};
use crate::profiles::firefox::shared::Stacks;
use crate::profiles::texts::Texts;

/// All threads, by process.
pub(super) struct Threads<'c> {
    /// The first time.
    pub(super) first: i64,
    all: BTreeMap<Id, Thread<'c>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    pid: u64,
    place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Thread(u64),
    /// Other tracks of one name, such as the lanes of async intervals.
    Tracks(String),
}

#[derive(Default)]
struct Thread<'c> {
    name: String,
    process: String,
    samples: Vec<(i64, StackId)>,
    markers: Vec<&'c Marker>,
}

/// The phases of markers.
const INSTANT: u32 = 0;
const INTERVAL: u32 = 1;

impl<'c> Threads<'c> {
    pub(super) fn of(collected: &'c Collected) -> Self {
        let mut threads = Self { first: i64::MAX, all: BTreeMap::new() };
        let names = &collected.names;
        collected.samples.each(collected.samples.of_time(), &mut |thread, time, stack| {
            let (process, track) = names.sampled(thread);
            let (pid, tid) = thread;
            let pid = process.and_then(|process| names.process_id(process)).unwrap_or(pid);
            let of = threads.all.entry(Id { pid, place: Place::Thread(tid) }).or_default();
            if of.samples.is_empty() {
                let name = track.map(|track| names.name_without_id(track));
                of.name = name.unwrap_or_else(|| format!("thread {tid}"));
                of.process = process.map(|process| names.name_without_id(process)).unwrap_or_default();
            }
            of.samples.push((time, stack));
            threads.first = threads.first.min(time);
        });
        for marker in &collected.markers.all {
            let track = marker.track;
            let name = names.name_without_id(track);
            let place = names.tid(track).map_or_else(|| Place::Tracks(name.clone()), Place::Thread);
            let pid = names.process_id(track).unwrap_or_else(|| names.pid(track));
            let of = threads.all.entry(Id { pid, place }).or_default();
            if of.samples.is_empty() && of.markers.is_empty() {
                let process = names.process_of(track).map(|process| names.name_without_id(process));
                (of.name, of.process) = (name, process.unwrap_or_default());
            }
            of.markers.push(marker);
            threads.first = threads.first.min(marker.start);
        }
        threads
    }

    /// The name of the program that the profile is of: that with most in it.
    pub(super) fn product(&self) -> &str {
        let most = self.all.values().max_by_key(|thread| thread.samples.len() + thread.markers.len());
        most.map(|thread| &*thread.process).filter(|name| !name.is_empty()).unwrap_or("Hairline")
    }

    pub(super) fn write(
        &self,
        collected: &Collected,
        stacks: &Stacks<'_>,
        types: &mut Types,
        texts: &mut Texts,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        for (n, (id, thread)) in self.all.iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            let about = thread.about(id).to_string();
            // The members of `about`, without the brace at its end.
            write!(output, r#"{comma}{},"samples":{{"#, about.trim_end_matches('}'))?;
            self.write_samples(thread, collected, stacks, output)?;
            output.write_all(br#""markers":{"#)?;
            self.write_markers(thread, collected, types, texts, output)?;
            output.write_all(b"}")?;
        }
        Ok(())
    }

    fn since_first(&self, time: i64) -> Value {
        milliseconds(time.saturating_sub(self.first)).into()
    }

    fn write_samples(
        &self,
        thread: &Thread<'_>,
        collected: &Collected,
        stacks: &Stacks<'_>,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        let samples = || thread.samples.iter();
        column(output, "stack", samples().map(|(_, stack)| stacks.row(*stack).into()))?;
        column(output, "time", samples().map(|(time, _)| self.since_first(*time)))?;
        // Without it, a thread that slept between two samples would look busy. What it used between two
        // samples by the clock is not known.
        let is_wall = collected.samples.of_time() == SampleKind::Wall;
        if let Some(period) = collected.samples.period() {
            let used = if is_wall { 0 } else { period };
            column(output, "threadCPUDelta", samples().map(|_| used.into()))?;
        }
        write!(output, r#""weight":null,"weightType":"samples","length":{}}},"#, thread.samples.len())
    }

    fn write_markers(
        &self,
        thread: &Thread<'_>,
        collected: &Collected,
        types: &mut Types,
        texts: &mut Texts,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        let mut markers = thread.markers.clone();
        markers.sort_by_key(|marker| (marker.start, Reverse(marker.duration)));
        let (each, slices) = (|| markers.iter(), &collected.slices);
        let end = |marker: &Marker| marker.duration.map(|duration| marker.start.saturating_add(duration));
        let phase = |marker: &Marker| if marker.duration.is_some() { INTERVAL } else { INSTANT };
        column(output, "data", each().map(|marker| types.data(marker, slices, &collected.markers)))?;
        column(output, "name", each().map(|marker| texts.number(slices.keys().text(marker.name)).into()))?;
        column(output, "startTime", each().map(|marker| self.since_first(marker.start)))?;
        column(output, "endTime", each().map(|of| end(of).map_or(Value::Null, |end| self.since_first(end))))?;
        column(output, "phase", each().map(|marker| phase(marker).into()))?;
        column(output, "category", each().map(|marker| types.category(marker).into()))?;
        write!(output, r#""length":{}}}"#, markers.len())
    }
}

impl Thread<'_> {
    fn about(&self, id: &Id) -> Value {
        let (tid, is_main) = match &id.place {
            Place::Thread(tid) => ((*tid).into(), *tid == id.pid),
            Place::Tracks(name) => (Value::from(format!("track {name}")), false),
        };
        let process = if self.process.is_empty() { "(no process)" } else { &self.process };
        json!({
            "processType": "default",
            "processStartupTime": 0,
            "processShutdownTime": null,
            "registerTime": 0,
            "unregisterTime": null,
            "pausedRanges": [],
            "showMarkersInTimeline": true,
            "name": self.name,
            "isMainThread": is_main,
            "processName": process,
            "pid": id.pid.to_string(),
            "tid": tid,
        })
    }
}
