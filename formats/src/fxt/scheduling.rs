//! Scheduling records, written and read.
//!
//! `A` is the type of a record's arguments: a slice ([`ArgumentSlice`]) to write, an iterator ([`Arguments`])
//! when read.

use crate::DecodeError;
use crate::fxt::argument::{ArgumentSlice, Arguments, fitting, put_arguments};
use crate::fxt::cursor::Cursor;
use crate::fxt::header::header;
use crate::fxt::layout::{
    MAX_RECORD_WORDS, RecordType, SchedulingKind, ThreadState, context_switch as switch,
    legacy_context_switch as legacy, scheduling, thread_wakeup as wakeup,
};
use crate::fxt::put::PutWords;
use crate::fxt::refs::ThreadRef;

/// "Context Switch Record".
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::fxt::{self, ContextSwitch, Record, RecordReader, ThreadState};
///
/// let mut trace = Vec::new();
/// let outgoing_state = ThreadState::Blocked;
/// let (outgoing, incoming, args) = (71, 72, &[][..]);
/// let switch = ContextSwitch { timestamp: 5, cpu: 2, outgoing, outgoing_state, incoming, args };
/// fxt::context_switch(&mut trace, &switch);
/// let mut reader = RecordReader::new(&trace[..]);
/// let Some((_, Record::ContextSwitch(read))) = reader.next()? else { panic!() };
/// assert_eq!((read.cpu, read.outgoing, read.outgoing_state), (2, 71, ThreadState::Blocked));
/// assert_eq!(read.incoming, 72);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextSwitch<A> {
    /// The time, in ticks.
    pub timestamp: u64,
    /// The number of the processor.
    pub cpu: u16,
    /// The koid of the thread that ran.
    pub outgoing: u64,
    /// Its state after the switch.
    pub outgoing_state: ThreadState,
    /// The koid of the thread that runs now.
    pub incoming: u64,
    /// The arguments: by convention "incoming_weight" and "outgoing_weight", signed 32-bit integers.
    pub args: A,
}

/// "Thread Wakeup Record".
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::Value;
/// use hairline_formats::fxt::{self, Record, RecordReader, StringRef, ThreadWakeup};
///
/// let mut trace = Vec::new();
/// let args = &[(StringRef::Inline("weight"), Value::I64(100))][..];
/// fxt::thread_wakeup(&mut trace, &ThreadWakeup { timestamp: 5, cpu: 2, thread: 71, args });
/// let mut reader = RecordReader::new(&trace[..]);
/// let Some((_, Record::ThreadWakeup(read))) = reader.next()? else { panic!() };
/// assert_eq!((read.cpu, read.thread, read.args.count()), (2, 71, 1));
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadWakeup<A> {
    /// The time, in ticks.
    pub timestamp: u64,
    /// The number of the processor.
    pub cpu: u16,
    /// The koid of the thread that can run now.
    pub thread: u64,
    /// The arguments: by convention "weight", a signed 32-bit integer.
    pub args: A,
}

/// "Legacy Context Switch Record".
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::fxt::{self, LegacyContextSwitch, Record, RecordReader, ThreadRef, ThreadState};
///
/// let switch = LegacyContextSwitch {
///     timestamp: 5,
///     cpu: 2,
///     outgoing: ThreadRef::Index(1),
///     outgoing_state: ThreadState::Blocked,
///     outgoing_priority: 16,
///     incoming: ThreadRef::Index(2),
///     incoming_priority: 24,
/// };
/// let mut trace = Vec::new();
/// fxt::legacy_context_switch(&mut trace, &switch);
/// let mut reader = RecordReader::new(&trace[..]);
/// let Some((_, Record::LegacyContextSwitch(read))) = reader.next()? else { panic!() };
/// assert_eq!(read, switch);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegacyContextSwitch {
    /// The time, in ticks.
    pub timestamp: u64,
    /// The number of the processor.
    pub cpu: u8,
    /// The thread that ran.
    pub outgoing: ThreadRef,
    /// Its state after the switch, which is not `Running`.
    pub outgoing_state: ThreadState,
    /// Its priority.
    pub outgoing_priority: u8,
    /// The thread that runs now.
    pub incoming: ThreadRef,
    /// Its priority.
    pub incoming_priority: u8,
}

const fn scheduling_header(kind: SchedulingKind, words: usize) -> u64 {
    header(RecordType::Scheduling, words) | scheduling::KIND.set(kind as u64)
}

/// Writes a "Context Switch Record": a processor switches from one thread to another. Both are koids.
///
/// ```text
///  63  60 59   40 39   36 35  20 19  16 15          4 3      0
/// +------+-------+-------+------+------+-------------+--------+
/// |  1   | 0     | state | cpu  | args | size, words |   8    |
/// +------+-------+-------+------+------+-------------+--------+
/// | timestamp                                                 |
/// +-----------------------------------------------------------+
/// | outgoing thread's koid                                    |
/// +-----------------------------------------------------------+
/// | incoming thread's koid                                    |
/// +-----------------------------------------------------------+
/// | arguments                                                 |
/// +-----------------------------------------------------------+
/// ```
pub fn context_switch(out: &mut impl PutWords, record: &ContextSwitch<ArgumentSlice<'_>>) {
    const FIXED: usize = 4;
    let (args, words) = fitting(record.args, MAX_RECORD_WORDS - FIXED);
    out.word(
        scheduling_header(SchedulingKind::ContextSwitch, FIXED + words)
            | switch::ARGS.set(args.len() as u64)
            | switch::CPU.set(u64::from(record.cpu))
            | switch::OUTGOING_STATE.set(record.outgoing_state as u64),
    );
    out.word(record.timestamp);
    out.word(record.outgoing);
    out.word(record.incoming);
    put_arguments(out, args);
}

