//! Ends of slices on tracks that their own thread had no room for: the writer thread's part of the trace says them.

use hairline_formats::fxt;

use crate::on::base::platform::process;
use crate::on::encode::cut;
use crate::on::encode::fxt::record;
use crate::on::encode::fxt::record::Form;
use crate::on::encode::stream::OWN_SEQUENCE;
use crate::on::encode::track_event::packet::{Packet, Voice};
use crate::on::event::on_track::TrackRef;
use crate::on::event::track::TrackKind;
use crate::on::event::{Event, Moment};

/// The end of a slice on a track, standing for itself; `scratch` is room to work in. Gives the number of arguments that are left out.
pub(crate) fn put_late_end(
    out: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
    event: &Event<'_>,
    is_track_event: bool,
    now: u64,
) -> u64 {
    if is_track_event || record::form(event) == Form::Blob {
        let packet = Packet {
            sequence: OWN_SEQUENCE,
            voice: Voice::Full,
            epoch: 0,
            counter: None,
            location: None,
            body_iid: 0,
            at: &Moment { now, delta: 0, cpu: None },
        };
        if is_track_event {
            packet.put(out, event);
        } else {
            scratch.clear();
            packet.put(scratch, event);
            fxt::blob(out, fxt::StringRef::Empty, fxt::BLOB_PERFETTO, scratch);
        }
        return 0;
    }
    let end = match event.track {
        Some(TrackRef::Async(scope)) => End {
            kind: fxt::EventKind::AsyncEnd,
            thread: process::tid(),
            category: scope.callsite().category(),
            name: scope.callsite().name(),
            payload: Some(scope.uuid()),
        },
        track => End {
            kind: fxt::EventKind::DurationEnd,
            thread: thread_of(track),
            category: event.callsite.category(),
            name: event.callsite.name(),
            payload: None,
        },
    };
    end.put(out, now);
    event.arguments().count() as u64
}

struct End<'a> {
    kind: fxt::EventKind,
    thread: u32,
    category: &'a str,
    name: &'a str,
    payload: Option<u64>,
}

impl End<'_> {
    fn put(&self, out: &mut Vec<u8>, timestamp: u64) {
        let end = fxt::Event {
            kind: self.kind,
            timestamp,
            thread: fxt::ThreadRef::Inline {
                process: u64::from(process::id()),
                thread: u64::from(self.thread),
            },
            category: fxt::StringRef::Inline(cut(self.category)),
            name: fxt::StringRef::Inline(cut(self.name)),
            args: &[],
            payload: self.payload,
        };
        fxt::event(out, &end);
    }
}

/// The thread whose track it is, or this one.
fn thread_of(track: Option<TrackRef<'_>>) -> u32 {
    match track {
        Some(TrackRef::Track(track)) => match track.kind() {
            TrackKind::Thread(thread) => thread.tid,
            _ => process::tid(),
        },
        _ => process::tid(),
    }
}
