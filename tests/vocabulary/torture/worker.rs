//! A thread that does random things.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::SeqCst;

use hairline::{
    AsyncScope, Flow, Level, Scope, Track, TrackScope, Unit, scope, trace_async, trace_begin, trace_counter,
    trace_end, trace_instant, trace_log,
};
use hairline_tests::torture::Random;

use super::outside;
use super::world::{Around, Entry, Held, OpenOn, What, World, depth, end_interval, end_on, lock};

pub(super) struct Worker<'w> {
    world: &'w World,
    random: Random,
    mine: Track,
    around: RefCell<Vec<Around>>,
    log: RefCell<Vec<Entry>>,
}

enum Guard {
    Scope(Scope),
    Track(TrackScope),
}

/// An open slice of this thread.
struct Open<'a, 'w> {
    worker: &'a Worker<'w>,
    guard: Option<Guard>,
    entry: Entry,
    says_its_end: bool,
}

impl Drop for Open<'_, '_> {
    fn drop(&mut self) {
        let worker = self.worker;
        let before = worker.world.now();
        if self.says_its_end {
            let id = self.entry.id;
            match (&mut self.guard, self.entry.what) {
                (Some(Guard::Scope(scope)), What::Bare) => drop(scope.arg("id", id)),
                (Some(Guard::Scope(scope)), _) => drop(scope.arg("ended", id)),
                (Some(Guard::Track(scope)), _) => drop(scope.arg("ended", id)),
                (None, _) => {}
            }
        }
        drop(self.guard.take());
        self.entry.end = Some((before, worker.world.now()));
        worker.around.borrow_mut().pop();
        worker.log.borrow_mut().push(self.entry.clone());
    }
}

