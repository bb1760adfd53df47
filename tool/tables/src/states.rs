//! The tables `sched` and `sample`: what threads did besides their events.

use std::io;

use hairline_convert::sampled::Samples;
use hairline_convert::timeline::Timeline;
use hairline_convert::{RunState, SampleKind};

use crate::owners::{OwnerColumns, Owners, owner_columns};
use crate::rows::Rows;
use crate::schema::{sample, sched};
use crate::source::Sink;

const SCHED_OWNER: OwnerColumns = owner_columns!(sched);
const SAMPLE_OWNER: OwnerColumns = owner_columns!(sample);

/// Makes the rows of `sched`, one thread after the other.
pub(crate) fn put_states(
    timeline: &Timeline,
    owners: &Owners,
    rows: &mut Rows,
    sink: &mut dyn Sink,
) -> io::Result<()> {
    let mut result = Ok(());
    for tid in timeline.threads() {
        let (owner, mut is_first) = (owners.of_tid(tid), true);
        timeline.stretches(tid, i64::MIN, i64::MAX, &mut |stretch| {
            let Some((number, state)) = stretch.state.and_then(state) else { return };
            if result.is_err() {
                return;
            }
            let is_running = stretch.state == Some(RunState::Running);
            // A thread that ran when recording began: nobody saw it come to its processor.
            if std::mem::take(&mut is_first) && is_running && stretch.cpu.is_none() {
                return;
            }
            let duration = stretch.end.saturating_sub(stretch.start);
            rows.int(sched::start, stretch.start);
            rows.opt_int(sched::duration, stretch.is_whole.then_some(duration));
            rows.keyed(sched::state, number, || state);
            rows.opt_int(sched::cpu, stretch.cpu.filter(|_| is_running).map(i64::from));
            rows.int(sched::tid, tid.cast_signed());
            owners.put_known(owner, timeline.name(tid), rows, &SCHED_OWNER);
            rows.opt_int(sched::waker, stretch.waker.map(u64::cast_signed));
            result = rows.end_row(sink);
        });
    }
    result
}

fn state(state: RunState) -> Option<(u32, &'static str)> {
    Some(match state {
        RunState::Running => (0, "running"),
        RunState::Runnable => (1, "runnable"),
        RunState::Sleeping => (2, "sleeping"),
        RunState::Uninterruptible => (3, "uninterruptible"),
        RunState::Stopped => (4, "stopped"),
        _ => return None,
    })
}

/// Makes the rows of `sample`, one thread after the other.
pub(crate) fn put_samples(
    samples: &Samples,
    owners: &Owners,
    rows: &mut Rows,
    sink: &mut dyn Sink,
) -> io::Result<()> {
    let mut result = Ok(());
    let kinds = [
        (SampleKind::OnCpu, (0, "on_cpu")),
        (SampleKind::OffCpu, (1, "off_cpu")),
        (SampleKind::Event, (2, "event")),
        (SampleKind::Wall, (3, "wall")),
    ];
    for (kind, (number, name)) in kinds {
        samples.each(kind, &mut |(pid, tid), time, stack| {
            if result.is_err() {
                return;
            }
            let owner = owners.of_thread(pid, tid);
            rows.int(sample::time, time);
            rows.keyed(sample::kind, number, || name);
            rows.keyed(sample::function, stack.0, || samples.leaf(stack));
            rows.keyed(sample::stack, stack.0, || samples.names(stack).join(";"));
            rows.int(sample::tid, tid.cast_signed());
            owners.put_known(owner, None, rows, &SAMPLE_OWNER);
            result = rows.end_row(sink);
        });
    }
    result
}
