//! The incremental state of a packet sequence.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use hairline_formats::DecodeError;
use hairline_formats::track_event::{
    CounterValue, Interned, InternedKind, OldTime, Packet, PacketDefaults, SequenceId, SourceLocation,
    ThreadDescriptor, TrackUuid,
};

use crate::report::NOT_UTF8;
use crate::track_event::read::kept::kept;
use crate::track_event::read::stacks::Stacks;
use crate::track_event::read::table::Table;
use crate::track_event::read::texts::{InternedText, SharedTexts};
use crate::{Context, Report};

/// A source location.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnedLocation {
    pub(super) file: Arc<str>,
    pub(super) function: Arc<str>,
    pub(super) line: u32,
}

impl OwnedLocation {
    pub(super) fn of(at: &SourceLocation<'_>, report: &mut Report) -> Self {
        let [file, function] = [at.file, at.function].map(|text| kept(text, report).into());
        Self { file, function, line: at.line }
    }

    pub(super) fn location(&self) -> SourceLocation<'_> {
        SourceLocation { file: &self.file, function: &self.function, line: self.line }
    }
}

/// The incremental state of a packet sequence.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    /// The sequence id.
    pub(super) number: SequenceId,
    /// Whether no packet is missing since the state was cleared.
    pub(super) is_valid: bool,
    /// The default track.
    track: Option<TrackUuid>,
    /// The thread that the sequence described last, or 0: that of events without a track.
    thread: TrackUuid,
    /// The default clock.
    pub(super) clock: Option<u32>,
    /// The clock of the last timestamp, and its index.
    pub(super) last_clock: Option<(u32, u32)>,
    pub(super) categories: Table<InternedText>,
    pub(super) names: Table<InternedText>,
    pub(super) rest: Option<Box<Rest>>,
}

/// What the events of a thread with one slice need not have. There may be millions of such threads, each with
/// a sequence of its own.
#[derive(Debug)]
pub(super) struct Rest {
    /// The time of the last event that an older tracer wrote, in microseconds.
    old_time: Option<i64>,
    /// The default tracks of extra counter values.
    pub(super) extra_counters: Vec<TrackUuid>,
    /// The sums of incremental counters, by track.
    pub(super) counters: BTreeMap<TrackUuid, CounterValue>,
    pub(super) annotation_names: Table<InternedText>,
    pub(super) annotation_texts: Table<InternedText>,
    pub(super) log_bodies: Table<InternedText>,
    pub(super) correlations: Table<InternedText>,
    pub(super) locations: Table<OwnedLocation>,
    /// The parts of call stacks, on a sequence of samples.
    pub(super) stacks: Option<Box<Stacks>>,
}

impl Rest {
    const NONE: Self = Self {
        old_time: None,
        extra_counters: Vec::new(),
        counters: BTreeMap::new(),
        annotation_names: Table::None,
        annotation_texts: Table::None,
        log_bodies: Table::None,
        correlations: Table::None,
        locations: Table::None,
        stacks: None,
    };
}

/// That of sequences without one.
static NO_REST: Rest = Rest::NONE;

/// References of the current event's arguments to strings that are not defined. Arguments are decoded on
/// demand, when the report cannot be changed.
#[derive(Debug, Default)]
pub(super) struct UndefinedArguments(RefCell<Option<Box<UndefinedTexts>>>);

#[derive(Debug, Default)]
struct UndefinedTexts {
    names: UndefinedIds,
    texts: UndefinedIds,
    /// The number of texts that are not UTF-8.
    wrong: u64,
}

#[derive(Debug, Default)]
struct UndefinedIds {
    first: Vec<u64>,
    count: u64,
}

/// The limit for ids of one event that the report may name. A nested value may have millions.
const MOST_UNDEFINED: usize = 1024;

impl UndefinedArguments {
    pub(super) fn add_name(&self, id: u64) {
        self.0.borrow_mut().get_or_insert_default().names.add(id);
    }

    pub(super) fn add_text(&self, id: u64) {
        self.0.borrow_mut().get_or_insert_default().texts.add(id);
    }

    pub(super) fn add_wrong_text(&self) {
        self.0.borrow_mut().get_or_insert_default().wrong += 1;
    }

    /// Moves the references to a report.
    #[inline]
    pub(super) fn settle(&mut self, report: &mut Report) {
        if let Some(all) = self.0.get_mut().take() {
            all.names.settle(report, "arguments whose name has an undefined id");
            all.texts.settle(report, "arguments whose text has an undefined id");
            report.add_many(NOT_UTF8, all.wrong);
        }
    }
}

