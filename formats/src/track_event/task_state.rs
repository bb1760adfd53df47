//! Writes the states of threads: the scheduler's view of them, without ftrace.

use crate::proto::{put_message, put_nonempty, put_sint64, put_uint};
use crate::track_event::fields::{TaskState, task_state as fields, trace_packet};
use crate::track_event::ids::SequenceId;
use crate::track_event::sequence::packet;

/// `GenericKernelTaskStateEvent`: a thread gets into a state, and has it until its next one.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{
///     PacketData, PacketReader, SequenceId, TaskState, TaskStateEvent, task_state,
/// };
///
/// let runs = TaskStateEvent { cpu: Some(2), ..TaskStateEvent::new(71, TaskState::Running) };
/// let mut trace = Vec::new();
/// task_state(&mut trace, SequenceId(1), 1_000, &runs);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::TaskState(read)) = packet.data else { panic!() };
/// assert_eq!((packet.timestamp, read), (Some(1_000), runs));
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskStateEvent<'a> {
    /// The number of the processor. Importers need that of a running thread, and the same one with its
    /// next state: that ends the row of the processor.
    pub cpu: Option<i32>,
    /// The name of the thread: the kernel's, at most 15 bytes. "" is not written. The name in a thread's
    /// descriptor is shown before it.
    pub comm: &'a str,
    /// The thread id, not 0.
    pub tid: i64,
    /// The state.
    pub state: TaskState,
    /// The priority.
    pub prio: Option<i32>,
}

impl TaskStateEvent<'_> {
    /// Creates an event with thread and state only.
    #[must_use]
    pub const fn new(tid: i64, state: TaskState) -> Self {
        Self { cpu: None, comm: "", tid, state, prio: None }
    }
}

/// Writes the state of a thread, at a time in ns of `CLOCK_BOOTTIME` (or of the sequence's default clock, if
/// it has one).
///
/// ```text
/// 0a LEN | 50 <sequence> | aa 07 LEN <state> | 40 <timestamp>
///
/// state: 08 <cpu> | 12 LEN <name> | 18 <tid> | 20 <state> | 28 <priority>
/// ```
///
/// The order of these packets in a trace is free, but importers refuse two [`TaskState::Running`] of a thread
/// without another state between them. Write the descriptor of a thread's track before the thread's
/// [`TaskState::Dead`]: importers take a later descriptor for another thread.
///
/// ```
/// use hairline_formats::track_event::{SequenceId, TaskState, TaskStateEvent, task_state};
///
/// let runs = TaskStateEvent { cpu: Some(2), ..TaskStateEvent::new(71, TaskState::Running) };
/// let mut out = Vec::new();
/// task_state(&mut out, SequenceId(1), 5, &runs);
/// assert_eq!(out, [0x0a, 13, 0x50, 1, 0xaa, 7, 6, 8, 2, 0x18, 71, 0x20, 3, 0x40, 5]);
/// ```
pub fn task_state(out: &mut Vec<u8>, sequence: SequenceId, timestamp: u64, event: &TaskStateEvent<'_>) {
    packet(out, sequence, |p| {
        put_message(p, trace_packet::GENERIC_KERNEL_TASK_STATE_EVENT, |e| {
            if let Some(cpu) = event.cpu {
                put_sint64(e, fields::CPU, i64::from(cpu));
            }
            put_nonempty(e, fields::COMM, event.comm);
            put_sint64(e, fields::TID, event.tid);
            put_uint(e, fields::STATE, event.state as u64);
            if let Some(prio) = event.prio {
                put_sint64(e, fields::PRIO, i64::from(prio));
            }
        });
        put_uint(p, trace_packet::TIMESTAMP, timestamp);
    });
}
