//! The third reading: what other threads did during the slowest slices, and when their sleeps ended.

use std::collections::HashSet;
use std::io;

use hairline_convert::slices::{Frame, Key, Slice, SliceSink, Slices};
use hairline_convert::{Item, TrackId};

use crate::explain::survey::Survey;
use crate::explain::target::{MOST, Other, Part, Target};
use crate::trace::ItemVisitor;

/// A thread that is woken runs a moment later, and the one that woke it may end its slice a moment later. A
/// slice that ends so near the end of a sleep, or nearer than a twentieth of the sleep, may have ended it.
const NEAR: i64 = 200_000;

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
        Self {
            slices,
            found: Found { survey, targets, questions, latest, latest_of_block, ended: HashSet::new() },
        }
    }

    pub(super) fn has_questions(&self) -> bool {
        !self.found.questions.is_empty()
    }

    pub(super) fn finish(mut self) -> io::Result<Vec<Target>> {
        self.slices.finish(&mut self.found)?;
        Ok(self.found.targets)
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
            Kind::Sleep => {
                let waker = question.part.waker;
                if waker.is_some() && waker != self.survey.track_names.own_tid(slice.track) {
                    return;
                }
                let slept = question.part.duration();
                let is_near = end.abs_diff(question.part.end) <= NEAR.max(slept / 20).unsigned_abs();
                // A thread that has woken another one may lose its core before it ends its slice.
                let ran_since = || {
                    let tid = self.survey.track_names.own_tid(slice.track)?;
                    Some(self.survey.timeline.split(tid, question.part.end, end))
                        .filter(|split| split.unknown == 0)
                };
                // Without wake-ups, a woken thread that waits for a core is still asleep, for as long as
                // other processes have all of them. A wake-up, also by an interrupt, tells when the sleep was
                // over.
                let was_over_late =
                    !question.part.is_woken && end <= question.part.end && overlap >= slept / 4 * 3;
                let ends_with_it = is_near
                    || was_over_late
                    || end > question.part.end && ran_since().is_some_and(|split| split.running <= NEAR);
                // A slice that was there for a short time only ends now by chance.
                if ends_with_it && overlap >= slept / 4 {
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