/// Writes a "Thread Wakeup Record": a thread may run again. It is a koid.
///
/// ```text
///  63  60 59           36 35  20 19  16 15          4 3      0
/// +------+---------------+------+------+-------------+--------+
/// |  2   | 0             | cpu  | args | size, words |   8    |
/// +------+---------------+------+------+-------------+--------+
/// | timestamp                                                 |
/// +-----------------------------------------------------------+
/// | waking thread's koid                                      |
/// +-----------------------------------------------------------+
/// | arguments                                                 |
/// +-----------------------------------------------------------+
/// ```
pub fn thread_wakeup(out: &mut impl PutWords, record: &ThreadWakeup<ArgumentSlice<'_>>) {
    const FIXED: usize = 3;
    let (args, words) = fitting(record.args, MAX_RECORD_WORDS - FIXED);
    out.word(
        scheduling_header(SchedulingKind::ThreadWakeup, FIXED + words)
            | wakeup::ARGS.set(args.len() as u64)
            | wakeup::CPU.set(u64::from(record.cpu)),
    );
    out.word(record.timestamp);
    out.word(record.thread);
    put_arguments(out, args);
}

/// Writes a "Legacy Context Switch Record", which [`context_switch`] supersedes.
///
/// Unlike its successor it has thread references and fields for priorities.
///
/// ```text
///  63  60 59      52 51      44 43      36 35      28 27   24 23   16 15          4 3      0
/// +------+----------+----------+----------+----------+-------+-------+-------------+--------+
/// |  0   | incoming | outgoing | incoming | outgoing | state |  cpu  | size, words |   8    |
/// |      | priority | priority | (ref)    | (ref)    |       |       |             |        |
/// +------+----------+----------+----------+----------+-------+-------+-------------+--------+
/// | timestamp                                                                               |
/// +-----------------------------------------------------------------------------------------+
/// | outgoing process's and thread's koids, if they are inline                               |
/// +-----------------------------------------------------------------------------------------+
/// | incoming process's and thread's koids, if they are inline                               |
/// +-----------------------------------------------------------------------------------------+
/// ```
pub fn legacy_context_switch(out: &mut impl PutWords, record: &LegacyContextSwitch) {
    let words = 2 + record.outgoing.words() + record.incoming.words();
    out.word(
        scheduling_header(SchedulingKind::LegacyContextSwitch, words)
            | legacy::CPU.set(u64::from(record.cpu))
            | legacy::OUTGOING_STATE.set(record.outgoing_state as u64)
            | legacy::OUTGOING.set(record.outgoing.bits())
            | legacy::INCOMING.set(record.incoming.bits())
            | legacy::OUTGOING_PRIORITY.set(u64::from(record.outgoing_priority))
            | legacy::INCOMING_PRIORITY.set(u64::from(record.incoming_priority)),
    );
    out.word(record.timestamp);
    record.outgoing.put(out);
    record.incoming.put(out);
}

// Each field that is read moves the cursor, so the fields follow the order of the words.

/// Returns `None` for a thread state that the document does not define.
pub(super) fn parse_switch<'a>(
    header: u64,
    cursor: &mut Cursor<'a>,
) -> Result<Option<ContextSwitch<Arguments<'a>>>, DecodeError> {
    let Some(outgoing_state) = ThreadState::from_number(switch::OUTGOING_STATE.get(header)) else {
        return Ok(None);
    };
    Ok(Some(ContextSwitch {
        timestamp: cursor.word("a timestamp")?,
        cpu: switch::CPU.get(header) as u16,
        outgoing: cursor.word("an outgoing thread")?,
        outgoing_state,
        incoming: cursor.word("an incoming thread")?,
        args: Arguments::take(cursor, switch::ARGS.get(header))?,
    }))
}

pub(super) fn parse_wakeup<'a>(
    header: u64,
    cursor: &mut Cursor<'a>,
) -> Result<ThreadWakeup<Arguments<'a>>, DecodeError> {
    Ok(ThreadWakeup {
        timestamp: cursor.word("a timestamp")?,
        cpu: wakeup::CPU.get(header) as u16,
        thread: cursor.word("a waking thread")?,
        args: Arguments::take(cursor, wakeup::ARGS.get(header))?,
    })
}

/// Returns `None` for a thread state that the document does not define.
pub(super) fn parse_legacy(
    header: u64,
    cursor: &mut Cursor<'_>,
) -> Result<Option<LegacyContextSwitch>, DecodeError> {
    let Some(outgoing_state) = ThreadState::from_number(legacy::OUTGOING_STATE.get(header)) else {
        return Ok(None);
    };
    Ok(Some(LegacyContextSwitch {
        timestamp: cursor.word("a timestamp")?,
        cpu: legacy::CPU.get(header) as u8,
        outgoing: cursor.thread(legacy::OUTGOING.get(header))?,
        outgoing_state,
        outgoing_priority: legacy::OUTGOING_PRIORITY.get(header) as u8,
        incoming: cursor.thread(legacy::INCOMING.get(header))?,
        incoming_priority: legacy::INCOMING_PRIORITY.get(header) as u8,
    }))
}
