//! The context switches of the command and of all processes below it.
//!
//! The events are opened before the command executes its program. All that it starts inherits them, and no
//! program does anything for it. A thread of this process reads the kernel's rings.
//!
//! Two parts of the trace come of it: the names, which stand before the processes' own parts, and the states,
//! which stand after them. In FXT the later of two names of a thread counts, and Hairline's own is the whole one.
//! In TrackEvent a track after its thread's death would be another thread's.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hairline::Format;
use hairline_formats::track_event as te;
use hairline_formats::{Value, fxt};
use hairline_perf::{Change, Named, RING, State, Switches, Taken, advice};
use rustix::time::{ClockId, clock_gettime};

/// The bytes of each ring: all that a user has without a limit, or a quarter of it, so that samples have the rest.
pub(super) const ALONE: usize = RING;
pub(super) const BESIDE_SAMPLES: usize = RING / 4;

/// The interval of reads. A ring of a quarter has room for some 3,300 records of switches.
const READ_EVERY: Duration = Duration::from_millis(20);

/// The packets' sequence, and the id of FXT's provider. The splice gives them numbers of their own.
const SEQUENCE: te::SequenceId = te::SequenceId(1);
const PROVIDER: u32 = 1;

/// FXT's weight of the idle thread, which has no row, and a thread that is none.
const IDLE: i64 = i32::MIN as i64;
const NO_THREAD: u64 = 0;

/// A recording that goes on, or the reason why there is none.
#[derive(Debug)]
pub(super) struct Recording {
    is_over: Arc<AtomicBool>,
    reader: Result<JoinHandle<io::Result<Recorded>>, String>,
}

/// What was recorded.
#[derive(Debug)]
pub(super) struct Recorded {
    format: Format,
    directory: PathBuf,
    states: PathBuf,
    /// By thread.
    names: BTreeMap<u32, Named>,
    /// The time of the first state.
    began: u64,
    lost: u64,
}

impl Recording {
    /// Begins to read these switches, for a part in `directory`.
    pub(super) fn begin(switches: io::Result<Switches>, directory: &Path, format: Format) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let begin = || -> io::Result<JoinHandle<io::Result<Recorded>>> {
            let switches = switches?;
            let states = directory.join("states");
            let out = BufWriter::new(File::create_new(&states)?);
            let recorded = Recorded {
                format,
                directory: directory.to_owned(),
                states,
                names: BTreeMap::new(),
                began: u64::MAX,
                lost: 0,
            };
            let is_over = Arc::clone(&is_over);
            let read = move || recorded.read(switches, out, &is_over);
            std::thread::Builder::new().name("switches".to_owned()).spawn(read)
        };
        let reader = begin().map_err(|e| format!("--sched: no context switches: {e}; {}", advice(&e)));
        Self { is_over, reader }
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(super) fn end(self) -> Result<Recorded, String> {
        self.is_over.store(true, Ordering::Relaxed);
        let read = self.reader?.join().map_err(|_| "--sched: the reader has failed".to_owned())?;
        read.map_err(|e| format!("--sched: the context switches cannot be written: {e}"))
    }
}

impl Recorded {
    /// Reads the rings until the recording is over.
    fn read(
        mut self,
        mut switches: Switches,
        mut out: BufWriter<File>,
        is_over: &AtomicBool,
    ) -> io::Result<Self> {
        let mut bytes = head(self.format);
        out.write_all(&bytes)?;
        loop {
            let is_last = is_over.load(Ordering::Relaxed);
            let taken = if is_last {
                switches.finish()
            } else {
                switches.read();
                switches.take(now())
            };
            self.lost += switches.newly_lost(is_last);
            self.keep(&taken);
            bytes.clear();
            taken.changes.iter().for_each(|change| put_change(&mut bytes, self.format, change));
            out.write_all(&bytes)?;
            if is_last {
                out.flush()?;
                return Ok(self);
            }
            std::thread::sleep(READ_EVERY);
        }
    }

    fn keep(&mut self, taken: &Taken) {
        self.began = taken.changes.iter().map(|change| change.time).min().unwrap_or(u64::MAX).min(self.began);
        self.names.extend(taken.names.iter().map(|named| (named.task.tid, named.clone())));
    }

