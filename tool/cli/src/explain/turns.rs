//! Who held a lock in turn while a thread or a task waited for it.
//!
//! ```text
//! waiter    [ wait: journal ........................... ]
//! append    ── release │                   ── release │
//! compact              └ has it ── release │
//! ```
//!
//! A program records each release of a lock while somebody waits for it. So between two releases, the one
//! that comes second had the lock, or it was free for a moment. Readers have it together: the one that
//! releases it last held the others up.

use std::collections::HashMap;

use hairline_convert::TrackId;

use crate::explain::holder::{HeldBy, Holder};
use crate::track_names::TrackNames;

/// A lock: its process, and its address there.
pub(super) type LockId = (Option<TrackId>, u64);

/// A time in which one had a lock for which others waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) held: HeldBy,
    pub(super) start: i64,
    pub(super) end: i64,
}

/// A release of a lock for which others waited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    pub(super) time: i64,
    pub(super) by: HeldBy,
    /// Whether others may have the lock still.
    pub(super) is_shared: bool,
}

/// The releases of a trace.
#[derive(Debug, Default)]
pub(super) struct Releases {
    /// In the order of the trace, with their tracks and the addresses of their locks.
    raw: Vec<(TrackId, u64, Release)>,
    by_lock: HashMap<LockId, Vec<Release>>,
}

/// The limit for releases. With more, none is known.
const MOST: usize = 1 << 20;

/// What is known of a wait beside the releases.
pub(super) struct Asked {
    pub(super) lock: LockId,
    pub(super) start: i64,
    pub(super) end: i64,
    /// Who had the lock as the wait began, and who released it at the end, if that is known.
    pub(super) first: Holder,
    pub(super) last: Holder,
}

impl Releases {
    /// Adds a release on this track.
    pub(super) fn add(&mut self, track: TrackId, lock: u64, release: Release) {
        if self.raw.len() <= MOST {
            self.raw.push((track, lock, release));
        }
    }

    /// Sorts them. Call it before the first question. If events are missing, releases may be among them, and
    /// none is used.
    pub(super) fn finish(&mut self, names: &TrackNames, has_losses: bool) {
        let raw = std::mem::take(&mut self.raw);
        if raw.len() > MOST || has_losses {
            return;
        }
        for (track, lock, mut release) in raw {
            let process = names.process_of(track);
            release.by.holder = match release.by.holder {
                Holder::Task((_, task)) => Holder::Task((process, task)),
                Holder::Given(taker, (_, task)) => {
                    Holder::Given(taker.map(|(_, taker)| (process, taker)), (process, task))
                }
                Holder::Releaser(0) => names.tid(track).map_or(Holder::Unknown, Holder::Thread),
                other => other,
            };
            self.by_lock.entry((process, lock)).or_default().push(release);
        }
        self.by_lock.values_mut().for_each(|of| of.sort_by_key(|release| release.time));
    }

    /// Who had the lock during a wait, one after the other. Empty if the trace does not tell.
    pub(super) fn during(&self, asked: &Asked) -> Vec<Turn> {
        let all = self.by_lock.get(&asked.lock).map_or(&[][..], Vec::as_slice);
        let from = all.partition_point(|release| release.time <= asked.start);
        let until = all.partition_point(|release| release.time <= asked.end);
        let Some((last, _)) = all[from..until].split_last() else { return Vec::new() };
        let is_last = match (asked.last, last.by.holder) {
            (Holder::Releaser(of), Holder::Thread(tid)) => of == tid,
            (Holder::Unknown, _) => true,
            _ => false,
        };
        let first = all[from].by.holder.taker();
        let is_first = all[from].is_shared || asked.first == Holder::Unknown || asked.first == first;
        if !is_first || !is_last {
            return Vec::new(); // a release is missing, or another thread than the holder released the lock
        }
        let mut turns = Vec::new();
        let mut since = asked.start;
        for run in all[from..until].chunk_by(|one, next| one.is_shared && next.is_shared) {
            since =
                if run[0].is_shared { shared(run, since, &mut turns) } else { alone(run, since, &mut turns) };
        }
        let held = HeldBy { holder: rest(asked), place: 0, is_timed: true };
        turns.push(Turn { held, start: since, end: asked.end });
        turns.retain(|turn| turn.start < turn.end);
        turns
    }
}

/// What the lock is after the last release.
fn rest(asked: &Asked) -> Holder {
    if matches!(asked.last, Holder::Releaser(_)) { Holder::Free } else { Holder::Unknown }
}

fn alone(run: &[Release], since: i64, turns: &mut Vec<Turn>) -> i64 {
    run.iter().fold(since, |since, release| {
        turns.push(Turn { held: release.by, start: since, end: release.time });
        release.time
    })
}

/// Adds those that held up the waiting one: the last one of all that read. If it has released the lock
/// before, it may have taken it again only after the release of another one, which held the waiting one up
/// until then.
fn shared(run: &[Release], since: i64, turns: &mut Vec<Turn>) -> i64 {
    let end = run.last().map_or(since, |last| last.time);
    let first = turns.len();
    let mut rest = run;
    while let Some((last, before)) = rest.split_last() {
        let has_again = before.iter().any(|release| release.by.holder == last.by.holder);
        rest = if has_again { before } else { &[] };
        let start = rest.last().map_or(since, |before| before.time);
        turns.push(Turn { held: last.by, start, end: last.time });
    }
    turns[first..].reverse();
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: LockId = (None, 7);

    fn release(time: i64, thread: u64, is_shared: bool) -> Release {
        let by = HeldBy { holder: Holder::Thread(thread), place: 0, is_timed: true };
        Release { time, by, is_shared }
    }

    fn during(releases: &[Release], (first, last): (Holder, Holder)) -> Vec<(Holder, i64, i64)> {
        let by_lock = HashMap::from([(LOCK, releases.to_vec())]);
        let asked = Asked { lock: LOCK, start: 100, end: 200, first, last };
        let turns = Releases { raw: Vec::new(), by_lock }.during(&asked);
        turns.iter().map(|turn| (turn.held.holder, turn.start, turn.end)).collect()
    }

    #[test]
    fn each_has_the_lock_from_the_release_before_to_its_own() {
        use Holder::{Free, Releaser, Thread};
        let releases = [release(90, 3, false), release(110, 1, false), release(190, 2, false)];
        let third = [&releases[..], &[release(199, 1, false), release(205, 4, false)]].concat();
        let all = [(Thread(1), 100, 110), (Thread(2), 110, 190), (Thread(1), 190, 199), (Free, 199, 200)];
        assert_eq!(during(&third, (Thread(1), Releaser(1))), all);
        assert_eq!(during(&third, (Holder::Unknown, Releaser(1))), all);
        assert!(during(&releases, (Thread(1), Releaser(1))).is_empty(), "the last release is missing");
        assert!(during(&releases, (Thread(9), Releaser(2))).is_empty(), "the first release is missing");
        assert!(during(&[], (Thread(9), Releaser(2))).is_empty());
    }

    #[test]
    fn of_readers_the_last_one_held_the_others_up() {
        use Holder::{Thread, Unknown};
        let readers = [release(120, 1, true), release(180, 2, true), release(190, 3, false)];
        let all = [(Thread(2), 100, 180), (Thread(3), 180, 190), (Unknown, 190, 200)];
        assert_eq!(during(&readers, (Unknown, Unknown)), all);
        let again = [release(120, 2, true), release(150, 1, true), release(200, 2, true)];
        assert_eq!(during(&again, (Unknown, Unknown)), [(Thread(1), 100, 150), (Thread(2), 150, 200)]);
    }
}
