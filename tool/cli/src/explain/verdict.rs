//! The cause, in a few sentences.

use std::collections::HashMap;

use hairline_convert::sampled::StackId;
use hairline_convert::slices::Key;
use hairline_convert::timeline::Split;

use crate::explain::awaited;
use crate::explain::dropped;
use crate::explain::functions::{At, StackShare, function_list, largest_stacks};
use crate::explain::heap;
use crate::explain::held::{Lock, counts, locks};
use crate::explain::lists::part_of_time;
use crate::explain::locks::{PREFIX, command_for_wait};
use crate::explain::off_cpu::{asleep, is_stopped, waiting};
use crate::explain::queue;
use crate::explain::separation::Separation;
use crate::explain::shares::percent;
use crate::explain::survey::{SliceName, Survey};
use crate::explain::target::{Band, Inner, Target, total, whole};
use crate::explain::wakes;
use crate::table::plain;
use crate::text::{duration, grouped_count};

/// Why the slices of one name take long.
pub(super) struct Verdict {
    pub(super) cause: Cause,
    /// How much longer the slowest take than the typical ones; without a comparison, how long they take.
    pub(super) extra: i64,
    /// How much of that is in the state of the cause.
    pub(super) share: i64,
    /// Whether the slowest are compared with the typical ones.
    pub(super) is_compared: bool,
    /// The name of the inner slices in which it happens.
    pub(super) inside: Option<Key>,
    /// How much of the time of the cause passes in no inner slice.
    in_itself: i64,
    /// The locks that they wait for longer than the typical ones, the longest first.
    pub(super) locks: Vec<Lock>,
    /// The argument that the slowest have and the typical ones do not.
    pub(super) argument: Option<Separation>,
    /// The sentences: the cause, the place, and what led to it.
    pub(super) lines: Vec<String>,
    /// The functions that the sentences name.
    pub(super) functions: Vec<StackShare>,
}

/// What the time went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A wait for a lock, as the program recorded it.
    Lock,
    /// A task could run, and no worker polled it, as the program recorded it.
    Queued,
    Running,
    Waiting,
    Asleep,
    /// Waiting for a core or asleep.
    OffCpu,
    /// The trace does not tell.
    Unknown,
}

impl Cause {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Lock => "waiting for a lock",
            Self::Queued => "waiting for a worker",
            Self::Running => "running",
            Self::Waiting => "waiting for a core",
            Self::Asleep => "asleep",
            Self::OffCpu => "off the CPU",
            Self::Unknown => "unknown",
        }
    }

    /// What most of the time went to: waits for locks, the queue of the workers, or a state beside them.
    fn of_most((in_locks, in_queue): (i64, i64), beside: &Split, is_known: bool) -> Self {
        let Split { running, waiting, asleep, off_cpu, unknown, .. } = *beside;
        let most = running.max(waiting).max(asleep).max(off_cpu).max(unknown);
        match is_known {
            _ if in_locks > 0 && in_locks >= most.max(in_queue) => Self::Lock,
            _ if in_queue > 0 && in_queue >= most => Self::Queued,
            false => Self::Unknown,
            _ if waiting > running && waiting >= asleep => Self::Waiting,
            _ if asleep > running && asleep >= off_cpu => Self::Asleep,
            _ if off_cpu > running => Self::OffCpu,
            _ => Self::Running,
        }
    }

    fn of(self, split: &Split) -> i64 {
        match self {
            Self::Running => split.running,
            Self::Waiting => split.waiting,
            Self::Asleep => split.asleep,
            Self::OffCpu => split.off_cpu,
            Self::Lock | Self::Queued | Self::Unknown => whole(split),
        }
    }
}

/// Why the slices of a target take long. `all` are the targets: an interval may have its polls among them.
pub(super) fn verdict(survey: &Survey, target: &Target, all: &[Target]) -> Verdict {
    let mut verdict = with_polls(survey, target, all);
    let argument = verdict.argument.as_ref().map(Separation::text);
    verdict.lines.extend(argument);
    verdict.lines.extend(heap::sentence(target));
    verdict
}

