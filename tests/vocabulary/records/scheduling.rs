//! FXT: what the scheduler did.

use hairline_formats::Value;
use hairline_formats::fxt::{
    ArgumentSlice, ContextSwitch, KERNEL_OBJECT_THREAD, LegacyContextSwitch, ThreadRef, ThreadState,
    ThreadWakeup, context_switch, kernel_object, legacy_context_switch, thread_record, thread_wakeup,
};

use super::{fxt_trace, inline, rows};

const SCHED: &str = "select s.ts, s.dur, s.cpu, t.tid, s.priority, s.end_state from sched s join thread t using (utid) order by s.ts";

const STATES: &str = "select s.ts, s.dur, s.cpu, t.tid, s.state from thread_state s join thread t using (utid) order by s.ts, t.tid";

const CPU: u16 = 3;

fn switch<'a>(
    timestamp: u64,
    (outgoing, outgoing_state): (u64, ThreadState),
    incoming: u64,
    args: ArgumentSlice<'a>,
) -> ContextSwitch<ArgumentSlice<'a>> {
    ContextSwitch { timestamp, cpu: CPU, outgoing, outgoing_state, incoming, args }
}

// ts        1000     1500      1700      2500     3500
// thread 9  wakes    runs ..................|
// thread 10 .........|blocked  wakes        runs ....|
#[test]
fn switches_and_wakeups_are_rows_of_sched_and_thread_state() {
    let weights = [(inline("incoming_weight"), Value::I64(5)), (inline("outgoing_weight"), Value::I64(6))];
    let trace = fxt_trace(|out| {
        for thread in [9, 10] {
            kernel_object(
                out,
                KERNEL_OBJECT_THREAD,
                thread,
                inline("t"),
                &[(inline("process"), Value::Koid(7))],
            );
        }
        let weight = [(inline("weight"), Value::I64(5))];
        thread_wakeup(out, &ThreadWakeup { timestamp: 1000, cpu: CPU, thread: 9, args: &weight });
        context_switch(out, &switch(1500, (10, ThreadState::Blocked), 9, &weights));
        thread_wakeup(out, &ThreadWakeup { timestamp: 1700, cpu: 2, thread: 10, args: &[] });
        context_switch(out, &switch(2500, (9, ThreadState::Dead), 10, &[]));
    });
    let [sched, states, args, owners] = rows(
        &trace,
        [
            SCHED,
            STATES,
            "select count(*) from args",
            "select distinct p.pid from sched join thread t using (utid) join process p using (upid)",
        ],
    );
    assert_eq!(sched, "1500\t1000\t3\t9\t5\tX\n2500\t-1\t3\t10\t0\tNULL", "the weight is the priority");
    let expected = [
        "1000\t500\t3\t9\tW",
        "1500\t1000\t3\t9\tRunning",
        "1500\t200\t3\t10\tS",
        "1700\t800\t2\t10\tW",
        "2500\t-1\t3\t9\tX",
        "2500\t-1\t3\t10\tRunning",
    ];
    assert_eq!(states, expected.join("\n"));
    assert_eq!(args, "0", "the weights are nowhere else");
    assert_eq!(owners, "7");
}

#[test]
fn each_state_of_a_thread_has_its_letter() {
    let letters = [
        (ThreadState::New, "R"),
        (ThreadState::Running, "R"),
        (ThreadState::Suspended, "T"),
        (ThreadState::Blocked, "S"),
        (ThreadState::Dying, "Z"),
        (ThreadState::Dead, "X"),
    ];
    for (state, letter) in letters {
        let trace = fxt_trace(|out| {
            context_switch(out, &switch(1000, (10, ThreadState::Blocked), 9, &[]));
            context_switch(out, &switch(2000, (9, state), 10, &[]));
        });
        let [sched, states] = rows(&trace, [SCHED, STATES]);
        assert_eq!(sched, format!("1000\t1000\t3\t9\t0\t{letter}\n2000\t-1\t3\t10\t0\tNULL"), "{state:?}");
        assert!(states.contains(&format!("2000\t-1\t3\t9\t{letter}")), "{state:?}: {states}");
    }
}

#[test]
fn legacy_switches_are_rows_too_but_a_thread_of_priority_0_is_idle() {
    let [a, b] = [9, 10].map(|thread| ThreadRef::Inline { process: 7, thread });
    let indexed = ThreadRef::Index(4);
    let switch =
        |timestamp, (outgoing, outgoing_priority), (incoming, incoming_priority)| LegacyContextSwitch {
            timestamp,
            cpu: CPU as u8,
            outgoing,
            outgoing_state: ThreadState::Blocked,
            outgoing_priority,
            incoming,
            incoming_priority,
        };
    let trace = fxt_trace(|out| {
        thread_record(out, 4, 7, 11);
        legacy_context_switch(out, &switch(1000, (a, 4), (b, 5)));
        legacy_context_switch(out, &switch(2000, (b, 5), (indexed, 6)));
        legacy_context_switch(out, &switch(3000, (indexed, 6), (a, 0)));
        legacy_context_switch(out, &switch(4000, (a, 0), (b, 7)));
    });
    let [sched] = rows(&trace, [SCHED]);
    assert_eq!(sched, "1000\t1000\t3\t10\t5\tS\n2000\t1000\t3\t11\t6\tS\n4000\t-1\t3\t10\t7\tNULL");
}
