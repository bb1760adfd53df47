//! The begins of slices that are still open where a chunk starts, told again so that the chunk can be read without the one
//! before it: at their own time, and with every string they mean, in full or told before.

use hairline_formats::fxt::{ArgumentValue, EventKind, StringRef};
use hairline_formats::proto::{FieldValue, Fields};
use hairline_formats::track_event::fields::{clock, debug_annotation, trace, trace_packet, track_event};
use hairline_formats::{fxt, proto};

use crate::on::base::sets::Bits;
use crate::on::callsite::registry;
use crate::on::encode::cut;
use crate::on::encode::fxt::record::index_only;
use crate::on::encode::sequence::{Sequence, location_callsite};
use crate::on::encode::track_event::packet::location;
use crate::on::encode::track_event::tracks::put_thread;
use crate::on::event::Event;

/// A slice that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    /// Where its begin stands in the chunk's payload; None: in no chunk that is left.
    pub(crate) at: Option<u32>,
    /// What else must be known of it: in TrackEvent when it began, in FXT the strings that its end names, as in a record's
    /// header. The hot path leaves out the latter: there they are those of the begin.
    pub(crate) known: u64,
}

/// Where an FXT event's header names its strings: by their number, or with the highest bit set where they follow in full.
const NAMES: [fxt::layout::Field; 2] = [fxt::layout::event::CATEGORY, fxt::layout::event::NAME];

impl Sequence {
    /// What is to be [known](Begin::known) of a begin, now. Its end has the callsite's own name, whatever the begin is called.
    pub(crate) fn known_of_begin(&self, event: &Event<'_>, now: u64) -> u64 {
        if self.is_track_event() {
            return now;
        }
        let ids = [event.callsite.category_id(), event.callsite.name_id()];
        let index = |id: u32| if let StringRef::Index(index) = index_only(id) { u64::from(index) } else { 0 };
        NAMES.iter().zip(ids).map(|(name, id)| name.set(index(id))).sum()
    }

    /// Puts the begin anew that `written` begins with; None: it is in no chunk that is left, and only what its end needs is
    /// told. Gives where it stands among the begins, if it could be told, and what is `known` of it from here on.
    pub(crate) fn put_again(&self, again: &mut Again, written: Option<&[u8]>, known: u64) -> Begin {
        if self.is_track_event() {
            let at = written.and_then(|written| self.put_packet_again(&mut again.begins, written, known));
            return Begin { at, known };
        }
        let header = written.and_then(<[u8]>::first_chunk).map(|header| u64::from_le_bytes(*header));
        let known =
            header.filter(|header| NAMES.iter().all(|name| name.get(*header) >> 15 == 0)).unwrap_or(known);
        again.put_names(known);
        Begin { at: written.and_then(|written| again.put_record(written)), known }
    }

    /// What readers have to know of the thread before those packets; records have no need of it.
    pub(crate) fn put_own_track_again(&self, again: &mut Again) {
        if self.is_track_event() && !again.begins.is_empty() {
            put_thread(&mut again.strings, self.number, self.track_uuid, &self.thread);
        }
    }

    /// A packet that needs no state: strings in full, time on the trace's own clock.
    fn put_packet_again(&self, out: &mut Vec<u8>, written: &[u8], time: u64) -> Option<u32> {
        let packet = message(written, trace::PACKET)?;
        let event = message(packet, trace_packet::TRACK_EVENT)?;
        let at = u32::try_from(out.len()).ok()?;
        proto::put_message(out, trace::PACKET, |out| {
            proto::put_uint(out, trace_packet::TIMESTAMP, time);
            proto::put_uint(out, trace_packet::TIMESTAMP_CLOCK_ID, u64::from(clock::BOOTTIME));
            proto::put_uint(out, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, u64::from(self.number));
            proto::put_message(out, trace_packet::TRACK_EVENT, |out| {
                proto::put_uint(out, track_event::TRACK_UUID, self.track_uuid);
                fields(event).for_each(|field| put_event_field(out, field));
            });
        });
        Some(at)
    }
}

/// Begins that are told again.
#[derive(Debug, Default)]
pub(crate) struct Again {
    /// What precedes them: the track of packets, the strings of FXT's records. The latter also of those begins that are left out, since an end names them too.
    pub(crate) strings: Vec<u8>,
    told: Bits,
    pub(crate) begins: Vec<u8>,
}

impl Again {
    pub(crate) fn clear(&mut self) {
        self.strings.clear();
        self.told.clear();
        self.begins.clear();
    }

    /// The strings that an event's header names.
    fn put_names(&mut self, header: u64) {
        for name in NAMES {
            let index = name.get(header) as u16;
            if (1..=fxt::MAX_STRING_INDEX).contains(&index) {
                self.put_string(StringRef::Index(index));
            }
        }
    }

    /// The record as it is, since its time is absolute, with those of the flows through it, which follow it. Its category and
    /// name are told already.
    fn put_record(&mut self, written: &[u8]) -> Option<u32> {
        let (begin, mut len) = fxt::event_record(written)?;
        while let Some((flow, more)) = fxt::event_record(&written[len..])
            && matches!(flow.kind, EventKind::FlowBegin | EventKind::FlowStep | EventKind::FlowEnd)
            && flow.timestamp == begin.timestamp
        {
            len += more;
        }
        let at = u32::try_from(self.begins.len()).ok()?;
        self.begins.extend_from_slice(&written[..len]);
        Some(at)
    }

