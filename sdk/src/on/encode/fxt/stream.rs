//! The drain thread's own records: head, late ends and tail of the stream.

use hairline_formats::{Value, fxt};

use crate::on::base::memory::Bytes;
use crate::on::base::platform::process;
use crate::on::encode::cut;
use crate::on::encode::fxt::record::has_own_record;
use crate::on::encode::tail::Tail;
use crate::on::encode::track_event;
use crate::on::event::Event;
use crate::on::event::on_track::TrackRef;
use crate::on::event::track::TrackKind;

/// Timestamps are nanoseconds, as in TrackEvent.
const TICKS_PER_SECOND: u64 = 1_000_000_000;

/// Writes the records that a reader needs before the first record of a thread.
pub(crate) fn put_head(out: &mut Vec<u8>, uuid: u128) {
    let (pid, name) = (process::id(), process::name());
    fxt::magic(out);
    fxt::provider_info(out, pid, name);
    fxt::provider_section(out, pid);
    fxt::initialization(out, TICKS_PER_SECOND);
    fxt::kernel_object(out, fxt::KERNEL_OBJECT_PROCESS, u64::from(pid), inline(name), &[]);
    // FXT has no record for a command line or a machine. Perfetto's packets are in a blob.
    let mut packets = Vec::new();
    track_event::stream::put_about(&mut packets, uuid);
    fxt::blob(out, inline("process tree"), fxt::BLOB_PERFETTO, &packets);
}

/// Writes the end of a slice on a track. `packets` is a buffer for the packets of a blob. Returns the number
/// of arguments that are left out: a record here has none.
pub(crate) fn put_late_end(out: &mut Bytes, packets: &mut Bytes, event: &Event<'_>, timestamp: u64) -> u64 {
    if !has_own_record(event) {
        packets.clear();
        track_event::stream::put_late_end(packets, event, timestamp);
        fxt::blob(out, fxt::StringRef::Empty, fxt::BLOB_PERFETTO, packets);
        return 0;
    }
    let (kind, thread, callsite, payload) = match event.track {
        Some(TrackRef::Async(interval)) => {
            let uuid = Some(interval.uuid().0);
            (fxt::EventKind::AsyncEnd, process::tid(), interval.callsite(), uuid)
        }
        track => (fxt::EventKind::DurationEnd, thread_of(track), event.callsite, None),
    };
    let end = fxt::Event {
        kind,
        timestamp,
        thread: fxt::ThreadRef::Inline { process: u64::from(process::id()), thread: u64::from(thread) },
        category: inline(callsite.category()),
        name: inline(callsite.name()),
        args: &[],
        payload,
    };
    fxt::event(out, &end);
    event.arguments().count() as u64
}

/// Returns the id of the thread whose track this is, or of the calling thread.
fn thread_of(track: Option<TrackRef<'_>>) -> u32 {
    match track {
        Some(TrackRef::Track(track)) => match track.kind() {
            TrackKind::Thread(thread) => thread.tid,
            _ => process::tid(),
        },
        _ => process::tid(),
    }
}

/// Writes the events of the tail, if there are any.
pub(crate) fn put_tail(out: &mut Vec<u8>, tail: &Tail) {
    if tail.lost.buffer_full > 0 {
        fxt::provider_event(out, tail.pid, fxt::PROVIDER_EVENT_BUFFER_FULL);
    }
    let (pid, tid) = (u64::from(tail.pid), u64::from(tail.thread.tid));
    let owner = (inline("process"), Value::Koid(pid));
    for (at, (name, args)) in tail.events().into_iter().enumerate() {
        if at == 0 {
            fxt::kernel_object(out, fxt::KERNEL_OBJECT_THREAD, tid, inline(&tail.thread.name), &[owner]);
        }
        let args: Vec<_> = args.into_iter().map(|(name, value)| (inline(name), value)).collect();
        let event = fxt::Event {
            kind: fxt::EventKind::Instant,
            timestamp: tail.now,
            thread: fxt::ThreadRef::Inline { process: pid, thread: tid },
            category: inline("hairline"),
            name: inline(name),
            args: &args,
            payload: None,
        };
        fxt::event(out, &event);
    }
}

fn inline(text: &str) -> fxt::StringRef<'_> {
    fxt::StringRef::Inline(cut(text))
}
