//! The second reading: how the time of the chosen slices splits.

use std::collections::HashMap;
use std::io;

use hairline_convert::slices::{Frame, Key, Point, Slice, SliceSink, Slices};
use hairline_convert::timeline::Split;
use hairline_convert::{Item, RunState, SampleKind, TrackId};

use crate::explain::awaited::Lives;
use crate::explain::locks::{HeldBy, Kind, Tags, is_end};
use crate::explain::nested::{Below, Nested, Own, Within, covered};
use crate::explain::own_polls::Poll;
use crate::explain::polls::POLL_AFTER;
use crate::explain::survey::{Chosen, SliceName, Survey};
use crate::explain::target::{Band, InWaits, Inner, Inside, Longest, Part, Queued, Target, Wait, add};
use crate::explain::tasks::{DROPPED_TAG, WAKE_TAG, is_drop, is_next, is_queued, is_wake, is_wake_slice};
use crate::explain::turns::Turn;
use crate::explain::wakes::{self, Wakes};
use crate::stretches::sum;
use crate::trace::ItemVisitor;

/// The mark of a frame that is in no chosen slice. Other marks are 2 plus the depth of the innermost chosen
/// slice around the frame, or of itself.
const OUTSIDE: u32 = 1;

pub(super) struct Gather<'s> {
    slices: Slices,
    found: Found<'s>,
}

struct Found<'s> {
    survey: &'s Survey,
    numbers: HashMap<SliceName, usize>,
    targets: Vec<Target>,
    /// What the slices inside open chosen slices add up to, by track and depth of the chosen one.
    open: HashMap<(TrackId, u32), Inside>,
    /// The split of finished slices inside the open slice at each depth, by track.
    below: Vec<Vec<Split>>,
    nested: Nested<'s>,
    /// The waits for locks inside open chosen slices of threads, by track.
    waits: HashMap<TrackId, Longest<1024>>,
    /// The last wait of each track about whose end there is an instant: its begin, and the tag of that.
    ends: HashMap<TrackId, (i64, u32)>,
    /// The begin and the name of the interval that ends, if its future was dropped before it was ready.
    dropped: Option<(i64, Key)>,
    /// The polls of the chosen intervals, by the number of the target: begins, and tracks of the workers.
    polls: Vec<Vec<(i64, TrackId)>>,
    /// The begins and ends of the chosen intervals. One without an end lasts for ever.
    lives: Vec<Vec<(i64, i64)>>,
    wakes: Wakes,
    lives_of_tasks: Lives<'s>,
}

/// The limit for polls of one name, and for its intervals. The workers of further ones are not known.
const MOST_POLLS: usize = 1 << 21;

impl<'s> Gather<'s> {
    pub(super) fn new(survey: &'s Survey, slices: Slices, chosen: Vec<Chosen>) -> Self {
        let numbers = chosen.iter().enumerate().map(|(number, chosen)| (chosen.name, number)).collect();
        let intervals = chosen.iter().filter(|chosen| !chosen.name.is_on_thread);
        let shortest = intervals.map(|chosen| chosen.slow).min().unwrap_or(i64::MAX);
        let target = |chosen| Target {
            chosen,
            all: Band::default(),
            typical: Band::default(),
            slow: Band::default(),
            slow_examples: Longest::default(),
            typical_examples: Longest::default(),
            arguments: HashMap::new(),
            first: 0,
            sleeps: Longest::default(),
            waits: Longest::default(),
            turns: Longest::default(),
            held_in: HashMap::new(),
            cores: Longest::default(),
            ran_in: HashMap::new(),
            queues: Longest::default(),
            polls: HashMap::new(),
            polls_alone: 0,
            parked: 0,
            gaps: Longest::default(),
            wakers: HashMap::new(),
            lasts: Longest::default(),
            last_wakers: HashMap::new(),
            awaited: HashMap::new(),
            awaited_queues: Queued::default(),
            left: Longest::default(),
            left_wakers: HashMap::new(),
            late: Longest::default(),
            late_polls: HashMap::new(),
            after: Longest::default(),
            after_polls: HashMap::new(),
            woken: HashMap::new(),
            dropped_waits: (0, 0),
            others: HashMap::new(),
            chances: HashMap::new(),
        };
        let targets: Vec<_> = chosen.into_iter().map(target).collect();
        let (polls, lives) = (vec![Vec::new(); targets.len()], vec![Vec::new(); targets.len()]);
        let found = Found {
            survey,
            numbers,
            targets,
            open: HashMap::new(),
            below: Vec::new(),
            nested: Nested::default(),
            waits: HashMap::new(),
            ends: HashMap::new(),
            dropped: None,
            polls,
            lives,
            wakes: Wakes::default(),
            lives_of_tasks: Lives::new(shortest),
        };
        Self { slices, found }
    }