    /// Leaves out the outermost begins where all of them, and what precedes them, take more than `room`: an end closes the
    /// slice begun last, so the ones within must be there. What is left stands where `begins` says from here on.
    pub(crate) fn keep_innermost(&mut self, begins: &mut [Begin], room: usize) {
        let mut from = self.begins.len();
        for at in begins.iter().rev().map_while(|begin| begin.at) {
            let before = self.strings.len();
            self.put_argument_strings(at as usize);
            if self.strings.len() + self.begins.len() - at as usize > room {
                self.strings.truncate(before);
                break;
            }
            from = at as usize;
        }
        self.begins.drain(..from);
        let (from, before) = (from as u32, self.strings.len() as u32);
        for begin in begins {
            begin.at = begin.at.and_then(|at| at.checked_sub(from)).map(|at| at + before);
        }
    }

    /// What the arguments mean of the begin at `at`. A packet means nothing: it begins with another type than an event record.
    fn put_argument_strings(&mut self, at: usize) {
        let begins = std::mem::take(&mut self.begins);
        let event = begins.get(at..).and_then(fxt::event_record);
        for (name, value) in event.iter().flat_map(|(event, _)| event.args()).map_while(Result::ok) {
            self.put_string(name);
            if let ArgumentValue::StringIndex(index) = value {
                self.put_string(StringRef::Index(index));
            }
        }
        self.begins = begins;
    }

    /// The record of the string that an index stands for.
    fn put_string(&mut self, string: StringRef<'_>) {
        if let StringRef::Index(index) = string
            && self.told.insert(u32::from(index))
            && let Some(text) = registry::string_with(u64::from(index))
        {
            fxt::string_record(&mut self.strings, index, cut(text));
        }
    }
}

type Field<'a> = (u32, FieldValue<'a>);

/// The fields of a message that this SDK wrote.
fn fields(message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    Fields::new(message, 0).map_while(Result::ok).map(|field| (field.number, field.value))
}

/// The first field `number` of a message.
fn message(bytes: &[u8], number: u32) -> Option<&[u8]> {
    fields(bytes).find_map(|field| match field {
        (n, FieldValue::Bytes { bytes, .. }) if n == number => Some(bytes),
        _ => None,
    })
}

fn put_event_field(out: &mut Vec<u8>, field: Field<'_>) {
    match field {
        (track_event::CATEGORY_IIDS, FieldValue::Varint(iid)) => put_text(out, track_event::CATEGORIES, iid),
        (track_event::NAME_IID, FieldValue::Varint(iid)) => put_text(out, track_event::NAME, iid),
        (track_event::SOURCE_LOCATION_IID, FieldValue::Varint(iid)) => {
            if let Some(callsite) = location_callsite(iid) {
                proto::put_message(out, track_event::SOURCE_LOCATION, |out| location(callsite).put(out));
            }
        }
        (track_event::DEBUG_ANNOTATIONS, FieldValue::Bytes { bytes, .. }) => {
            put_annotation(out, track_event::DEBUG_ANNOTATIONS, bytes);
        }
        // Samples of the thread's own counters: whose they are is the sequence's state to say.
        (track_event::EXTRA_COUNTER_VALUES, _) => {}
        (track_event::TRACK_UUID, _) => {} // said once, by a begin that is told for the second time
        (number, value) => put_as_it_is(out, number, value),
    }
}

/// As deep as this SDK writes them.
fn put_annotation(out: &mut Vec<u8>, number: u32, annotation: &[u8]) {
    proto::put_message(out, number, |out| {
        for field in fields(annotation) {
            match field {
                (debug_annotation::NAME_IID, FieldValue::Varint(iid)) => {
                    put_text(out, debug_annotation::NAME, iid);
                }
                (debug_annotation::STRING_VALUE_IID, FieldValue::Varint(iid)) => {
                    put_text(out, debug_annotation::STRING_VALUE, iid);
                }
                (
                    number @ (debug_annotation::DICT_ENTRIES | debug_annotation::ARRAY_VALUES),
                    FieldValue::Bytes { bytes, .. },
                ) => put_annotation(out, number, bytes),
                (number, value) => put_as_it_is(out, number, value),
            }
        }
    });
}

fn put_text(out: &mut Vec<u8>, number: u32, iid: u64) {
    if let Some(text) = registry::string_with(iid) {
        proto::put_str(out, number, cut(text));
    }
}

fn put_as_it_is(out: &mut Vec<u8>, number: u32, value: FieldValue<'_>) {
    match value {
        FieldValue::Varint(value) => proto::put_uint(out, number, value),
        FieldValue::Fixed64(value) => proto::put_fixed64(out, number, value),
        FieldValue::Bytes { bytes, .. } => proto::put_bytes(out, number, bytes),
        FieldValue::Fixed32(_) => {} // none is written
    }
}