fn with_polls(survey: &Survey, target: &Target, all: &[Target]) -> Verdict {
    let mut verdict = of_its_own(survey, target, true);
    if target.chosen.name.is_on_thread || verdict.cause != Cause::Unknown {
        return verdict;
    }
    let name_of_polls = SliceName { is_on_thread: true, ..target.chosen.name };
    let polls = all.iter().find(|polls| polls.chosen.name == name_of_polls);
    let Some(polls) = polls.filter(|_| verdict.in_itself >= verdict.share / 2) else {
        verdict.lines.extend(verdict.question(survey, all));
        return verdict;
    };
    let polled = Polled::of(target, polls, verdict.is_compared);
    if polled.is_most {
        let of_polls = of_its_own(survey, polls, polled.are_few);
        (verdict.lines, verdict.functions) = (of_polls.lines, of_polls.functions);
        verdict.lines.insert(0, format!("In their polls, which take {}:", polled.share));
    } else {
        // The cause, and the place if that is known.
        verdict.lines.truncate(if wakes::late(target).is_some() { 1 } else { 2 });
        verdict.functions.clear();
        let woken = awaited::sentence(survey, target).or_else(|| wakes::sentence(survey, target));
        let woken = woken.map(|woken| format!(" {woken}")).unwrap_or_default();
        verdict.lines.push(format!(
            "Polls: {}. Between them they wait for something that is no interval inside of them.{woken}",
            polled.share
        ));
        verdict.lines.extend(dropped::sentence(survey, target));
        if between(survey, target).is_none() {
            verdict.lines.extend(survey.tasks.partial().map(str::to_owned));
        }
    }
    verdict
}

/// What intervals wait for between their polls, as a part of a sentence, if that is known.
fn between(survey: &Survey, target: &Target) -> Option<String> {
    let late = wakes::late(target).map(|(name, ..)| {
        let name = plain(survey.keys().text(name));
        format!("perhaps workers that are busy with other polls, most of all of `{name}`")
    });
    late.or_else(|| awaited::cause(survey, target)).or_else(|| dropped::cause(survey, target))
}

/// How much of the time of intervals their polls take.
struct Polled {
    /// Whether it is most of what the slowest take longer, or of all their time if that is not compared.
    is_most: bool,
    /// Whether one poll takes a good part of it, and not many together.
    are_few: bool,
    /// As a part of a sentence.
    share: String,
}

impl Polled {
    fn of(target: &Target, polls: &Target, is_compared: bool) -> Self {
        let (all, slow, typical) = (&target.all, &target.slow, &target.typical);
        if all.polls == 0 {
            // The trace does not tell which are whose.
            let (polled, whole) = (polls.chosen.total.min(all.duration), all.duration);
            let share = format!("{} of all their time", percent(polled, whole));
            return Self { is_most: polled >= whole / 2, are_few: true, share };
        }
        let (band, extra, more, whose) = if is_compared {
            let more = slow.per_slice(slow.polled).saturating_sub(typical.per_slice(typical.polled));
            (slow, slow.mean().saturating_sub(typical.mean()), more, "the time of the slowest")
        } else {
            (all, all.mean(), all.per_slice(all.polled), "all their time")
        };
        let (share, count) = (percent(band.polled, band.duration), band.polls.div_ceil(band.count.max(1)));
        let each =
            if count > 1 { format!(" ({} in each)", grouped_count(count, "poll")) } else { String::new() };
        Self {
            is_most: more >= extra / 2,
            are_few: band.per_slice(band.longest_polls) >= extra / 4,
            share: format!("{share} of {whose}{each}"),
        }
    }
}

