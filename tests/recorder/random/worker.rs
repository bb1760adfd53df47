//! A thread that does random things and remembers them.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};

use hairline::{AsyncScope, Flow, Track, TrackScope, Unit, scope, trace_async, trace_counter, trace_instant};
use hairline_tests::torture::Random;

use super::Plan;

/// From one thread's numbers to the next one's.
pub(super) const THREAD: i64 = 10_000_000;
/// The first number of a slice on a track.
pub(super) const ON_TRACK: i64 = 1_000_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Begin,
    /// A begin without a number.
    Bare,
    /// The end of a slice of this thread.
    End(usize),
    Instant,
    Counter,
    /// The end of a slice on a track.
    TrackEnd(i64),
}

/// One thing that a thread did; its number is its place in the list.
#[derive(Clone, Debug)]
pub(super) struct Op {
    pub(super) what: What,
    pub(super) is_recorded: bool,
    /// The begin of the slice around it.
    pub(super) around: Option<usize>,
    pub(super) name: String,
    pub(super) text: u64,
    /// The flow that goes through it, and how many events it went through before.
    pub(super) flow: Option<(i64, u32)>,
}

/// A slice on a track, or an interval.
#[derive(Clone, Debug)]
pub(super) struct OnTrack {
    pub(super) is_recorded: bool,
    pub(super) name: &'static str,
    pub(super) around: Vec<i64>,
    pub(super) text: u64,
    /// The world's times after its begin and before its end.
    pub(super) begun: u64,
    pub(super) ends: Option<u64>,
}

/// A track in somebody's hands.
pub(super) struct Shared {
    track: Track,
    open: Vec<(i64, TrackScope)>,
}

pub(super) struct World {
    done: Vec<AtomicI64>,
    time: AtomicU64,
    pub(super) threads: Mutex<Vec<Vec<Op>>>,
    pub(super) on_tracks: Mutex<Vec<OnTrack>>,
    tracks: Mutex<Vec<Shared>>,
    intervals: Mutex<Vec<(i64, AsyncScope)>>,
    flows: Mutex<Vec<(i64, u32, Flow)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no worker panics")
}

/// The text with this number's length that belongs to a number.
pub(super) fn text(id: i64, length: u64) -> String {
    let mut text = format!("{id}.");
    text.extend((0..length).map(|n| (b'a' + ((id.unsigned_abs() + n) % 26) as u8) as char));
    text
}

impl World {
    pub(super) fn new(threads: usize) -> Self {
        let root = Track::new("root");
        let tracks = [Track::process().child("queue"), root.child("leaf"), root];
        Self {
            done: (0..threads).map(|_| AtomicI64::new(0)).collect(),
            time: AtomicU64::new(1),
            threads: Mutex::new(vec![Vec::new(); threads]),
            on_tracks: Mutex::default(),
            tracks: Mutex::new(tracks.into_iter().map(|track| Shared { track, open: Vec::new() }).collect()),
            intervals: Mutex::default(),
            flows: Mutex::default(),
        }
    }

    /// What each thread has done for certain.
    pub(super) fn done(&self) -> Vec<i64> {
        self.done.iter().map(|n| n.load(SeqCst)).collect()
    }

    /// A time that none before was.
    pub(super) fn time(&self) -> u64 {
        self.time.fetch_add(1, SeqCst)
    }

    /// A slice on a track begins; its number.
    fn begin_on(&self, name: &'static str, around: Vec<i64>, text: u64) -> i64 {
        let mut all = lock(&self.on_tracks);
        all.push(OnTrack { is_recorded: false, name, around, text, begun: u64::MAX, ends: None });
        ON_TRACK + all.len() as i64 - 1
    }

    fn begun(&self, id: i64, is_recorded: bool) {
        let now = self.time();
        let slice = &mut lock(&self.on_tracks)[(id - ON_TRACK) as usize];
        (slice.is_recorded, slice.begun) = (is_recorded, now);
    }