impl UndefinedIds {
    fn add(&mut self, id: u64) {
        self.count += 1;
        if self.first.len() < MOST_UNDEFINED {
            self.first.push(id);
        }
    }

    fn settle(self, report: &mut Report, what: &'static str) {
        let unnamed = self.count - self.first.len() as u64;
        self.first.into_iter().for_each(|id| report.add_undefined(what, id));
        if unnamed > 0 {
            report.add_defects(what, unnamed);
        }
    }
}

impl Sequence {
    pub(super) fn new(number: SequenceId) -> Self {
        Self { number, ..Self::default() }
    }

    #[inline]
    pub(super) fn rest(&self) -> &Rest {
        self.rest.as_deref().unwrap_or(&NO_REST)
    }

    pub(super) fn rest_mut(&mut self) -> &mut Rest {
        self.rest.get_or_insert_with(|| Box::new(Rest::NONE))
    }

    /// Clears the state.
    pub(super) fn clear(&mut self) {
        let Self { number, last_clock, thread, .. } = *self;
        *self = Self { number, last_clock, thread, is_valid: true, ..Self::default() };
    }

    /// The track of an event with this UUID. As in trace_processor, one that neither the event nor the defaults
    /// name is the thread's.
    #[inline]
    pub(super) fn track_of(&self, uuid: Option<TrackUuid>) -> TrackUuid {
        uuid.or(self.track).unwrap_or(self.thread)
    }

    /// Sets the thread of events without a track. Importers ignore a thread that is described before the state
    /// was cleared.
    pub(super) fn set_thread(&mut self, thread: TrackUuid, about: &ThreadDescriptor<'_>) {
        if self.is_valid {
            self.thread = thread;
            if about.reference_time_us.is_some() {
                self.rest_mut().old_time = about.reference_time_us;
            }
        }
    }

    /// Whether neither an event with this UUID nor the defaults name a track.
    pub(super) fn has_no_track(&self, uuid: Option<TrackUuid>) -> bool {
        uuid.or(self.track).is_none()
    }

    /// The time of an event of an older tracer, in nanoseconds of `CLOCK_MONOTONIC`. `None` if the time since
    /// which it counts is not known.
    pub(super) fn old_time(&mut self, time: OldTime) -> Option<u64> {
        let us = match time {
            OldTime::Absolute { us } => us,
            OldTime::SincePrevious { us } => {
                let since = self.rest().old_time.or((self.thread != TrackUuid(0)).then_some(0));
                let now = since?.checked_add(us)?;
                self.rest_mut().old_time = Some(now);
                now
            }
        };
        us.checked_mul(1000)?.try_into().ok()
    }

    pub(super) fn set_defaults(&mut self, defaults: &PacketDefaults<'_>) -> Result<(), DecodeError> {
        self.track = defaults.track_uuid;
        self.clock = defaults.timestamp_clock_id;
        let extra_counters = defaults.extra_counter_track_uuids().collect::<Result<Vec<_>, _>>()?;
        if extra_counters != self.rest().extra_counters {
            self.rest_mut().extra_counters = extra_counters;
        }
        Ok(())
    }

    /// Stores the interned strings of a packet.
    pub(super) fn intern(
        &mut self,
        packet: &Packet<'_>,
        texts: &mut SharedTexts,
        context: &mut Context,
        report: &mut Report,
    ) -> Result<(), DecodeError> {
        for string in packet.interned() {
            let (kind, iid, text) = match string? {
                Interned::Text { kind, iid, name } => (kind, iid, name),
                Interned::Location { iid, at } => {
                    self.rest_mut().locations.set(iid, OwnedLocation::of(&at, report));
                    continue;
                }
            };
            let table = match kind {
                InternedKind::Category => &mut self.categories,
                InternedKind::EventName => &mut self.names,
                InternedKind::AnnotationName => &mut self.rest_mut().annotation_names,
                InternedKind::AnnotationText => &mut self.rest_mut().annotation_texts,
                InternedKind::LogBody => &mut self.rest_mut().log_bodies,
                InternedKind::CorrelationId => &mut self.rest_mut().correlations,
                _ => continue,
            };
            match texts.intern(text, context) {
                Some(text) => table.set(iid, text),
                None => report.add("strings left out: there are too many"),
            }
        }
        Ok(())
    }
}