/// The slowest are compared with the typical ones, if they are to be, and take longer.
fn of_its_own(survey: &Survey, target: &Target, is_compared: bool) -> Verdict {
    let (typical, slow) = (&target.typical, &target.slow);
    let is_compared = is_compared
        && typical.count > 0
        && slow.mean() > typical.mean().saturating_add(typical.mean() / 10 * 3);
    let nothing = Band::default();
    let (band, base) = if is_compared { (slow, typical) } else { (&target.all, &nothing) };
    let extra = band.mean_split().minus(base.mean_split());
    let (in_locks, in_queue, extra) = if target.chosen.name.is_on_thread {
        let waited = |band: &Band| band.split_per_slice(band.inside.waited());
        let waited = waited(band).minus(waited(base));
        (Cause::Lock.of(&waited), 0, extra.minus(waited))
    } else {
        let more = |of: &dyn Fn(&Band) -> i64| {
            band.per_slice(of(band)).saturating_sub(base.per_slice(of(base))).max(0)
        };
        let with = usize::from(target.counts_dropped());
        let both = Split { unknown: more(&|band| band.in_waits[with].or_in_queue), ..Split::default() };
        (more(&|band| band.in_waits[with].time), more(&|band| band.in_queue), extra.minus(both))
    };
    let is_known = |band: &Band| band.split.unknown <= band.duration / 2;
    let is_known = is_known(band) && is_known(base) && band.duration > 0;
    let cause = Cause::of_most((in_locks, in_queue), &extra, is_known);
    let mut verdict = Verdict {
        cause,
        extra: band.mean().saturating_sub(base.mean()),
        share: match cause {
            Cause::Lock => in_locks,
            Cause::Queued => in_queue,
            _ => cause.of(&extra),
        },
        is_compared,
        inside: None,
        in_itself: 0,
        locks: locks(survey, target, (band, base)),
        argument: is_compared.then(|| Separation::of(target)).flatten(),
        lines: Vec::new(),
        functions: Vec::new(),
    };
    let place = verdict.place(survey, target, (band, base));
    verdict.lines.push(verdict.headline(survey, target, (band, base)));
    verdict.lines.extend(place);
    verdict.lines.extend(verdict.held(survey));
    verdict.lines.extend(verdict.holder_waits_for(survey));
    match cause {
        Cause::Lock => {}
        Cause::Queued => {
            let not_known = || survey.tasks.partial().map(str::to_owned);
            verdict.lines.extend(queue::meanwhile(survey, target).or_else(not_known));
        }
        Cause::Running => verdict.running(survey, band),
        Cause::Waiting => waiting(survey, target, band, &mut verdict.lines),
        Cause::Asleep => {
            verdict.functions = largest_stacks(&band.off_cpu, quoted(survey), MOST_FUNCTIONS);
            asleep(survey, (target, band), &verdict.functions, &mut verdict.lines);
        }
        Cause::OffCpu => {
            let [whole, on_cpu] = [band.mean(), band.mean_split().running].map(duration);
            verdict.lines.push(format!(
                "Why: not known. They take {whole}, of which {on_cpu} on the CPU. The CPU time of a thread does not \
                 tell a sleep from a wait for a core."
            ));
            meanwhile_line(survey, target, &mut verdict.lines);
            advice(survey, &mut verdict.lines);
        }
        Cause::Unknown => {
            meanwhile_line(survey, target, &mut verdict.lines);
            if target.chosen.name.is_on_thread || verdict.in_itself >= verdict.share / 2 {
                advice(survey, &mut verdict.lines);
            }
        }
    }
    verdict
}

