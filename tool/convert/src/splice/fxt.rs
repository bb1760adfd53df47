//! Splices FXT records.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};

use hairline_formats::fxt::layout::metadata;
use hairline_formats::fxt::{
    ArgumentValue, BLOB_PERFETTO, EventKind, EventRecord, KERNEL_OBJECT_PROCESS, KERNEL_OBJECT_THREAD,
    Record, RecordReader, StringRef, blob, initialization, magic, provider_info, provider_section,
};
use hairline_formats::{DecodeError, Value};

use crate::Error;
use crate::splice::packets;
use crate::splice::salt::Salt;
use crate::splice::totals::Totals;

/// The rate of a clock without an initialization record.
const TICKS_PER_SECOND: u64 = 1_000_000_000;

/// The event with a session's losses: see the SDK's trace tail.
const LOST: (&str, &str) = ("hairline", "lost in all");
/// The argument of a thread's kernel object that has the id of its process.
const PROCESS: &str = "process";
/// The argument of that event that does not count events.
const LOST_ARGUMENTS: &str = "arguments";

/// The state that is kept from part to part.
#[derive(Debug, Default)]
pub(super) struct Parts {
    count: u64,
    providers: Providers,
    /// The state for the packets in blobs.
    packets: packets::Parts,
    out: Vec<u8>,
    packed: Vec<u8>,
}

/// The provider ids of the parts. Importers use them to keep strings and threads apart.
#[derive(Debug, Default)]
struct Providers {
    taken: HashSet<u32>,
    of_part: HashMap<u32, u32>,
}

impl Providers {
    /// The new id of a provider: the old one if no other part has it.
    fn of(&mut self, old: u32) -> u32 {
        let taken = &mut self.taken;
        *self.of_part.entry(old).or_insert_with(|| {
            let mut new = old;
            while !taken.insert(new) && taken.len() < u32::MAX as usize {
                new = new.wrapping_add(0x9e37_79b9); // odd, so it visits all numbers
            }
            new
        })
    }
}

impl Parts {
    pub(super) fn add(
        &mut self,
        part: impl Read,
        out: &mut impl Write,
        totals: &mut Totals,
    ) -> Result<(), Error> {
        self.providers.of_part.clear();
        self.packets.next_part();
        let salt = Salt::of(self.count);
        let mut reader = RecordReader::new(part);
        let mut error: Option<DecodeError> = None;
        let mut records = 0_u64;
        let end = loop {
            self.out.clear();
            let what = match reader.next() {
                Ok(Some((_, Record::Magic))) => continue,
                Ok(Some((_, record))) => {
                    if records == 0 {
                        self.put_start(&record);
                    }
                    self.look(&record, salt, totals)
                }
                // An error at the end of the input is an error of the part. An error with records after it is
                // an error of one record.
                Ok(None) => break error.map_or(Ok(()), |e| Err(e.into())),
                Err(e) if e.is_truncated() => break Err(e.into()),
                Err(e) => {
                    totals.damaged += u64::from(error.replace(e).is_some());
                    continue;
                }
            };
            totals.damaged += u64::from(error.take().is_some());
            records += 1;
            self.put(what, reader.bytes(), salt);
            if let Err(e) = out.write_all(&self.out) {
                break Err(Error::Output(e));
            }
        };
        self.count += u64::from(records > 0);
        end
    }

    /// Writes the records that must precede a part's first record. They clear the strings, the threads and
    /// the clock of the previous part.
    fn put_start(&mut self, first: &Record<'_>) {
        if self.count == 0 {
            magic(&mut self.out);
        }
        if !matches!(first, Record::ProviderInfo { .. } | Record::ProviderSection { .. }) {
            let provider = self.providers.of(0);
            provider_info(&mut self.out, provider, "");
            provider_section(&mut self.out, provider);
        }
        if self.count > 0 && !matches!(first, Record::Initialization { .. }) {
            initialization(&mut self.out, TICKS_PER_SECOND);
        }
    }