    fn ends(&self, id: i64) -> bool {
        let now = self.time();
        let slice = &mut lock(&self.on_tracks)[(id - ON_TRACK) as usize];
        slice.ends = Some(now);
        slice.is_recorded
    }
}

pub(super) struct Worker<'w> {
    world: &'w World,
    plan: &'w Plan,
    number: usize,
    random: Random,
    mine: Track,
    ops: Vec<Op>,
    open: Vec<usize>,
}

impl<'w> Worker<'w> {
    pub(super) fn run(world: &'w World, plan: &'w Plan, number: usize) {
        let random = Random::new(plan.seed ^ ((number as u64) << 32));
        let mut worker =
            Self { world, plan, number, random, mine: Track::thread(), ops: Vec::new(), open: Vec::new() };
        while (worker.ops.len() as u64) < plan.operations {
            worker.operation(0);
        }
        lock(&world.threads)[number] = worker.ops;
    }

    /// The number of what is done next.
    fn id(&self) -> i64 {
        self.number as i64 * THREAD + self.ops.len() as i64
    }

    fn length(&self) -> u64 {
        if self.plan.text > 100 && self.random.below(3) > 0 {
            self.random.below(100)
        } else {
            self.random.below(self.plan.text)
        }
    }

    fn did(&mut self, what: What, is_recorded: bool, name: &str, text: u64) -> &mut Op {
        let around = self.open.last().copied();
        self.ops.push(Op { what, is_recorded, around, name: name.to_owned(), text, flow: None });
        self.world.done[self.number].store(self.ops.len() as i64, SeqCst);
        let last = self.ops.len() - 1;
        &mut self.ops[last]
    }

    fn operation(&mut self, level: u64) {
        match self.random.below(20) {
            0..=7 => self.scope(level),
            8..=10 => self.instant(),
            11..=12 => self.counter(),
            13..=15 => self.use_track(),
            16..=17 => self.interval(),
            _ if self.plan.depth > 10 && self.random.below(8) == 0 => {
                self.deep(self.random.below(self.plan.depth));
            }
            _ => self.scope(level),
        }
    }

    fn within(&mut self, level: u64) {
        if level < self.plan.depth.min(10) {
            (0..self.random.below(if level == 0 { 300 } else { 4 })).for_each(|_| self.operation(level + 1));
        }
    }

    fn deep(&mut self, levels: u64) {
        let id = self.id();
        let scope = scope!("r", "deep", id);
        self.did(What::Begin, scope.is_recorded(), "deep", u64::MAX);
        let at = self.ops.len() - 1;
        self.open.push(at);
        if levels > 0 {
            self.deep(levels - 1);
        } else {
            self.instant();
        }
        self.end(scope, at);
    }

    fn end(&mut self, scope: hairline::Scope, at: usize) {
        let is_recorded = scope.is_recorded();
        drop(scope);
        self.open.pop();
        self.did(What::End(at), is_recorded, "", 0);
    }

