//! The slices of a trace's tracks that have not ended, from events in the order of a file.
//!
//! Slices that one thread begins and another ends come in any order, because a writer reads one thread after
//! the other, pass by pass:
//!
//! ```text
//! time            A begins 1    B ends 1 | the pass begins |  A begins 2    B ends 2
//! in the file     B: end 1, end 2   A: begin 1, begin 2                    one pass
//!                 B: end 1, end 2   A: begin 1           the next pass: A: begin 2
//! ```
//!
//! So on a track that several threads use, begins and ends match by their times, not by their places. All
//! events from before the begin of a pass are in the file when the pass has ended. A part ends there: its
//! events from after that time move to the next part. So no part has an end without its begin, or a begin
//! whose end is in an earlier part.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A map whose keys are numbers of the recorder's own: nobody picks them to make the map slow.
pub(crate) type ById<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// The hasher of [`ById`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// An event that may still be needed: a begin, or an end on a shared track.
#[derive(Debug)]
pub(crate) struct Event<T> {
    time: u64,
    is_begin: bool,
    /// Its position in the file of the present part, if that is known.
    pub(crate) at: Option<u64>,
    /// Its position in the file of the next part, if it moves there.
    pub(crate) next_at: Option<u64>,
    pub(crate) of: T,
}

/// What happens to an event when the next part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It stays in the present part.
    Stays,
    /// It is in the next part too: the begin of a slice that has not ended.
    Repeated,
    /// It is in the next part instead.
    Moves,
}

/// The events of one track that may still be needed.
#[derive(Debug)]
struct Track<T> {
    events: Vec<Event<T>>,
    /// Whether several threads have used the track, so that events come in any order.
    is_shared: bool,
    /// Whether the track is in [`Unended::unsettled`].
    is_listed: bool,
}

/// The number of ends above which those with a begin are forgotten before the pass has ended.
const MANY_ENDS: usize = 1 << 17;
/// The most ends without a begin. Above it, all are forgotten.
const MAX_EARLY_ENDS: usize = 1 << 20;

/// The slices that have not ended, and events of the present pass, by track.
#[derive(Debug)]
pub(crate) struct Unended<K, T> {
    tracks: ById<K, Track<T>>,
    /// The shared tracks that may have ends, or events of the present pass.
    unsettled: Vec<K>,
    /// Number of ends in the tracks, or more.
    ends: usize,
    /// The number of ends at which those with a begin are forgotten.
    many: usize,
    /// Whether shared tracks have events since the last pass ended.
    is_mid_pass: bool,
    /// All events up to this time have come.
    settled_until: u64,
}

impl<K, T> Default for Unended<K, T> {
    fn default() -> Self {
        Self {
            tracks: ById::default(),
            unsettled: Vec::new(),
            ends: 0,
            many: MANY_ENDS,
            is_mid_pass: false,
            settled_until: 0,
        }
    }
}

impl<T> Default for Track<T> {
    fn default() -> Self {
        Self { events: Vec::new(), is_shared: false, is_listed: false }
    }
}

impl<T> Track<T> {
    /// Returns for each event the place of its partner; `None` without one.
    fn partners(&mut self) -> Vec<Option<usize>> {
        let mut partners = vec![None; self.events.len()];
        if !self.is_listed {
            return partners; // begins only
        }
        self.events.sort_by_key(|event| event.time);
        let mut open = Vec::new();
        for (place, event) in self.events.iter().enumerate() {
            if event.is_begin {
                open.push(place);
            } else if let Some(begin) = open.pop() {
                (partners[begin], partners[place]) = (Some(place), Some(begin));
            }
        }
        partners
    }

    /// Forgets the ends for which `is_settled` returns true, with their begins. Its arguments are the end,
    /// and whether the end has a begin. Returns the number of ends that remain.
    fn settle(&mut self, is_settled: impl Fn(&Event<T>, bool) -> bool) -> usize {
        let partners = self.partners();
        let goes = |place: usize| {
            let end = self.events.get(place).filter(|event| !event.is_begin);
            end.is_some_and(|end| is_settled(end, partners[place].is_some()))
        };
        let mut kept = (0..partners.len())
            .map(|place| !goes(place) && !partners[place].is_some_and(goes))
            .collect::<Vec<bool>>()
            .into_iter();
        self.events.retain(|_| kept.next().unwrap_or(true));
        self.events.iter().filter(|event| !event.is_begin).count()
    }

