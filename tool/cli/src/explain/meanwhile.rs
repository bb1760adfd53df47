//! The third reading: what other threads did during the slowest slices, and when their sleeps ended.

use std::collections::{HashMap, HashSet};
use std::io;

use hairline_convert::slices::{Frame, Key, Slice, SliceSink, Slices};
use hairline_convert::{Event, EventKind, Item, TrackId};

use crate::explain::arguments::arguments;
use crate::explain::awaited::Lives;
use crate::explain::locks::{Holder, PREFIX};
use crate::explain::own_polls::{Poll, is_inside};
use crate::explain::survey::{SliceName, Survey};
use crate::explain::target::{Chance, MOST, Other, Part, Target, add};
use crate::explain::tasks::{NUMBER, is_parked};
use crate::trace::ItemVisitor;

/// A thread that is woken runs a moment later, and the one that woke it may end its slice a moment later or
/// earlier.
pub(super) const NEAR: i64 = 200_000;

/// How near to its end the slice that ended a sleep ends at least.
pub(super) fn near(slept: i64) -> i64 {
    NEAR.max(slept / 20)
}

/// Whether a slice was open during the whole of a sleep or a wait, or from before it to its end.
fn is_open(part: &Part, slice: &Slice) -> bool {
    let end = slice.start.saturating_add(slice.duration);
    // The one that takes a lock next may begin its slice some time after the release.
    let later = if part.wait.held.is_timed { near(part.duration()) } else { 0 };
    slice.start <= part.start.saturating_add(later) && end >= part.end.saturating_sub(near(part.duration()))
}

/// The number of slices of a name whose durations have the same number of bits, and their time.
type Lengths = HashMap<(Key, Key, u32), (u64, i64)>;

/// The probability that a slice of a name is open during a sleep by chance, if `time` is that of the whole
/// trace: each slice is for as long as it is longer than the sleep.
#[allow(clippy::cast_precision_loss)] // an estimate
fn chance(lengths: &Lengths, (category, name): (Key, Key), sleep: &Part, time: i64) -> f64 {
    let least = sleep.duration().saturating_sub(near(sleep.duration())).max(0);
    let of = (0..=i64::BITS).filter_map(|bits| lengths.get(&(category, name, bits)));
    let longer = of.map(|(count, sum)| (*sum as f64 - *count as f64 * least as f64).max(0.0));
    (longer.sum::<f64>() / time.max(1) as f64).min(1.0)
}

/// The limit for pairs of a sleep and a track.
const MOST_OPEN: usize = 1 << 20;

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
    questions: Vec<Question<'s>>,
    /// The latest end of the questions up to each one, and of those of each [`BLOCK`]. A question as long as
    /// the trace is before all others.
    latest: Vec<i64>,
    latest_of_block: Vec<i64>,
    /// The innermost slice that was open on a track during the whole of a question, by the question's number.
    open: HashMap<(usize, TrackId), Open>,
    /// The targets with an example on a track that begins at a time.
    examples: HashMap<(TrackId, i64), Vec<usize>>,
    lengths: Lengths,
    /// From the first begin to the last end.
    time: Option<(i64, i64)>,
    /// The tracks of the lives that had locks.
    lives: HashSet<TrackId>,
    has_queues: bool,
    /// The poll that a thread had just ended as it ended a wait, and how long it overlaps that, by the
    /// question's number.
    polls_before: HashMap<usize, (Slice, i64)>,
}

/// A slice that may answer questions.
struct Candidate {
    slice: Slice,
    end: i64,
    /// The tracks of the lives that an interval is one of, or inside of. Empty for a slice of a thread.
    lives: Vec<TrackId>,
    /// Whether it is a poll that is in no other one.
    is_poll: bool,
    is_parked: bool,
}

#[derive(Clone, Copy)]
struct Open {
    start: i64,
    category: Key,
    name: Key,
    /// Whether it ended with the sleep.
    has_ended: bool,
    /// How long it was open meanwhile.
    overlap: i64,
}

#[derive(Clone, Copy)]
struct Question<'s> {
    target: usize,
    part: Part,
    kind: Kind,
    /// The track of the life of the task that had the lock.
    life: Option<TrackId>,
    /// The polls of an example, or of that task.
    polls: &'s [Poll],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Slow,
    Typical,
    Sleep,
    Wait,
    /// The run of a thread on a core for which a slice waited.
    Core,
    Queue,
    /// That of a task that is waited for.
    AwaitedQueue,
    /// A wait that a worker ended when it looked for what is ready.
    Late,
    /// A wait that a thread ended in no slice.
    After,
}

/// An interval is not inside of more others.
const DEEPEST: usize = 64;

