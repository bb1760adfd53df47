//! Flows whose begin was left behind: where a trace has only the last of what happened, the first record that is left of a flow
//! says "step", and trace_processor passes over all that follows.

use std::collections::HashMap;

use super::layout::{EventKind, RecordType, event, large, record};

/// Makes the first record that is left of each flow its begin.
///
/// ```text
/// look(piece), look(piece) ...     finds the first record of each flow, by its time
/// mend(piece), mend(piece) ...     gives the same bytes, with those as begins
/// ```
#[derive(Debug, Default)]
pub struct FlowStarts {
    /// The time of the first record, by the flow's id, until that record was met again.
    first: HashMap<u64, Option<u64>>,
}

/// A flow's record.
struct Found {
    at: usize,
    header: u64,
    time: u64,
    id: u64,
}

impl FlowStarts {
    /// Takes note of the flows in whole records.
    pub fn look(&mut self, records: &[u8]) {
        for Found { time, id, .. } in flows(records) {
            let first = self.first.entry(id).or_insert(Some(time));
            *first = (*first).min(Some(time));
        }
    }

    /// Gives the bytes of `records`, after all of the trace was looked at, in the order in which it is written. Only flows that
    /// `begin_here` are changed.
    ///
    /// # Errors
    /// Those of `put`.
    pub fn mend<E>(
        &mut self,
        records: &[u8],
        begin_here: impl Fn(u64) -> bool,
        mut put: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut done = 0;
        for Found { at, header, time, id } in flows(records) {
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

/// The flows' records among whole records.
fn flows(records: &[u8]) -> impl Iterator<Item = Found> + '_ {
    let mut at = 0;
    let word =
        |at: usize| records.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| u64::from_le_bytes(*bytes));
    std::iter::from_fn(move || {
        loop {
            let (here, header) = (at, word(at)?);
            let kind = record::TYPE.get(header);
            let size = if kind == RecordType::Large as u64 {
                large::SIZE.get(header)
            } else {
                record::SIZE.get(header)
            };
            let len = usize::try_from(size).ok()?.max(1).checked_mul(8)?;
            at = at.checked_add(len)?;
            let is_flow = kind == RecordType::Event as u64
                && (EventKind::FlowBegin as u64..=EventKind::FlowEnd as u64)
                    .contains(&event::KIND.get(header));
            if is_flow {
                return Some(Found { at: here, header, time: word(here + 8)?, id: word(at - 8)? });
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Event, EventKind, StringRef, ThreadRef, blob, event, event_record};
    use super::*;

    fn flow(kind: EventKind, time: u64, id: u64) -> Vec<u8> {
        let mut out = Vec::new();
        blob(&mut out, StringRef::Empty, 1, &[9; 100]); // something before it
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
    fn the_first_record_in_time_becomes_the_begin_where_there_is_none() {
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
    fn what_is_no_row_of_records_is_given_as_it_is() {
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