    pub(super) fn finish(mut self) -> io::Result<(Vec<Target>, Lives<'s>)> {
        self.slices.finish(&mut self.found)?;
        let Found { survey, mut targets, polls, lives, mut wakes, lives_of_tasks, .. } = self.found;
        wakes.sort();
        for ((target, mut polls), lives) in targets.iter_mut().zip(polls).zip(lives) {
            target.slow_examples.shorten();
            target.typical_examples.shorten();
            target.sleeps.shorten();
            target.waits.shorten();
            target.turns.shorten();
            target.cores.shorten();
            target.queues.shorten();
            target.gaps.shorten();
            target.lasts.shorten();
            target.left.shorten();
            wakes.look(survey, target);
            lives_of_tasks.look_at(survey, &wakes, target);
            target.awaited_queues.times.shorten();
            target.late.shorten();
            target.after.shorten();
            polls.sort_unstable();
            for queue in target.queues.all_mut() {
                let next = polls.get(polls.partition_point(|(start, _)| *start < queue.end));
                let next = next.filter(|(start, _)| start.saturating_sub(queue.end) <= POLL_AFTER);
                queue.worker = next.map(|(_, worker)| *worker);
            }
            target.polls_alone = alone(&polls, lives);
        }
        Ok((targets, lives_of_tasks))
    }
}

impl ItemVisitor for Gather<'_> {
    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Event(event) if let Some(tag @ 1..) = self.found.survey.locks.tag(event) => {
                self.slices.tagged(event, tag, &mut self.found);
            }
            Item::Event(event) if is_wake(event) => self.slices.tagged(event, WAKE_TAG, &mut self.found),
            Item::Event(event) if is_drop(event) => self.slices.tagged(event, DROPPED_TAG, &mut self.found),
            _ => self.slices.item(item, &mut self.found),
        }
    }
}

impl<'s> Found<'s> {
    fn number(&self, category: Key, name: Key, track: TrackId) -> Option<usize> {
        let is_on_thread = self.survey.track_names.tid(track).is_some();
        self.numbers.get(&SliceName { category, name, is_on_thread }).copied()
    }

    /// The depth of the innermost chosen slice around. Marks the frames with theirs.
    fn around(&self, track: TrackId, above: &mut [Frame]) -> Option<u32> {
        let known = above.iter().rposition(|frame| frame.mark != 0);
        let mut mark = known.map_or(OUTSIDE, |known| above[known].mark);
        let first = known.map_or(0, |known| known + 1);
        for (depth, frame) in above.iter_mut().enumerate().skip(first) {
            if self.number(frame.category, frame.name, track).is_some() {
                mark = depth as u32 + 2;
            }
            frame.mark = mark;
        }
        mark.checked_sub(2)
    }

    /// Notes a poll, and the polls around it.
    fn polled_inside(&mut self, slice: &Slice, above: &[Frame]) {
        let survey = self.survey;
        let is_thread = survey.track_names.tid(slice.track).is_some();
        if is_thread && above.is_empty() && survey.has_polls(slice.category, slice.name) {
            self.wakes.add_poll(slice);
        } else if is_thread && survey.is_poll(slice.category, slice.name) {
            let polls = above.iter().filter(|above| survey.is_poll(above.category, above.name));
            self.nested.polled(slice.name, polls.map(|above| above.name));
        }
    }

    /// Adds the poll of a chosen interval, or the time of the interval itself.
    fn poll(&mut self, slice: &Slice, end: i64) {
        if self.survey.track_names.tid(slice.track).is_none() {
            let number = self.number(slice.category, slice.name, slice.track);
            let lives = number.and_then(|number| self.lives.get_mut(number));
            lives.into_iter().filter(|lives| lives.len() < MOST_POLLS).for_each(|lives| {
                lives.push((slice.start, end));
            });
            return;
        }
        let of = SliceName { category: slice.category, name: slice.name, is_on_thread: false };
        let polls = self.numbers.get(&of).and_then(|number| self.polls.get_mut(*number));
        if let Some(polls) = polls.filter(|polls| polls.len() < MOST_POLLS) {
            polls.push((slice.start, slice.track));
        }
    }

