//! Samples as FXT: profiler records, and the packets in blobs.
//!
//! The profiler records are those of the format's document: modules, mappings and backtraces. They have no
//! place for functions, and Perfetto passes over them. The packets in blobs have them, and Perfetto shows
//! them. Blobs come first: a reader that knows their samples can skip the backtraces, which are the same.

use std::sync::Arc;

use hairline_formats::fxt::{self, Backtrace, Mmap, Module, StringRef, ThreadRef};
use hairline_formats::track_event::PerfSample;
use hairline_perf::{Map, Set};

use crate::file::ProgramFile;
use crate::packets::pieces;
use crate::process::Place;
use crate::table::Table;

/// The name of the blobs.
const BLOBS: &str = "samples";

/// Times are in ns.
const TICKS_PER_SECOND: u64 = 1_000_000_000;

/// The records of one provider.
#[derive(Debug, Default)]
pub(crate) struct Records {
    has_started: bool,
    /// Those of each process.
    processes: Map<u32, Written>,
    out: Vec<u8>,
    /// The frames of a stack.
    addresses: Vec<u64>,
}

/// What has been written of a process.
#[derive(Debug, Default)]
struct Written {
    /// The ids of modules by file.
    modules: Map<u32, u16>,
    /// The numbers of mappings.
    mappings: Set<u32>,
}

impl Records {
    /// Continues a stream that has begun.
    pub(crate) fn within() -> Self {
        Self { has_started: true, ..Self::default() }
    }

    /// Writes a sample, after its mappings that are new.
    pub(crate) fn sample(
        &mut self,
        files: &[Arc<ProgramFile>],
        table: &Table,
        timestamp: u64,
        sample: &PerfSample,
        places: &[Place],
    ) {
        let process = u64::from(sample.pid);
        for number in places.iter().filter_map(|place| place.mapping) {
            if self.processes.entry(sample.pid).or_default().mappings.insert(number) {
                self.mapping(files, table, timestamp, sample.pid, number);
            }
        }
        self.addresses.clear();
        self.addresses.extend(places.iter().map(|place| place.address));
        let thread = ThreadRef::Inline { process, thread: u64::from(sample.tid) };
        fxt::backtrace(&mut self.out, &Backtrace { timestamp, thread, frames: &self.addresses[..] });
    }

    /// Returns the ids of all modules.
    #[cfg(test)]
    pub(crate) fn modules(&self) -> impl Iterator<Item = u16> {
        self.processes.values().flat_map(|written| written.modules.values().copied())
    }

    /// Forgets a process that has ended.
    pub(crate) fn ended(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    fn mapping(&mut self, files: &[Arc<ProgramFile>], table: &Table, timestamp: u64, pid: u32, number: u32) {
        let Some(of) = table.mappings.values().get(number as usize) else { return };
        let Some(file) = files.get(of.file as usize) else { return };
        let thread = ThreadRef::Inline { process: u64::from(pid), thread: 0 };
        let modules = &mut self.processes.entry(pid).or_default().modules;
        let next = u16::try_from(modules.len());
        let id = match (modules.get(&of.file), next) {
            (Some(id), _) => *id,
            (None, Ok(id)) => {
                modules.insert(of.file, id);
                let (name, build_id) = (&*file.path, &file.build_id[..]);
                fxt::module(&mut self.out, &Module { timestamp, thread, id, name, build_id });
                id
            }
            // A process with more modules than ids gets frames without one.
            (None, Err(_)) => return,
        };
        fxt::mmap(
            &mut self.out,
            &Mmap {
                timestamp,
                thread,
                module_id: id,
                flags: 0,
                start: of.start,
                range: of.end.wrapping_sub(of.start),
                vaddr: of.start.wrapping_sub(of.bias),
            },
        );
    }

    /// Returns what has been written since the last call, with these packets in front.
    pub(crate) fn take(&mut self, packets: &[u8]) -> Vec<u8> {
        let mut whole = Vec::new();
        if !self.has_started {
            self.has_started = true;
            fxt::magic(&mut whole);
            fxt::provider_info(&mut whole, 0, "hairline");
            fxt::provider_section(&mut whole, 0);
            fxt::initialization(&mut whole, TICKS_PER_SECOND);
        }
        for packets in pieces(packets) {
            fxt::blob(&mut whole, StringRef::Inline(BLOBS), fxt::BLOB_PERFETTO, packets);
        }
        whole.append(&mut self.out);
        whole
    }
}
