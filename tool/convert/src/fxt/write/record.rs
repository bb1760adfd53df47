//! Events with an FXT record of their own.

use std::io::Write;
use std::sync::Arc;

use hairline_formats::fxt::{self, MAX_RECORD_WORDS, PutWords, StringRef, ThreadRef};
use hairline_formats::track_event::{CounterValue, Priority, SourceLocation};
use hairline_formats::{Value, truncate_utf8};

use crate::fxt::levels::LEVELS;
use crate::fxt::write::lasting::{Arrow, Point};
use crate::fxt::write::open::{Ends, OpenSlices};
use crate::fxt::write::state::{FxtWriter, MAX_WAITING, WaitingFlow};
use crate::fxt::write::tracks::{OutputTrack, OutputTrackKind};
use crate::{Categories, Event, EventKind, FlowStep, Log, Text, Track, TrackId};

/// The bytes held back once a flow may get an earlier begin. More than a program records before the drain
/// thread reaches each thread.
const FLOW_WINDOW: usize = 4 << 20;

impl<W: Write> FxtWriter<W> {
    pub(super) fn thread_event(&mut self, event: &Event<'_>, time: u64) {
        let thread = self.thread_ref(Some(event.track));
        if self.lasting.has_points() && !matches!(event.kind, EventKind::Flow { .. }) {
            self.settle_points((event.track, event.time));
        }
        let flows = !(event.flows().is_empty() && event.ending_flows().is_empty() && event.bound().is_none());
        match event.kind {
            EventKind::Begin => {
                let is_doubtful = self.open_slices(event.track).is_some_and(|open| open.begin(event));
                self.report.add_many(DOUBTFUL, is_doubtful.into());
                self.put(fxt::EventKind::DurationBegin, time, thread, event, None);
                self.put_waiting(event.track, time, thread);
            }
            EventKind::End => {
                if flows {
                    self.put_flows(event, time, thread); // while the slice is open
                    self.settle_points((event.track, event.time));
                }
                return self.end(event, time, thread);
            }
            EventKind::Complete { duration } => {
                let end = self.end_of(time, duration);
                if !self.nesting.add(event.track, event.time, end.cast_signed(), &mut self.report) {
                    return self.put_beside(event, time, end);
                }
                if let Some(open) = self.open_slices(event.track) {
                    open.complete(event.time, end.cast_signed());
                }
                self.put(fxt::EventKind::DurationComplete, time, thread, event, Some(end));
                self.put_waiting(event.track, time, thread);
            }
            // A flow needs a slice, so an instant with flows becomes a slice without duration.
            EventKind::Instant if flows => {
                self.put(fxt::EventKind::DurationBegin, time, thread, event, None);
                self.put_flows(event, time, thread);
                self.settle_points((event.track, event.time));
                self.args.clear();
                let end = fxt::EventKind::DurationEnd;
                return self.put_record(end, time, thread, event, event.name, None);
            }
            EventKind::Instant if is_only_log(event) => {
                let message = event.log().map_or("", |log| log.body);
                return fxt::log(&mut self.output.bytes, time, thread, message);
            }
            EventKind::Instant => self.put(fxt::EventKind::Instant, time, thread, event, None),
            EventKind::Flow { id, step, to_next, lasts } => {
                let waiting = to_next.then(|| self.waiting.entry(event.track).or_default());
                match waiting.filter(|waiting| waiting.len() < MAX_WAITING) {
                    Some(waiting) => waiting.push(WaitingFlow { id, step, lasts, time: event.time }),
                    None if lasts => self.add_point(event, (id, step)),
                    None => self.put(kind_of(step), time, thread, event, Some(id)),
                }
            }
            EventKind::Counter(_) => {
                self.report.add("counter values on tracks that are not counters left out");
            }
        }
        if flows {
            self.put_flows(event, time, thread);
        }
    }

    /// The end of a complete slice. Importers drop a record with a time beyond 63 bits.
    pub(super) fn end_of(&mut self, time: u64, duration: i64) -> u64 {
        let end = time.saturating_add(duration.max(0).cast_unsigned());
        self.report.add_many(BEYOND, u64::from(end > MOST_TIME));
        end.min(MOST_TIME)
    }

    fn open_slices(&mut self, thread: TrackId) -> Option<&mut OpenSlices> {
        match &mut self.tracks.get_mut(thread)?.kind {
            OutputTrackKind::Thread { open, .. } => Some(open),
            _ => None,
        }
    }

