//! One side of a context switch: how a thread that comes, goes or is woken is written when the other thread
//! is unknown.

use crate::fxt::{self, PutWords, StringRef};
use crate::track_event::{SequenceId, TaskState, TaskStateEvent, Waking, task_state, waking};
use crate::value::Value;

/// FXT's weight of the idle thread of a processor: importers show no row for it.
const IDLE: i64 = i32::MIN as i64;

/// FXT's koid of a thread that is none.
const NO_THREAD: u64 = 0;

/// A change of a thread's state, without the thread that it takes turns with.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::fxt::{Record, RecordReader, ThreadState};
/// use hairline_formats::track_event::{PacketData, PacketReader, SequenceId, TaskState};
/// use hairline_formats::{SideState, SwitchSide};
///
/// let waits = SwitchSide { time: 1_000, tid: 71, cpu: 2, state: SideState::Asleep };
/// let mut trace = Vec::new();
/// waits.put_record(&mut trace);
/// let mut reader = RecordReader::new(&trace[..]);
/// let Some((_, Record::ContextSwitch(read))) = reader.next()? else { panic!() };
/// assert_eq!((read.outgoing, read.outgoing_state, read.incoming), (71, ThreadState::Blocked, 0));
///
/// let mut trace = Vec::new(); waits.put_packet(&mut trace, SequenceId(1)); let mut reader =
/// PacketReader::new(&trace[..]); let Some(PacketData::TaskState(read)) = reader.next()?.and_then(|(_,
/// packet)| packet.data) else { panic!() }; assert_eq!((read.tid, read.state, read.cpu), (71,
/// TaskState::InterruptibleSleep, Some(2)));
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchSide {
    /// Ticks in FXT, ns of the sequence's default clock in TrackEvent.
    pub time: u64,
    /// The thread.
    pub tid: u32,
    /// The number of the processor: also with the thread's end of running.
    pub cpu: u32,
    /// The thread's state from then on.
    pub state: SideState,
}

/// What a thread does after a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideState {
    /// It runs on the processor.
    Running,
    /// It waits for a processor.
    Runnable,
    /// As `Runnable`: another thread has woken it.
    Woken {
        /// The id of the thread that ran on the processor.
        waker: u32,
        /// Whether an interrupt of that thread has woken it.
        is_interrupt: bool,
    },
    /// It waits for something else.
    Asleep,
    /// A signal or a debugger has stopped it.
    Stopped,
    /// It has ended.
    Dead,
}

impl SwitchSide {
    /// Writes the change as an FXT record. The other side is the idle thread. FXT's record of a wake-up does
    /// not name the waker.
    pub fn put_record(&self, out: &mut impl PutWords) {
        let (timestamp, cpu) = (self.time, u16::try_from(self.cpu).unwrap_or(u16::MAX));
        let thread = u64::from(self.tid);
        let outgoing_state = match self.state {
            SideState::Woken { .. } => {
                return fxt::thread_wakeup(out, &fxt::ThreadWakeup { timestamp, cpu, thread, args: &[] });
            }
            SideState::Running | SideState::Runnable => fxt::ThreadState::Running,
            SideState::Asleep => fxt::ThreadState::Blocked,
            SideState::Stopped => fxt::ThreadState::Suspended,
            SideState::Dead => fxt::ThreadState::Dead,
        };
        let (outgoing, incoming, idle) = match self.state {
            SideState::Running => (NO_THREAD, thread, "outgoing_weight"),
            _ => (thread, NO_THREAD, "incoming_weight"),
        };
        let args = &[(StringRef::Inline(idle), Value::I64(IDLE))][..];
        fxt::context_switch(
            out,
            &fxt::ContextSwitch { timestamp, cpu, outgoing, outgoing_state, incoming, args },
        );
    }

    /// Writes the change as a packet.
    pub fn put_packet(&self, out: &mut Vec<u8>, sequence: SequenceId) {
        let state = match self.state {
            SideState::Woken { waker, is_interrupt } => {
                let of = Waking { cpu: self.cpu, waker, is_interrupt, tid: self.tid };
                return waking(out, sequence, self.time, &of);
            }
            SideState::Running => TaskState::Running,
            SideState::Runnable => TaskState::Runnable,
            SideState::Asleep => TaskState::InterruptibleSleep,
            SideState::Stopped => TaskState::Stopped,
            // `Dead` would make a second thread of each track that comes later, and a snapshot's head does.
            SideState::Dead => TaskState::Destroyed,
        };
        let cpu = i32::try_from(self.cpu).ok();
        let event = TaskStateEvent { cpu, ..TaskStateEvent::new(i64::from(self.tid), state) };
        task_state(out, sequence, self.time, &event);
    }
}
