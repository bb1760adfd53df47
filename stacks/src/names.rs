//! The names of threads and processes that have samples: those of the kernel, at most 15 bytes.

use std::collections::{BTreeMap, BTreeSet};

use hairline_formats::track_event::{self as te, SequenceId};
use hairline_perf::{Map, Task};

/// The names of all tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// By thread.
    names: Map<u32, String>,
    /// The threads that have samples, by process, each with the time of its first one.
    sampled: BTreeMap<(u32, u32), u64>,
}

impl Names {
    pub(crate) fn set(&mut self, tid: u32, name: String) {
        self.names.insert(tid, name);
    }

    pub(crate) fn get(&self, tid: u32) -> Option<&str> {
        self.names.get(&tid).map(String::as_str)
    }

    pub(crate) fn has(&self, tid: u32) -> bool {
        self.names.contains_key(&tid)
    }

    pub(crate) fn take(&mut self, tid: u32) -> Option<String> {
        self.names.remove(&tid)
    }

    /// Takes the names of all threads but the present ones.
    pub(crate) fn take_others(&mut self, present: &Map<u32, String>) -> Vec<(u32, String)> {
        self.names.extract_if(|tid, _| !present.contains_key(tid)).collect()
    }

    /// A task starts with the name of the one that started it.
    pub(crate) fn inherit(&mut self, parent: u32, child: u32) {
        match self.names.get(&parent).cloned() {
            Some(name) => drop(self.names.insert(child, name)),
            None => drop(self.names.remove(&child)), // of a thread before, which had the same number
        }
    }

    /// Forgets the name of a thread that has ended, if nothing of its process has samples.
    pub(crate) fn ended(&mut self, task: Task) {
        if self.sampled.range((task.pid, 0)..=(task.pid, u32::MAX)).next().is_none() {
            self.names.remove(&task.tid);
        }
    }

    pub(crate) fn sampled(&mut self, pid: u32, tid: u32, time: u64) {
        self.sampled.entry((pid, tid)).or_insert(time);
    }

    /// Writes the names of the threads with samples, and of their processes, unless they have names already.
    /// A process has a name if its first thread has.
    pub(crate) fn write(&self, out: &mut Vec<u8>, sequence: SequenceId, has_name: &dyn Fn(Task) -> bool) {
        let mut named = BTreeSet::new();
        for ((pid, tid), time) in &self.sampled {
            let name = |task: u32| self.names.get(&task).map(String::as_str).filter(|name| !name.is_empty());
            let (Ok(process), Ok(thread)) = (i32::try_from(*pid), i32::try_from(*tid)) else { continue };
            let process_name = if named.insert(*pid) && !has_name(Task { pid: *pid, tid: *pid }) {
                name(*pid)
            } else {
                None
            };
            if let Some(name) = process_name {
                let of = te::Process { pid: process, parent: None, command_line: &[name] };
                te::process_tree(out, sequence, *time, &of);
            }
            let is_new = !has_name(Task { pid: *pid, tid: *tid });
            if let Some(name) = name(*tid).filter(|_| is_new) {
                let named = te::Thread { tid: thread, pid: process, name };
                te::process_threads(out, sequence, *time, &[named]);
            }
        }
    }
}
