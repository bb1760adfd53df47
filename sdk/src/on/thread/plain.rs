//! Scopes and instants without arguments and options, and the ends of scopes.
//!
//! Each has a function with the hot path. Those behind it continue the event in tail position: their stores
//! need registers that would otherwise be saved for all. They have the same arguments, which stay in their
//! registers: the room of the lease, and the epoch, which an instant does not need.
//!
//! None is inlined into the traced program. So a disabled callsite is a load and a branch there, the calls
//! need no saved register, and a program with thousands of callsites has one hot path in its cache.

use hairline_shm::Lease;

use crate::on::base::this_thread::{self, Hot};
use crate::on::callsite::{Callsite, Epoch};
use crate::on::thread::hot::{self, Taken};
use crate::on::thread::kind::{Instants, Kind, Scopes};
use crate::on::thread::open_scope::{End, OpenScope};
use crate::on::thread::{cold, slow};
use crate::options::Format;

/// Begins a scope. Returns the begin if it was recorded.
#[inline(never)]
pub(crate) fn begin(callsite: &'static Callsite) -> Option<OpenScope> {
    plain::<Scopes>(callsite)
}

/// Records an instant.
#[inline(never)]
pub fn instant(callsite: &'static Callsite, _epoch: Epoch) {
    plain::<Instants>(callsite);
}

#[inline(always)]
fn plain<K: Kind>(callsite: &'static Callsite) -> K::Recorded {
    let hot = this_thread::hot();
    let Some((taken, epoch)) = hot.take_for(callsite) else { return K::left(callsite, &()) };
    if !hot.has_seen::<false>(callsite) {
        return unseen::<K>(hot, callsite, taken.room(), taken, epoch);
    }
    in_format::<K>(hot, callsite, taken.room(), taken, epoch)
}

/// As [`plain`], for a callsite whose near "seen" bit is clear: in a session that records places the record
/// has that of the callsite.
#[inline(never)]
fn unseen<K: Kind>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    room: i32,
    taken: Taken,
    epoch: Epoch,
) -> K::Recorded {
    if !hot.has_seen_located(callsite) {
        return far::<K>(hot, callsite, room, taken, epoch);
    }
    if epoch.format() == Format::TrackEvent {
        return located_packet::<K>(hot, callsite, room, taken, epoch);
    }
    recorded::<K>(callsite, epoch, hot::fxt::located(hot, callsite, K::KIND, room, taken))
}

/// As [`plain`], for a callsite beyond the first 1,024.
#[inline(never)]
fn far<K: Kind>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    room: i32,
    taken: Taken,
    epoch: Epoch,
) -> K::Recorded {
    if hot.has_seen_far_unwatched(callsite) {
        return in_format::<K>(hot, callsite, room, taken, epoch);
    }
    if hot.has_seen_watched(callsite) {
        return watched::<K>(hot, callsite, taken, epoch);
    }
    let () = taken.put_back();
    K::left(callsite, &())
}

/// As [`plain`], for a callsite that the session looks at.
#[inline(never)]
fn watched<K: Kind>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    taken: Taken,
    epoch: Epoch,
) -> K::Recorded {
    let room = taken.room();
    let now = match epoch.format() {
        Format::Fxt => hot::fxt::plain(hot, callsite, K::KIND, room, taken),
        Format::TrackEvent => hot::packet::plain(hot, callsite, K::KIND, room, taken),
    };
    match now {
        Some(now) => K::watched(callsite, epoch, now),
        None => K::left(callsite, &()),
    }
}

#[inline(always)]
fn in_format<K: Kind>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    room: i32,
    taken: Taken,
    epoch: Epoch,
) -> K::Recorded {
    if epoch.format() == Format::TrackEvent {
        return packet::<K>(hot, callsite, room, taken, epoch);
    }
    recorded::<K>(callsite, epoch, hot::fxt::plain(hot, callsite, K::KIND, room, taken))
}

#[inline(never)]
fn located_packet<K: Kind>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    room: i32,
    taken: Taken,
    epoch: Epoch,
) -> K::Recorded {
    recorded::<K>(callsite, epoch, hot::packet::located(hot, callsite, K::KIND, room, taken))
}

#[inline(never)]
fn packet<K: Kind>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    room: i32,
    taken: Taken,
    epoch: Epoch,
) -> K::Recorded {
    recorded::<K>(callsite, epoch, hot::packet::plain(hot, callsite, K::KIND, room, taken))
}

#[inline(always)]
fn recorded<K: Kind>(callsite: &'static Callsite, epoch: Epoch, now: Option<u64>) -> K::Recorded {
    match now {
        Some(now) => K::recorded(epoch, now),
        None => K::left(callsite, &()),
    }
}

/// Ends a recorded scope. One that is not the innermost is counted, and its end is marked.
#[inline(always)]
pub(crate) fn end(callsite: &'static Callsite, open: OpenScope) {
    end_of(&End { callsite, open });
}

/// The room is there: the begin reserved it in this chunk. No session has the number of a slice that is
/// timed.
#[inline(never)]
fn end_of(end: &End) {
    let (hot, number) = (this_thread::hot(), end.open.recorded_in.number());
    let Some(taken) = hot.take_number(Lease::end_epoch, number) else { return end_left(end) };
    if Epoch::format_of(number) == Format::TrackEvent {
        return end_packet(hot, end, end.open.id, taken);
    }
    if !hot::fxt::end(hot, end, taken) {
        end_left(end);
    }
}

#[inline(never)]
fn end_packet(hot: &'static Hot, end: &End, id: u32, taken: Taken) {
    if !hot::packet::end(hot, id, taken) {
        end_left(end);
    }
}

#[cold]
#[inline(never)]
fn end_left(end: &End) {
    let open = end.open.untimed();
    let is_written = end.open.recorded_in.is_timed() && end_untimed(&End { open, ..*end });
    if !is_written && !hot::composed::plain_end(end.callsite, open) {
        cold::end(end.callsite, open);
    }
    slow::ended(end.callsite, end.open);
}

/// As [`end_of`], for a slice that is timed. Returns whether the end was written.
fn end_untimed(end: &End) -> bool {
    let (hot, number) = (this_thread::hot(), end.open.recorded_in.number());
    let Some(taken) = hot.take_number(Lease::end_epoch, number) else { return false };
    match Epoch::format_of(number) {
        Format::TrackEvent => hot::packet::end(hot, end.open.id, taken),
        Format::Fxt => hot::fxt::end(hot, end, taken),
    }
}