    /// Adds the parts to those of the processes.
    pub(super) fn add_to(self, parts: &mut Vec<PathBuf>, notes: &mut Vec<String>) {
        if self.lost > 0 {
            notes.push(format!("{} context switches lost: the kernel's ring was full", self.lost));
        }
        if self.began == u64::MAX {
            return;
        }
        let path = self.directory.join("names");
        match std::fs::write(&path, self.names_part(parts)) {
            Ok(()) => parts.insert(0, path),
            Err(e) => notes.push(format!("--sched: threads have no names: {e}")),
        }
        parts.push(self.states);
    }

    /// The names of threads, and of processes without a part of their own.
    fn names_part(&self, parts: &[PathBuf]) -> Vec<u8> {
        let pid_of = |part: &PathBuf| part.file_name()?.to_str()?.split('-').next()?.parse::<u32>().ok();
        let traced: Vec<u32> = parts.iter().filter_map(pid_of).collect();
        let is_process = |named: &&Named| {
            let task = named.task;
            task.pid == task.tid && !traced.contains(&task.pid)
        };
        let mut out = head(self.format);
        let processes = self.names.values().filter(is_process);
        match self.format {
            Format::Fxt => {
                processes.for_each(|named| put_fxt_process(&mut out, named));
                self.names.values().for_each(|named| put_fxt_thread(&mut out, named));
            }
            _ => {
                for named in processes {
                    let command_line = &[&*named.name];
                    let of = te::Process { pid: named.task.pid.cast_signed(), parent: None, command_line };
                    te::process_tree(&mut out, SEQUENCE, self.began, &of);
                }
                let threads = self.names.values().map(|named| te::Thread {
                    tid: named.task.tid.cast_signed(),
                    pid: named.task.pid.cast_signed(),
                    name: &named.name,
                });
                let threads: Vec<te::Thread<'_>> = threads.collect();
                for threads in threads.chunks(1000) {
                    te::process_threads(&mut out, SEQUENCE, self.began, threads);
                }
            }
        }
        out
    }
}

/// Returns `CLOCK_BOOTTIME` in ns.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Returns the head of a part.
fn head(format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    if format == Format::Fxt {
        fxt::magic(&mut out);
        fxt::provider_info(&mut out, PROVIDER, "switches");
        fxt::provider_section(&mut out, PROVIDER);
        fxt::initialization(&mut out, 1_000_000_000);
    }
    out
}

fn put_change(out: &mut Vec<u8>, format: Format, change: &Change) {
    if format == Format::Fxt {
        put_fxt_change(out, change);
        return;
    }
    let state = match change.state {
        State::Running => te::TaskState::Running,
        State::Runnable => te::TaskState::Runnable,
        State::Asleep => te::TaskState::InterruptibleSleep,
        // `Dead` would make a second thread of each track that comes later, and a snapshot's head does.
        State::Dead => te::TaskState::Destroyed,
    };
    let cpu = i32::try_from(change.cpu).ok();
    let event = te::TaskStateEvent { cpu, ..te::TaskStateEvent::new(i64::from(change.task.tid), state) };
    te::task_state(out, SEQUENCE, change.time, &event);
}

/// The kernel reports each side of a switch by itself, so the other side is the idle thread.
fn put_fxt_change(out: &mut Vec<u8>, change: &Change) {
    let thread = u64::from(change.task.tid);
    let outgoing_state = match change.state {
        State::Running | State::Runnable => fxt::ThreadState::Running,
        State::Asleep => fxt::ThreadState::Blocked,
        State::Dead => fxt::ThreadState::Dead,
    };
    let (outgoing, incoming, idle) = match change.state {
        State::Running => (NO_THREAD, thread, "outgoing_weight"),
        _ => (thread, NO_THREAD, "incoming_weight"),
    };
    let args = &[(fxt::StringRef::Inline(idle), Value::I64(IDLE))][..];
    let (timestamp, cpu) = (change.time, u16::try_from(change.cpu).unwrap_or(u16::MAX));
    fxt::context_switch(
        out,
        &fxt::ContextSwitch { timestamp, cpu, outgoing, outgoing_state, incoming, args },
    );
}

fn put_fxt_process(out: &mut Vec<u8>, named: &Named) {
    let name = fxt::StringRef::Inline(&named.name);
    fxt::kernel_object(out, fxt::KERNEL_OBJECT_PROCESS, u64::from(named.task.pid), name, &[]);
}

fn put_fxt_thread(out: &mut Vec<u8>, named: &Named) {
    let process = (fxt::StringRef::Inline("process"), Value::Koid(u64::from(named.task.pid)));
    let name = fxt::StringRef::Inline(&named.name);
    fxt::kernel_object(out, fxt::KERNEL_OBJECT_THREAD, u64::from(named.task.tid), name, &[process]);
}
