//! Records of what the scheduler did: to write and to read.
//!
//! `A` is the type of a record's arguments: a slice ([`ArgumentSlice`]) to be written, an iterator
//! ([`Arguments`]) when read.

use super::argument::ArgumentSlice;
use super::cursor::{Arguments, Cursor};
use super::kinds::{SchedulingKind, ThreadState};
use super::layout::{
    MAX_RECORD_WORDS, RecordType, context_switch as switch, legacy_context_switch as legacy, scheduling,
    thread_wakeup as wakeup,
};
use super::record::Record;
use super::refs::ThreadRef;
use super::write::{Put, fitting, header, put_arguments, put_thread};
use crate::DecodeError;

/// "Context Switch Record".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContextSwitch<A> {
    /// When, in ticks.
    pub timestamp: u64,
    /// On which processor.
    pub cpu: u16,
    /// The koid of the thread that ran.
    pub outgoing: u64,
    /// What became of it.
    pub outgoing_state: ThreadState,
    /// The koid of the thread that runs now.
    pub incoming: u64,
    /// By convention "incoming_weight" and "outgoing_weight", signed integers of 32 bits.
    pub args: A,
}

/// "Thread Wakeup Record".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadWakeup<A> {
    /// When, in ticks.
    pub timestamp: u64,
    /// On which processor.
    pub cpu: u16,
    /// The koid of the thread that can run now.
    pub thread: u64,
    /// By convention "weight", a signed integer of 32 bits.
    pub args: A,
}

/// "Legacy Context Switch Record".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegacyContextSwitch {
    /// When, in ticks.
    pub timestamp: u64,
    /// On which processor.
    pub cpu: u8,
    /// The thread that ran.
    pub outgoing: ThreadRef,
    /// What became of it: anything but running.
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

/// "Context Switch Record": a processor goes from one thread to another. Threads are named by koid alone.
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
pub fn context_switch(out: &mut impl Put, record: &ContextSwitch<ArgumentSlice<'_>>) {
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

/// "Thread Wakeup Record": a thread may run again. It is named by koid alone.
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
pub fn thread_wakeup(out: &mut impl Put, record: &ThreadWakeup<ArgumentSlice<'_>>) {
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

/// "Legacy Context Switch Record": superseded by [`context_switch`], but threads are named by reference, and
/// priorities have fields.
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
pub fn legacy_context_switch(out: &mut impl Put, record: &LegacyContextSwitch) {
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
    put_thread(out, record.outgoing);
    put_thread(out, record.incoming);
}

/// None for a kind of record or a thread state that the document does not have.
pub(super) fn parse<'a>(header: u64, cursor: &mut Cursor<'a>) -> Result<Option<Record<'a>>, DecodeError> {
    Ok(match SchedulingKind::from_number(scheduling::KIND.get(header)) {
        Some(SchedulingKind::ContextSwitch) => parse_switch(header, cursor)?.map(Record::ContextSwitch),
        Some(SchedulingKind::ThreadWakeup) => Some(Record::ThreadWakeup(parse_wakeup(header, cursor)?)),
        Some(SchedulingKind::LegacyContextSwitch) => {
            parse_legacy(header, cursor)?.map(Record::LegacyContextSwitch)
        }
        None => None,
    })
}

// In the order of the words.

fn parse_switch<'a>(
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
        args: cursor.arguments(switch::ARGS.get(header))?,
    }))
}

fn parse_wakeup<'a>(
    header: u64,
    cursor: &mut Cursor<'a>,
) -> Result<ThreadWakeup<Arguments<'a>>, DecodeError> {
    Ok(ThreadWakeup {
        timestamp: cursor.word("a timestamp")?,
        cpu: wakeup::CPU.get(header) as u16,
        thread: cursor.word("a waking thread")?,
        args: cursor.arguments(wakeup::ARGS.get(header))?,
    })
}

fn parse_legacy(header: u64, cursor: &mut Cursor<'_>) -> Result<Option<LegacyContextSwitch>, DecodeError> {
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
