//! The sequence of one thread, as FXT records.

use hairline_formats::track_event::SequenceId;
use hairline_formats::{Value, fxt, truncate_utf8};

use crate::builder::Detail;
use crate::on::base::memory::Bytes;
use crate::on::base::platform::process;
use crate::on::base::this_thread::Hot;
use crate::on::callsite::{Callsite, Epoch};
use crate::on::encode::begin::{Begin, Note};
use crate::on::encode::fxt::blob_part;
use crate::on::encode::fxt::record::{Lists, Record, References, has_own_record, index_only};
use crate::on::encode::fxt::repeat::{EndStrings, RepeatedRecords};
use crate::on::encode::fxt::strings::Strings;
use crate::on::encode::no_room::NoRoom;
use crate::on::encode::sequence::{Sequence, State};
use crate::on::encode::track_event::packet::Packet;
use crate::on::encode::track_event::tracks::{Descriptions, PlainIntervals};
use crate::on::encode::{FXT_THREAD, MAX_NAME};
use crate::on::event::owned_arguments::OwnedArguments;
use crate::on::event::{Action, Event, Moment};
use crate::site::CallsiteKind;

/// One thread's sequence of FXT records.
#[derive(Debug)]
pub(crate) struct FxtSequence {
    pub(crate) state: State,
    strings: Strings,
    /// The packets of a blob are composed here.
    packets: Bytes,
    /// Nested values are taken apart here.
    nested: OwnedArguments,
    lists: Lists,
    repeated: RepeatedRecords,
}

impl FxtSequence {
    pub(crate) fn new(epoch: Epoch, number: SequenceId, thread: process::Thread, detail: Detail) -> Self {
        Self {
            state: State::new(epoch, number, thread, detail),
            strings: Strings::new(detail.source_locations),
            packets: Bytes::new(),
            nested: OwnedArguments::default(),
            lists: Lists::default(),
            repeated: RepeatedRecords::default(),
        }
    }

    /// Writes TrackEvent packets in a blob.
    fn put_blob(&mut self, out: &mut Bytes, put: impl FnOnce(&mut State, &mut Bytes)) {
        self.packets.clear();
        put(&mut self.state, &mut self.packets);
        if !self.packets.is_empty() {
            fxt::blob(out, fxt::StringRef::Empty, fxt::BLOB_PERFETTO, &self.packets);
        }
    }

    fn put_record(
        &mut self,
        out: &mut Bytes,
        event: &Event<'_>,
        at: &Moment,
        references: References,
        in_slice: bool,
    ) -> Result<u64, NoRoom> {
        let (own_thread, own_track) = (&self.state.thread, self.state.track_uuid);
        let located = self.state.is_located(event);
        let record = Record { references, own_thread, own_track, in_slice, located, at };
        record.put(out, event, &mut self.nested, &mut self.lists)
    }
}

/// Describes a thread and its process.
pub(crate) fn put_thread(out: &mut Bytes, thread: &process::Thread) {
    let process = (fxt::StringRef::Inline("process"), Value::Koid(u64::from(thread.pid)));
    let name = fxt::StringRef::Inline(truncate_utf8(&thread.name, MAX_NAME));
    fxt::kernel_object(out, fxt::KERNEL_OBJECT_THREAD, u64::from(thread.tid), name, &[process]);
}

impl Sequence for FxtSequence {
    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// The record that gives the thread its index.
    fn context(&self) -> Bytes {
        let mut out = Bytes::new();
        let (pid, tid) = (u64::from(process::id()), u64::from(self.state.thread.tid));
        fxt::thread_record(&mut out, FXT_THREAD, pid, tid);
        out
    }

    /// An argument with its name of 10 bytes and a word.
    fn cpu_time_len(&self) -> i32 {
        8 + 16 + 8
    }

    /// The thread and its process.
    fn put_start(&self, out: &mut Bytes, _now: u64) {
        put_thread(out, &self.state.thread);
    }

    /// An instant that shows the loss.
    fn put_loss(&self, out: &mut Bytes, now: u64, lost: u64, found_full: bool) {
        if found_full {
            fxt::provider_event(out, process::id(), fxt::PROVIDER_EVENT_BUFFER_FULL);
        }
        let event = fxt::Event {
            kind: fxt::EventKind::Instant,
            timestamp: now,
            thread: fxt::ThreadRef::Index(FXT_THREAD),
            category: fxt::StringRef::Inline("hairline"),
            name: fxt::StringRef::Inline("events lost"),
            args: &[(fxt::StringRef::Inline("lost"), Value::U64(lost))],
            payload: None,
        };
        fxt::event(out, &event);
    }