    /// Writes an end for each slice that the event closes.
    fn end(&mut self, event: &Event<'_>, time: u64, thread: ThreadRef) {
        let ends = self.open_slices(event.track).map_or(Ends::Records(1), |open| open.end(event));
        if !matches!(ends, Ends::Records(1)) {
            let what = "arguments of ends that close several slices or none, which importers show elsewhere";
            self.report.add_many(what, u64::from(!event.args.is_empty()));
        }
        let further = match ends {
            Ends::Records(0) => return,
            Ends::Records(count) => count - 1,
            Ends::Doubtful => {
                self.report.add(DOUBTFUL);
                0
            }
        };
        for _ in 0..further {
            self.args.clear();
            let bare = Event::new(event.time, event.track, EventKind::End);
            self.put_record(fxt::EventKind::DurationEnd, time, thread, &bare, bare.name, None);
        }
        self.put(fxt::EventKind::DurationEnd, time, thread, event, None);
    }

    pub(super) fn async_event(&mut self, event: &Event<'_>, time: u64) {
        let thread = self.thread_ref_above(event.track);
        let Some(OutputTrack { kind: OutputTrackKind::Async { id, .. }, .. }) = self.tracks.get(event.track)
        else {
            return;
        };
        let id = Some(*id);
        match event.kind {
            EventKind::Begin => {
                self.open(event.track, event.name.text);
                self.put(fxt::EventKind::AsyncBegin, time, thread, event, id);
                for end in self.waited(event.track, time) {
                    self.args.clear();
                    self.put_record(fxt::EventKind::AsyncEnd, end, thread, event, event.name, id);
                }
            }
            EventKind::End if event.name.text.is_empty() && self.waits(event.track, time) => {
                let what = "arguments of ends that precede their begins";
                self.report.add_many(what, u64::from(!event.args.is_empty()));
            }
            EventKind::End => {
                self.add_args(event);
                // Importers find the begin by the name.
                let own = self.close(event.track, event.name.text.is_empty());
                let name = own.as_deref().map_or(event.name, Text::from);
                self.put_record(fxt::EventKind::AsyncEnd, time, thread, event, name, id);
            }
            EventKind::Complete { duration } => {
                self.put(fxt::EventKind::AsyncBegin, time, thread, event, id);
                self.args.clear();
                let end = self.end_of(time, duration);
                self.put_record(fxt::EventKind::AsyncEnd, end, thread, event, event.name, id);
            }
            EventKind::Instant => self.put(fxt::EventKind::AsyncInstant, time, thread, event, id),
            EventKind::Flow { .. } => self.report.add("flows of async intervals left out"),
            EventKind::Counter(_) => {}
        }
        let flows = event.flows().len() + event.ending_flows().len() + event.bound().iter().len();
        self.report.add_many("flows of async intervals left out", flows as u64);
    }

    /// Keeps an end without a name until the begin of its slice, if its interval has no name either.
    fn waits(&mut self, track: TrackId, time: u64) -> bool {
        match self.tracks.get_mut(track) {
            Some(OutputTrack { kind: OutputTrackKind::Async { open, .. }, track, .. }) => {
                track.name.is_empty() && open.wait(time)
            }
            _ => false,
        }
    }

    fn waited(&mut self, track: TrackId, begin: u64) -> Vec<u64> {
        match self.tracks.get_mut(track) {
            Some(OutputTrack { kind: OutputTrackKind::Async { open, .. }, .. }) => open.waited(begin),
            _ => Vec::new(),
        }
    }

    fn open(&mut self, track: TrackId, name: &str) {
        if let Some(OutputTrack { kind: OutputTrackKind::Async { open, .. }, .. }) =
            self.tracks.get_mut(track)
        {
            open.begin(name);
        }
    }

    /// Removes the innermost open slice of an interval. If `is_asked`, returns its name, or the interval's
    /// name if it is unknown.
    fn close(&mut self, track: TrackId, is_asked: bool) -> Option<String> {
        let Some(OutputTrack {
            kind: OutputTrackKind::Async { open, .. }, track: Track { name, .. }, ..
        }) = self.tracks.get_mut(track)
        else {
            return None;
        };
        let own = open.end();
        is_asked.then(|| own.unwrap_or(name).to_owned())
    }

    pub(super) fn counter_event(&mut self, event: &Event<'_>, time: u64) {
        let thread = self.thread_ref_above(event.track);
        let Self { tracks, strings, output, args, report, .. } = self;
        let Some(OutputTrack { kind: OutputTrackKind::Counter { number, series, .. }, track, .. }) =
            tracks.get(event.track)
        else {
            return;
        };
        let EventKind::Counter(value) = event.kind else {
            return report.add("slices on counters left out");
        };
        let value = match value {
            CounterValue::Int(value) => Value::I64(value),
            CounterValue::Double(value) => Value::F64(value),
        };
        args.clear();
        args.add((&**series).into(), value, strings, &mut output.bytes, report);
        // The name of the event may have a number.
        let (number, own) = (Some(*number), Arc::clone(&track.name));
        let name = if event.name.text == &*own { event.name } else { Text::from(&*own) };
        self.put_record(fxt::EventKind::Counter, time, thread, event, name, number);
    }

