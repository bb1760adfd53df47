//! Output for people.

use std::fmt::Write;

use hairline_convert::timeline::Split;

use crate::explain::arguments::Argument;
use crate::explain::explained::{Explained, full_name};
use crate::explain::lists::{ROWS, by_clock, events, functions, holders, sleeps, wakers};
use crate::explain::shares::percent;
use crate::explain::show_threads;
use crate::explain::stacks::Stacks;
use crate::explain::survey::Survey;
use crate::explain::target::{Band, Part, Target};
use crate::explain::verdict::{inner, meanwhile, verdict};
use crate::table::{Table, WIDEST, cut_path, in_colour, is_path, plain};
use crate::text::{duration, grouped, grouped_count};

/// The number of the slowest slices that are shown, and of their arguments.
const EXAMPLES: usize = 3;
const SHOWN_ARGUMENTS: usize = 4;
/// The characters of a path that are shown at least.
const SHORTEST_PATH: usize = 8;

/// The text. With `is_verbose`, each function that it names has its most frequent stack below.
pub(super) fn text(explained: &Explained, is_verbose: bool) -> String {
    let mut stacks = Stacks::new(is_verbose);
    for (index, target) in explained.shown().enumerate() {
        if index > 0 {
            stacks.out.push('\n');
        }
        stacks.start();
        target_text(&mut stacks, explained, target);
    }
    if !(explained.targets.is_empty() && explained.threads.chosen.is_empty()) {
        show_threads::text(&mut stacks, &explained.survey, &explained.threads);
    }
    if let Some(heap) = explained.heap.as_ref().filter(|_| explained.is_of_all) {
        let separator = if stacks.out.is_empty() { "" } else { "\n" };
        stacks.out.push_str(separator);
        stacks.start();
        heap.text(&mut stacks, &explained.survey.samples);
    }
    let mut out = stacks.out;
    let notes = explained.survey.left_out();
    if !notes.is_empty() {
        let _ = write!(out, "\n{}\n", notes.join("\n"));
    }
    out
}

fn target_text(stacks: &mut Stacks, explained: &Explained, target: &Target) {
    let (survey, out) = (&explained.survey, &mut stacks.out);
    let [p50, _, p99, max] = target.chosen.quantiles;
    let _ = writeln!(
        out,
        "{}: {}, {} in total; half take at most {}, 99 % at most {}, the slowest {}.",
        plain(&full_name(survey, target)),
        grouped_count(target.chosen.count, target.chosen.kind()),
        duration(target.chosen.total),
        duration(p50),
        duration(p99),
        duration(max),
    );
    // What is missing may be the intervals.
    if target.polls_alone > 0 && !survey.has_losses() {
        let _ = writeln!(
            out,
            "Without an interval: at least {} of the name. Of a span of `tracing` that did not wait, the \
             trace has slices only; HAIRLINE_MODE=lifetimes records an interval for each.",
            grouped_count(target.polls_alone, "slice"),
        );
    }
    let verdict = verdict(survey, target, &explained.targets);
    for line in verdict.lines {
        let _ = writeln!(out, "{line}");
    }
    stacks.below(&survey.samples, &verdict.functions);
    let out = &mut stacks.out;
    let states = states(survey, target);
    let _ = write!(out, "\n{}", bands(target, &states).lines(in_colour()));
    let _ = write!(out, "\n{}", inner_table(survey, target, &states).lines(in_colour()));
    lists(stacks, survey, target);
    let _ = write!(stacks.out, "\n{}", examples(explained, target).lines(in_colour()));
}

/// The slowest slices, each with the command that shows it.
fn examples(explained: &Explained, target: &Target) -> Table {
    let arguments = |part: &Part| {
        let all = target.arguments.get(&(part.track, part.start)).map_or(&[][..], Vec::as_slice);
        let all = &all[..all.len().min(SHOWN_ARGUMENTS)];
        // Paths have the room that the others leave.
        let is_cut = |of: &&Argument| is_path(&of.value);
        let others = all.iter().filter(|of| !is_cut(of)).map(|of| of.value.len()).sum::<usize>();
        let taken = others + all.iter().map(|of| of.name.len() + " = , ".len()).sum::<usize>();
        let room = WIDEST.saturating_sub(taken) / all.iter().filter(is_cut).count().max(1);
        let value = |of: &Argument| {
            if is_path(&of.value) { cut_path(&of.value, room.max(SHORTEST_PATH)) } else { of.value.clone() }
        };
        all.iter().map(|of| format!("{} = {}", of.name, value(of))).collect::<Vec<_>>().join(", ")
    };
    let parts = || target.slow_examples.all().iter().take(EXAMPLES);
    let has_arguments = parts().any(|part| !arguments(part).is_empty());
    let track = if target.chosen.name.is_on_thread { "thread" } else { "track" };
    let mut titles = vec!["the slowest", "begins after", track, "arguments", "the command that shows it"];
    titles.retain(|title| has_arguments || *title != "arguments");
    let mut table = Table::new(1, &titles);
    let path = for_shell(&explained.trace.display().to_string());
    for part in parts() {
        let mut row = vec![
            duration(part.duration()),
            duration(part.start.saturating_sub(target.first)),
            explained.survey.track_names.name(part.track),
        ];
        row.extend(has_arguments.then(|| arguments(part)));
        let command = format!("hairline view --at {}+{} {path}", part.start, part.duration());
        table.add_with_command(row, &command);
    }
    table
}