impl Verdict {
    fn headline(&self, survey: &Survey, target: &Target, (band, base): (&Band, &Band)) -> String {
        let (extra, share) = (duration(self.extra), duration(self.share.min(self.extra)));
        let known = |band: &Band| percent(band.duration.saturating_sub(band.split.unknown), band.duration);
        let (what, does) = match self.cause {
            Cause::Lock => match self.main_locks() {
                [lock] if lock.are_dropped => (
                    format!("waiting for {}, or for what was ready before it", lock.what()),
                    "they wait for it",
                ),
                [lock] => (format!("waiting for {}", lock.what()), "they wait for it"),
                [lock, ..] if self.locks.iter().all(Lock::is_lock) => {
                    let most = plain(&lock.name);
                    (format!("waiting for locks, most of all `{most}`"), "they wait for them")
                }
                [lock, ..] => (
                    format!("waiting for locks and the like, most of all {}", lock.what()),
                    "they wait for them",
                ),
                [] => ("waiting for locks".to_owned(), "they wait for them"),
            },
            Cause::Queued => {
                ("waiting for a worker".to_owned(), "they could run, but no worker polled them,")
            }
            Cause::Running => ("computing".to_owned(), "their thread runs"),
            Cause::Waiting => ("no free core".to_owned(), "their thread could run, but waits for a core,"),
            Cause::Asleep if is_stopped(band) => {
                ("stopped by a signal or a debugger".to_owned(), "their thread is stopped")
            }
            Cause::Asleep => ("sleep".to_owned(), "their thread is asleep"),
            Cause::OffCpu => ("off the CPU".to_owned(), "their thread is not on the CPU"),
            Cause::Unknown if !target.chosen.name.is_on_thread => {
                let inside = self.inside.filter(|_| self.in_itself < self.share / 2);
                let inside = inside.map(|name| {
                    if let Some(before) = dropped::before_last(survey, target, name) {
                        return before;
                    }
                    let most = plain(survey.keys().text(name));
                    let beside = self.beside(survey, band, name).map_or_else(String::new, |name| {
                        format!(", or `{}`, which was open at the same time", plain(survey.keys().text(name)))
                    });
                    let in_doubt = band.per_slice(band.inside.in_doubt) >= self.share / 2;
                    let or = if in_doubt {
                        ", or what is not recorded and kept them from looking at it"
                    } else {
                        ""
                    };
                    format!("intervals inside of them, most of all `{most}`{beside}{or}")
                });
                let unknown = || "not known, because an interval is on no thread".to_owned();
                (inside.or_else(|| between(survey, target)).unwrap_or_else(unknown), "")
            }
            Cause::Unknown if survey.timeline.is_empty() => {
                ("not known, because the trace has no scheduling of their threads".to_owned(), "")
            }
            Cause::Unknown => {
                let known = if self.is_compared {
                    format!(
                        "{} of the time of the slowest and {} of that of the typical ones",
                        known(band),
                        known(base)
                    )
                } else {
                    format!("{} of their time", known(band))
                };
                (format!("not known, because the trace has the states of their threads for {known}"), "")
            }
        };
        let many = format!("The {} take", target.slowest());
        let who = if target.slow.count == 1 { "The slowest one takes" } else { &*many };
        match (self.cause, self.is_compared) {
            (Cause::Unknown, true) => format!("Cause: {what}. {who} {extra} longer than a typical one."),
            (Cause::Unknown, false) => format!("Cause: {what}. They take {extra} each."),
            (_, true) => {
                format!(
                    "Cause: {what}. {who} {extra} longer than a typical one, and {does} for {share} of that."
                )
            }
            (_, false) => format!("Cause: {what}. They take {extra} each, and {does} for {share} of that."),
        }
    }

    /// The interval that was open for nearly as long as the one that is waited for, which ended a little later.
    fn beside(&self, survey: &Survey, band: &Band, most: Key) -> Option<Key> {
        let others = band.inside.beside.iter().filter(|(name, _)| **name != most);
        let others = others.filter(|(name, _)| !survey.keys().text(**name).starts_with(PREFIX));
        let (name, time) = others.max_by_key(|(name, time)| (**time, name.0))?;
        (band.per_slice(*time) >= self.share / 10 * 9).then_some(*name)
    }

    /// The question that the intervals inside of them answer, which are not explained here.
    fn question(&self, survey: &Survey, all: &[Target]) -> Option<String> {
        let inside = self.inside.filter(|_| self.in_itself < self.share / 2)?;
        let name = survey.keys().text(inside);
        let is_asked = all.iter().any(|target| target.chosen.name.name == inside);
        let is_plain = !name.contains(['\'', '*', '/']) && !name.starts_with(PREFIX);
        (is_plain && !is_asked)
            .then(|| format!("What these waited for: `hairline explain TRACE '{}'`.", plain(name)))
    }