    /// Decides what happens to a record.
    fn look(&mut self, record: &Record<'_>, salt: Salt, totals: &mut Totals) -> Change {
        match record {
            Record::ProviderInfo { id, .. }
            | Record::ProviderSection { id }
            | Record::ProviderEvent { id, .. } => return Change::Provider(self.providers.of(*id)),
            Record::Event(event) => return look_at_event(event, totals),
            Record::Thread { process, thread, .. } => {
                totals.threads.insert((*process, *thread));
            }
            Record::KernelObject { object_type: KERNEL_OBJECT_PROCESS, koid, .. } => {
                totals.pids.insert(*koid);
            }
            Record::KernelObject { object_type: KERNEL_OBJECT_THREAD, koid, args, .. } => {
                let process = args.clone().flatten().find_map(|(name, value)| match value {
                    ArgumentValue::Value(Value::Koid(pid)) if name == StringRef::Inline(PROCESS) => Some(pid),
                    _ => None,
                });
                totals.threads.extend(process.map(|process| (process, *koid)));
            }
            Record::Blob { name, kind: BLOB_PERFETTO, bytes } => {
                self.packed.clear();
                self.packets.put_embedded(&mut self.packed, bytes, self.count, salt, totals);
                if !self.packed.is_empty() {
                    blob(&mut self.out, *name, BLOB_PERFETTO, &self.packed);
                }
                return Change::Done;
            }
            Record::TooLarge { .. } => {
                totals.damaged += 1;
                return Change::Done;
            }
            _ => {}
        }
        Change::Copy
    }

    fn put(&mut self, what: Change, bytes: &[u8], salt: Salt) {
        let start = self.out.len();
        if matches!(what, Change::Done) {
            return;
        }
        self.out.extend_from_slice(bytes);
        match what {
            Change::Provider(id) => change_word(&mut self.out[start..start + 8], |header| {
                header - metadata::PROVIDER.set(metadata::PROVIDER.get(header))
                    + metadata::PROVIDER.set(u64::from(id))
            }),
            Change::Async => {
                let len = self.out.len();
                change_word(&mut self.out[len - 8..], |id| id ^ salt.0);
            }
            Change::Copy | Change::Done => {}
        }
    }
}

/// What happens to a record.
#[derive(Clone, Copy, Debug)]
enum Change {
    Copy,
    /// It gets another provider id.
    Provider(u32),
    /// Its last word, the id of an interval, is salted.
    Async,
    /// It is written already, or omitted.
    Done,
}

fn look_at_event(event: &EventRecord<'_>, totals: &mut Totals) -> Change {
    match event.kind {
        EventKind::FlowBegin | EventKind::FlowStep | EventKind::FlowEnd => return Change::Copy,
        EventKind::AsyncBegin | EventKind::AsyncInstant | EventKind::AsyncEnd => {
            totals.events += 1;
            return Change::Async;
        }
        EventKind::Instant
            if (event.category, event.name) == (StringRef::Inline(LOST.0), StringRef::Inline(LOST.1)) =>
        {
            totals.lost = totals.lost.saturating_add(lost(event));
        }
        EventKind::DurationComplete => totals.events += 1, // plus 1 below: a begin and an end
        _ => {}
    }
    totals.events += 1;
    Change::Copy
}

fn lost(event: &EventRecord<'_>) -> u64 {
    let counts = event.args().filter_map(|argument| {
        let (name, value) = argument.ok()?;
        match value {
            ArgumentValue::Value(Value::U64(n)) if name != StringRef::Inline(LOST_ARGUMENTS) => Some(n),
            _ => None,
        }
    });
    counts.fold(0, u64::saturating_add)
}

fn change_word(bytes: &mut [u8], change: impl FnOnce(u64) -> u64) {
    if let Some(word) = bytes.first_chunk_mut() {
        *word = change(u64::from_le_bytes(*word)).to_le_bytes();
    }
}
