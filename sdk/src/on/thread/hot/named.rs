//! The begin of a scope with a short name made at run time, and without arguments.
//!
//! Each format has a function, as for [short values](super::continue_seen). What these do not write is
//! left to `composed.rs`.

use hairline_formats::proto::{self, PutBytes};
use hairline_formats::{fxt, track_event};

use crate::on::base::this_thread::Hot;
use crate::on::callsite::Callsite;
use crate::on::encode::track_event::message::own_name_len;
use crate::on::thread::hot::packet::TIME_LEN;
use crate::on::thread::hot::short::{self, Packet, Plan, ShortRecord};
use crate::on::thread::hot::taken::Taken;
use crate::on::thread::hot::{FXT_END, TRACK_EVENT_END};
use crate::on::thread::raw::{Leaf, settled_ref};
use crate::site::CallsiteKind;

/// The most bytes of a name. The packet has less than 128.
const LONGEST: usize = 64;

/// Whether the hot path writes this name, for this callsite.
#[inline(always)]
fn is_fit(callsite: &'static Callsite, name: &str) -> bool {
    (1..=LONGEST).contains(&name.len())
        && callsite.kind() == CallsiteKind::Scope
        && callsite.keys().is_empty()
}

/// Writes the record in FXT. Returns its time, `None` if nothing was written.
///
/// ```text
/// HEADER | TIME | name
/// ```
#[inline(always)]
pub(crate) fn in_fxt(hot: &Hot, callsite: &'static Callsite, name: &&str, taken: Taken) -> Option<u64> {
    use fxt::layout::string_ref;
    const NAME: fxt::layout::Field = fxt::layout::event::NAME;
    const MOST: i32 = 16 + LONGEST as i32 + FXT_END;
    if !is_fit(callsite, name) || taken.room() < MOST {
        return taken.put_back();
    }
    let own_header = callsite.fxt_header();
    // The record has not the strings of the end.
    let plan = Plan { reserved: FXT_END, strings: Some(own_header), may_fail: false };
    short::write(hot, taken, plan, |mut record: ShortRecord| {
        let name = settled_ref(name).as_bytes();
        // Not `StringRef::bits`, which cuts a long string.
        let inline = NAME.set(string_ref::INLINE.set(1) + name.len() as u64);
        let own_header = callsite.fxt_header();
        fxt::PutWords::stream(&mut Leaf(&mut record.raw), name);
        Some(record.close(own_header - NAME.set(NAME.get(own_header)) + inline))
    })
}

/// Writes the record as a packet.
///
/// ```text
/// 0a LEN  50 SEQUENCE  40 DELTA | 68 02 5a L  48 TYPE  18 CATEGORY  ba 01 l name
/// ```
#[inline(always)]
pub(crate) fn in_packet(hot: &Hot, callsite: &'static Callsite, name: &&str, taken: Taken) -> Option<u64> {
    const NAME_TAG: u64 = {
        let tag = proto::tag(track_event::fields::track_event::NAME, proto::WireType::Bytes) as u64;
        tag >> 7 << 8 | tag & 0x7f | 0x80
    };
    // Prefix, time, message, name.
    const MOST: usize = 8 + TIME_LEN + 16 + 3 + LONGEST;
    if !is_fit(callsite, name) || taken.room() < MOST as i32 + TRACK_EVENT_END {
        return taken.put_back();
    }
    let plan = Plan { reserved: TRACK_EVENT_END, strings: None, may_fail: false };
    short::write(hot, taken, plan, |mut packet: Packet<1>| {
        packet.put_message(callsite.message_words(), callsite.message_len() - own_name_len(callsite));
        let name = settled_ref(name).as_bytes();
        packet.raw.word_of(NAME_TAG + ((name.len() as u64) << 16), 3);
        Leaf(&mut packet.raw).bytes(name);
        packet.close(false)
    })
}
