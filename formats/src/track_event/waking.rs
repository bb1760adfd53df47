//! Writes wake-ups of threads: the one event of ftrace that has no other packet.

use crate::proto::{put_message, put_uint};
use crate::track_event::fields::{
    ftrace_event as event, ftrace_event_bundle as bundle, ftrace_flags, sched_waking as fields, trace_packet,
};
use crate::track_event::ids::SequenceId;
use crate::track_event::sequence::packet;

/// `SchedWakingFtraceEvent`: a thread lets another one go on, which sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waking {
    /// The number of the processor.
    pub cpu: u32,
    /// The id of the thread that runs there.
    pub waker: u32,
    /// Whether an interrupt of that thread has woken the other one.
    pub is_interrupt: bool,
    /// The id of the thread that is woken.
    pub tid: u32,
}

/// Writes a wake-up, at a time in ns of `CLOCK_BOOTTIME`: a bundle of one ftrace event. Importers let the
/// thread be
/// runnable from then on, and name its waker. They need no
/// [`TaskState::Runnable`](crate::track_event::TaskState)
/// besides, which would stand without the waker.
///
/// ```text
/// 0a LEN | 50 <sequence> | 0a LEN <bundle> | 40 <timestamp>
///
/// bundle: 08 <cpu> | 12 LEN <event>
/// event:  08 <timestamp> | 10 <waker> | 28 <flags> | a2 01 LEN <waking>
/// waking: 10 <thread> | 28 <cpu>
/// ```
///
/// ```
/// use hairline_formats::track_event::{SequenceId, Waking, waking};
///
/// let mut out = Vec::new();
/// waking(&mut out, SequenceId(1), 5, &Waking { cpu: 2, waker: 72, is_interrupt: false, tid: 71 });
/// assert_eq!(out[..4], [0x0a, out.len() as u8 - 2, 0x50, 1]);
/// assert_eq!(out[4..], [0x0a, 15, 8, 2, 0x12, 11, 8, 5, 0x10, 72, 0xa2, 1, 4, 0x10, 71, 0x28, 2, 0x40, 5]);
/// ```
pub fn waking(out: &mut Vec<u8>, sequence: SequenceId, timestamp: u64, of: &Waking) {
    packet(out, sequence, |p| {
        put_message(p, trace_packet::FTRACE_EVENTS, |b| {
            put_uint(b, bundle::CPU, of.cpu.into());
            put_message(b, bundle::EVENT, |e| {
                put_uint(e, event::TIMESTAMP, timestamp);
                put_uint(e, event::PID, of.waker.into());
                if of.is_interrupt {
                    put_uint(e, event::COMMON_FLAGS, ftrace_flags::HARD_INTERRUPT.into());
                }
                put_message(e, event::SCHED_WAKING, |w| {
                    put_uint(w, fields::PID, of.tid.into());
                    put_uint(w, fields::TARGET_CPU, of.cpu.into());
                });
            });
        });
        put_uint(p, trace_packet::TIMESTAMP, timestamp);
    });
}
