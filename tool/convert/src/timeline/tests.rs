use super::*;

fn timeline(changes: &[StateChange]) -> Timeline {
    let mut timeline = Timeline::default();
    timeline.add(&Scheduling { changes, copy: None, others: 0 });
    timeline.finish();
    timeline
}

fn at(time: i64, state: RunState) -> StateChange {
    StateChange { cpu: Some(0), ..StateChange::new(time, 8, state) }
}

/// A pseudo-random sequence that is the same each time.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

#[test]
fn a_thread_that_starts_did_not_run_before() {
    let starts = |time, tid| StateChange { tid, ..at(time, RunState::Runnable) };
    let runs = |time, tid| StateChange { tid, ..at(time, RunState::Running) };
    // Thread 7 runs at the begin, which thread 6 on another processor shows, and starts thread 8. Thread
    // 9 starts when thread 8 has the processor.
    let other = StateChange { cpu: Some(1), ..runs(0, 6) };
    let changes = [other, starts(100, 8), starts(200, 7), runs(200, 8), starts(300, 9), runs(400, 9)];
    let timeline = timeline(&changes);
    let running = |tid| timeline.split(tid, 0, 200).running;
    assert_eq!([6, 7, 8, 9].map(running), [200, 200, 0, 0]);
    assert_eq!(
        timeline.split(8, 0, 300),
        Split { running: 100, waiting: 100, unknown: 100, ..Split::default() }
    );
    assert_eq!(timeline.split(9, 0, 400), Split { waiting: 100, unknown: 300, ..Split::default() });
}

#[test]
fn sums_are_those_of_the_stretches() {
    let mut seed = 7;
    let states = [RunState::Running, RunState::Runnable, RunState::Sleeping, RunState::Uninterruptible];
    let mut changes: Vec<_> = (0..500)
        .map(|_| at((random(&mut seed) % 10_000) as i64, states[random(&mut seed) as usize % 4]))
        .collect();
    changes.rotate_left(100);
    changes.push(StateChange::new(-60, 9, RunState::Running));
    let timeline = timeline(&changes);
    for _ in 0..300 {
        let start = (random(&mut seed) % 10_500) as i64 - 200;
        let end = start + (random(&mut seed) % 3_000) as i64;
        let mut naive = Split::default();
        timeline.stretches(8, start, end, &mut |stretch| {
            naive.add(stretch.state, stretch.end - stretch.start);
        });
        let split = timeline.split(8, start, end);
        assert_eq!(split, naive, "{start} to {end}");
        let sum = split.running + split.waiting + split.asleep + split.unknown;
        assert_eq!(sum, end - start, "nothing is missing and nothing twice");
    }
}

#[test]
fn a_wakeup_counts_only_in_a_sleep() {
    let wakeup = |time| StateChange { is_wakeup: true, ..at(time, RunState::Runnable) };
    let all = [at(0, RunState::Running), wakeup(5), at(10, RunState::Sleeping), wakeup(30), wakeup(35)];
    let split = timeline(&all).split(8, 0, 40);
    assert_eq!(split, Split { running: 10, asleep: 20, waiting: 10, ..Split::default() });
}

#[test]
fn the_thread_on_the_processor_meanwhile_is_known() {
    let other = |time, state| StateChange { cpu: Some(0), ..StateChange::new(time, 9, state) };
    let all = [
        at(0, RunState::Running),
        at(10, RunState::Runnable),
        other(10, RunState::Running),
        other(30, RunState::Sleeping),
        at(30, RunState::Running),
    ];
    let (timeline, mut found) = (timeline(&all), Vec::new());
    timeline.stretches(8, 5, 40, &mut |stretch| {
        if stretch.state == Some(RunState::Runnable) {
            timeline.ran_on(stretch.cpu.unwrap(), stretch.start, stretch.end, &mut |tid, from, to| {
                found.push((tid, from, to));
            });
        }
    });
    assert_eq!(found, [(9, 10, 30)]);
}

#[test]
fn what_is_forgotten_does_not_change_later_answers() {
    let states = [RunState::Running, RunState::Sleeping];
    let changes: Vec<_> = (0..200).map(|n| at(n * 10, states[n as usize % 2])).collect();
    let mut all = timeline(&changes);
    let before = all.split(8, 1_005, 1_995);
    all.forget_before(1_000);
    all.finish();
    assert_eq!(all.split(8, 1_005, 1_995), before);
    assert_eq!((all.split(8, 0, 1_000).unknown, all.changes), (1_000, 100));
}

#[test]
fn threads_beyond_the_limit_take_no_memory() {
    let sleeps = |tid| StateChange { name: Some("a".into()), ..StateChange::new(5, tid, RunState::Sleeping) };
    let mut all = timeline(&[at(1, RunState::Running)]);
    all.changes = MOST_CHANGES;
    let more: Vec<_> = (8..1008).map(sleeps).collect();
    all.add(&Scheduling { changes: &more, copy: None, others: 0 });
    all.finish();
    assert_eq!((all.threads.len(), all.names.len(), all.left_out()), (1, 0, 1000));
    assert_eq!(all.split(8, 1, 9), Split { running: 0, unknown: 8, ..Split::default() });
    assert_eq!(all.split(9, 0, 9).unknown, 9);
}

#[test]
fn a_thread_that_leaves_its_processor_first_ran_since_the_first_change_of_all() {
    let other = StateChange::new(60, 9, RunState::Running);
    let timeline = timeline(&[at(100, RunState::Sleeping), at(200, RunState::Running), other]);
    let split = timeline.split(8, 50, 250);
    assert_eq!(split, Split { running: 90, asleep: 100, unknown: 10, ..Split::default() });
    let mut all = Vec::new();
    timeline.stretches(8, 50, 150, &mut |stretch| all.push((stretch.start, stretch.end, stretch.state)));
    let (running, asleep) = (Some(RunState::Running), Some(RunState::Sleeping));
    assert_eq!(all, [(50, 60, None), (60, 100, running), (100, 150, asleep)]);
    assert_eq!([55, 60, 99, 100].map(|time| timeline.state(8, time)), [None, running, running, asleep]);
    assert_eq!(timeline.split(10, 0, 10).unknown, 10);
}