    /// Strings keep their index after a loss.
    fn set_loss_written(&mut self) {}

    fn forget_all(&mut self) {
        self.state.forget_strings();
        self.strings.clear();
        self.state.tracks.clear();
    }

    fn is_self_contained(&self, event: &Event<'_>) -> bool {
        !has_own_record(event)
    }

    fn put_strings(&self, out: &mut Bytes, callsite: &'static Callsite, which: Option<usize>) {
        if !self.state.written_callsites.contains(callsite.serial()) {
            self.strings.put(out, callsite, which);
        }
    }

    fn string_count(&self, callsite: &'static Callsite) -> usize {
        self.strings.count(callsite)
    }

    fn set_strings_written(&mut self, hot: &Hot, callsite: &'static Callsite) {
        if self.state.written_callsites.insert(callsite.serial()) {
            self.strings.set_written(callsite);
        }
        // The hot path would write a counter with a unit as a record, which has no place for the unit.
        if callsite.has_constants() && callsite.site().counter.is_plain() {
            self.state.seen_callsites.insert(callsite.serial());
            let has_place = matches!(callsite.location_id().index(), Some(1..));
            hot.set_seen(callsite.serial(), has_place);
        }
    }

    fn put_values(&self, out: &mut Bytes, event: &Event<'_>) {
        self.strings.put_values(out, event, &self.state.written_values);
    }

    fn put_tracks(&mut self, out: &mut Bytes, event: &Event<'_>) {
        self.state.tracks.clear_new();
        if !has_own_record(event) {
            self.put_blob(out, |state, out| {
                let by = state.describer();
                let is_new = |uuid| state.tracks.add(uuid);
                Descriptions { out, by, plain_intervals: PlainIntervals::Records, is_new }
                    .put_for(event, false);
            });
        }
    }

    fn describes_no_track_of(&self, event: &Event<'_>) -> bool {
        has_own_record(event)
    }

    fn put_event(
        &mut self,
        out: &mut Bytes,
        event: &Event<'_>,
        at: &Moment,
        in_slice: bool,
    ) -> Result<u64, NoRoom> {
        if has_own_record(event) {
            return self.put_record(out, event, at, References::Indexed, in_slice);
        }
        if matches!(event.callsite.kind(), CallsiteKind::Scope | CallsiteKind::Instant) {
            blob_part::make(event.callsite);
        }
        self.put_blob(out, |state, out| Packet::self_contained(state, event, at).put(out, event));
        Ok(0)
    }

    fn put_self_contained(&mut self, out: &mut Bytes, event: &Event<'_>, now: u64) -> Result<u64, NoRoom> {
        let at = Moment::alone(now, event.extras.new_flows(self.state.epoch).0);
        let event = &Event { past: Some(now), values: event.values, ..*event };
        if has_own_record(event) {
            return self.put_record(out, event, &at, References::Inline, false);
        }
        self.put_blob(out, |state, out| {
            if event.action == Action::Begin {
                let by = state.describer();
                Descriptions { out, by, plain_intervals: PlainIntervals::Records, is_new: |_| true }
                    .put_for(event, false);
            }
            Packet::self_contained(state, event, &at).put(out, event);
        });
        Ok(0)
    }

    /// Category and name go by their index. One without an index is left out, because the reserved room has
    /// no place for its text. Only the name of the CPU time is inline.
    fn put_end(&self, out: &mut Bytes, callsite: &'static Callsite, at: &Moment) {
        let cpu = at.cpu.map(|cpu| (fxt::StringRef::Inline("cpu_end_ns"), Value::U64(cpu)));
        let end = fxt::Event {
            kind: fxt::EventKind::DurationEnd,
            timestamp: at.now,
            thread: fxt::ThreadRef::Index(FXT_THREAD),
            category: index_only(callsite.category_id()),
            name: index_only(callsite.name_id()),
            args: cpu.as_slice(),
            payload: None,
        };
        fxt::event(out, &end);
    }

    fn note_of_begin(&self, event: &Event<'_>, now: u64) -> Note {
        EndStrings::of(event.callsite).note(now)
    }

    fn repeat_begins(&mut self, out: &mut Bytes, chunk: &[u8], begins: &mut [Begin], room: usize) {
        self.repeated.repeat(out, chunk, begins, room);
    }
}