    fn running(&mut self, survey: &Survey, band: &Band) {
        let whole = total(band.on_cpu.values().copied());
        self.functions = largest_stacks(&band.on_cpu, quoted(survey), MOST_FUNCTIONS);
        let functions = &self.functions;
        if functions.is_empty() {
            let period = survey.samples.period().and_then(|period| i64::try_from(period).ok());
            self.lines.push(match (&survey.refused.samples, period) {
                (_, Some(period)) => format!(
                    "Functions: unknown, because no stack sample is inside. The trace has one for each {} of CPU \
                     time of a thread in user code; a larger --sample takes more.",
                    duration(period)
                ),
                (Some(why), None) => format!("Functions: unknown, because no stack sample is inside: {why}."),
                (None, None) => NO_SAMPLES.to_owned(),
            });
        } else if whole < FEW_SAMPLES {
            let samples = grouped_count(whole.unsigned_abs(), "sample");
            let functions = function_list(functions, |samples| samples.to_string());
            self.lines.push(format!("Functions on the CPU, of {samples}: {functions}."));
        } else {
            let functions = function_list(functions, |samples| percent(samples, whole));
            self.lines.push(format!("Functions on the CPU: {functions}."));
            self.lines.extend(part_of_time(survey, band));
        }
    }

    /// The locks without those that take less than a twentieth of the time.
    fn main_locks(&self) -> &[Lock] {
        let few = self.locks.iter().position(|lock| lock.extra < self.share / 20);
        &self.locks[..few.map_or(self.locks.len(), |few| few.max(1))]
    }

    /// Finds the inner slices in which the time of the cause passes. Returns a sentence.
    fn place(&mut self, survey: &Survey, target: &Target, (band, base): (&Band, &Band)) -> Option<String> {
        if self.cause == Cause::Queued {
            return None;
        }
        let (itself, waits) = (target.chosen.name.name, |band: &Band| {
            let mut around: HashMap<Key, Split> = HashMap::new();
            let waits = band.inside.waits.iter().filter(|(wait, _)| counts(survey, target, wait.tags));
            for (wait, inner) in waits {
                let name = if wait.name == target.chosen.name.name { wait.name } else { wait.around };
                let sum = around.entry(name).or_default();
                *sum = sum.plus(inner.own);
            }
            around
        });
        let names = |band: &Band| match self.cause {
            Cause::Lock => waits(band),
            _ => band.inside.names.iter().map(|(name, inner)| (*name, inner.own)).collect(),
        };
        let (of_band, of_base) = (names(band), names(base));
        let own = |band: &Band, names: &HashMap<Key, Split>, name: &Key| {
            band.per_slice(names.get(name).map_or(0, |own| self.cause.of(own)))
        };
        let more_in = |name: &Key| own(band, &of_band, name).saturating_sub(own(base, &of_base, name));
        self.in_itself = more_in(&itself);
        let more = of_band.keys().map(|name| (more_in(name), *name));
        let most = more.filter(|(time, _)| *time > 0).max_by_key(|(time, name)| (*time, name.0));
        let (time, name) = most?;
        self.inside = Some(name);
        // A name may have more of it than all names together: others have less than in the typical ones.
        let time = time.min(self.share);
        if name == itself && self.cause == Cause::Unknown && wakes::late(target).is_some() {
            return None; // others have the time, or what they wait for takes it
        }
        let (time, of) = (duration(time.min(self.extra)), percent(time, self.share));
        let at = match &self.locks[..] {
            [lock, ..] if self.cause == Cause::Lock => lock.place(),
            _ => String::new(),
        };
        Some(if name == itself {
            let inner = if target.chosen.name.is_on_thread { "slice" } else { "interval" };
            format!("Where: {time} ({of}) in itself, not in an inner {inner}{at}.")
        } else {
            format!("Where: {time} ({of}) inside `{}`{at}.", plain(survey.keys().text(name)))
        })
    }

    /// Says who had the lock that took most. Waits that take less than a tenth explain nothing.
    fn held(&self, survey: &Survey) -> Option<String> {
        let lock = self.locks.first().filter(|lock| lock.extra >= self.extra / 10)?;
        let (name, held) = (plain(&lock.name), lock.held(survey));
        Some(match self.cause {
            Cause::Lock if self.main_locks().len() == 1 => format!("Why: {held}."),
            Cause::Lock => {
                let extra = duration(lock.extra.min(self.share));
                format!("Why: `{name}` takes {extra} of that: {held}.")
            }
            _ => {
                let extra = duration(lock.extra.min(self.extra));
                format!("They also wait {extra} longer for {}: {held}.", lock.what())
            }
        })
    }