/// A path as a shell takes it.
fn for_shell(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    if path.chars().all(is_plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// A column: its title, and the time that it shows.
type State = (&'static str, fn(&Split) -> i64);

/// The states that the trace knows of the threads of some slices.
fn states(survey: &Survey, target: &Target) -> Vec<State> {
    if target.all.split.unknown >= target.all.duration {
        return Vec::new();
    }
    let running: State = ("running", |split| split.running);
    if survey.timeline.is_empty() {
        return vec![running, ("off the CPU", |split| split.off_cpu)];
    }
    vec![running, ("waiting for a core", |split| split.waiting), ("asleep", |split| split.asleep)]
}

/// The means of the bands.
fn bands(target: &Target, states: &[State]) -> Table {
    let slowest = target.slowest();
    let rows = [("all", &target.all), ("typical", &target.typical), (&*slowest, &target.slow)];
    let is_partial = !states.is_empty() && rows.iter().any(|(_, band)| band.mean_split().unknown > 0);
    let not_known: &[State] = if is_partial { &[("not known", |split| split.unknown)] } else { &[] };
    let states = || states.iter().chain(not_known);
    let kind = target.chosen.kind();
    let (per, kinds) = (format!("per {kind}, on average"), format!("{kind}s"));
    let mut titles = vec![&*per, &*kinds, "time"];
    titles.extend(states().map(|(title, _)| title));
    // As far as it is known which ones are whose.
    let has_polls = target.all.polls > 0;
    titles.extend(has_polls.then_some("polled"));
    let mut table = Table::new(1, &titles);
    for (what, band) in rows {
        let split = band.mean_split();
        let mut row = vec![what.to_owned(), grouped(band.count), duration(band.mean())];
        row.extend(states().map(|(_, time)| duration(time(&split))));
        row.extend(has_polls.then(|| duration(band.per_slice(band.polled))));
        table.add(row);
    }
    table
}

/// The inner slices of the slowest, beside those of the typical ones.
fn inner_table(survey: &Survey, target: &Target, states: &[State]) -> Table {
    let states: &[State] = if states.is_empty() { &[("own", |split| split.unknown)] } else { states };
    let first = format!("own time in the {}", target.slowest());
    let mut titles = vec![&*first, "count", "total"];
    titles.extend(states.iter().map(|(title, _)| title));
    titles.push("total if typical");
    let mut table = Table::new(1, &titles);
    let slow = &target.slow;
    for (name, of) in inner(slow).into_iter().take(ROWS) {
        let what = if name == target.chosen.name.name {
            "(itself)".to_owned()
        } else {
            survey.keys().text(name).to_owned()
        };
        let own = |time: i64| duration(slow.per_slice(time));
        let mut row = vec![what, grouped(of.count), own(of.total)];
        row.extend(states.iter().map(|(_, time)| own(time(&of.own))));
        let typical = target.typical.inside.names.get(&name).map_or(0, |inner| inner.total);
        row.push(duration(target.typical.per_slice(typical)));
        table.add(row);
    }
    table
}

fn lists(stacks: &mut Stacks, survey: &Survey, target: &Target) {
    let (slow, all, slowest) = (&target.slow, &target.all, target.slowest());
    let of_slowest = format!("the {slowest}");
    let band = |has: fn(&Band) -> bool| if has(slow) { (slow, &*of_slowest) } else { (all, "all") };
    functions(stacks, survey, band(|band| !band.on_cpu.is_empty()));
    sleeps(stacks, survey, band(|band| !band.off_cpu.is_empty()));
    by_clock(stacks, survey, band(|band| !band.by_clock.is_empty()));
    events(stacks, survey, band(|band| !band.events.is_empty()));
    holders(stacks, survey, band(|band| band.split.waiting > 0));
    wakers(stacks, survey, band(|band| !band.wakers.is_empty()));
    let others = meanwhile(survey, target);
    if !others.is_empty() {
        // The polls of an interval may be on the same ones.
        let on_threads = if target.chosen.name.is_on_thread {
            "on other threads meanwhile"
        } else {
            "on threads meanwhile"
        };
        let mut table = Table::new(1, &[on_threads, &slowest, "typical"]);
        for (name, slow, typical) in others.into_iter().take(ROWS) {
            table.add(vec![name, percent(slow, 1000), percent(typical, 1000)]);
        }
        let _ = write!(stacks.out, "\n{}", table.lines(in_colour()));
    }
}