    /// The split of a slice's own time, and of all of it.
    fn splits(&mut self, slice: &Slice, depth: usize, is_nested: bool) -> (Split, Split) {
        let (survey, end) = (self.survey, slice.start.saturating_add(slice.duration));
        let of_tid = |tid| survey.timeline.split(tid, slice.start, end);
        let mut whole = survey
            .track_names
            .own_tid(slice.track)
            .map_or(Split { unknown: slice.duration, ..Split::default() }, of_tid);
        if whole.unknown == slice.duration
            && let Some(running) = survey.cpu_times.running(slice.track, slice.start, end)
        {
            whole = Split { running, off_cpu: slice.duration.saturating_sub(running), ..Split::default() };
        }
        let track = slice.track.0 as usize;
        if self.below.len() <= track {
            self.below.resize_with(track + 1, Vec::new);
        }
        let below = &mut self.below[track];
        if below.len() <= depth + 1 {
            below.resize(depth + 2, Split::default());
        }
        let inner = std::mem::take(&mut below[depth + 1]);
        if !is_nested {
            below[depth] = below[depth].plus(whole);
        }
        (whole.minus(inner), whole)
    }

    /// What is inside of an interval that ends, its time without that, and whether the one around it on its
    /// track finds all this here. What is inside is empty if nobody asks for it.
    fn nested(
        &mut self,
        (slice, is_dropped): (&Slice, bool),
        (depth, polls): (usize, &'s [Poll]),
        wait: Option<Wait>,
        is_asked: bool,
    ) -> (Within, i64, bool) {
        let names = &self.survey.track_names;
        let part = Part::new(slice.track, slice.start, slice.start.saturating_add(slice.duration));
        let wait = wait.map(|wait| Part { wait, ..part });
        if names.tid(slice.track).is_some() {
            return (Within::default(), slice.duration, false);
        }
        if depth > 0 && is_queued(self.survey.keys(), slice) {
            self.nested.add_queue(part);
            return (Within::default(), slice.duration, false);
        }
        if depth == 0 {
            self.nested.end(slice, names);
        }
        if depth == 0 && is_next(self.survey.keys(), slice) {
            names.track_above(slice.track).into_iter().for_each(|stream| self.nested.add_next(stream, &part));
            return (Within::default(), slice.duration, false);
        }
        let (mut within, mut own) = self.nested.take(slice, depth, is_dropped, polls);
        let around =
            if wait.is_some() || is_asked { self.nested.queues(names, slice, depth) } else { Vec::new() };
        // After the wake that ends a wait, the task waits for a worker.
        let up_to_wake = around.first().map_or(part.end, |queue| queue.start);
        let wait = wait.map(|wait| Part { end: up_to_wake, ..wait });
        if wait.is_some() {
            own = vec![Own { name: slice.name, stretch: (slice.start, up_to_wake) }];
        }
        let own_time = sum(own.iter().map(|own| own.stretch));
        if depth == 0 && self.survey.tasks.is_life(slice.track) {
            self.lives_of_tasks.add(slice, &within, polls);
        }
        let mut copy = if is_asked { within.clone() } else { Within::default() };
        copy.waits.extend(wait);
        copy.queues.extend(around);
        let is_nested = depth > 0 && (wait.is_some() || !polls.is_empty() || !within.is_empty());
        let parent = if depth == 0 { names.track_above(slice.track) } else { Some(slice.track) };
        if let Some(parent) = parent.filter(|_| depth == 0 || is_nested) {
            within.waited = Vec::new(); // of no use to the one around it
            within.own.extend(own);
            self.nested.add(parent, Below { slice: *slice, wait, polls, is_dropped, within });
        }
        (copy, own_time, is_nested)
    }

    /// Notes what is known of the end of the wait around.
    fn ends_wait(&mut self, track: TrackId, tag: u32, above: &[Frame]) {
        if let Some(wait) = above.last().filter(|above| above.tag != 0) {
            self.ends.insert(track, (wait.start, tag));
        }
    }

    /// Adds the waits and the times in the queue of a chosen interval.
    fn waited(
        &mut self,
        number: usize,
        (slice, is_dropped): (&Slice, bool),
        within: &Within,
        polls: &[Poll],
    ) {
        let Within { waits, queues, .. } = within;
        let (survey, target) = (self.survey, &mut self.targets[number]);
        let locks = &survey.locks;
        // A task may wait for a notification all the time, beside other things.
        let may_count =
            |wait: &&Part| !wait.wait.tags.is_dropped || locks.kind(wait.wait.tags) != Kind::Notification;
        let of = |counts: &dyn Fn(&&Part) -> bool| InWaits {
            time: covered(waits.iter().filter(counts)),
            or_in_queue: covered(waits.iter().filter(counts).chain(queues)),
        };
        let in_waits = [of(&|wait| !wait.wait.tags.is_dropped), of(&may_count)];
        let polled = sum(polls.iter().map(|poll| (poll.start, poll.end)));
        let longest = polls.iter().map(|poll| poll.end.saturating_sub(poll.start)).max().unwrap_or(0);
        for band in target.bands(slice.duration) {
            band.polls += polls.len() as u64;
            band.polled = band.polled.saturating_add(polled);
            band.longest_polls = band.longest_polls.saturating_add(longest);
            band.in_queue = band.in_queue.saturating_add(covered(queues));
            for (sum, more) in band.in_waits.iter_mut().zip(in_waits) {
                sum.time = sum.time.saturating_add(more.time);
                sum.or_in_queue = sum.or_in_queue.saturating_add(more.or_in_queue);
            }
        }
        if target.is_slow(slice.duration) {
            waits.iter().for_each(|wait| target.add_wait(survey, *wait));
            queues.iter().for_each(|queue| target.queues.add(*queue));
            wakes::gaps((slice.track, slice.start), within, polls, |gap| target.gaps.add(gap));
            let part = |last: Part| Part { track: slice.track, ..last };
            let last = wakes::last(queues, slice.start, i64::MAX).filter(|_| !is_dropped);
            last.into_iter().for_each(|last| target.lasts.add(part(last)));
            let left = within.left.iter().filter_map(|left| wakes::last(queues, left.start, left.end));
            left.for_each(|left| target.left.add(part(left)));
        }
    }

    fn chosen(&mut self, number: usize, slice: &Slice, whole: Split, inside: &Inside) {
        let survey = self.survey;
        let target = &mut self.targets[number];
        let (is_typical, is_slow) = (target.is_typical(slice.duration), target.is_slow(slice.duration));
        let tid = survey.track_names.own_tid(slice.track);
        for band in target.bands(slice.duration) {
            band.count += 1;
            band.duration = band.duration.saturating_add(slice.duration);
            band.split = band.split.plus(whole);
            band.inside.add(inside);
            look_inside(survey, band, slice);
        }
        let end = slice.start.saturating_add(slice.duration);
        let example = Part::new(slice.track, slice.start, end);
        if is_slow {
            target.slow_examples.add(example);
        }
        if is_typical {
            target.typical_examples.add(example);
        }
        if !is_slow {
            return;
        }
        let waits = self.waits.get(&slice.track).filter(|_| tid.is_some()).map_or(&[][..], Longest::all);
        let waits = waits.iter().filter(|wait| wait.start >= slice.start);
        waits.clone().for_each(|wait| target.add_wait(survey, *wait));
        let is_wait = |start, end| waits.clone().any(|wait| wait.start <= start && end <= wait.end);
        if let Some(tid) = tid {
            survey.timeline.stretches(tid, slice.start, end, &mut |stretch| {
                let (start, end) = (stretch.start, stretch.end);
                match (stretch.state, stretch.cpu) {
                    (Some(RunState::Runnable), Some(cpu)) => {
                        survey.timeline.ran_on(cpu, start, end, &mut |other, from, to| {
                            let run = Part { waker: Some(other), ..Part::new(slice.track, from, to) };
                            target.cores.add(run);
                        });
                    }
                    // What is stopped waits for nothing.
                    (Some(RunState::Stopped), _) => {}
                    // What a wait for a lock is for is known.
                    (Some(state), _) if state.is_asleep() && stretch.is_whole && !is_wait(start, end) => {
                        let (waker, has_wakeup) = (stretch.waker, stretch.is_woken);
                        let is_woken = waker.is_some() || stretch.is_interrupted;
                        let sleep = Part::new(slice.track, start, end);
                        target.sleeps.add(Part { has_wakeup, is_woken, waker, ..sleep });
                    }
                    _ => {}
                }
            });
        }
    }
}

/// Who had the lock in turn during a wait.
fn turns(survey: &Survey, wait: &Part) -> Vec<Turn> {
    let process = survey.track_names.process_of(wait.track);
    survey.locks.turns(process, wait.wait.tags, (wait.start, wait.end))
}

impl Target {
    /// Adds a wait of one of the slowest.
    fn add_wait(&mut self, survey: &Survey, wait: Part) {
        self.waits.add(wait);
        for Turn { held, start, end } in turns(survey, &wait) {
            let wait = Part { wait: Wait { held, ..wait.wait }, ..wait };
            self.turns.add(Part { start, end, waker: held.holder.thread(), ..wait });
        }
    }
}

/// The number of polls that begin while there is no interval. 0 if there are too many intervals to be sure.
fn alone(polls: &[(i64, TrackId)], mut lives: Vec<(i64, i64)>) -> u64 {
    if lives.len() >= MOST_POLLS {
        return 0;
    }
    lives.sort_unstable();
    // The latest end of those up to each one.
    let mut last = i64::MIN;
    lives.iter_mut().for_each(|(_, end)| {
        last = last.max(*end);
        *end = last;
    });
    let has_life = |start: i64| {
        let before = lives.partition_point(|(begin, _)| *begin <= start);
        before.checked_sub(1).is_some_and(|before| lives[before].1 >= start)
    };
    polls.iter().filter(|(start, _)| !has_life(*start)).count() as u64
}

/// Adds what the thread of a slice did: samples, and what it waited for.
fn look_inside(survey: &Survey, band: &mut Band, slice: &Slice) {
    let Some(tid) = survey.track_names.tid(slice.track) else { return };
    let (start, end) = (slice.start, slice.start.saturating_add(slice.duration));
    band.large = band.large.and(survey.memory.large(slice.track, start, end));
    let thread = (survey.track_names.pid(slice.track), tid);
    for (_, stack) in survey.samples.of(SampleKind::OnCpu, thread, start, end) {
        add(&mut band.on_cpu, *stack, 1);
    }
    for (_, stack) in survey.samples.of(SampleKind::Wall, thread, start, end) {
        add(&mut band.by_clock, *stack, 1);
    }
    // A slow slice has one at the moment of its end.
    for (_, stack) in survey.samples.of(SampleKind::Event, thread, start, end.saturating_add(1)) {
        add(&mut band.events, *stack, 1);
    }
    if survey.track_names.own_tid(slice.track).is_some() {
        look_at_waits(survey, band, thread, (start, end));
    }
}

/// Adds what a thread waited for.
pub(super) fn look_at_waits(survey: &Survey, band: &mut Band, thread: (u64, u64), (start, end): (i64, i64)) {
    let (_, tid) = thread;
    let timeline = &survey.timeline;
    timeline.stretches(tid, start, end, &mut |stretch| {
        let duration = stretch.end.saturating_sub(stretch.start);
        match stretch.state {
            Some(RunState::Runnable) => {
                let Some(cpu) = stretch.cpu else { return };
                timeline.ran_on(cpu, stretch.start, stretch.end, &mut |other, from, to| {
                    if other != tid {
                        add(&mut band.holders, other, to.saturating_sub(from));
                    }
                });
            }
            Some(state) if state.is_asleep() => {
                if let Some(waker) = stretch.waker {
                    add(&mut band.wakers, waker, duration);
                }
                // The sample is taken a moment before the thread leaves its processor.
                const BEFORE: i64 = 100_000;
                let off_cpu = survey.samples.of(
                    SampleKind::OffCpu,
                    thread,
                    stretch.start.saturating_sub(BEFORE),
                    stretch.start.saturating_add(1),
                );
                // A sample by the clock ends the sleep, and is taken as soon as the thread runs.
                const AFTER: i64 = 100_000;
                let woken = survey.samples.of(
                    SampleKind::Wall,
                    thread,
                    stretch.start,
                    stretch.end.saturating_add(AFTER),
                );
                if let Some((_, stack)) = off_cpu.last().or(woken.first()) {
                    add(&mut band.off_cpu, *stack, duration);
                }
            }
            _ => {}
        }
    });
}

impl SliceSink for Found<'_> {
    fn begins(&mut self, slice: &Frame, track: TrackId, depth: usize) {
        if depth == 0 && slice.tag == 0 {
            self.nested.begin(track, slice, &self.survey.track_names);
        }
    }

