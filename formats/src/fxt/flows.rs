//! Repairs flows whose begin is missing.
//!
//! A window keeps only the last records of a trace, so the first kept record of a flow can be a step.
//! trace_processor ignores a flow that does not begin.

use std::collections::HashMap;

use crate::fxt::header::{RecordBytes, records};
use crate::fxt::layout::{EventKind, RecordType, event, record};

/// Makes the first kept record of each flow its begin.
///
/// ```text
/// look(piece), look(piece) ...     finds the first record of each flow, by its time
/// mend(piece), mend(piece) ...     returns the same bytes, with those records as begins
/// ```
///
/// ```
/// use hairline_formats::fxt::{self, EventKind, FlowStarts, StringRef, ThreadRef};
///
/// let mut records = Vec::new();
/// for (kind, timestamp) in [(EventKind::FlowStep, 10), (EventKind::FlowEnd, 20)] {
///     let (thread, category, name) = (ThreadRef::Index(1), StringRef::Empty, StringRef::Empty);
///     let event = fxt::Event { kind, timestamp, thread, category, name, args: &[], payload: Some(7) };
///     fxt::event(&mut records, &event);
/// }
/// let (mut starts, mut mended) = (FlowStarts::default(), Vec::new());
/// starts.look(&records);
/// starts.mend(&records, |_| true, |bytes| {
///     mended.extend_from_slice(bytes);
///     Ok::<(), std::io::Error>(())
/// })?;
/// let (first, size) = fxt::event_record(&mended).unwrap();
/// assert_eq!(first.kind, EventKind::FlowBegin);
/// assert_eq!(mended[size..], records[size..]); // the end is unchanged
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct FlowStarts {
    /// The time of each flow's first record, by the flow's id. `None` once `mend` has seen that record.
    first: HashMap<u64, Option<u64>>,
}

/// A flow record.
struct FlowRecord {
    at: usize,
    header: u64,
    time: u64,
    id: u64,
}

impl FlowStarts {
    /// Notes the flows in `records`, which are whole records.
    pub fn look(&mut self, records: &[u8]) {
        for FlowRecord { time, id, .. } in flows(records) {
            let first = self.first.entry(id).or_insert(Some(time));
            *first = (*first).min(Some(time));
        }
    }

    /// Passes the bytes of `records` to `put`, with begins where they are missing.
    ///
    /// Call it after [`look`](Self::look) has seen the whole trace, for all records in the order in which
    /// they are written. It changes only flows for whose id `begin_here` returns true.
    ///
    /// # Errors
    /// Returns the error of `put`.
    pub fn mend<E>(
        &mut self,
        records: &[u8],
        begin_here: impl Fn(u64) -> bool,
        mut put: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut done = 0;
        for FlowRecord { at, header, time, id } in flows(records) {
            let Some(first) = self.first.get_mut(&id).filter(|first| **first == Some(time)) else { continue };
            *first = None;
            let kind = event::KIND.get(header);
            if kind != EventKind::FlowBegin as u64 && begin_here(id) {
                let begin = header - event::KIND.set(kind) + event::KIND.set(EventKind::FlowBegin as u64);
                put(&records[done..at])?;
                put(&begin.to_le_bytes())?;
                done = at + 8;
            }
        }
        put(&records[done..])
    }
}

/// Returns the flow records among whole records.
fn flows(bytes: &[u8]) -> impl Iterator<Item = FlowRecord> + '_ {
    let is_flow = |header: u64| {
        record::TYPE.get(header) == RecordType::Event as u64
            && (EventKind::FlowBegin as u64..=EventKind::FlowEnd as u64).contains(&event::KIND.get(header))
    };
    records(bytes).filter(move |record| is_flow(record.header)).filter_map(|record| {
        let RecordBytes { at, header, bytes } = record;
        let time = u64::from_le_bytes(*bytes.get(8..)?.first_chunk()?);
        Some(FlowRecord { at, header, time, id: u64::from_le_bytes(*bytes.last_chunk()?) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fxt::{Event, StringRef, ThreadRef, blob, event, event_record};

    fn flow(kind: EventKind, time: u64, id: u64) -> Vec<u8> {
        let mut out = Vec::new();
        blob(&mut out, StringRef::Empty, 1, &[9; 100]); // a record before the flow
        let thread = if id.is_multiple_of(2) {
            ThreadRef::Index(1)
        } else {
            ThreadRef::Inline { process: 1, thread: 2 }
        };
        let (category, name) = (StringRef::Empty, StringRef::Empty);
        let flow = Event { kind, timestamp: time, thread, category, name, args: &[], payload: Some(id) };
        event(&mut out, &flow);
        out
    }

    fn kinds(mut bytes: &[u8]) -> Vec<(u64, EventKind)> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let len = record::SIZE.get(u64::from_le_bytes(*bytes.first_chunk().unwrap())) as usize * 8;
            all.extend(event_record(bytes).map(|(event, _)| (event.payload.unwrap(), event.kind)));
            bytes = &bytes[len..];
        }
        all
    }

    #[test]
    fn the_earliest_record_becomes_the_begin_if_there_is_none() {
        use EventKind::{FlowBegin as Begin, FlowEnd as End, FlowStep as Step};
        let pieces = [
            [flow(Step, 20, 1), flow(Step, 30, 2), flow(Begin, 1, 3), flow(Step, 9, 4)].concat(),
            [flow(Step, 10, 1), flow(End, 40, 2), flow(Step, 9, 3), flow(Step, 9, 4)].concat(),
        ];
        let mut starts = FlowStarts::default();
        pieces.iter().for_each(|piece| starts.look(piece));
        let mut out = Vec::new();
        for piece in &pieces {
            let put = |bytes: &[u8]| {
                out.extend_from_slice(bytes);
                Ok::<(), ()>(())
            };
            starts.mend(piece, |id| id != 2, put).unwrap();
        }
        assert_eq!(out.len(), pieces.concat().len());
        let expected =
            [(1, Step), (2, Step), (3, Begin), (4, Begin), (1, Begin), (2, End), (3, Step), (4, Step)];
        assert_eq!(kinds(&out), expected);
    }

    #[test]
    fn bytes_that_are_no_records_are_not_changed() {
        for bytes in [&[0_u8; 100][..], &[0xff; 33], &[0x94, 0, 8, 0, 0, 0, 0, 0], &[]] {
            let (mut starts, mut out) = (FlowStarts::default(), Vec::new());
            starts.look(bytes);
            let put = |bytes: &[u8]| {
                out.extend_from_slice(bytes);
                Ok::<(), ()>(())
            };
            starts.mend(bytes, |_| true, put).unwrap();
            assert_eq!(out, bytes);
        }
    }
}
