//! Threads and processes, for people.

use std::fmt::Write;

use crate::explain::lists::{functions, holders, more, sleeps, waits_for_others, wakers};
use crate::explain::shares::percent;
use crate::explain::stacks::Stacks;
use crate::explain::survey::Survey;
use crate::explain::target::total;
use crate::explain::threads::{Process, Thread, Threads, missing, no_sample};
use crate::table::{Table, in_colour, plain};
use crate::text::{duration, grouped, grouped_count};
use crate::thread_times::ThreadTimes;

/// The limit for rows of the table of processes.
const ROWS: usize = 10;

/// The threads for people.
pub(super) fn text(stacks: &mut Stacks, survey: &Survey, threads: &Threads) {
    if let Some(table) = process_table(survey, threads) {
        let _ = writeln!(stacks.out, "{}", table.lines(in_colour()));
    }
    for (index, thread) in threads.chosen.iter().enumerate() {
        let separator = if index > 0 { "\n" } else { "" };
        let _ = writeln!(stacks.out, "{separator}{}", headline(thread));
        stacks.start();
        if let Some(why) = no_sample(survey, thread) {
            let _ = writeln!(stacks.out, "{why}");
        }
        for list in [functions, sleeps, holders, wakers] {
            list(stacks, survey, (&thread.band, "it"));
        }
    }
    if threads.more > 0 {
        let more = grouped_count(threads.more as u64, "thread");
        let _ = write!(stacks.out, "\nand {more} more (--top shows up to 100)\n");
    }
    let of_others = threads.chosen.iter().any(|thread| waits_for_others(&thread.band));
    let others = survey.neighbours.sentence().filter(|_| of_others || stacks.is_verbose());
    let notes: Vec<_> = others.into_iter().chain(missing(survey, threads)).collect();
    if !notes.is_empty() && !threads.chosen.is_empty() {
        let _ = write!(stacks.out, "\n{}\n", notes.join("\n"));
    }
}

fn process_table(survey: &Survey, threads: &Threads) -> Option<Table> {
    if threads.processes.len() < 2 {
        return None;
    }
    let has_states = !survey.timeline.is_empty();
    let mut titles = vec!["process", "threads"];
    titles.extend(if has_states { &["running", "waiting for a core"][..] } else { &[] });
    titles.extend((!survey.samples.is_empty()).then_some("samples"));
    let mut table = Table::new(1, &titles);
    let (shown, others) = threads.processes.split_at(threads.processes.len().min(ROWS));
    let others = (!others.is_empty()).then(|| Process {
        name: more(others.len()),
        threads: others.iter().map(|process| process.threads).sum(),
        running: total(others.iter().map(|process| process.running)),
        waiting: total(others.iter().map(|process| process.waiting)),
        samples: others.iter().map(|process| process.samples).sum(),
    });
    for process in shown.iter().chain(&others) {
        let mut row = vec![process.name.clone(), grouped(process.threads)];
        if has_states {
            row.extend([process.running, process.waiting].map(duration));
        }
        if !survey.samples.is_empty() {
            row.push(grouped(process.samples));
        }
        table.add(row);
    }
    Some(table)
}

fn headline(thread: &Thread) -> String {
    let ThreadTimes { name, process, samples, split, .. } = &thread.times;
    let of = if process.is_empty() { String::new() } else { format!(" of {}", plain(process)) };
    let name = plain(name);
    let Some(split) = split else {
        return format!("{name}{of}: {}.", grouped_count(*samples, "sample"));
    };
    let whole = total([split.running, split.waiting, split.asleep]);
    let state = |what: &str, time| format!("{what} {} ({})", duration(time), percent(time, whole));
    let states = [
        state("running", split.running),
        state("waiting for a core", split.waiting),
        state("asleep", split.asleep),
    ];
    format!("{name}{of}, {} in all: {}.", duration(whole), states.join(", "))
}
