//! The third reading: what other threads did during the slowest slices, and when their sleeps ended.

use std::collections::{HashMap, HashSet};
use std::io;

use hairline_convert::slices::{Frame, Key, Slice, SliceSink, Slices};
use hairline_convert::{Item, TrackId};

use crate::explain::survey::Survey;
use crate::explain::target::{Chance, MOST, Other, Part, Target, add};
use crate::trace::ItemVisitor;

/// A thread that is woken runs a moment later, and the one that woke it may end its slice a moment later. A
/// slice that ends so near the end of a sleep may have ended it; so may one that took a quarter of the sleep
/// and ends nearer than a twentieth of it.
const NEAR: i64 = 200_000;

/// The part of a sleep that a slice takes which does not end with it by chance alone.
fn is_long(duration: i64, slept: i64) -> bool {
    duration >= slept / 4
}

/// How near its end a slice must end.
fn near(slept: i64, is_long: bool) -> i64 {
    if is_long { NEAR.max(slept / 20) } else { NEAR }
}

/// Whether a slice was open during the whole of a sleep or a wait, or from before it to its end.
fn is_open(part: &Part, slice: &Slice) -> bool {
    let near = near(part.duration(), true);
    slice.start <= part.start && slice.start.saturating_add(slice.duration) >= part.end.saturating_sub(near)
}

/// When the slices of a name end.
#[derive(Default)]
struct Ends {
    count: u64,
    duration: i64,
}

impl Ends {
    /// The probability that one ends with a sleep by chance, if `time` is that of the whole trace.
    #[allow(clippy::cast_precision_loss)] // an estimate
    fn chance(&self, sleep: &Part, time: i64) -> f64 {
        let slept = sleep.duration();
        let is_long = is_long(self.duration / i64::try_from(self.count).unwrap_or(i64::MAX).max(1), slept);
        let late = if is_long && !sleep.is_woken { slept / 4 } else { 0 };
        let window = (2 * near(slept, is_long)).max(late + near(slept, is_long));
        (self.count as f64 * window as f64 / time.max(1) as f64).min(1.0)
    }
}

/// The limit for pairs of a sleep and a name that ended with it.
const MOST_ENDED: usize = 1 << 20;

/// The number of questions that are passed over together.
const BLOCK: usize = 64;

pub(super) struct Meanwhile<'s> {
    slices: Slices,
    found: Found<'s>,
}

struct Found<'s> {
    survey: &'s Survey,
    targets: Vec<Target>,
    /// All examples and sleeps, by begin.
    questions: Vec<Question>,
    /// The latest end of the questions up to each one, and of those of each [`BLOCK`]. A question as long as
    /// the trace is before all others.
    latest: Vec<i64>,
    latest_of_block: Vec<i64>,
    /// The sleeps that ended with slices of a name, by number.
    ended: HashSet<(usize, Key, Key)>,
    ends: HashMap<(Key, Key), Ends>,
    /// The innermost slice that was open on a track during the whole of a question: its begin and name.
    open: HashMap<(usize, TrackId), (i64, Key)>,
    /// From the first begin to the last end.
    time: Option<(i64, i64)>,
}

#[derive(Clone, Copy)]
struct Question {
    target: usize,
    part: Part,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Slow,
    Typical,
    Sleep,
    Wait,
}

impl<'s> Meanwhile<'s> {
    pub(super) fn new(survey: &'s Survey, slices: Slices, targets: Vec<Target>) -> Self {
        let mut questions = Vec::new();
        for (target, of) in targets.iter().enumerate() {
            let mut ask = |parts: &[Part], kind| {
                questions.extend(parts.iter().map(|part| Question { target, part: *part, kind }));
            };
            ask(of.slow_examples.all(), Kind::Slow);
            ask(of.typical_examples.all(), Kind::Typical);
            ask(of.sleeps.all(), Kind::Sleep);
            ask(of.waits.all(), Kind::Wait);
        }
        questions.sort_by_key(|question| question.part.start);
        let mut last = i64::MIN;
        let latest = questions.iter().map(|question| {
            last = last.max(question.part.end);
            last
        });
        let latest = latest.collect();
        let ends = |block: &[Question]| block.iter().map(|question| question.part.end).max();
        let latest_of_block = questions.chunks(BLOCK).filter_map(ends).collect();
        let (ended, ends) = (HashSet::new(), HashMap::new());
        let (open, time) = (HashMap::new(), None);
        let found = Found { survey, targets, questions, latest, latest_of_block, ended, ends, open, time };
        Self { slices, found }
    }

    pub(super) fn has_questions(&self) -> bool {
        !self.found.questions.is_empty()
    }

