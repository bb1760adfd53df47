//! The facts that a session records beside each event: the place in the source, and the thread's CPU time.
//!
//! In such a session no callsite has its "seen" bit where the hot path looks. So its events are
//! [composed](super::composed), and other sessions pay nothing. A plain event with its place alone is not: it
//! has a writer of its own. The place is a constant of the callsite, interned at the first hit of each
//! sequence. The cold path writes the same records.

use hairline_formats::fxt::layout::{ArgumentType, argument, string_ref};
use hairline_formats::track_event::fields::track_event as event;

use crate::on::base::clock;
use crate::on::base::this_thread::Facts;
use crate::on::callsite::Callsite;
use crate::on::encode::track_event::location::location_iid;
use crate::on::thread::hot::encoded::Encoded;
use crate::options::Format;
use crate::site::CallsiteKind;

/// The names of these facts as FXT arguments, padded.
const CPU_AT_BEGIN: [u64; 2] = words(*b"cpu_begin_ns\0\0\0\0");
const CPU_AT_END: [u64; 2] = words(*b"cpu_end_ns\0\0\0\0\0\0");

const fn words(name: [u8; 16]) -> [u64; 2] {
    let both = u128::from_le_bytes(name);
    [both as u64, (both >> 64) as u64]
}

/// The header of an FXT argument with a name of so many bytes, which has so many words with it.
const fn header(kind: ArgumentType, name_len: u64, words: u64) -> u64 {
    argument::TYPE.set(kind as u64)
        | argument::SIZE.set(words)
        | argument::NAME.set(string_ref::INLINE.set(1) | string_ref::LENGTH.set(name_len))
}

/// Returns the callsite's place in the source as an FXT argument: a header and a name. The place's string has
/// an index.
#[inline(always)]
pub(crate) fn place_in_fxt(callsite: &'static Callsite) -> [u64; 2] {
    const NAME: [u8; 8] = *b"source\0\0";
    let place = argument::STRING.set(callsite.location_id().iid());
    [const { header(ArgumentType::String, 6, 2) } | place, u64::from_le_bytes(NAME)]
}

impl Encoded {
    /// Adds the facts of an event at the callsite, on its thread's own track, which happens now.
    pub(crate) fn put_facts(&mut self, facts: Facts, callsite: &'static Callsite) {
        let kind = callsite.kind();
        if facts.cpu_time && kind == CallsiteKind::Scope {
            self.put_cpu_time(CPU_AT_BEGIN, 12);
        }
        if !facts.location || kind == CallsiteKind::Counter {
            return;
        }
        if self.format() == Format::TrackEvent {
            self.put_field(event::SOURCE_LOCATION_IID, location_iid(callsite));
        } else if matches!(callsite.location_id().index(), Some(1..)) {
            self.put_words(place_in_fxt(callsite));
        } else {
            self.leave_to_cold();
        }
    }

    /// Adds the thread's CPU time at the end of a scope.
    pub(crate) fn put_end_cpu_time(&mut self) {
        self.put_cpu_time(CPU_AT_END, 10);
    }

    #[inline(always)]
    fn put_cpu_time(&mut self, [first, second]: [u64; 2], name_len: u64) {
        let time = clock::thread_time();
        match self.format() {
            Format::Fxt => self.put_words([header(ArgumentType::U64, name_len, 4), first, second, time]),
            Format::TrackEvent => self.put_field(event::EXTRA_COUNTER_VALUES, time),
        }
    }
}
