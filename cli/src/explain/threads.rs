//! What threads did from their begin to their end: also of programs without slices.

use std::collections::BTreeMap;

use hairline_convert::SampleKind;

use crate::explain::gather::look_at_waits;
use crate::explain::survey::Survey;
use crate::explain::target::{Band, add};
use crate::pattern::matches;
use crate::thread_times::{self, SampleCounts, ThreadTimes};

/// The chosen threads, and the processes of all threads.
#[derive(Default)]
pub(super) struct Threads {
    pub(super) chosen: Vec<Thread>,
    pub(super) processes: Vec<Process>,
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
    let mut threads = Threads { chosen: Vec::new(), processes: processes(&all) };
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
    all.truncate(most);
    threads.chosen = all.into_iter().map(|times| look(survey, times)).collect();
    threads
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

/// What the trace does not have of threads, and which recording has it.
pub(super) fn missing(survey: &Survey) -> Option<String> {
    const STATES: &str = "When threads ran, waited for a core and slept is not known";
    let mut sleeps = 0;
    for kind in [SampleKind::OffCpu, SampleKind::Wall] {
        survey.samples.each(kind, &mut |_, _, _| sleeps += 1);
    }
    match (survey.timeline.is_empty(), survey.samples.len()) {
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
