//! Profiler records to stack samples.
//!
//! A process may have its samples twice: in the packets of blobs, with functions, and then in backtraces,
//! which have no place for them. The packets count, and the backtraces are copies for a writer of FXT.

use std::collections::{BTreeMap, HashMap, HashSet};

use hairline_formats::fxt::{self, Backtrace, Frames, Mmap, Module};
use hairline_formats::track_event::{CpuMode, UnwindError};

use crate::fxt::read::reason::{Reason, TIME, UNKNOWN_THREAD};
use crate::fxt::read::tables::Tables;
use crate::{Sample, SampleKind, Stack, StackFrame};

/// The limit for modules and mappings, some 200 bytes each.
const MOST: usize = 1 << 16;

const TOO_MANY: Reason = Reason("modules and mappings beyond 65536 left out");

/// The modules of the processes, and the current sample.
#[derive(Debug, Default)]
pub(super) struct Profile {
    /// By process and id.
    modules: HashMap<(u64, u16), OwnedModule>,
    /// The processes whose samples are in packets.
    in_packets: HashSet<u64>,
    /// By process and first address.
    mappings: BTreeMap<(u64, u64), OwnedMapping>,
    time: i64,
    pid: u64,
    tid: u64,
    /// The outermost frame first.
    frames: Vec<u64>,
}

#[derive(Debug)]
struct OwnedModule {
    name: String,
    build_id: Vec<u8>,
}

#[derive(Debug)]
struct OwnedMapping {
    range: u64,
    vaddr: u64,
    module: u16,
}

impl Profile {
    pub(super) fn module(&mut self, module: &Module<'_>, tables: &Tables) -> Result<(), Reason> {
        let process = tables.thread(module.thread).ok_or(UNKNOWN_THREAD)?.process;
        if self.modules.len() >= MOST {
            return Err(TOO_MANY);
        }
        let owned = OwnedModule { name: module.name.to_owned(), build_id: module.build_id.to_owned() };
        self.modules.insert((process, module.id), owned);
        Ok(())
    }

    pub(super) fn mmap(&mut self, mmap: &Mmap, tables: &Tables) -> Result<(), Reason> {
        let process = tables.thread(mmap.thread).ok_or(UNKNOWN_THREAD)?.process;
        if self.mappings.len() >= MOST {
            return Err(TOO_MANY);
        }
        let Mmap { range, vaddr, module_id: module, .. } = *mmap;
        self.mappings.insert((process, mmap.start), OwnedMapping { range, vaddr, module });
        Ok(())
    }

    /// Notes that a sample came in packets, before the backtrace that repeats it.
    pub(super) fn came_in_packets(&mut self, sample: &Sample<'_>) {
        if sample.kind == SampleKind::OnCpu && self.in_packets.len() < MOST {
            self.in_packets.insert(sample.pid);
        }
    }

    /// Returns whether the stored backtrace repeats a sample that came in packets.
    pub(super) fn is_repeated(&self) -> bool {
        self.in_packets.contains(&self.pid)
    }

    /// Stores a backtrace, whose innermost frame is first.
    pub(super) fn backtrace(
        &mut self,
        backtrace: &Backtrace<Frames<'_>>,
        tables: &Tables,
    ) -> Result<(), Reason> {
        let thread = tables.thread(backtrace.thread).ok_or(UNKNOWN_THREAD)?;
        self.time = tables.rate().ns(backtrace.timestamp).ok_or(TIME)?;
        (self.pid, self.tid) = (thread.process, thread.thread);
        self.frames.clear();
        self.frames.extend(backtrace.frames.clone().take(fxt::MAX_FRAMES));
        self.frames.reverse();
        Ok(())
    }

    /// The stored backtrace.
    pub(super) fn sample(&self) -> Sample<'_> {
        let Self { time, pid, tid, .. } = *self;
        let (mode, unwind_error) = (CpuMode::default(), UnwindError::default());
        let kind = SampleKind::OnCpu;
        Sample { time, pid, tid, cpu: None, kind, period: 0, mode, unwind_error, stack: self, copy: None }
    }
}

impl Stack for Profile {
    fn each(&self, show: &mut dyn FnMut(StackFrame<'_>)) {
        for address in &self.frames {
            let below = self.mappings.range((self.pid, 0)..=(self.pid, *address)).next_back();
            let inside = below.filter(|((_, start), mapping)| address - start < mapping.range);
            let Some(((_, start), mapping)) = inside else {
                show(StackFrame { address: *address, ..StackFrame::default() });
                continue;
            };
            let module = self.modules.get(&(self.pid, mapping.module));
            show(StackFrame {
                module: module.map_or("", |module| &module.name),
                build_id: module.map_or(&[], |module| &module.build_id),
                address: (address - start).wrapping_add(mapping.vaddr),
                ..StackFrame::default()
            });
        }
    }
}
