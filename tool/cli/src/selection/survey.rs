//! What an earlier reading says of a trace, before a part of it is read.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use hairline_convert::timeline::FirstRunners;
use hairline_convert::{BriefEvent, BriefKind, ByTrack, EventKind, Item, TrackId, TrackKind};

use crate::pattern::matches;
use crate::remark::is_remark;
use crate::selection::chosen::Threads;
use crate::track_names::TrackNames;

/// What an earlier reading says of a trace.
#[derive(Default)]
pub(crate) struct Survey {
    /// The first and last time of an event.
    pub(super) events: Option<(i64, i64)>,
    /// Those of a thread state or a sample, for traces without events.
    pub(super) others: Option<(i64, i64)>,
    latest: ByTrack<Option<i64>>,
    /// Tracks with a begin or an end that is earlier than the one before it.
    pub(super) unsorted: BTreeSet<TrackId>,
    names: TrackNames,
    tracks: BTreeSet<TrackId>,
    /// The names of threads with states or samples, by thread id.
    tids: BTreeMap<u64, Option<Arc<str>>>,
    pids: HashMap<u64, HashSet<u64>>,
    pub(super) first_runners: FirstRunners,
    /// The time of the last thread state.
    pub(super) states_end: Option<i64>,
}

impl Survey {
    fn see(times: &mut Option<(i64, i64)>, from: i64, to: i64) {
        *times = Some(times.map_or((from, to), |(first, last)| (first.min(from), last.max(to))));
    }

    fn see_change(&mut self, track: TrackId, time: i64) {
        if self.latest.at(track).replace(time).is_some_and(|before| time < before) {
            self.unsorted.insert(track);
        }
    }

    /// The threads of a name or an id.
    pub(super) fn threads(&self, pattern: &str) -> Result<Threads, String> {
        let (mut chosen, mut all) = (Threads::default(), BTreeSet::new());
        let mut is_meant = |tid: u64, name: String| {
            let id = tid.to_string();
            let is_meant =
                id == pattern || matches(pattern, name.strip_suffix(&format!(" ({id})")).unwrap_or(&name));
            all.insert(name);
            is_meant
        };
        for (&track, tid) in self.tracks.iter().filter_map(|track| Some((track, self.names.tid(*track)?))) {
            if is_meant(tid, self.names.name(track)) {
                chosen.tracks.insert(track);
                chosen.tids.insert(tid);
                chosen.pids.extend(self.names.process_id(track).or(Some(self.names.pid(track))));
            }
        }
        for (&tid, name) in self.tids.iter().filter(|(tid, _)| self.names.thread(**tid).is_none()) {
            let name =
                name.as_ref().map_or_else(|| format!("thread {tid}"), |name| format!("{name} ({tid})"));
            if is_meant(tid, name) {
                chosen.tids.insert(tid);
                chosen.pids.extend(self.pids.get(&tid).into_iter().flatten());
            }
        }
        if !chosen.tids.is_empty() {
            // The scheduler does not tell threads of one id apart.
            chosen.shared = chosen.tids.iter().copied().filter(|tid| self.names.is_shared(*tid)).collect();
            return Ok(chosen);
        }
        const MOST: usize = 50;
        let mut names: Vec<&str> = all.iter().map(String::as_str).take(MOST).collect();
        let more = format!("and {} more", all.len().saturating_sub(MOST));
        names.extend((all.len() > MOST).then_some(&*more));
        Err(match names.is_empty() {
            true => format!("--thread {pattern}: it has no threads"),
            false => {
                format!("--thread {pattern}: no thread has this name or id; it has {}", names.join(", "))
            }
        })
    }

    pub(crate) fn briefs(&mut self, briefs: &[BriefEvent]) {
        for brief in briefs {
            Self::see(&mut self.events, brief.time, brief.time);
            if matches!(brief.kind, BriefKind::Begin | BriefKind::End) {
                self.see_change(brief.track, brief.time);
            }
        }
    }

    pub(crate) fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Event(event) => {
                let mut end = event.time;
                match event.kind {
                    EventKind::Begin | EventKind::End => self.see_change(event.track, event.time),
                    EventKind::Complete { duration } => end = end.saturating_add(duration.max(0)),
                    _ => {}
                }
                if !is_remark(event) {
                    Self::see(&mut self.events, event.time, end);
                }
            }
            Item::Track(track) => {
                self.names.set(track);
                if matches!(track.kind, TrackKind::Thread { .. }) {
                    self.tracks.insert(track.id);
                }
            }
            Item::Scheduling(scheduling) => {
                self.first_runners.add(scheduling);
                for change in scheduling.changes {
                    Self::see(&mut self.others, change.time, change.time);
                    self.states_end = self.states_end.max(Some(change.time));
                    let name = self.tids.entry(change.tid).or_default();
                    if let Some(new) = &change.name {
                        *name = Some(Arc::clone(new));
                    }
                    self.pids.entry(change.tid).or_default().extend(change.pid);
                }
            }
            Item::Sample(sample) => {
                Self::see(&mut self.others, sample.time, sample.time);
                self.tids.entry(sample.tid).or_default();
                self.pids.entry(sample.tid).or_default().insert(sample.pid);
            }
            _ => {}
        }
    }
}
