//! The context switches of the command and of all processes below it.
//!
//! The events are opened before the command executes its program. All that it starts inherits them, and no
//! program does anything for it. A thread of this process reads the kernel's rings.
//!
//! Two parts of the trace come of it: the names, which stand before the processes' own parts, and the states,
//! which stand after them. In FXT the later of two names of a thread counts, and Hairline's own is the whole
//! one. In TrackEvent a track after its thread's death would be another thread's.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hairline::Format;
use hairline_formats::track_event as te;
use hairline_formats::{SwitchSide, Value, fxt};
use hairline_perf::{Change, Named, RING, Record, Stamp, State, Switches, Taken, advice};

use crate::platform::{self, Folder};

/// The bytes of each ring: all that a user has without a limit.
pub(super) const BYTES: usize = RING;

/// The interval of reads. A ring has room for some 13,000 records of switches.
const READ_EVERY: Duration = Duration::from_millis(20);

/// The names of the two parts.
const NAMES: &str = "names";
const STATES: &str = "states";

/// The packets' sequence, and the id of FXT's provider. The splice gives them numbers of their own.
pub(super) const SEQUENCE: te::SequenceId = te::SequenceId(1);
const PROVIDER: u32 = 1;

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
    /// By thread.
    names: BTreeMap<u32, Named>,
    /// The time of the first state.
    began: u64,
    /// The time of the last one.
    pub(super) ended: u64,
    /// The number of states.
    states: u64,
    lost: u64,
    /// When each thread that runs began to, and how long the others ran.
    running: HashMap<u32, u64>,
    ran: u64,
}

impl Recording {
    /// Begins to read these switches, for a part in `folder`.
    pub(super) fn begin(switches: io::Result<Switches>, folder: &Folder, format: Format) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let begin = || -> io::Result<JoinHandle<io::Result<Recorded>>> {
            let mut states = States::new(switches?, folder, format)?;
            let is_over = Arc::clone(&is_over);
            let read = move || {
                while !is_over.load(Ordering::Relaxed) {
                    states.write(platform::boottime())?;
                    std::thread::sleep(READ_EVERY);
                }
                states.finish()
            };
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
        read.map_err(|e| failed(&e))
    }
}

/// Why the states are not in the trace.
pub(super) fn failed(error: &io::Error) -> String {
    format!("--sched: the context switches cannot be written: {error}")
}

/// The states of threads on their way into a file. The thread that reads the kernel's rings has it.
#[derive(Debug)]
pub(super) struct States {
    recorded: Recorded,
    switches: Switches,
    out: BufWriter<File>,
    bytes: Vec<u8>,
}

impl States {
    /// Creates the file in `folder`.
    pub(super) fn new(switches: Switches, folder: &Folder, format: Format) -> io::Result<Self> {
        let mut out = BufWriter::new(folder.create_file(STATES)?);
        out.write_all(&head(format))?;
        let recorded = Recorded {
            format,
            names: BTreeMap::new(),
            began: u64::MAX,
            ended: 0,
            states: 0,
            lost: 0,
            running: HashMap::new(),
            ran: 0,
        };
        Ok(Self { recorded, switches, out, bytes: Vec::new() })
    }

    /// Adds a record of a ring that has something else too.
    pub(super) fn add(&mut self, record: &Record<'_>, stamp: Stamp) {
        self.switches.add(record, stamp);
    }

    /// Reads the rings, and writes what no older record can precede. `began`: before the first ring was read,
    /// also of those with something else.
    pub(super) fn write(&mut self, began: u64) -> io::Result<()> {
        self.switches.read(began);
        let taken = self.switches.take();
        self.put(&taken, false)
    }

    /// Ends the recording.
    pub(super) fn finish(mut self) -> io::Result<Recorded> {
        let rest = self.switches.finish();
        self.put(&rest, true)?;
        self.out.flush()?;
        Ok(self.recorded)
    }

    fn put(&mut self, taken: &Taken, is_last: bool) -> io::Result<()> {
        let Self { recorded, switches, out, bytes } = self;
        recorded.lost += switches.newly_lost(is_last);
        recorded.keep(taken);
        bytes.clear();
        taken.changes.iter().for_each(|change| put_change(bytes, recorded.format, change));
        out.write_all(bytes)
    }
}

impl Recorded {
    fn keep(&mut self, taken: &Taken) {
        self.began = taken.changes.iter().map(|change| change.time).min().unwrap_or(u64::MAX).min(self.began);
        self.ended = taken.changes.iter().map(|change| change.time).max().unwrap_or(0).max(self.ended);
        self.states += taken.changes.len() as u64;
        for change in &taken.changes {
            if change.state == State::Running {
                self.running.entry(change.task.tid).or_insert(change.time);
            } else if let Some(began) = self.running.remove(&change.task.tid) {
                self.ran = self.ran.saturating_add(change.time.saturating_sub(began));
            }
        }
        self.names.extend(taken.names.iter().map(|named| (named.task.tid, named.clone())));
    }

    /// Adds the parts to those of the processes in `folder`.
    pub(super) fn add_to(self, folder: &Folder, parts: &mut Vec<String>, notes: &mut Vec<String>) {
        if self.lost > 0 {
            notes.push(format!("{} context switches lost: the kernel's ring was full", self.lost));
        }
        if self.began == u64::MAX {
            return;
        }
        let bytes = self.names_part(parts);
        match folder.create_file(NAMES).and_then(|mut file| file.write_all(&bytes)) {
            Ok(()) => parts.insert(0, NAMES.to_owned()),
            Err(e) => notes.push(format!("--sched: threads have no names: {e}")),
        }
        parts.push(STATES.to_owned());
    }

    /// The number of states that threads got into.
    pub(super) fn states(&self) -> u64 {
        self.states
    }

    /// How long all threads ran, in nanoseconds.
    pub(super) fn ran(&self) -> u64 {
        let running = self.running.values().map(|began| self.ended.saturating_sub(*began));
        running.fold(self.ran, u64::saturating_add)
    }

    /// The number of records that the kernel's rings had no room for.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether a thread of this process is one of the recording's.
    pub(super) fn has_process(&self, pid: u32) -> bool {
        self.names.values().any(|named| named.task.pid == pid)
    }

    /// The names of threads, and of processes without a part of their own.
    fn names_part(&self, parts: &[String]) -> Vec<u8> {
        let pid_of = |part: &String| part.split('-').next()?.parse::<u32>().ok();
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

/// Returns the head of a part.
pub(super) fn head(format: Format) -> Vec<u8> {
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
    let side = SwitchSide::from(change);
    match format {
        Format::Fxt => side.put_record(out),
        _ => side.put_packet(out, SEQUENCE),
    }
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