    /// Says how to ask for the next link of a chain: the one that has the lock waits for another one.
    fn holder_waits_for(&self, survey: &Survey) -> Option<String> {
        let lock = self.locks.first().filter(|_| self.cause == Cause::Lock)?;
        let command = command_for_wait(survey.keys().text(lock.holders.first()?.inside?))?;
        Some(format!("What that waits for: {command}"))
    }
}

/// The limit for the functions in a sentence.
const MOST_FUNCTIONS: usize = 3;

/// Names a stack by its function, as a part of a sentence.
fn quoted(survey: &Survey) -> impl Fn(StackId) -> String {
    move |stack| survey.function(stack, At::Any).quoted()
}

/// Fewer samples have no shares.
const FEW_SAMPLES: i64 = 10;

const NO_SAMPLES: &str =
    "Functions: unknown, because no stack sample is inside (hairline record --sample records them).";

/// Adds what other threads did, if that is something.
fn meanwhile_line(survey: &Survey, target: &Target, lines: &mut Vec<String>) {
    let first = meanwhile(survey, target).into_iter().next();
    if let Some((name, slow, typical)) = first.filter(|(_, slow, typical)| *slow >= typical + 50) {
        lines.push(format!(
            "Meanwhile{}: `{}`, for {} of the time of the slowest and {} of the typical ones.",
            if target.chosen.name.is_on_thread { " on other threads" } else { "" },
            plain(&name),
            percent(slow, 1000),
            percent(typical, 1000)
        ));
    }
}

/// Says what else could be recorded, unless that was just refused.
fn advice(survey: &Survey, lines: &mut Vec<String>) {
    if !survey.timeline.is_empty() {
        return;
    }
    lines.push(match &survey.refused.states {
        Some(why) => format!("When threads ran is not known: {why}."),
        None if survey.samples.stacks() > 0 => {
            "When threads ran is not known: `hairline record --sched` records it, \
            where the kernel permits it."
                .to_owned()
        }
        None => "To know more, record scheduling and stack samples, where the kernel permits it: \
            `HAIRLINE_SCHED=on hairline record --sample -- COMMAND`."
            .to_owned(),
    });
    if survey.cpu_times.is_empty() {
        lines
            .push("`HAIRLINE_THREAD_TIME=on` records the CPU time of threads without permission.".to_owned());
    }
}

/// The slices of other threads at the time of the slowest examples, and of the typical ones, in thousandths.
pub(super) fn meanwhile(survey: &Survey, target: &Target) -> Vec<(String, i64, i64)> {
    let (slow, typical) = (target.slow_examples.total(), target.typical_examples.total());
    let share = |part: i64, whole: i64| {
        let thousandths = i128::from(part) * 1000 / i128::from(whole.max(1));
        i64::try_from(thousandths).unwrap_or(i64::MAX)
    };
    let mut by_name: HashMap<Key, (i64, i64)> = HashMap::new();
    for ((_, name, _), other) in &target.others {
        let sums = by_name.entry(*name).or_default();
        sums.0 = sums.0.saturating_add(other.overlap_slow);
        sums.1 = sums.1.saturating_add(other.overlap_typical);
    }
    let named = |(name, (a, b)): (Key, (i64, i64))| {
        (survey.keys().text(name).to_owned(), share(a, slow), share(b, typical))
    };
    let mut all: Vec<_> = by_name.into_iter().map(named).filter(|(_, slow, _)| *slow > 0).collect();
    all.sort_by(|a, b| (b.1 - b.2).cmp(&(a.1 - a.2)).then_with(|| a.0.cmp(&b.0)));
    all
}

/// The inner slices of a band, those with the most time of their own first.
pub(super) fn inner(band: &Band) -> Vec<(Key, Inner)> {
    let mut all: Vec<_> = band.inside.names.iter().map(|(name, inner)| (*name, *inner)).collect();
    let own = |inner: &Inner| whole(&inner.own);
    all.sort_by_key(|(name, inner)| (std::cmp::Reverse(own(inner)), name.0));
    all
}