    fn ends(&mut self, slice: &Frame, tag: u32) {
        self.dropped = (tag == DROPPED_TAG).then_some((slice.start, slice.name));
    }

    fn slice(&mut self, slice: &Slice, above: &mut [Frame]) {
        let is_dropped = self.dropped.take() == Some((slice.start, slice.name));
        if slice.tag != 0 && is_end(self.survey.keys().text(slice.name)) {
            return self.ends_wait(slice.track, slice.tag, above);
        }
        let wait = (slice.tag != 0).then(|| {
            let end = self.ends.remove(&slice.track).filter(|(start, _)| *start == slice.start);
            let end = self.survey.locks.ended_by(slice.track, slice.start, end.map_or(0, |(_, tag)| tag));
            let names = &self.survey.track_names;
            let is_interval = names.tid(slice.track).is_none();
            let process = is_interval.then(|| names.process_of(slice.track)).flatten();
            let tags = Tags { begin: slice.tag, end, process, is_dropped };
            let around = above.last().map_or(Key::NONE, |above| above.name);
            Wait { name: slice.name, tags, around, held: HeldBy::default() }
        });
        if is_wake_slice(self.survey.keys(), slice) {
            self.wakes.add(self.survey, (slice.track, slice.start), above);
        }
        let around = self.around(slice.track, above);
        let number = self.number(slice.category, slice.name, slice.track);
        let depth = above.len();
        self.poll(slice, slice.start.saturating_add(slice.duration));
        self.polled_inside(slice, above);
        let is_interval = self.survey.track_names.tid(slice.track).is_none();
        let place = (slice.track, slice.start, slice.start.saturating_add(slice.duration));
        let name = (slice.category, slice.name);
        let polls = if is_interval { self.survey.polls_of(name, place, is_dropped) } else { &[] };
        let (within, own_time, is_nested) =
            self.nested((slice, is_dropped), (depth, polls), wait, number.is_some());
        let mut inside = within.inside();
        if around.is_none() && number.is_none() {
            return;
        }
        let (mut own, whole) = self.splits(slice, depth, is_nested);
        own.unknown = own.unknown.saturating_sub(slice.duration.saturating_sub(own_time)).max(0);
        let itself = Inner { count: 1, total: slice.duration, own };
        inside.slices(slice.name, &itself);
        if let Some(wait) = wait.filter(|_| self.survey.track_names.tid(slice.track).is_some()) {
            let until = slice.start.saturating_add(slice.duration);
            let part = Part { wait, ..Part::new(slice.track, slice.start, until) };
            inside.wait(wait, &turns(self.survey, &part), &itself);
            self.waits.entry(slice.track).or_default().add(part);
        }
        if let Some(number) = number {
            inside.add(&self.open.remove(&(slice.track, depth as u32)).unwrap_or_default());
            let mut with_waits = inside.clone();
            for wait in &within.waits {
                let own = Split { unknown: wait.duration(), ..Split::default() };
                let inner = Inner { own, ..Inner::without_own(wait.duration()) };
                with_waits.wait(wait.wait, &turns(self.survey, wait), &inner);
            }
            self.chosen(number, slice, whole, &with_waits);
            self.waited(number, (slice, is_dropped), &within, polls);
        }
        if let Some(around) = around.filter(|_| !is_nested) {
            // Slices inside it are inside the next chosen one around it too.
            self.open.entry((slice.track, around)).or_default().add(&inside);
        } else if around.is_none() {
            // Nothing around it asks for what is inside.
            self.waits.remove(&slice.track);
            if let Some(below) = self.below.get_mut(slice.track.0 as usize) {
                below.iter_mut().for_each(|split| *split = Split::default());
            }
        }
    }

    fn open_slice(&mut self, slice: &Slice, _: &mut [Frame]) {
        if self.survey.track_names.tid(slice.track).is_none() {
            self.poll(slice, i64::MAX);
        }
    }

    fn point(&mut self, point: &Point, above: &mut [Frame]) {
        if point.tag == WAKE_TAG {
            self.wakes.add(self.survey, (point.track, point.time), above);
        } else {
            self.ends_wait(point.track, point.tag, above);
        }
    }
}