    /// Writes the record of an event with all its arguments.
    fn put(
        &mut self,
        kind: fxt::EventKind,
        time: u64,
        thread: ThreadRef,
        event: &Event<'_>,
        payload: Option<u64>,
    ) {
        self.add_args(event);
        self.put_record(kind, time, thread, event, event.name, payload);
    }

    fn add_args(&mut self, event: &Event<'_>) {
        let Self { args, strings, output, report, .. } = self;
        let out = &mut output.bytes;
        args.clear();
        args.add_all(event.args, strings, out, report);
        if let Some(correlation) = event.correlation() {
            args.add("correlation_id".into(), Value::Str(correlation), strings, out, report);
        }
        if let Some(SourceLocation { file, line, function }) = event.location() {
            report.add_many("functions of source locations left out", u64::from(!function.is_empty()));
            args.add("source".into(), Value::Str(&format!("{file}:{line}")), strings, out, report);
        }
        if let Some(weight) = event.details().stack_weight {
            args.add("callstack_weight".into(), Value::F64(weight), strings, out, report);
        }
        report.add_many(Log::NO_TAG, u64::from(event.log().is_some_and(|log| log.tag.is_some())));
        if let Some(log) = event.log().filter(|_| !says_message(event)) {
            if let Some(level) = level(log) {
                args.add("level".into(), Value::Str(level), strings, out, report);
            }
            args.add("message".into(), Value::Str(log.body), strings, out, report);
        }
    }

    /// Writes a record with the encoded arguments.
    pub(super) fn put_record(
        &mut self,
        kind: fxt::EventKind,
        time: u64,
        thread: ThreadRef,
        event: &Event<'_>,
        name: Text<'_>,
        payload: Option<u64>,
    ) {
        let Self { args, strings, output, report, joined, .. } = self;
        let out = &mut output.bytes;
        let category = match event.categories {
            Categories::None => StringRef::Empty,
            Categories::One(category) => strings.reference(category, out, report),
            several @ Categories::Many(_) => {
                several.join(joined);
                strings.reference(joined.as_str().into(), out, report)
            }
        };
        let name = strings.reference(name, out, report);
        // Importers show the message with the next event.
        if let Some(log) = event.log() {
            fxt::log(out, time, thread, log.body);
        }
        let mut room = MAX_RECORD_WORDS - 2 - thread.words() - usize::from(kind.has_payload());
        let category = within(category, room);
        room -= category.words();
        let name = within(name, room);
        room -= name.words();
        let count = args.fitted(room, report);
        let size = MAX_RECORD_WORDS - room + args.bytes.len() / 8;
        out.word(fxt::event_header(kind, size as u64, count, thread.bits(), category.bits(), name.bits()));
        out.word(time);
        if let ThreadRef::Inline { process, thread } = thread {
            out.word(process);
            out.word(thread);
        }
        for string in [category, name] {
            if let StringRef::Inline(text) = string {
                out.stream(truncate_utf8(text, fxt::MAX_STRING).as_bytes());
            }
        }
        out.extend_from_slice(&args.bytes);
        if kind.has_payload() {
            out.word(payload.unwrap_or(0));
        }
        strings.end_record();
    }

    /// Writes the flows of an event into the open slice.
    fn put_flows(&mut self, event: &Event<'_>, time: u64, thread: ThreadRef) {
        self.output.keep(FLOW_WINDOW);
        let flows = event.flows().iter().map(|id| (*id, false));
        for (id, ends) in flows.chain(event.ending_flows().iter().map(|id| (*id, true))) {
            let at = self.output.position();
            let kind = self.flow_kind(id, event.time, ends, Some(at));
            self.put_flow(kind, time, thread, id);
        }
        if let Some(bound) = event.bound() {
            self.lasting.add((event.track, event.time), bound, Text::default(), Text::default());
        }
    }

    /// Adds the event of a flow that lasts.
    fn add_point(&mut self, event: &Event<'_>, flow: (u64, FlowStep)) {
        let at = (event.track, event.time);
        self.report.add_many("arguments of flows left out", u64::from(!event.args.is_empty()));
        match event.categories {
            Categories::None => self.lasting.add(at, flow, event.name, Text::default()),
            Categories::One(category) => self.lasting.add(at, flow, event.name, category),
            several @ Categories::Many(_) => {
                several.join(&mut self.joined);
                self.lasting.add(at, flow, event.name, self.joined.as_str().into());
            }
        }
    }