impl<'s> Meanwhile<'s> {
    pub(super) fn new(survey: &'s Survey, slices: Slices, targets: Vec<Target>, lives: &Lives<'s>) -> Self {
        let life = |part: &Part| match part.wait.held.holder {
            Holder::Task(task) => survey.tasks.life(task).map(|life| life.track),
            _ => None,
        };
        let mut questions = Vec::new();
        for (target, of) in targets.iter().enumerate() {
            let mut ask = |parts: &[Part], kind: Kind| {
                let question = |part: &Part| {
                    let life = (kind == Kind::Wait).then(|| life(part)).flatten();
                    let SliceName { category, name, is_on_thread } = of.chosen.name;
                    let polls = match (kind, life) {
                        (Kind::Slow | Kind::Typical, _) if !is_on_thread => {
                            survey.polls_of((category, name), part.place(), false)
                        }
                        (Kind::Wait, Some(life)) => lives.polls_at(life, part.start),
                        _ => &[],
                    };
                    Question { target, part: *part, kind, life, polls }
                };
                questions.extend(parts.iter().map(question));
            };
            ask(of.slow_examples.all(), Kind::Slow);
            ask(of.typical_examples.all(), Kind::Typical);
            ask(of.sleeps.all(), Kind::Sleep);
            ask(of.turns.all(), Kind::Wait);
            ask(of.cores.all(), Kind::Core);
            ask(of.queues.all(), Kind::Queue);
            ask(of.awaited_queues.times.all(), Kind::AwaitedQueue);
            ask(of.late.all(), Kind::Late);
            ask(of.after.all(), Kind::After);
        }
        questions.sort_by_key(|question| question.part.start);
        let mut last = i64::MIN;
        let latest = questions.iter().map(|question| {
            last = last.max(question.part.end);
            last
        });
        let latest = latest.collect();
        let ends = |block: &[Question<'_>]| block.iter().map(|question| question.part.end).max();
        let latest_of_block = questions.chunks(BLOCK).filter_map(ends).collect();
        let mut examples: HashMap<_, Vec<_>> = HashMap::new();
        for Question { target, part, .. } in questions.iter().filter(|question| question.kind.is_example()) {
            let targets = examples.entry((part.track, part.start)).or_default();
            targets.retain(|other| other != target);
            targets.push(*target);
        }
        let (open, lengths, time) = (HashMap::new(), HashMap::new(), None);
        let lives = questions.iter().filter_map(|question| question.life).collect();
        let has_queues = questions.iter().any(|question| question.kind.is_about_polls());
        let found = Found {
            survey,
            targets,
            questions,
            latest,
            latest_of_block,
            open,
            examples,
            lengths,
            time,
            lives,
            has_queues,
            polls_before: HashMap::new(),
        };
        Self { slices, found }
    }

    pub(super) fn has_questions(&self) -> bool {
        !self.found.questions.is_empty()
    }

    pub(super) fn finish(mut self) -> io::Result<Vec<Target>> {
        self.slices.finish(&mut self.found)?;
        let Found { survey, mut targets, questions, open, lengths, time, polls_before, .. } = self.found;
        let (first, last) = time.unwrap_or_default();
        let time = last.saturating_sub(first);
        targets.iter_mut().for_each(|target| target.first = first);
        for (number, (poll, overlap)) in polls_before {
            let Question { target, kind, .. } = questions[number];
            let Target { late_polls, after_polls, .. } = &mut targets[target];
            let polls = if kind == Kind::Late { late_polls } else { after_polls };
            polls.entry(poll.name).or_default().add(&poll, overlap);
        }
        let mut ended = HashSet::new();
        for ((number, track), Open { category, name, has_ended, overlap, .. }) in open {
            let Question { target, part, kind, .. } = questions[number];
            let target = &mut targets[target];
            if kind == Kind::Wait {
                add(&mut target.held_in, (part.wait.held, name), part.duration());
                continue;
            }
            if let Some(thread) = part.waker.filter(|_| kind == Kind::Core) {
                add(&mut target.ran_in, (thread, name), overlap);
                continue;
            }
            // A sleep during which several threads have a slice of the name counts for one.
            let is_first = ended.insert((number, category, name));
            let Other { open, open_time, asleep, ended, .. } =
                target.others.entry((category, name, track)).or_default();
            let (count, slept) = if is_first { (1, part.duration()) } else { (0, 0) };
            *open = Some(open.unwrap_or(0) + count);
            *open_time = open_time.saturating_add(slept);
            if let (true, None, Some(tid)) = (is_first, part.waker, survey.track_names.own_tid(track)) {
                let split = survey.timeline.split(tid, part.start, part.end);
                *asleep = asleep.saturating_add(split.asleep);
            }
            *ended += if has_ended { count } else { 0 };
            target.chances.entry((category, name)).or_insert_with(|| {
                // The waker of a sleep is no chance.
                let sleeps = target.sleeps.all().iter().filter(|sleep| sleep.waker.is_none());
                let chances = sleeps.map(|sleep| chance(&lengths, (category, name), sleep, time));
                chances.fold(Chance::default(), Chance::and)
            });
        }
        Ok(targets)
    }
}

impl ItemVisitor for Meanwhile<'_> {
    fn item(&mut self, item: &Item<'_>) {
        if let Item::Event(event) = item
            && matches!(event.kind, EventKind::Begin | EventKind::Complete { .. })
        {
            self.found.begins(event);
        }
        self.slices.item(item, &mut self.found);
    }
}

