//! Reads packets about the trace as a whole.

use crate::DecodeError;
use crate::proto::{FieldValue, Fields};
use crate::track_event::fields::{
    TaskState, buffer_stats, process_tree, process_tree_process as process, process_tree_thread as thread,
    system_info as system, task_state as state, trace_attribute, trace_attributes, trace_stats as stats,
    trace_uuid as uuid_fields, tracing_service_event as service, utsname,
};
use crate::track_event::read::repeated::Texts;
use crate::track_event::stream::{AttributeValue, SystemInfo, Thread, TraceStats};
use crate::track_event::task_state::TaskStateEvent;

/// Reads `TraceUuid`.
pub(super) fn trace_uuid(message: Fields<'_>, skipped: &mut u32) -> Result<u128, DecodeError> {
    let (mut upper, mut lower) = (0, 0);
    for field in message {
        let field = field?;
        match (field.number, field.value) {
            (uuid_fields::MSB, FieldValue::Varint(v)) => upper = v,
            (uuid_fields::LSB, FieldValue::Varint(v)) => lower = v,
            _ => *skipped += 1,
        }
    }
    Ok(u128::from(upper) << 64 | u128::from(lower))
}

/// `TraceAttributes`: iterates over names and values. An attribute without a value has `None`.
#[derive(Clone, Debug)]
pub struct TraceAttributes<'a>(pub(super) Fields<'a>);

impl<'a> Iterator for TraceAttributes<'a> {
    type Item = Result<(&'a str, Option<AttributeValue<'a>>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next_message(trace_attributes::ATTRIBUTE)?.and_then(attribute))
    }
}

fn attribute(message: Fields<'_>) -> Result<(&str, Option<AttributeValue<'_>>), DecodeError> {
    let (mut key, mut known) = ("", None);
    for field in message {
        let field = field?;
        match (field.number, field.value) {
            (trace_attribute::KEY, value) => key = value.text().unwrap_or(key),
            (trace_attribute::LONG_VALUE, FieldValue::Varint(v)) => {
                known = Some(AttributeValue::Int(v.cast_signed()));
            }
            (trace_attribute::STRING_VALUE, value) => known = value.text().map(AttributeValue::Text),
            _ => {}
        }
    }
    Ok((key, known))
}

/// Whether this `TracingServiceEvent` says that the session has ended, and nothing else.
pub(super) fn is_session_end(message: Fields<'_>) -> Result<bool, DecodeError> {
    let mut fields = 0;
    for field in message {
        let field = field?;
        if !matches!((field.number, field.value), (service::TRACING_DISABLED, FieldValue::Varint(1..))) {
            return Ok(false);
        }
        fields += 1;
    }
    Ok(fields > 0)
}

/// Reads `SystemInfo`. Missing fields are "" or 0.
pub(super) fn system_info<'a>(message: Fields<'a>, skipped: &mut u32) -> Result<SystemInfo<'a>, DecodeError> {
    let mut info = SystemInfo::default();
    for field in message {
        let field = field?;
        match (field.number, field.value) {
            (system::UTSNAME, FieldValue::Bytes { bytes, offset }) => {
                add_utsname(&mut info, Fields::new(bytes, offset), skipped)?;
            }
            (system::TRACING_SERVICE_VERSION, value) => info.tracer = value.text().unwrap_or(info.tracer),
            (system::PAGE_SIZE, FieldValue::Varint(v)) => info.page_size = v as u32,
            (system::NUM_CPUS, FieldValue::Varint(v)) => info.num_cpus = v as u32,
            (system::TIMEZONE_OFF_MINS, FieldValue::Varint(v)) => info.timezone_off_mins = v as i32,
            (system::SYSTEM_RAM_BYTES, FieldValue::Varint(v)) => info.ram_bytes = v,
            _ => *skipped += 1,
        }
    }
    Ok(info)
}

fn add_utsname<'a>(
    info: &mut SystemInfo<'a>,
    utsname: Fields<'a>,
    skipped: &mut u32,
) -> Result<(), DecodeError> {
    for field in utsname {
        let field = field?;
        let text = match field.number {
            utsname::SYSNAME => &mut info.sysname,
            utsname::VERSION => &mut info.version,
            utsname::RELEASE => &mut info.release,
            utsname::MACHINE => &mut info.machine,
            _ => {
                *skipped += 1;
                continue;
            }
        };
        *text = field.value.text().unwrap_or(text);
    }
    Ok(())
}