    /// Writes the points of flows that must precede an event of their thread.
    fn settle_points(&mut self, at: (TrackId, i64)) {
        let points = self.lasting.event(at);
        if !points.is_empty() {
            self.write_points(at.1);
        }
        points.iter().for_each(|point| self.write_point(point, true));
        self.write_points(i64::MIN);
    }

    /// Writes the waiting points of flows before `time`, and those that are too many.
    pub(super) fn write_points(&mut self, time: i64) {
        while let Some(point) = self.lasting.next(time) {
            self.write_point(&point, false);
        }
    }

    fn write_point(&mut self, point: &Point, is_in_place: bool) {
        let Arrow { id, begin, doubt } = match self.lasting.arrow(point, is_in_place) {
            Ok(arrow) => arrow,
            Err(why) => return self.report.add_many(why.unwrap_or_default(), why.is_some().into()),
        };
        if let Some((track, time)) = begin {
            let thread = self.thread_ref(Some(track));
            self.put_flow(fxt::EventKind::FlowBegin, u64::try_from(time).unwrap_or(0), thread, id);
        }
        self.report.add_many(doubt.unwrap_or_default(), doubt.is_some().into());
        let (track, time) = point.at;
        let (time, thread) = (u64::try_from(time).unwrap_or(0), self.thread_ref(Some(track)));
        let category = Categories::One(point.label.category());
        let event = Event { categories: category, ..Event::new(0, track, EventKind::Instant) };
        self.args.clear();
        self.put_record(kind_of(point.step()), time, thread, &event, point.label.name(), Some(id));
    }

    /// Returns the role of an event in a flow. If the flow had a later begin, that record becomes a step.
    pub(super) fn flow_kind(&mut self, id: u64, time: i64, ends: bool, at: Option<u64>) -> fxt::EventKind {
        let point = self.flows.point(id, time, ends, at);
        if let Some(position) = point.no_begin {
            match self.output.word(position) {
                Some(header) => {
                    let begin = fxt::layout::event::KIND.set(fxt::EventKind::FlowBegin as u64);
                    let step = fxt::layout::event::KIND.set(fxt::EventKind::FlowStep as u64);
                    *header = (u64::from_le_bytes(*header) - begin + step).to_le_bytes();
                }
                None => self.report.add("flows whose begin came too late, cut in two"),
            }
        }
        point.kind
    }

    fn put_flow(&mut self, kind: fxt::EventKind, time: u64, thread: ThreadRef, id: u64) {
        let out = &mut self.output.bytes;
        let (category, name) = (StringRef::Empty, StringRef::Empty);
        fxt::event(
            out,
            &fxt::Event { kind, timestamp: time, thread, category, name, args: &[], payload: Some(id) },
        );
    }

    /// Writes the flows that waited for this slice.
    fn put_waiting(&mut self, track: TrackId, time: u64, thread: ThreadRef) {
        if self.waiting.is_empty() {
            return;
        }
        for flow in self.waiting.remove(&track).unwrap_or_default() {
            let at = (track, time.cast_signed());
            self.report
                .add_many("flows to a next slice that begins before them", u64::from(at.1 < flow.time));
            if flow.lasts {
                self.lasting.add(at, (flow.id, flow.step), Text::default(), Text::default());
            } else {
                self.put_flow(kind_of(flow.step), time, thread, flow.id);
            }
        }
    }
}

fn kind_of(step: FlowStep) -> fxt::EventKind {
    match step {
        FlowStep::Begin => fxt::EventKind::FlowBegin,
        FlowStep::Step => fxt::EventKind::FlowStep,
        FlowStep::End => fxt::EventKind::FlowEnd,
    }
}

/// The last time that importers read.
const MOST_TIME: u64 = i64::MAX.cast_unsigned();

const BEYOND: &str = "slices that end beyond 2^63 ns, which end there";

const DOUBTFUL: &str = "ends of slices that may close one of another name";

/// Cuts an inline string to the given number of words.
#[inline]
fn within(string: StringRef<'_>, words: usize) -> StringRef<'_> {
    match string {
        StringRef::Inline(text) => StringRef::Inline(truncate_utf8(text, words * 8)),
        string => string,
    }
}

/// Whether the event is only a log message, like a log record.
fn is_only_log(event: &Event<'_>) -> bool {
    event.log().is_some_and(|log| log.priority == Priority::Unspecified)
        && event.name.text.is_empty()
        && matches!(event.categories, Categories::None)
        && event.args.is_empty()
}

/// Whether an argument has the text of the message.
fn says_message(event: &Event<'_>) -> bool {
    let mut says = false;
    event.args.each(&mut |name, _| says |= name.text == MESSAGE);
    says
}

const MESSAGE: &str = "message";

fn level(log: Log<'_>) -> Option<&'static str> {
    LEVELS.iter().find(|(priority, _)| *priority == log.priority).map(|(_, name)| *name)
}