impl<'w> Worker<'w> {
    pub(super) fn run(world: &'w World, seed: u64, operations: u64) {
        let worker = Self {
            world,
            random: Random::new(seed),
            mine: Track::thread(),
            around: RefCell::default(),
            log: RefCell::default(),
        };
        for n in 0..operations {
            if world.over.load(SeqCst) {
                break;
            }
            if world.plan.signals {
                worker.get_ready();
            }
            worker.operation(0);
            if world.plan.sessions > 1 && n % 32 == 0 {
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
        }
        outside::READY.set(0);
        lock(&world.log).append(&mut worker.log.borrow_mut());
    }

    /// From here on a signal handler may record on this thread.
    fn get_ready(&self) {
        let state = self.world.now();
        if outside::READY.get() != state {
            outside::record();
            let recorded = scope!("a", "ready").is_recorded();
            outside::READY.set(if recorded && self.world.now() == state { state } else { 0 });
        }
    }

    fn entry(&self, what: What, around: &[Around]) -> Entry {
        let state = self.world.now();
        let (depth, assumes) = depth(around, state);
        Entry {
            id: self.world.id(),
            what,
            begin: (state, state),
            recorded: None,
            depth,
            assumes,
            end: None,
            flow: None,
        }
    }

    fn own_entry(&self, what: What) -> Entry {
        self.entry(what, &self.around.borrow())
    }

    fn done(&self, mut entry: Entry) {
        entry.begin.1 = self.world.now();
        self.log.borrow_mut().push(entry);
    }

    fn operation(&self, level: u32) {
        match self.random.below(24) {
            0..=7 => self.scope(level),
            8..=10 => self.on_a_track(),
            11..=13 => self.begin_interval(),
            14..=16 => self.end_interval(),
            17..=18 => self.instant(),
            19..=20 => self.counter(),
            21 => self.log(),
            22 => self.panic(level),
            _ if self.random.one_in(60) => self.deep(0),
            _ if self.random.one_in(20) => self.fork(),
            _ => self.scope(level),
        }
    }

    fn some(&self, level: u32) {
        if level < 10 {
            (0..self.random.below(3)).for_each(|_| self.operation(level + 1));
        }
    }

    fn open(&self, guard: Guard, mut entry: Entry) -> Open<'_, 'w> {
        entry.recorded = Some(match &guard {
            Guard::Scope(scope) => scope.is_recorded(),
            Guard::Track(scope) => scope.is_recorded(),
        });
        entry.begin.1 = self.world.now();
        self.around.borrow_mut().push(Around::new(&entry));
        Open { worker: self, guard: Some(guard), entry, says_its_end: self.random.one_in(2) }
    }

    fn scope(&self, level: u32) {
        let kind = self.random.below(8);
        let mut entry = self.own_entry(if kind < 2 { What::Bare } else { What::Scope });
        let id = entry.id;
        let open = match kind {
            0 => self.open(Guard::Scope(scope!("a", "bare")), entry),
            1 => self.open(Guard::Scope(scope!("b", "bare")), entry),
            2 => self.open(Guard::Scope(scope!("a", "numbered", id)), entry),
            3 => self.open(Guard::Scope(scope!("c", "text", id, text = "some text", more = 1.5)), entry),
            4 => self.open(Guard::Scope(scope!("b", "named", id, name: format!("named {}", id % 5))), entry),
            5 if id % 2 == 0 => {
                let map = std::collections::BTreeMap::from([("one", vec![1, 2]), ("two", vec![])]);
                let name = format!("nested {}", id % 3);
                self.open(Guard::Scope(scope!("a", "nested", id, map, list = [id, 1], name: name)), entry)
            }
            5 => {
                let map = std::collections::BTreeMap::from([("one", vec![1, 2]), ("two", vec![])]);
                self.open(
                    Guard::Scope(scope!("a,b", "nested", id, map, shown = ?[1, 2], correlation: 7)),
                    entry,
                )
            }
            6 => self.open(Guard::Track(scope!("a", "own track", id, track: &self.mine)), entry),
            _ => {
                let taken = lock(&self.world.flows).pop();
                let (number, step, flow) = taken.unwrap_or_else(|| (id, 0, Flow::new()));
                entry.flow = Some((number, step));
                if self.random.one_in(4) {
                    self.open(Guard::Scope(scope!("a", "last", id, end_flow: &flow)), entry)
                } else {
                    let open = self.open(Guard::Scope(scope!("a", "step", id, flow: &flow)), entry);
                    lock(&self.world.flows).push((number, step + 1, flow));
                    open
                }
            }
        };
        self.some(level);
        drop(open);
    }

    fn panic(&self, level: u32) {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let entry = self.own_entry(What::Scope);
            let id = entry.id;
            let _open = self.open(Guard::Scope(scope!("a", "panics", id)), entry);
            self.some(level);
            resume_unwind(Box::new(()));
        }));
        drop(caught);
    }

    fn deep(&self, level: u32) {
        let entry = self.own_entry(What::Scope);
        let id = entry.id;
        let _open = self.open(Guard::Scope(scope!("b", "deep", id)), entry);
        if level < 400 {
            self.deep(level + 1);
        } else {
            self.end_interval();
        }
    }

    fn on_a_track(&self) {
        let Some(mut shared) = lock(&self.world.tracks).pop() else { return };
        for _ in 0..=self.random.below(4) {
            self.use_track(&mut shared);
        }
        let mut tracks = lock(&self.world.tracks);
        let at = self.random.below(tracks.len() as u64 + 1) as usize;
        tracks.insert(at, shared);
    }

    fn use_track(&self, shared: &mut super::world::Shared) {
        let around = shared.around();
        let track = &shared.track;
        match self.random.below(8) {
            0 | 1 if around.len() < 100 => {
                let mut entry = self.entry(What::ByHand, &around);
                let id = entry.id;
                if self.random.one_in(2) {
                    trace_begin!("a", "by hand", id, track: track);
                } else {
                    trace_begin!("c", "by hand", id, track: track, name: "by another name");
                }
                entry.begin.1 = self.world.now();
                shared.open.push(OpenOn::ByHand(entry));
            }
            2 | 3 if around.len() < 100 => {
                let mut entry = self.entry(What::OnTrack, &around);
                let id = entry.id;
                let scope = if self.random.one_in(2) {
                    scope!("a", "on track", id, track: track)
                } else {
                    scope!("b", "on track", id, track: track)
                };
                entry.recorded = Some(scope.is_recorded());
                entry.begin.1 = self.world.now();
                shared.open.push(OpenOn::Guard(scope, entry));
            }
            4 => {
                let entry = self.entry(What::Instant, &around);
                trace_instant!("a", "instant on track", id = entry.id, track: track);
                self.done(entry);
            }
            5 => {
                let entry = self.entry(What::Counter, &[]);
                trace_counter!("a", "on track", entry.id, track: track, unit: "things");
                self.done(entry);
            }
            _ => self.end_on(shared),
        }
    }

    fn end_on(&self, shared: &mut super::world::Shared) {
        if !matches!(shared.open.last(), Some(OpenOn::Guard(..) | OpenOn::ByHand(_))) {
            return;
        }
        if let Some(entry) = end_on(self.world, shared) {
            self.log.borrow_mut().push(entry);
        }
    }

    fn begin_interval(&self) {
        let mut entry = self.entry(What::Interval, &[]);
        let id = entry.id;
        let kind = self.random.below(8);
        let above = if kind < 3 { self.take_interval() } else { None };
        let usable = above.as_ref();
        let scope: AsyncScope = match (kind, usable) {
            (0, Some(above)) => trace_async!("a", "child", id, track: &above.scope),
            (1, Some(above)) => trace_async!("b", "grandchild", id, track: &above.scope),
            (2, Some(above)) => {
                trace_async!("c", "child by name", id, name: format!("child {}", id % 3), track: &above.scope)
            }
            (3, _) => trace_async!("a", "under a track", id, track: &self.mine),
            (4, _) => trace_async!("b", "interval by name", id, name: format!("interval {}", id % 3)),
            (5, _) => trace_async!("b", "interval of b", id),
            _ => trace_async!("a", "interval", id),
        };
        entry.recorded = Some(scope.is_recorded());
        entry.begin.1 = self.world.now();
        let mut all = lock(&self.world.intervals);
        all.extend(above);
        all.push(Held { scope, entry });
        if all.len() > 200 {
            let oldest = all.remove(0);
            drop(all);
            self.log.borrow_mut().push(end_interval(self.world, oldest, false));
        }
    }

    fn take_interval(&self) -> Option<Held> {
        let mut all = lock(&self.world.intervals);
        if all.is_empty() {
            return None;
        }
        // Mostly a young one, so that some grow old.
        let young = if self.random.one_in(20) { all.len() } else { all.len().min(8) };
        let at = all.len() - 1 - self.random.below(young as u64) as usize;
        Some(all.remove(at))
    }

    fn end_interval(&self) {
        if let Some(held) = self.take_interval() {
            if self.random.one_in(3) {
                let entry = self.entry(What::Instant, &[]);
                trace_instant!("a", "instant on interval", id = entry.id, track: &held.scope);
                self.done(Entry { depth: None, ..entry });
            }
            let entry = end_interval(self.world, held, self.random.one_in(2));
            self.log.borrow_mut().push(entry);
        }
    }

    fn instant(&self) {
        let entry = self.own_entry(What::Instant);
        let id = entry.id;
        match self.random.below(4) {
            0 => trace_instant!("a", "instant", id),
            1 => trace_instant!("b", "instant with text", id, text = "t"),
            2 => trace_instant!("c", "instant nested", id, list = [1, 2, 3]),
            _ => trace_instant!("a", "instant", id, name: format!("instant {}", id % 3)),
        }
        self.done(entry);
    }

    fn counter(&self) {
        let common = lock(&self.world.common);
        let entry = self.entry(What::Counter, &[]);
        let id = entry.id;
        match self.random.below(6) {
            0 | 1 => trace_counter!("a", "common", id),
            2 => trace_counter!("b", "common of b", id, unit: Unit::Bytes),
            _ => {
                drop(common);
                match self.random.below(3) {
                    0 => trace_counter!("a", "mine", id, track: &self.mine),
                    1 => trace_counter!("b", "mine in bytes", id, track: &self.mine, unit: Unit::Bytes),
                    _ => trace_counter!("a", "steps", id, track: &self.mine, incremental: true),
                }
            }
        }
        self.done(entry);
    }

    fn log(&self) {
        let entry = self.own_entry(What::Log);
        trace_log!(Level::Info, "a", "message {}", entry.id);
        self.done(entry);
    }

    fn fork(&self) {
        let budget = self.world.forks.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1));
        if !self.world.plan.forks || budget.is_err() {
            return;
        }
        let mut entry = self.entry(What::Interval, &[]);
        let scope = trace_async!("a", "over a fork", id = entry.id);
        entry.recorded = Some(scope.is_recorded());
        entry.begin.1 = self.world.now();
        let mut held = Some(Held { scope, entry });
        outside::in_a_child(|| {
            drop(scope!("a", "in the child"));
            trace_instant!("a", "in the child");
            trace_begin!("a", "in the child", track: &self.mine);
            trace_end!(&self.mine);
            let scope = held.take().map(|held| held.scope);
            drop(scope);
        });
        if let Some(held) = held {
            self.log.borrow_mut().push(end_interval(self.world, held, false));
        }
    }
}
