//! The third reading: what other threads did during the slowest slices, and when their sleeps ended.

use std::io;

use hairline_convert::slices::{Frame, Key, Slice, SliceSink, Slices};
use hairline_convert::{Item, TrackId};

use crate::explain::survey::Survey;
use crate::explain::target::{MOST, Other, Target};
use crate::trace::ItemVisitor;

/// A thread that is woken runs a moment later, and the one that woke it may end its slice a moment later. A
/// slice that ends so near the end of a sleep, or nearer than a twentieth of the sleep, may have ended it.
const NEAR: i64 = 200_000;

pub(super) struct Meanwhile<'s> {
    slices: Slices,
    found: Found<'s>,
}

struct Found<'s> {
    survey: &'s Survey,
    targets: Vec<Target>,
    /// All examples and sleeps, by begin.
    questions: Vec<Question>,
    /// The latest end of the questions up to each one.
    latest: Vec<i64>,
}

#[derive(Clone, Copy)]
struct Question {
    target: usize,
    track: TrackId,
    start: i64,
    end: i64,
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
            questions.extend(of.examples.iter().map(|example| Question {
                target,
                track: example.track,
                start: example.start,
                end: example.end,
                kind: if example.is_slow { Kind::Slow } else { Kind::Typical },
            }));
            questions.extend(of.sleeps.iter().map(|sleep| Question {
                target,
                track: sleep.track,
                start: sleep.start,
                end: sleep.end,
                kind: Kind::Sleep,
            }));
        }
        questions.sort_by_key(|question| question.start);
        let mut last = i64::MIN;
        let latest = questions.iter().map(|question| {
            last = last.max(question.end);
            last
        });
        let latest = latest.collect();
        Self { slices, found: Found { survey, targets, questions, latest } }
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

    fn answer(&mut self, question: Question, slice: &Slice, end: i64) {
        let overlap = end.min(question.end).saturating_sub(slice.start.max(question.start));
        let key = (slice.category, slice.name, slice.track);
        let others = &self.targets[question.target].others;
        if overlap <= 0 || question.track == slice.track || others.len() >= MOST && !others.contains_key(&key)
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
                let slept = question.end.saturating_sub(question.start);
                let is_near = end.abs_diff(question.end) <= NEAR.max(slept / 20).unsigned_abs();
                // A thread that has woken another one may lose its core before it ends its slice.
                let ran_since = || {
                    let tid = self.survey.track_names.tid(slice.track)?;
                    Some(self.survey.timeline.split(tid, question.end, end))
                        .filter(|split| split.unknown == 0)
                };
                // Without wake-ups, a woken thread that waits for a core is still asleep, for as long as other
                // processes have all of them.
                let was_over_late = end <= question.end && overlap >= slept / 4 * 3;
                let ends_with_it = is_near
                    || was_over_late
                    || end > question.end && ran_since().is_some_and(|split| split.running <= NEAR);
                // A slice that was there for a short time only ends now by chance.
                if ends_with_it && overlap >= slept / 4 {
                    let other = self.other(&question, key);
                    other.ended += 1;
                    other.ended_time = other.ended_time.saturating_add(slept);
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
        let mut index = self.questions.partition_point(|question| question.start < end);
        while let Some(before) = index.checked_sub(1)
            && self.latest[before] > slice.start
        {
            index = before;
            if self.questions[index].end > slice.start {
                self.answer(self.questions[index], slice, end);
            }
        }
    }
}