    fn scope(&mut self, level: u64) {
        let (id, length, kind) = (self.id(), self.length(), self.random.below(9));
        let text = text(id, length);
        let (mut what, mut shown, mut flown) = (What::Begin, u64::MAX, None);
        let mut scope = match kind {
            0 | 1 => {
                what = What::Bare;
                scope!("r", "bare")
            }
            2 => scope!("r", "numbered", id),
            3 => {
                let map = std::collections::BTreeMap::from([("one", vec![1, 2]), ("two", vec![])]);
                scope!("r", "nested", id, map, shown = ?[1, 2], correlation: 7)
            }
            4 => {
                shown = length;
                scope!("r", "named", id, text = text.as_str(), name: format!("named {}", id % 5))
            }
            5 | 6 => {
                let mut flows = lock(&self.world.flows);
                let (number, step, flow) = match flows.pop() {
                    Some(taken) if step_on(&taken) => taken,
                    _ => (id, 0, Flow::new()),
                };
                let scope = scope!("r", "step", id, flow: &flow);
                if scope.is_recorded() {
                    flown = Some((number, step));
                    flows.insert(0, (number, step + 1, flow));
                }
                scope
            }
            _ => {
                shown = length;
                scope!("r", "text", id, text = text.as_str(), more = 1.5)
            }
        };
        let name = ["bare", "bare", "numbered", "nested", "", "step", "step", "text", "text"][kind as usize];
        let named = format!("named {}", id % 5);
        let name = if name.is_empty() { &named } else { name };
        self.did(what, scope.is_recorded(), name, shown).flow = flown;
        let at = self.ops.len() - 1;
        self.open.push(at);
        self.within(level);
        if kind != 0 && kind != 1 && self.random.below(2) == 0 {
            let filler = &text[..text.len().min(200)];
            scope.arg("ended", id).arg("filler", filler);
        }
        self.end(scope, at);
    }

    fn instant(&mut self) {
        let (id, length) = (self.id(), self.length());
        let text = text(id, length);
        let (name, shown) = if self.random.below(2) == 0 {
            trace_instant!("r", "instant", id);
            ("instant", u64::MAX)
        } else {
            trace_instant!("r", "instant with text", id, text = text.as_str());
            ("instant with text", length)
        };
        self.did(What::Instant, true, name, shown);
    }

    fn counter(&mut self) {
        let id = self.id();
        match self.random.below(4) {
            0 => trace_counter!("r", "mine", id, track: &self.mine),
            1 => trace_counter!("r", "in bytes", id, track: &self.mine, unit: Unit::Bytes),
            2 => trace_counter!("r", "steps", id, track: &self.mine, incremental: true),
            _ => trace_counter!("r", "common", id),
        }
        self.did(What::Counter, true, "", 0);
    }

    fn use_track(&mut self) {
        let Some(mut shared) = lock(&self.world.tracks).pop() else { return };
        let begins = shared.open.len() < 2 || shared.open.len() < 6 && self.random.below(2) == 0;
        if begins {
            let length = self.length();
            let around = shared.open.iter().map(|(id, _)| *id).collect();
            let id = self.world.begin_on("on track", around, length);
            let text = text(id, length);
            let scope = scope!("r", "on track", id, text = text.as_str(), track: &shared.track);
            self.world.begun(id, scope.is_recorded());
            shared.open.push((id, scope));
        } else if let Some((id, mut scope)) = shared.open.pop() {
            scope.arg("ended", id);
            let is_recorded = self.world.ends(id);
            drop(scope);
            self.did(What::TrackEnd(id), is_recorded, "", 0);
        }
        let mut tracks = lock(&self.world.tracks);
        let at = self.random.below(tracks.len() as u64 + 1) as usize;
        tracks.insert(at, shared);
    }

    fn interval(&mut self) {
        let begins = self.random.below(2) == 0;
        if begins {
            let length = self.length();
            let id = self.world.begin_on("interval", Vec::new(), length);
            let text = text(id, length);
            let scope = trace_async!("r", "interval", id, text = text.as_str());
            self.world.begun(id, scope.is_recorded());
            lock(&self.world.intervals).push((id, scope));
            return;
        }
        let held = {
            let mut all = lock(&self.world.intervals);
            let at = self.random.below(all.len().max(1) as u64) as usize;
            if all.len() < 4 { None } else { Some(all.remove(at)) }
        };
        if let Some((id, scope)) = held {
            let is_recorded = self.world.ends(id);
            drop(scope);
            self.did(What::TrackEnd(id), is_recorded, "", 0);
        }
    }
}

/// Whether the flow goes on: not for ever, or all but its last steps would be gone.
fn step_on((_, step, _): &(i64, u32, Flow)) -> bool {
    *step < 12
}
