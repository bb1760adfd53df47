//! The places of callsites in the source.

use hairline_formats::proto;
use hairline_formats::track_event::SourceLocation;
use hairline_formats::track_event::fields::track_event;

use crate::on::callsite::{Callsite, registry};
use crate::on::encode::cut;

/// Returns the place of a callsite in the source.
pub(crate) fn location(callsite: &'static Callsite) -> SourceLocation<'static> {
    let site = callsite.site();
    SourceLocation { file: cut(site.file), function: cut(site.module), line: site.line }
}

/// Returns the interned id of a callsite's place, the same on every sequence.
pub(crate) fn location_iid(callsite: &'static Callsite) -> u64 {
    u64::from(callsite.serial()) + 1
}

/// Bytes of a [`location_field`].
pub(crate) const LOCATION_LEN: usize = 4;

/// Returns the place of a callsite as a field of its events: `90 02` and the interned id, a varint padded to
/// two bytes. `None` if the id does not fit.
pub(crate) fn location_field(callsite: &'static Callsite) -> Option<u32> {
    const TAG: u32 = proto::tag(track_event::SOURCE_LOCATION_IID, proto::WireType::Varint);
    let iid = u32::try_from(location_iid(callsite)).ok().filter(|iid| *iid < 1 << 14)?;
    Some((TAG & 0x7f | 0x80 | TAG >> 7 << 8) | (iid & 0x7f | 0x80 | iid >> 7 << 8) << 16)
}

/// Returns the interned id of a callsite's [`tag`], the same on every sequence. No place has it: a process
/// has fewer callsites.
pub(crate) fn tag_iid(callsite: &'static Callsite) -> u64 {
    1 << 27 | location_iid(callsite)
}

/// Returns the tag of a callsite's log messages, which readers show as `file:line`: the category takes the
/// file's place.
pub(crate) fn tag(callsite: &'static Callsite) -> SourceLocation<'static> {
    SourceLocation { file: cut(callsite.category()), ..location(callsite) }
}

/// Returns the place with this interned id.
pub(crate) fn location_with(iid: u64) -> Option<SourceLocation<'static>> {
    let listed = registry::listed_with(u32::try_from(iid.checked_sub(1)?).ok()?)?;
    Some(SourceLocation { file: cut(listed.file), function: cut(listed.module), line: listed.line })
}