impl Kind {
    /// Whether polls answer the question.
    fn is_about_polls(self) -> bool {
        matches!(self, Self::Queue | Self::AwaitedQueue | Self::Late | Self::After)
    }

    /// Whether the question is a slice of the target.
    fn is_example(self) -> bool {
        matches!(self, Self::Slow | Self::Typical)
    }
}

impl<'s> Found<'s> {
    /// Takes the arguments of an example.
    fn begins(&mut self, event: &Event<'_>) {
        let place = (event.track, event.time);
        for number in self.examples.get(&place).map_or(&[][..], Vec::as_slice) {
            let target = &mut self.targets[*number];
            if self.survey.keys().text(target.chosen.name.name) == event.name.text {
                let mut arguments = arguments(event);
                // The numbers of tasks grow. A later task is not slow because of its number.
                if self.survey.tasks.is_life(event.track) {
                    arguments.retain(|argument| argument.name != NUMBER);
                }
                target.arguments.insert(place, arguments);
            }
        }
    }

    fn other(&mut self, question: &Question<'_>, key: (Key, Key, TrackId)) -> &mut Other {
        self.targets[question.target].others.entry(key).or_default()
    }

    /// Adds what an outermost poll, or a slice `parked`, took of the time in the queue.
    fn answer_queue(&mut self, number: usize, candidate: &Candidate, overlap: i64) {
        let Candidate { slice, is_poll, is_parked, .. } = candidate;
        let Question { target, part, kind, .. } = self.questions[number];
        if part.worker != Some(slice.track) {
            return;
        }
        let target = &mut self.targets[target];
        let (polls, parked) = match kind {
            Kind::AwaitedQueue => (&mut target.awaited_queues.polls, &mut target.awaited_queues.parked),
            _ => (&mut target.polls, &mut target.parked),
        };
        if *is_parked {
            *parked = parked.saturating_add(overlap);
        }
        let key = (slice.category, slice.name);
        if *is_poll && (polls.len() < MOST || polls.contains_key(&key)) {
            polls.entry(key).or_default().add(slice, overlap);
        }
    }

    /// Notes a poll that a thread had just ended as it ended a wait: the last one, or the one that kept it
    /// longest from looking for what is ready.
    fn answer_before(&mut self, number: usize, candidate: &Candidate, overlap: i64) {
        let Candidate { slice, end, is_poll, .. } = candidate;
        let Question { part, kind, .. } = self.questions[number];
        let is_near = (part.end.saturating_sub(NEAR)..=part.end).contains(end);
        if !is_poll || !is_near || part.worker != Some(slice.track) {
            return;
        }
        let before = self.polls_before.entry(number).or_insert((*slice, overlap));
        let end_before = before.0.start.saturating_add(before.0.duration);
        let is_better = if kind == Kind::Late { overlap > before.1 } else { *end > end_before };
        if is_better {
            *before = (*slice, overlap);
        }
    }

    /// What a slice is for the questions; nothing if it answers none.
    fn candidate(&self, slice: &Slice, above: &[Frame]) -> Option<Candidate> {
        let (survey, end) = (self.survey, slice.start.saturating_add(slice.duration));
        let mut candidate =
            Candidate { slice: *slice, end, lives: Vec::new(), is_poll: false, is_parked: false };
        let names = &survey.track_names;
        if names.tid(slice.track).is_some() {
            candidate.is_parked = is_parked(survey.keys(), (slice.category, slice.name));
            candidate.is_poll = self.has_queues
                && survey.has_polls(slice.category, slice.name)
                && !above.iter().any(|above| survey.has_polls(above.category, above.name));
            return Some(candidate);
        }
        // Intervals of async tasks hold nothing up, but for those of a task that has a lock.
        if !self.lives.is_empty() {
            let above = std::iter::successors(Some(slice.track), |track| names.track_above(*track));
            candidate.lives.extend(above.take(DEEPEST).filter(|track| self.lives.contains(track)));
        }
        (!candidate.lives.is_empty()).then_some(candidate)
    }

