//! The constant part of a callsite's events in FXT blobs, composed at its first event there.
//!
//! ```text
//! 5a L  48 TYPE  b2 01 l CATEGORY  ba 01 l NAME  58 | the uuid of the track
//! ```

use hairline_formats::proto;
use hairline_formats::track_event::fields::{trace_packet, track_event as event};

use crate::on::base::memory::Bytes;
use crate::on::callsite::{BlobPart, Callsite};
use crate::on::encode::track_event::message::event_type;

/// Composes the constant part of the callsite's events, unless it has one. Does nothing if its texts are too
/// long, or if it has not exactly one category.
pub(crate) fn make(callsite: &'static Callsite) {
    let Some([category, name]) = callsite.texts().filter(|_| callsite.blob_part().is_none()) else { return };
    let mut part = Bytes::with_capacity(2 * BlobPart::LONGEST);
    proto::put_message(&mut part, trace_packet::TRACK_EVENT, |fields| {
        proto::put_uint(fields, event::TYPE, event_type(callsite.kind()) as u64);
        proto::put_str(fields, event::CATEGORIES, category);
        proto::put_str(fields, event::NAME, name);
        proto::put_uint(fields, event::TRACK_UUID, ANY_TRACK);
    });
    let len = part.len() - 8; // without that uuid
    if len <= BlobPart::LONGEST {
        let mut bytes = [0; BlobPart::LONGEST];
        bytes[..len].copy_from_slice(&part[..len]);
        callsite.make_blob_part(|| BlobPart { len, bytes });
    }
}

/// A uuid of 8 bytes, like that of each track.
const ANY_TRACK: u64 = 1 << 55;
