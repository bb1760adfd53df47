//! Reads the interned data of packets.

use crate::DecodeError;
use crate::proto::{FieldValue, Fields};
use crate::track_event::fields::{
    InternedKind, interned_data, interned_string, source_location, trace_packet,
};
use crate::track_event::sequence::{Interned, SourceLocation};

/// The interned data of a packet.
#[derive(Clone, Debug)]
pub(super) struct Entries<'a> {
    packet: Fields<'a>,
    data: Fields<'a>,
}

impl<'a> Entries<'a> {
    pub(super) fn new(packet: Fields<'a>) -> Self {
        Self { packet, data: Fields::none() }
    }

    /// Returns the next entry that `read` knows, by its field.
    #[inline]
    pub(super) fn next<T>(
        &mut self,
        mut read: impl FnMut(u32, Fields<'a>) -> Result<Option<T>, DecodeError>,
    ) -> Option<Result<T, DecodeError>> {
        loop {
            match self.data.next() {
                Some(Ok(field)) => {
                    match field.value.message().and_then(|m| read(field.number, m).transpose()) {
                        Some(entry) => return Some(entry),
                        None => continue,
                    }
                }
                Some(Err(e)) => return Some(Err(e)),
                None => {}
            }
            match self.packet.next()? {
                Ok(field) if field.number == trace_packet::INTERNED_DATA => {
                    self.data = field.value.message().unwrap_or_else(Fields::none);
                }
                Ok(_) => {}
                Err(e) => return Some(Err(e)),
            }
        }
    }
}

/// Iterates over the interned strings and source locations of a packet. Kinds that [`Interned`] does not have
/// are ignored.
#[derive(Clone, Debug)]
pub struct InternedStrings<'a>(pub(super) Entries<'a>);

impl<'a> Iterator for InternedStrings<'a> {
    type Item = Result<Interned<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next(entry)
    }
}

/// Reads an entry of InternedData's field `field`. Returns `None` for a field that [`Interned`] does not
/// have.
fn entry<'a>(field: u32, message: Fields<'a>) -> Result<Option<Interned<'a>>, DecodeError> {
    if field == interned_data::SOURCE_LOCATIONS {
        let (iid, at) = location(message, &mut 0)?;
        return Ok(Some(Interned::Location { iid, at }));
    }
    let Some(kind) = InternedKind::from_number(field.into()) else { return Ok(None) };
    let (mut iid, mut name) = (0, "");
    for field in message {
        let field = field?;
        match (field.number, field.value) {
            (interned_string::IID, FieldValue::Varint(v)) => iid = v,
            (interned_string::NAME, value) => name = value.text().unwrap_or(name),
            _ => {}
        }
    }
    Ok(Some(Interned::Text { kind, iid, name }))
}

/// Reads `SourceLocation` and its id; the id is 0 if it is missing.
pub(super) fn location<'a>(
    message: Fields<'a>,
    skipped: &mut u32,
) -> Result<(u64, SourceLocation<'a>), DecodeError> {
    let (mut iid, mut at) = (0, SourceLocation::default());
    for field in message {
        let field = field?;
        match (field.number, field.value) {
            (source_location::IID, FieldValue::Varint(v)) => iid = v,
            (source_location::FILE_NAME, value) => at.file = value.text().unwrap_or(at.file),
            (source_location::FUNCTION_NAME, value) => at.function = value.text().unwrap_or(at.function),
            (source_location::LINE_NUMBER, FieldValue::Varint(v)) => at.line = v as u32,
            _ => *skipped += 1,
        }
    }
    Ok((iid, at))
}
