//! What threads did from their begin to their end: also of programs without slices.

use std::collections::BTreeMap;

use hairline_convert::SampleKind;

use crate::explain::gather::look_at_waits;
use crate::explain::off_cpu::NO_WAKEUPS;
use crate::explain::shares::percent;
use crate::explain::survey::Survey;
use crate::explain::target::{Band, add};
use crate::pattern::matches;
use crate::text::{duration, grouped_count};
use crate::thread_times::{self, SampleCounts, ThreadTimes};

/// The chosen threads, and the processes of all threads.
#[derive(Default)]
pub(super) struct Threads {
    pub(super) chosen: Vec<Thread>,
    /// The number of threads beyond the limit.
    pub(super) more: usize,
    pub(super) processes: Vec<Process>,
    /// Those of all threads that ran for less than the period of samples, and no sample is of them: their
    /// number, how long they ran, and how long all threads did.
    pub(super) too_short: (u64, i64, i64),
}

/// A thread, and all that it did.
pub(super) struct Thread {
    pub(super) times: ThreadTimes,
    pub(super) band: Band,
}

/// The sums of a process's threads.
#[derive(Default)]
pub(super) struct Process {
    pub(super) name: String,
    pub(super) threads: u64,
    pub(super) running: i64,
    pub(super) waiting: i64,
    pub(super) samples: u64,
}

/// Chooses the threads with this name or id, or all, and of these those that took most time on cores or
/// waiting for one.
pub(super) fn choose(survey: &Survey, pattern: Option<&str>, most: usize) -> Threads {
    let mut counts = SampleCounts::default();
    survey.samples.each(survey.samples.of_time(), &mut |thread, _, _| counts.add(thread));
    let mut all = thread_times::of_all(&survey.track_names, &survey.timeline, &counts);
    let mut threads =
        Threads { processes: processes(&all), too_short: too_short(survey, &all), ..Threads::default() };
    if let Some(pattern) = pattern {
        let is_meant = |thread: &ThreadTimes| {
            let id = thread.tid.to_string();
            let name = thread.name.strip_suffix(&format!(" ({id})")).unwrap_or(&thread.name);
            id == pattern || matches(pattern, name)
        };
        all.retain(is_meant);
        threads.processes.clear();
    }
    all.sort_by_key(|thread| {
        let ready = thread.running().saturating_add(thread.waiting());
        std::cmp::Reverse((ready, thread.samples, thread.asleep()))
    });
    threads.more = all.len().saturating_sub(most);
    all.truncate(most);
    threads.chosen = all.into_iter().map(|times| look(survey, times)).collect();
    threads
}

fn too_short(survey: &Survey, threads: &[ThreadTimes]) -> (u64, i64, i64) {
    let period = survey.samples.period().and_then(|period| i64::try_from(period).ok()).unwrap_or_default();
    let (mut count, mut time, mut all) = (0, 0_i64, 0_i64);
    for thread in threads {
        let running = thread.running();
        all = all.saturating_add(running);
        if thread.samples == 0 && running < period {
            (count, time) = (count + 1, time.saturating_add(running));
        }
    }
    (count, time, all)
}

fn processes(threads: &[ThreadTimes]) -> Vec<Process> {
    let mut by_name: BTreeMap<&str, Process> = BTreeMap::new();
    for thread in threads {
        let process = by_name.entry(&thread.process).or_default();
        process.threads += 1;
        process.running = process.running.saturating_add(thread.running());
        process.waiting = process.waiting.saturating_add(thread.waiting());
        process.samples += thread.samples;
    }
    let name = |name: &str| if name.is_empty() { "(no process)".to_owned() } else { name.to_owned() };
    let mut all: Vec<_> =
        by_name.into_iter().map(|(of, process)| Process { name: name(of), ..process }).collect();
    all.sort_by_key(|process| std::cmp::Reverse((process.running, process.samples)));
    all
}

fn look(survey: &Survey, times: ThreadTimes) -> Thread {
    let mut band = Band { count: 1, split: times.split.unwrap_or_default(), ..Band::default() };
    let thread = (times.pid, times.tid);
    for (_, stack) in survey.samples.of(SampleKind::OnCpu, thread, i64::MIN, i64::MAX) {
        add(&mut band.on_cpu, *stack, 1);
    }
    for (_, stack) in survey.samples.of(SampleKind::Wall, thread, i64::MIN, i64::MAX) {
        add(&mut band.by_clock, *stack, 1);
    }
    if let Some((start, end)) = survey.timeline.span().filter(|_| times.split.is_some()) {
        look_at_waits(survey, &mut band, thread, (start, end));
    }
    Thread { times, band }
}

/// What the trace does not have of these threads, and which recording has it.
pub(super) fn missing(survey: &Survey, threads: &Threads) -> Vec<String> {
    let asleep = threads.chosen.iter().any(|thread| thread.band.split.asleep > 0);
    let no_wakeups = (asleep && !survey.timeline.has_wakeups()).then(|| NO_WAKEUPS.to_owned());
    let (count, time, all) = threads.too_short;
    let too_short = (time > all / 10).then(|| {
        let (count, part) = (grouped_count(count, "thread"), percent(time, all));
        format!(
            "No stack sample is of {count} that ran for {} in all, {part} of the time on the CPU: each ran for \
             less than the time of one sample. A larger --sample takes more.",
            duration(time)
        )
    });
    missing_in_all(survey).into_iter().chain(too_short).chain(no_wakeups).collect()
}

/// Why no sample is of a thread, although the trace has samples.
pub(super) fn no_sample(survey: &Survey, thread: &Thread) -> Option<String> {
    let Band { split, on_cpu, by_clock, .. } = &thread.band;
    let is_without = on_cpu.is_empty() && by_clock.is_empty() && split.running > 0;
    let period = survey.samples.period().and_then(|period| i64::try_from(period).ok());
    let period = period.filter(|_| is_without)?; // that of the samples which the trace has
    Some(if split.running < period {
        format!("No stack sample is of it: it ran for less than the time of one, {}.", duration(period))
    } else {
        "No stack sample is of it: they are of user code, not of the kernel (system calls, page faults)."
            .to_owned()
    })
}

fn missing_in_all(survey: &Survey) -> Option<String> {
    const STATES: &str = "When threads ran, waited for a core and slept is not known";
    let count = |kinds: [SampleKind; 2]| {
        let mut count = 0;
        kinds.into_iter().for_each(|kind| survey.samples.each(kind, &mut |_, _, _| count += 1));
        count
    };
    let sleeps = count([SampleKind::OffCpu, SampleKind::Wall]);
    match (survey.timeline.is_empty(), count([SampleKind::OnCpu, SampleKind::Wall])) {
        (true, _) => Some(match &survey.refused.states {
            Some(why) => format!("{STATES}: {why}."),
            None => format!("{STATES}: `hairline record --sched` records it."),
        }),
        (_, 0) => Some(match &survey.refused.samples {
            Some(why) => format!("The functions are not known: {why}."),
            None => {
                "The functions are not known: `hairline record --sched --sample` records them.".to_owned()
            }
        }),
        _ if sleeps == 0 => Some(
            "Where threads slept is not known: the trace has no stacks of that. `hairline record --sched \
             --sample` records them, as root or with a kernel.perf_event_paranoid of 1 or less. In a program \
             with Hairline, HAIRLINE_SAMPLE=wall:99 samples threads that sleep."
                .to_owned(),
        ),
        _ => None,
    }
}