/// Reads `GenericKernelTaskStateEvent`. Unknown fields are ignored. `None`: the schema does not
/// have the state.
pub(super) fn task_state(message: Fields<'_>) -> Result<Option<TaskStateEvent<'_>>, DecodeError> {
    let (mut event, mut is_known) = (TaskStateEvent::new(0, TaskState::Unknown), true);
    for field in message {
        let field = field?;
        match (field.number, field.value) {
            (state::CPU, FieldValue::Varint(v)) => event.cpu = Some(v as i32),
            (state::COMM, value) => event.comm = value.text().unwrap_or(event.comm),
            (state::TID, FieldValue::Varint(v)) => event.tid = v.cast_signed(),
            (state::STATE, FieldValue::Varint(v)) => match TaskState::from_number(v) {
                Some(state) => event.state = state,
                None => is_known = false,
            },
            (state::PRIO, FieldValue::Varint(v)) => event.prio = Some(v as i32),
            _ => {}
        }
    }
    Ok(is_known.then_some(event))
}

/// Reads `TraceStats`: the sums of all its buffers, saturating at [`u64::MAX`].
pub(super) fn trace_stats(message: Fields<'_>, skipped: &mut u32) -> Result<TraceStats, DecodeError> {
    let mut sums = TraceStats::default();
    for field in message {
        let field = field?;
        match (field.number, field.value) {
            (stats::BUFFER_STATS, FieldValue::Bytes { bytes, offset }) => {
                add_buffer(&mut sums, Fields::new(bytes, offset), skipped)?;
            }
            (stats::FLUSHES_REQUESTED, FieldValue::Varint(v)) => sums.flushes_requested = v,
            (stats::FLUSHES_SUCCEEDED, FieldValue::Varint(v)) => sums.flushes_succeeded = v,
            (stats::PRODUCERS_CONNECTED | stats::TOTAL_BUFFERS | stats::INVALID_PACKETS, _) => {}
            _ => *skipped += 1,
        }
    }
    Ok(sums)
}

fn add_buffer(sums: &mut TraceStats, buffer: Fields<'_>, skipped: &mut u32) -> Result<(), DecodeError> {
    for field in buffer {
        let field = field?;
        let sum = match field.number {
            buffer_stats::BUFFER_SIZE => &mut sums.size,
            buffer_stats::BYTES_WRITTEN => &mut sums.bytes_written,
            buffer_stats::CHUNKS_WRITTEN => &mut sums.chunks_written,
            buffer_stats::CHUNKS_DISCARDED => &mut sums.chunks_discarded,
            buffer_stats::TRACE_WRITER_PACKET_LOSS => &mut sums.events_lost,
            buffer_stats::BYTES_READ | buffer_stats::CHUNKS_READ => continue,
            _ => {
                *skipped += 1;
                continue;
            }
        };
        match field.value {
            FieldValue::Varint(v) => *sum = sum.saturating_add(v),
            _ => *skipped += 1,
        }
    }
    Ok(())
}

/// `ProcessTree.Process`: a process and its command line.
#[derive(Clone, Debug)]
pub struct TreeProcess<'a> {
    /// The process id.
    pub pid: Option<i32>,
    /// The parent's process id.
    pub parent: Option<i32>,
    message: Fields<'a>,
}

impl<'a> TreeProcess<'a> {
    fn decode(message: Fields<'a>) -> Result<Self, DecodeError> {
        let mut decoded = Self { pid: None, parent: None, message: message.clone() };
        for field in message {
            let field = field?;
            match (field.number, field.value) {
                (process::PID, FieldValue::Varint(v)) => decoded.pid = Some(v as i32),
                (process::PPID, FieldValue::Varint(v)) => decoded.parent = Some(v as i32),
                _ => {}
            }
        }
        Ok(decoded)
    }

    /// Returns the command line, one entry for each argument.
    #[must_use]
    pub fn command_line(&self) -> Texts<'a> {
        Texts::new(self.message.clone(), process::CMDLINE)
    }
}

/// Iterates over the processes of a `ProcessTree`.
#[derive(Clone, Debug)]
pub struct Processes<'a> {
    tree: Fields<'a>,
}

impl<'a> Processes<'a> {
    pub(super) fn new(tree: Fields<'a>) -> Self {
        Self { tree }
    }

    /// Returns the threads of the tree.
    #[must_use]
    pub fn threads(&self) -> Threads<'a> {
        Threads { tree: self.tree.clone() }
    }
}

impl<'a> Iterator for Processes<'a> {
    type Item = Result<TreeProcess<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.tree.next_message(process_tree::PROCESSES)?.and_then(TreeProcess::decode))
    }
}

/// Iterates over the threads of a `ProcessTree`. Missing fields are "" or 0.
#[derive(Clone, Debug)]
pub struct Threads<'a> {
    tree: Fields<'a>,
}

impl<'a> Threads<'a> {
    fn decode(message: Fields<'a>) -> Result<Thread<'a>, DecodeError> {
        let mut decoded = Thread::default();
        for field in message {
            let field = field?;
            match (field.number, field.value) {
                (thread::TID, FieldValue::Varint(v)) => decoded.tid = v as i32,
                (thread::NAME, value) => decoded.name = value.text().unwrap_or(decoded.name),
                (thread::TGID, FieldValue::Varint(v)) => decoded.pid = v as i32,
                _ => {}
            }
        }
        Ok(decoded)
    }
}

impl<'a> Iterator for Threads<'a> {
    type Item = Result<Thread<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.tree.next_message(process_tree::THREADS)?.and_then(Self::decode))
    }
}
