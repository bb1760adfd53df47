//! A hash of what a trace says, which distinguishes traces without a UUID.
//!
//! It does not depend on which tables are wanted, and is the same in each version and on each machine: it is
//! part of the paths of an export. It is no defence against a trace that was made to have another one's hash,
//! so equal hashes are no proof that two traces are the same.

use hairline_convert::{
    Event, EventKind, FlowStep, Item, SampleKind, StateChange, StringId, Text, Track, TrackKind,
};
use hairline_formats::Value;
use hairline_formats::track_event::CounterValue;

use crate::args;

/// The hash so far.
#[derive(Debug, Default)]
pub(crate) struct Content {
    state: u64,
    /// The hash of each text with a number, or 0. Names and categories occur in very many events.
    texts: Vec<u64>,
}

/// The limit for numbers of texts whose hashes are kept.
const MOST_TEXTS: u32 = 1 << 20;

/// The hash after one more word.
#[inline]
fn mixed(state: u64, word: u64) -> u64 {
    // Both halves of a product depend on all bits of the word. The sum keeps the state when the product is
    // zero. One multiplication follows the other: they are what the hash costs.
    let product = u128::from(state ^ word) * 0x9e37_79b9_7f4a_7c15;
    state.rotate_left(23).wrapping_add(product as u64 ^ (product >> 64) as u64)
}

/// The hash of bytes.
fn of_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let length = mixed(1, bytes.len() as u64); // 1: the empty text, too, has a hash
    let state = words.iter().fold(length, |state, word| mixed(state, u64::from_le_bytes(*word)));
    if rest.is_empty() {
        return state;
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mixed(state, u64::from_le_bytes(last))
}

impl Content {
    pub(crate) fn value(&self) -> u64 {
        self.state
    }

    #[inline]
    fn word(&mut self, word: u64) {
        self.state = mixed(self.state, word);
    }

    fn int(&mut self, value: i64) {
        self.word(value.cast_unsigned());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.word(of_bytes(bytes));
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Adds a text that may have a number.
    #[inline]
    fn numbered(&mut self, text: Text<'_>) {
        match text.id.and_then(|id| self.texts.get(id.0 as usize)) {
            Some(&hash @ 1..) => self.word(hash),
            _ => self.first(text),
        }
    }

    #[inline(never)]
    fn first(&mut self, text: Text<'_>) {
        let hash = of_bytes(text.text.as_bytes());
        if let Some(StringId(id)) = text.id.filter(|id| id.0 < MOST_TEXTS) {
            let index = id as usize;
            if self.texts.len() <= index {
                self.texts.resize(index + 1, 0);
            }
            self.texts[index] = hash;
        }
        self.word(hash);
    }

    /// Adds an item.
    pub(crate) fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Event(event) => self.event(event),
            Item::Track(track) => self.track(track),
            Item::Loss(loss) => {
                self.word(3);
                self.int(loss.time.unwrap_or(0));
                self.word(loss.events);
            }
            Item::Scheduling(scheduling) => scheduling.changes.iter().for_each(|change| self.change(change)),
            Item::Sample(sample) => {
                self.word(match sample.kind {
                    SampleKind::OnCpu => 5,
                    SampleKind::OffCpu => 6,
                    SampleKind::Event => 8,
                    SampleKind::Wall => 10,
                });
                self.int(sample.time);
                self.word(sample.pid);
                self.word(sample.tid);
                sample.stack.each(&mut |frame| {
                    self.text(frame.function);
                    self.word(frame.address);
                });
            }
            Item::Trace(trace) => {
                self.word(7);
                self.text(trace.writer.unwrap_or(""));
                trace.system.into_iter().flatten().for_each(|text| self.text(text));
                for clock in trace.clocks {
                    self.word(u64::from(clock.id));
                    self.word(clock.time);
                }
            }
            Item::Foreign { bytes, .. } => self.bytes(bytes),
            _ => {}
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        // The kind of the event beside the number of its track; an item's kind is below them.
        let (kind, track) = (|kind: u64| 1 | kind << 8, u64::from(event.track.0) << 32);
        self.int(event.time);
        match event.kind {
            EventKind::Begin => self.word(kind(1) | track),
            EventKind::End => self.word(kind(2) | track),
            EventKind::Complete { duration } => {
                self.word(kind(3) | track);
                self.int(duration);
            }
            EventKind::Instant => self.word(kind(4) | track),
            EventKind::Counter(value) => {
                self.word(kind(5) | track);
                self.counter(value);
            }
            EventKind::Flow { id, step, to_next, lasts } => {
                let step = match step {
                    FlowStep::Begin => 0,
                    FlowStep::Step => 1,
                    FlowStep::End => 2,
                };
                self.word(kind(16 + step + 4 * u64::from(to_next) + 8 * u64::from(lasts)) | track);
                self.word(id);
            }
            _ => self.word(kind(0) | track),
        }
        self.numbered(event.name);
        event.categories.each(&mut |category| self.numbered(category));
        for (track, value) in event.extra_counters {
            self.word(u64::from(track.0));
            self.counter(*value);
        }
        if event.details.is_some() || !event.args.is_empty() {
            args::each(event, &mut |_, text, id, value| {
                self.numbered(Text { text, id });
                self.argument(value);
            });
        }
        if event.details.is_some() {
            let details = event.details();
            details.flows.iter().chain(details.ending_flows).for_each(|flow| self.word(*flow));
            self.word(details.bound.map_or(0, |(flow, _)| flow));
        }
    }

    fn counter(&mut self, value: CounterValue) {
        match value {
            CounterValue::Int(value) => self.int(value),
            CounterValue::Double(value) => self.word(value.to_bits()),
        }
    }

    fn argument(&mut self, value: &Value<'_>) {
        match *value {
            Value::Bool(value) => self.word(u64::from(value)),
            Value::I64(value) => self.int(value),
            Value::U64(value) | Value::Pointer(value) | Value::Koid(value) => self.word(value),
            Value::F64(value) => self.word(value.to_bits()),
            Value::Str(text) => self.text(text),
            Value::Interned { iid, text } => {
                let id = iid.checked_sub(1).and_then(|id| u32::try_from(id).ok()).map(StringId);
                self.numbered(Text { text, id });
            }
            Value::Blob(bytes) => self.bytes(bytes),
            Value::Null | Value::Dict(_) | Value::Array(_) => {}
        }
    }

    fn track(&mut self, track: &Track) {
        self.word(2);
        self.word(u64::from(track.id.0));
        self.word(track.parent.map_or(0, |parent| u64::from(parent.0) + 1));
        self.text(&track.name);
        match &track.kind {
            TrackKind::Process { pid, command_line, parent } => {
                self.word(*pid);
                command_line.iter().for_each(|part| self.text(part));
                self.word(parent.unwrap_or(0));
            }
            TrackKind::Thread { pid, tid } => {
                self.word(*pid);
                self.word(*tid);
            }
            TrackKind::Async { id, .. } => self.word(*id),
            TrackKind::Counter(about) => {
                self.text(&about.unit_name);
                self.text(&about.series);
                self.int(about.multiplier);
            }
            _ => {}
        }
    }

    fn change(&mut self, change: &StateChange) {
        self.word(4);
        self.int(change.time);
        self.word(change.tid);
        self.word(change.state as u64);
        self.word(change.cpu.map_or(0, |cpu| u64::from(cpu) + 1));
        self.text(change.name.as_deref().unwrap_or(""));
    }
}
