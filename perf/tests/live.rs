//! Events of this process, by the kernel.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hairline_perf::{Attributes, Direction, Event, Inherit, Record, Ring, online_cpus};

/// The rings of all processors, for the calling thread and those that it starts. `None` where the system does
/// not permit events.
fn rings(attributes: &Attributes) -> Option<Vec<Ring>> {
    let open = |cpu| {
        let event = Event::open(attributes, 0, Some(cpu))?;
        Ring::at_most(event, 64 << 10, attributes)
    };
    let rings: std::io::Result<Vec<Ring>> = online_cpus().into_iter().map(open).collect();
    if let Err(e) = &rings {
        eprintln!("skipped: {e}");
    }
    rings.ok()
}

#[test]
fn switches_of_a_later_thread_are_read_with_its_start_and_its_end() {
    let before = Instant::now(); // the rings hold this thread's switches as well, from their opening on
    let Some(mut rings) = rings(&Attributes::switches().inherit(Inherit::Threads)) else { return };
    std::thread::Builder::new()
        .name("sleeper".to_owned())
        .spawn(|| (0..10).for_each(|_| std::thread::sleep(Duration::from_millis(1))))
        .unwrap()
        .join()
        .unwrap();
    let (mut started, mut ended, mut named) = (Vec::new(), Vec::new(), Vec::new());
    let mut waits: BTreeMap<u32, u32> = BTreeMap::new();
    let (mut first, mut last) = (u64::MAX, 0);
    for ring in &mut rings {
        let mut times = Vec::new();
        let read = ring.read(|record, stamp| {
            times.push(stamp.time);
            match record {
                Record::Fork { child, .. } => started.push(child.tid),
                Record::Exit { task, .. } => ended.push(task.tid),
                Record::Comm { task, name, .. } => named.push((task.tid, name.to_vec())),
                Record::Switch { direction: Direction::OutWaiting } => {
                    *waits.entry(stamp.tid).or_default() += 1;
                }
                _ => {}
            }
        });
        assert_eq!((read.malformed, read.records), (0, times.len() as u64));
        assert!(times.is_sorted(), "time goes on within a ring");
        first = times.first().copied().unwrap_or(first).min(first);
        last = times.last().copied().unwrap_or(last).max(last);
        assert_eq!(ring.read(|_, _| panic!("all is read")).records, 0);
        assert_eq!(ring.event().lost().unwrap_or(0), 0);
    }
    let [thread] = started[..] else { panic!("{started:?}") };
    assert_eq!((ended, named), (vec![thread], vec![(thread, b"sleeper".to_vec())]));
    assert!(waits[&thread] >= 10, "{waits:?}");
    assert!(u128::from(last - first) <= before.elapsed().as_nanos());
}

#[test]
fn a_full_ring_counts_each_record_that_it_has_lost() {
    let attributes = Attributes::switches();
    let page = 4096;
    let open = |cpu| Ring::new(Event::open(&attributes, 0, Some(cpu))?, page, &attributes);
    let rings: std::io::Result<Vec<Ring>> = online_cpus().into_iter().map(open).collect();
    let Ok(mut rings) = rings else { return };
    let before = switches();
    (0..1000).for_each(|_| std::thread::sleep(Duration::from_micros(10)));
    let records = 2 * (switches() - before); // out and in
    let events: u64 = rings.iter().filter_map(|ring| ring.event().lost()).sum();
    rings.iter().for_each(|ring| ring.event().disable().unwrap());
    let read: u64 = rings.iter_mut().map(|ring| ring.read(|_, _| {}).records).sum();
    if rings[0].event().lost().is_some() {
        assert!(events > 0 && read + events >= records, "{read} read, {events} lost of {records}");
    }
}

/// The kernel's count of the times at which this thread left its processor. Sleeps that are over before the
/// thread has left are none.
fn switches() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
    counts.map(|line| line.split_whitespace().last().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn samples_share_the_ring_of_the_switches() {
    let switches = Attributes::switches();
    let samples = Attributes::cpu_clock(997).call_chain(16).user_stack(0b1_1100_0000, 256);
    let open = |cpu| {
        let ring = Ring::at_most(Event::open(&switches, 0, Some(cpu))?, 256 << 10, &samples)?;
        let event = Event::open(&samples, 0, Some(cpu))?;
        event.write_to_ring_of(ring.event())?;
        Ok((ring, event))
    };
    let rings: std::io::Result<Vec<(Ring, Event)>> = online_cpus().into_iter().map(open).collect();
    let Ok(mut rings) = rings else { return };
    let until = processor_time() + Duration::from_millis(100); // a busy machine gives it late
    while processor_time() < until {
        // Most of it outside of the kernel, which is not sampled.
        (0..1_000_000).for_each(|n| _ = std::hint::black_box(n));
    }
    std::thread::sleep(Duration::from_millis(1));
    let (mut found, mut switched) = (0, 0);
    for (ring, event) in &mut rings {
        let id = event.id().unwrap();
        let read = ring.read(|record, stamp| match record {
            Record::Sample { registers, stack, call_chain, .. } => {
                assert_eq!((stamp.id, registers.len()), (id, 3));
                assert!(!call_chain.is_empty() && stack.len() <= 256);
                found += 1;
            }
            Record::Switch { .. } => switched += 1,
            _ => {}
        });
        assert_eq!(read.malformed, 0);
    }
    assert!(found >= 10 && switched >= 1, "{found} samples, {switched} switches");
}

/// The time that this thread has run, as of the kernel's last tick.
fn processor_time() -> Duration {
    let status = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(status.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn attributes_that_the_kernel_refuses_are_errors() {
    for hostile in [Attributes::cpu_clock(u32::MAX), Attributes::cpu_clock(997).user_stack(1 << 63, 8)] {
        Event::open(&hostile, 0, None).unwrap_err();
    }
    Event::open(&Attributes::switches(), u32::MAX, None).unwrap_err();
    Event::open(&Attributes::switches(), 0, Some(u32::MAX)).unwrap_err();
}