    fn answer(&mut self, number: usize, candidate: &Candidate) {
        let Candidate { slice, end, lives, .. } = candidate;
        let (question, end) = (self.questions[number], *end);
        let overlap = end.min(question.part.end).saturating_sub(slice.start.max(question.part.start));
        match question.kind {
            Kind::Queue | Kind::AwaitedQueue if overlap > 0 => {
                return self.answer_queue(number, candidate, overlap);
            }
            Kind::Late | Kind::After if overlap >= 0 => {
                return self.answer_before(number, candidate, overlap);
            }
            Kind::Queue | Kind::AwaitedQueue | Kind::Late | Kind::After => return,
            _ => {}
        }
        let is_interval = !lives.is_empty();
        if is_interval && !question.life.is_some_and(|life| lives.contains(&life)) || candidate.is_parked {
            return;
        }
        let key = (slice.category, slice.name, slice.track);
        let others = &self.targets[question.target].others;
        if overlap <= 0
            || question.part.track == slice.track
            || question.kind.is_example() && is_inside(question.polls, slice)
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
            Kind::Queue | Kind::AwaitedQueue | Kind::Late | Kind::After => {}
            Kind::Sleep | Kind::Wait | Kind::Core => {
                // Intervals and polls of one task are on several tracks: the innermost of all counts.
                let is_of_task = is_interval || is_inside(question.polls, slice);
                let place = (number, question.life.filter(|_| is_of_task).unwrap_or(slice.track));
                let is_full = self.open.len() >= MOST_OPEN && !self.open.contains_key(&place);
                let may_end = is_of_task || self.may_end(&question, slice.track);
                // A thread may begin a slice some time after it got the core.
                let is_open = match question.kind {
                    Kind::Core => overlap > question.part.duration() / 2,
                    // Who waits for a lock has it nowhere.
                    Kind::Wait if slice.name == question.part.wait.name => false,
                    Kind::Wait if is_interval && !self.may_release(candidate, question.part.end) => false,
                    _ => is_open(&question.part, slice),
                };
                if is_full || !is_open || !may_end {
                    return;
                }
                let has_ended = end <= question.part.end.saturating_add(near(question.part.duration()));
                let Slice { start, category, name, .. } = *slice;
                let open = Open { start, category, name, has_ended, overlap };
                let innermost = self.open.entry(place).or_insert(open);
                if innermost.start < start {
                    *innermost = open;
                }
            }
        }
    }

    /// Whether an interval of the task that has a lock may be what the lock is held for: it ends before the
    /// release, or is polled then. Another branch of a `join!` is neither, nor is a wait that goes on.
    fn may_release(&self, Candidate { slice, end, .. }: &Candidate, release: i64) -> bool {
        let place = (slice.track, slice.start, *end);
        let polls = self.survey.polls_of((slice.category, slice.name), place, false);
        let is_polled = |poll: &Poll| (poll.start..=poll.end).contains(&release);
        let is_wait = self.survey.keys().text(slice.name).starts_with(PREFIX);
        *end <= release || polls.is_empty() && !is_wait || polls.iter().any(is_polled)
    }

    /// Whether the thread of a track may have ended a sleep or a wait.
    fn may_end(&self, Question { part, kind, .. }: &Question<'_>, track: TrackId) -> bool {
        let tid = self.survey.track_names.own_tid(track);
        match (part.waker, tid) {
            (Some(waker), tid) => tid == Some(waker),
            // A thread that did not run before the sleep ended has not ended it: it may even be a thread that
            // waits for the one that slept.
            // Where wake-ups are recorded, a sleep without one was ended by a timer or the like.
            (None, Some(tid))
                if *kind == Kind::Sleep && !part.is_woken && !self.survey.timeline.has_wakers() =>
            {
                let before = part.end.saturating_sub(near(part.duration()));
                self.survey.timeline.split(tid, before, part.end).running > 0
            }
            _ => false,
        }
    }
}

impl SliceSink for Found<'_> {
    fn slice(&mut self, slice: &Slice, above: &mut [Frame]) {
        let end = slice.start.saturating_add(slice.duration);
        let (first, last) = self.time.unwrap_or((slice.start, end));
        self.time = Some((first.min(slice.start), last.max(end)));
        let Some(candidate) = self.candidate(slice, above) else { return };
        if candidate.lives.is_empty() {
            let bits = i64::BITS - slice.duration.leading_zeros();
            let (count, sum) = self.lengths.entry((slice.category, slice.name, bits)).or_default();
            *count += 1;
            *sum = sum.saturating_add(slice.duration);
        }
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
                self.answer(index, &candidate);
            }
        }
    }
}
