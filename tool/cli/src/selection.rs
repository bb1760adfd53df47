//! A part of a trace, by time and by thread: what a command reads of it. Its numbers are of slices that are
//! cut at the range ([`Selecting`]); a trace or tables of it have whole slices ([`Part`]).

mod chosen;
mod part;
mod selecting;
mod states;
mod survey;

use std::str::FromStr;

pub(crate) use self::chosen::Chosen;
pub(crate) use self::part::Part;
pub(crate) use self::selecting::Selecting;
pub(crate) use self::survey::Survey;
use crate::text::{duration, nanoseconds};

/// Slices that are open at once, and begins and ends of tracks that are sorted. Further slices are left out.
const MOST_OPEN: usize = 1 << 19;

/// The part of a trace that a command reads.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Selection {
    /// Only this time of the trace: "1.5s..2s", "200ms..", "..10ms" after its first event, or times without a
    /// unit in nanoseconds of its clock, as `explain` prints them. FROM is in the range, TO is not. Of a
    /// slice that is partly in the range, that part of its time counts; a trace that is written has it whole.
    #[arg(long, value_name = "FROM..TO", allow_hyphen_values = true)]
    time_range: Option<TimeRange>,
    /// Only these threads, by name or by id, and the tracks below them; * matches any characters.
    #[arg(long, value_name = "NAME|TID")]
    thread: Option<String>,
}

/// A time of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// In nanoseconds after the first event.
    After(i64),
    /// In nanoseconds of the trace's clock.
    Clock(i64),
}

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        text.parse().map(Self::Clock).or_else(|_| nanoseconds(text).map(Self::After))
    }
}

impl At {
    fn on_clock(self, begin: i64) -> i64 {
        match self {
            Self::After(time) => begin.saturating_add(time),
            Self::Clock(time) => time,
        }
    }
}

/// A range of time. Without a begin or an end, it is that of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimeRange {
    from: Option<At>,
    to: Option<At>,
}

impl FromStr for TimeRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once("..").ok_or("give FROM..TO, like 1.5s..2s, 200ms.. or ..10ms")?;
        let at = |text: &str| (!text.trim().is_empty()).then(|| text.parse()).transpose();
        let range = Self { from: at(from)?, to: at(to)? };
        match (range.from, range.to) {
            (None, None) => Err("give FROM, TO or both".to_owned()),
            (Some(At::After(from)), Some(At::After(to))) | (Some(At::Clock(from)), Some(At::Clock(to)))
                if from >= to =>
            {
                Err("FROM is not before TO".to_owned())
            }
            _ => Ok(range),
        }
    }
}

impl Selection {
    /// Whether it is the whole trace.
    pub(crate) fn is_all(&self) -> bool {
        self.time_range.is_none() && self.thread.is_none()
    }

    /// Decides what is read of a trace.
    ///
    /// # Errors
    /// Fails if the range or the threads are not in the trace.
    pub(crate) fn choose(&self, survey: Survey) -> Result<Chosen, String> {
        let (begin, end) = survey.events.or(survey.others).unwrap_or_default();
        let range = self.time_range.unwrap_or(TimeRange { from: None, to: None });
        let from = range.from.map_or(i64::MIN, |at| at.on_clock(begin));
        let to = range.to.map_or(i64::MAX, |at| at.on_clock(begin));
        if from >= to {
            return Err("--time-range: FROM is not before TO".to_owned());
        }
        if from > end || to <= begin {
            let last = duration(end.saturating_sub(begin));
            return Err(format!(
                "--time-range: it has nothing then: it lasts {last}, from {begin} to {end} ns"
            ));
        }
        let threads = self.thread.as_ref().map(|pattern| survey.threads(pattern)).transpose()?;
        let states_begin = survey.first_runners.begin().unwrap_or(begin);
        let states_end = survey.states_end.unwrap_or(end);
        let first_runners = survey.first_runners.threads().into_iter().collect();
        let unsorted = survey.unsorted;
        Ok(Chosen { from, to, begin, end, threads, unsorted, states_begin, states_end, first_runners })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use hairline_convert::timeline::Timeline;
    use hairline_convert::{Item, RunState, Scheduling, StateChange};

    use super::*;
    use crate::selection::chosen::Threads;

    fn of(changes: &[StateChange]) -> Scheduling<'_> {
        Scheduling { changes, copy: None, others: 0 }
    }

    /// The times of threads in a part of a trace are those that the whole trace has in that time, however its
    /// changes are ordered, and whichever threads are chosen.
    #[test]
    fn threads_have_the_times_of_the_whole_trace_in_a_part_of_it() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..2_000 {
            let mut changes: Vec<StateChange> = (0..random(12) + 2)
                .map(|n| {
                    let tid = random(4) + 1;
                    let state = [
                        RunState::Running,
                        RunState::Runnable,
                        RunState::Sleeping,
                        RunState::Uninterruptible,
                        RunState::Dead,
                    ][random(5) as usize];
                    let is_wakeup = state == RunState::Runnable && random(2) == 0;
                    let cpu = Some(random(2) as u32);
                    let time = 10 * (n as i64 / 2 + 1); // some come at the same time
                    StateChange { cpu, is_wakeup, ..StateChange::new(time, tid, state) }
                })
                .collect();
            for _ in 0..changes.len() {
                let (a, b) = (random(changes.len() as u64), random(changes.len() as u64));
                changes.swap(a as usize, b as usize);
            }
            let (mut whole, mut survey) = (Timeline::default(), Survey::default());
            whole.add(&of(&changes));
            whole.finish();
            survey.item(&Item::Scheduling(of(&changes)));
            let from = random(100) as i64;
            let to = from + 1 + random(80) as i64;
            let range = TimeRange { from: Some(At::Clock(from)), to: Some(At::Clock(to)) };
            let selection = Selection { time_range: Some(range), thread: None };
            let Ok(mut chosen) = selection.choose(survey) else { continue };
            let one = (random(2) == 0).then(|| random(4) + 1);
            chosen.threads = one.map(|tid| Threads { tids: HashSet::from([tid]), ..Threads::default() });
            let (mut selecting, mut part) = (Selecting::new(&chosen), Timeline::default());
            let mut pass = |item: &Item<'_>| {
                if let Item::Scheduling(scheduling) = item {
                    part.add(scheduling);
                }
            };
            for piece in changes.chunks(3) {
                selecting.item(&Item::Scheduling(of(piece)), &mut pass);
            }
            selecting.finish(&mut pass);
            part.finish();
            let (start, end) = whole.span().map_or((from, to), |(a, b)| (from.max(a), to.min(b)));
            for tid in (1..5).filter(|tid| one.is_none_or(|one| one == *tid)) {
                // As `stats` asks: from the first state of the part to its last one.
                let (first, last) = part.span().unwrap_or((start, end));
                let (split, truth) = (part.split(tid, first, last), whole.split(tid, start, end));
                let known = |split: hairline_convert::timeline::Split| {
                    (split.running, split.waiting, split.asleep, split.uninterruptible)
                };
                assert_eq!(known(split), known(truth), "{tid} from {start} to {end}: {changes:?}");
            }
        }
    }
}