    pub(super) fn finish(mut self) -> io::Result<Vec<Target>> {
        self.slices.finish(&mut self.found)?;
        let Found { mut targets, questions, ends, open, time, .. } = self.found;
        for ((number, _), (_, name)) in open {
            let Question { target, part, .. } = &questions[number];
            add(&mut targets[*target].held_in, (part.facts, name), part.duration());
        }
        let time = time.map_or(0, |(first, last)| last.saturating_sub(first));
        for target in &mut targets {
            let Target { others, sleeps, chances, .. } = target;
            for (category, name, _) in others.iter().filter(|(_, of)| of.has_ended).map(|(key, _)| key) {
                let Some(ends) = ends.get(&(*category, *name)) else { continue };
                chances.entry((*category, *name)).or_insert_with(|| {
                    let chances = sleeps.all().iter().map(|sleep| ends.chance(sleep, time));
                    chances.fold(Chance::default(), Chance::and)
                });
            }
        }
        Ok(targets)
    }
}

impl ItemVisitor for Meanwhile<'_> {
    fn item(&mut self, item: &Item<'_>) {
        self.slices.item(item, &mut self.found);
    }
}

impl Found<'_> {
    fn other(&mut self, question: &Question, key: (Key, Key, TrackId)) -> &mut Other {
        self.targets[question.target].others.entry(key).or_default()
    }

    fn answer(&mut self, number: usize, slice: &Slice, end: i64) {
        let question = self.questions[number];
        let overlap = end.min(question.part.end).saturating_sub(slice.start.max(question.part.start));
        let key = (slice.category, slice.name, slice.track);
        let others = &self.targets[question.target].others;
        if overlap <= 0
            || question.part.track == slice.track
            || others.len() >= MOST && !others.contains_key(&key)
        {
            return;
        }
        match question.kind {
            Kind::Slow => {
                let other = self.other(&question, key);
                other.overlap_slow = other.overlap_slow.saturating_add(overlap);
            }
            Kind::Typical => {
                let other = self.other(&question, key);
                other.overlap_typical = other.overlap_typical.saturating_add(overlap);
            }
            Kind::Wait => {
                let is_holder = question.part.waker == self.survey.track_names.own_tid(slice.track);
                if is_holder && question.part.waker.is_some() && is_open(&question.part, slice) {
                    let innermost =
                        self.open.entry((number, slice.track)).or_insert((slice.start, slice.name));
                    if innermost.0 < slice.start {
                        *innermost = (slice.start, slice.name);
                    }
                }
            }
            Kind::Sleep => {
                let waker = question.part.waker;
                if waker.is_some() && waker != self.survey.track_names.own_tid(slice.track) {
                    return;
                }
                let slept = question.part.duration();
                let is_long = is_long(overlap, slept);
                let is_near = end.abs_diff(question.part.end) <= near(slept, is_long).unsigned_abs();
                // A thread that has woken another one may lose its core before it ends its slice. One that
                // slept at that time has woken nobody.
                let lost_its_core = || {
                    let tid = self.survey.track_names.own_tid(slice.track)?;
                    let (timeline, woken) = (&self.survey.timeline, question.part.end);
                    let since = timeline.split(tid, woken, end);
                    let before = timeline.split(tid, woken.saturating_sub(NEAR), woken);
                    Some(before.running > 0 && since.running <= NEAR && since.unknown == 0)
                };
                // Without wake-ups, a woken thread that waits for a core is still asleep, for as long as
                // other processes have all of them. A wake-up, also by an interrupt, tells when the sleep was
                // over.
                let was_over_late =
                    !question.part.is_woken && end <= question.part.end && overlap >= slept / 4 * 3;
                let ends_with_it = is_near
                    || was_over_late
                    || is_long && end > question.part.end && lost_its_core() == Some(true);
                if ends_with_it {
                    let is_first = self.ended.len() < MOST_ENDED
                        && self.ended.insert((number, slice.category, slice.name));
                    let other = self.other(&question, key);
                    other.has_ended = true;
                    other.ended += u64::from(is_first);
                    other.ended_time = other.ended_time.saturating_add(if is_first { slept } else { 0 });
                }
            }
        }
    }
}

impl SliceSink for Found<'_> {
    fn slice(&mut self, slice: &Slice, _: &mut [Frame]) {
        // Intervals of async tasks hold nothing up.
        if self.survey.track_names.tid(slice.track).is_none() {
            return;
        }
        let end = slice.start.saturating_add(slice.duration);
        let (first, last) = self.time.unwrap_or((slice.start, end));
        self.time = Some((first.min(slice.start), last.max(end)));
        let ends = self.ends.entry((slice.category, slice.name)).or_default();
        ends.count += 1;
        ends.duration = ends.duration.saturating_add(slice.duration);
        let mut index = self.questions.partition_point(|question| question.part.start < end);
        while let Some(before) = index.checked_sub(1)
            && self.latest[before] > slice.start
        {
            if index.is_multiple_of(BLOCK) && self.latest_of_block[before / BLOCK] <= slice.start {
                index -= BLOCK;
                continue;
            }
            index = before;
            if self.questions[index].part.end > slice.start {
                self.answer(index, slice, end);
            }
        }
    }
}
