//! Records without an equivalent in the model. Their copy has times in nanoseconds and inline strings and
//! threads, so it is valid in any trace with that clock.

use hairline_formats::Value;
use hairline_formats::fxt::{
    self, Arguments, Backtrace, ContextSwitch, LargeBlob, LargeBlobMetadata, LegacyContextSwitch, MAX_ARGS,
    Mmap, Module, ProcessRef, Record, StringRef, ThreadRef, ThreadWakeup,
};

use crate::fxt::read::current::resolved;
use crate::fxt::read::reason::{Reason, TIME, UNKNOWN_STRING, UNKNOWN_THREAD};
use crate::fxt::read::tables::Tables;

/// Writes a copy of the record to `out`. Returns what it is, or `None` for an unknown record.
pub(super) fn put(
    out: &mut Vec<u8>,
    record: &Record<'_>,
    tables: &Tables,
) -> Result<Option<&'static str>, Reason> {
    out.clear();
    let full = Resolver { tables };
    Ok(Some(match record {
        Record::KernelObject { object_type, koid, name, args } => {
            let name = full.string(*name)?;
            full.with(args, |args| fxt::kernel_object(out, *object_type, *koid, name, args))?;
            "kernel objects"
        }
        Record::UserspaceObject { pointer, process, name, args } => {
            let (process, name) = (full.process(*process)?, full.string(*name)?);
            full.with(args, |args| fxt::userspace_object(out, *pointer, process, name, args))?;
            "user-space objects"
        }
        Record::ContextSwitch(_) | Record::LegacyContextSwitch(_) => {
            full.scheduling(out, record)?;
            "context switches"
        }
        Record::ThreadWakeup(_) => {
            full.scheduling(out, record)?;
            "thread wakeups"
        }
        Record::Module(module) => {
            let (timestamp, thread) = (full.time(module.timestamp)?, full.thread(module.thread)?);
            fxt::module(out, &Module { timestamp, thread, ..*module });
            "modules"
        }
        Record::Mmap(mmap) => {
            let (timestamp, thread) = (full.time(mmap.timestamp)?, full.thread(mmap.thread)?);
            fxt::mmap(out, &Mmap { timestamp, thread, ..*mmap });
            "memory mappings"
        }
        Record::Backtrace(backtrace) => {
            let (timestamp, thread) = (full.time(backtrace.timestamp)?, full.thread(backtrace.thread)?);
            let mut frames = [0; fxt::MAX_FRAMES];
            let count =
                frames.iter_mut().zip(backtrace.frames.clone()).map(|(to, frame)| *to = frame).count();
            fxt::backtrace(out, &Backtrace { timestamp, thread, frames: &frames[..count] });
            "backtraces"
        }
        Record::Blob { name, kind, bytes } => {
            fxt::blob(out, full.string(*name)?, *kind, bytes);
            "blobs"
        }
        Record::LargeBlob(blob) => {
            full.large_blob(out, blob)?;
            "large blobs"
        }
        Record::TooLarge { .. } => return Err(Reason("blobs above 1 MiB left out")),
        _ => return Ok(None),
    }))
}

struct Resolver<'a> {
    tables: &'a Tables,
}

impl<'a> Resolver<'a> {
    fn time(&self, ticks: u64) -> Result<u64, Reason> {
        self.tables.rate().ns(ticks).map(i64::cast_unsigned).ok_or(TIME)
    }

    fn string<'s>(&'s self, string: StringRef<'s>) -> Result<StringRef<'s>, Reason> {
        self.tables.string(string).map(|text| StringRef::Inline(text.text)).ok_or(UNKNOWN_STRING)
    }

    fn thread(&self, thread: ThreadRef) -> Result<ThreadRef, Reason> {
        let thread = self.tables.thread(thread).ok_or(UNKNOWN_THREAD)?;
        Ok(ThreadRef::Inline { process: thread.process, thread: thread.thread })
    }

    fn process(&self, process: ProcessRef) -> Result<ProcessRef, Reason> {
        match process {
            ProcessRef::Inline(_) => Ok(process),
            ProcessRef::Index(index) => {
                let thread = self.tables.thread(ThreadRef::Index(index)).ok_or(UNKNOWN_THREAD)?;
                Ok(ProcessRef::Inline(thread.process))
            }
        }
    }

    /// Passes the resolved arguments to `put`.
    fn with(
        &self,
        args: &Arguments<'_>,
        put: impl FnOnce(&[(StringRef<'_>, Value<'_>)]),
    ) -> Result<(), Reason> {
        let mut all = [(StringRef::Empty, Value::Null); MAX_ARGS];
        let mut count = 0;
        for (to, (name, value)) in all.iter_mut().zip(args.clone().flatten()) {
            let value = match resolved(value, self.tables) {
                Value::Interned { text, .. } => Value::Str(text),
                value => value,
            };
            *to = (self.string(name)?, value);
            count += 1;
        }
        put(&all[..count]);
        Ok(())
    }

    /// Copies a context switch of either kind, or a thread wakeup.
    fn scheduling(&self, out: &mut Vec<u8>, record: &Record<'_>) -> Result<(), Reason> {
        match record {
            Record::ContextSwitch(switch) => {
                let ContextSwitch { cpu, outgoing, outgoing_state, incoming, .. } = *switch;
                let timestamp = self.time(switch.timestamp)?;
                self.with(&switch.args, |args| {
                    let switch = ContextSwitch { timestamp, cpu, outgoing, outgoing_state, incoming, args };
                    fxt::context_switch(out, &switch);
                })
            }
            Record::LegacyContextSwitch(switch) => {
                let switch = LegacyContextSwitch {
                    timestamp: self.time(switch.timestamp)?,
                    outgoing: self.thread(switch.outgoing)?,
                    incoming: self.thread(switch.incoming)?,
                    ..*switch
                };
                fxt::legacy_context_switch(out, &switch);
                Ok(())
            }
            Record::ThreadWakeup(wakeup) => {
                let ThreadWakeup { cpu, thread, .. } = *wakeup;
                let timestamp = self.time(wakeup.timestamp)?;
                self.with(&wakeup.args, |args| {
                    fxt::thread_wakeup(out, &ThreadWakeup { timestamp, cpu, thread, args });
                })
            }
            _ => Ok(()),
        }
    }

    fn large_blob(&self, out: &mut Vec<u8>, blob: &LargeBlob<'_, Arguments<'_>>) -> Result<(), Reason> {
        let (category, name, bytes) = (self.string(blob.category)?, self.string(blob.name)?, blob.bytes);
        let Some(metadata) = &blob.metadata else {
            fxt::large_blob(out, &LargeBlob { category, name, metadata: None, bytes });
            return Ok(());
        };
        let (timestamp, thread) = (self.time(metadata.timestamp)?, self.thread(metadata.thread)?);
        self.with(&metadata.args, |args| {
            let metadata = Some(LargeBlobMetadata { timestamp, thread, args });
            fxt::large_blob(out, &LargeBlob { category, name, metadata, bytes });
        })
    }
}