    /// Returns the events and their fates.
    fn fates(&mut self, settled_until: u64) -> impl Iterator<Item = (Fate, &mut Event<T>)> {
        let partners = self.partners();
        let is_listed = self.is_listed;
        let moves = |event: &Event<T>| is_listed && event.time > settled_until && event.at.is_some();
        let fates: Vec<Fate> = (self.events.iter().zip(&partners))
            .map(|(event, partner)| {
                let partner = partner.and_then(|place| self.events.get(place));
                // An event without a known position cannot be erased in the present part.
                let is_early_end = !event.is_begin && partner.is_none() && event.time > settled_until;
                if moves(event) || is_early_end {
                    Fate::Moves
                } else if event.is_begin && partner.is_none_or(moves) {
                    Fate::Repeated
                } else {
                    Fate::Stays
                }
            })
            .collect();
        fates.into_iter().zip(&mut self.events)
    }
}

impl<K: Copy + Eq + Hash, T> Unended<K, T> {
    /// Adds the begin of a slice. `is_own`: the track is that of the event's thread, whose events come in
    /// their order unless other threads use the track too. `at` is its position in the file, if that is
    /// known.
    pub(crate) fn begin(&mut self, key: K, time: u64, is_own: bool, at: Option<u64>, of: T) {
        self.add(key, is_own, Event { time, is_begin: true, at, next_at: None, of });
    }

    /// Adds the end of a slice, like [`begin`](Self::begin).
    pub(crate) fn end(&mut self, key: K, time: u64, is_own: bool, at: Option<u64>, of: impl FnOnce() -> T) {
        let track = self.tracks.entry(key).or_default();
        if is_own && !track.is_shared {
            track.events.pop();
            return;
        }
        self.add(key, is_own, Event { time, is_begin: false, at, next_at: None, of: of() });
        self.ends += 1;
        if self.ends > self.many {
            self.settle(|_, has_begin| has_begin);
            if self.ends > MAX_EARLY_ENDS {
                self.settle(|_, _| true);
            }
            self.many = MANY_ENDS.max(2 * self.ends);
        }
    }

    fn add(&mut self, key: K, is_own: bool, event: Event<T>) {
        let track = self.tracks.entry(key).or_default();
        track.is_shared |= !is_own;
        track.events.push(event);
        if track.is_shared {
            self.is_mid_pass = true;
            if !track.is_listed {
                track.is_listed = true;
                self.unsettled.push(key);
            }
        }
    }

    /// Notes the end of a pass, which began at the time `began`.
    pub(crate) fn pass_ended(&mut self, began: u64) {
        self.settled_until = self.settled_until.max(began);
        self.is_mid_pass = false;
        let until = self.settled_until;
        self.settle(|end, _| end.time <= until);
        self.many = MANY_ENDS.max(2 * self.ends);
    }

    /// Whether the next part may begin: false while only some events of a pass have come.
    pub(crate) fn may_split(&self) -> bool {
        !self.is_mid_pass
    }

    fn settle(&mut self, is_settled: impl Fn(&Event<T>, bool) -> bool) {
        let mut listed = std::mem::take(&mut self.unsettled);
        self.ends = 0;
        listed.retain(|key| {
            let Some(track) = self.tracks.get_mut(key) else { return false };
            let ends = track.settle(&is_settled);
            self.ends += ends;
            track.is_listed = ends > 0 || track.events.iter().any(|event| event.time > self.settled_until);
            if track.events.is_empty() {
                self.tracks.remove(key);
                return false;
            }
            track.is_listed
        });
        self.unsettled = listed;
    }

    /// Returns the begin of the innermost open slice of a track, and its time.
    pub(crate) fn innermost(&mut self, key: K) -> Option<(u64, &mut T)> {
        let mut newest_first = self.tracks.get_mut(&key)?.events.iter_mut().rev();
        newest_first.find(|event| event.is_begin).map(|begin| (begin.time, &mut begin.of))
    }

    /// Forgets the slices of all tracks but these.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&K) -> bool) {
        self.tracks.retain(|key, _| keep(key));
    }

    /// Forgets the slices of a track.
    pub(crate) fn remove(&mut self, key: K) {
        self.tracks.remove(&key);
    }

    /// Returns the events that the next part begins with, in no order. Those that move there have
    /// [`next_at`](Event::next_at) 0, which the caller sets.
    pub(crate) fn carried(&mut self) -> impl Iterator<Item = &mut Event<T>> {
        self.tracks.retain(|_, track| !track.events.is_empty()); // frees memory
        let until = self.settled_until;
        self.tracks.values_mut().flat_map(move |track| track.fates(until)).filter_map(|(fate, event)| {
            event.next_at = (fate == Fate::Moves).then_some(0);
            (fate != Fate::Stays).then_some(event)
        })
    }

    /// Makes the next part the present one. Returns the events that have moved, and their positions in the
    /// part before, where these are known.
    pub(crate) fn moved(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        let listed = self.tracks.values_mut().filter(|track| track.is_listed);
        listed.flat_map(|track| &mut track.events).filter_map(|event| {
            let next_at = event.next_at.take()?;
            Some((event.at.replace(next_at)?, &mut event.of))
        })
    }
}
