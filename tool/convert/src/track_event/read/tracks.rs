//! The tracks of a TrackEvent trace.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use hairline_formats::DecodeError;
use hairline_formats::track_event::{
    ChildOrdering, LegacyEvent, SiblingMerge, Thread, TrackDescriptor, TrackUuid, TreeProcess,
};

use crate::kept_track::KeptTrack;
use crate::track_event::read::kept::kept;
use crate::track_event::read::pending::Pending;
use crate::track_event::read::texts::{InternedText, SharedTexts};
use crate::{Context, CounterTrack, Index, Report, Track, TrackId, TrackKind};

/// The limit for the depth of a track, as in trace_processor.
pub(super) const MOST_ANCESTORS: usize = 100;
/// The limit for tracks that wait for the description of their parent.
const MOST_ORPHANS: usize = 1000;
/// The bits of an index in the cache of recent tracks: a trace may have a thousand counters.
const SLOT_BITS: u32 = 11;
/// Stands for no track in the cache.
const NONE: u32 = u32::MAX;
/// The name of the track for states of a thread or a process.
const STATES_OF: &str = "states";
/// The name that trace_processor gives to the track of events without a track.
const DEFAULT_TRACK: &str = "Default Track";

/// A track.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InputTrack {
    /// The description. Its source id is the UUID.
    track: KeptTrack,
    parent: Parent,
    counter: Option<Box<Counter>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Parent {
    #[default]
    None,
    /// Its index.
    Known(u32),
    /// Its UUID, until it is described.
    Missing(TrackUuid),
}

/// A change of the state of a track. A state that is set again neither ends nor begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StateChange {
    pub(super) ends: bool,
    pub(super) begins: bool,
}

/// The index in the cache of recent tracks, which saves a hash lookup for each event.
fn slot(uuid: TrackUuid) -> usize {
    // Fibonacci hashing: the multiplier spreads UUIDs that differ in few bits.
    (uuid.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOT_BITS)) as usize
}

/// The properties of a counter that its values need.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counter {
    /// Whether its values are increments.
    pub(super) is_incremental: bool,
    /// Its categories, separated by commas.
    pub(super) categories: Option<InternedText>,
}

#[derive(Debug)]
struct Recent(Box<[u32; 1 << SLOT_BITS]>);

impl Default for Recent {
    fn default() -> Self {
        Self(Box::new([NONE; 1 << SLOT_BITS]))
    }
}

/// The tracks of a TrackEvent trace.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    all: Vec<InputTrack>,
    by_uuid: Index,
    /// The cache of recent tracks, by [`slot`].
    recent: Recent,
    by_pid: HashMap<u64, u32>,
    /// The tracks of threads, by process and thread id.
    by_thread: Index,
    /// The track of instants of the whole trace, once there are any.
    of_trace: Option<u32>,
    /// Tracks whose parent is not described yet.
    orphans: Vec<u32>,
    /// The tracks of async events, by process, id and scope.
    asyncs: HashMap<(Option<u32>, u64, Arc<str>), u32>,
    /// The states that last, by track.
    states: HashMap<u32, Box<str>>,
    /// The tracks of states beside others of the same UUID, and those of other events beside tracks of
    /// states.
    beside: HashMap<u32, u32>,
}

impl InputTrack {
    fn new(id: TrackId, uuid: TrackUuid, kind: TrackKind) -> Self {
        let track = Track { source_id: uuid.0, ..Track::new(id, kind) };
        Self { track: track.into(), parent: Parent::None, counter: None }
    }

    pub(super) fn id(&self) -> TrackId {
        self.track.id()
    }

    /// The index of the parent, if that is described.
    fn parent(&self) -> Option<u32> {
        if let Parent::Known(index) = self.parent { Some(index) } else { None }
    }

    fn uuid(&self) -> TrackUuid {
        TrackUuid(self.track.source_id())
    }

    /// The counter, if the track is one.
    pub(super) fn counter(&self) -> Option<&Counter> {
        self.counter.as_deref()
    }

    /// Sets the kind of `track`, which becomes its own. Keeps the properties that the description leaves out.
    fn set_kind(&mut self, track: &mut Track, kind: TrackKind, counter: Option<Counter>) {
        match (&kind, &track.kind) {
            (
                &TrackKind::Process { pid, ref command_line, .. },
                TrackKind::Process { command_line: old, parent, .. },
            ) => {
                let is_kept = command_line.is_empty() || parent.is_some() && !is_same(command_line, old);
                let command_line = Arc::clone(if is_kept { old } else { command_line });
                track.kind = TrackKind::Process { pid, command_line, parent: *parent };
            }
            // A description without a type may follow one with a type.
            (TrackKind::Slices, _) => {}
            _ => (track.kind, self.counter) = (kind, counter.map(Box::new)),
        }
    }
}

impl Tracks {
    pub(super) fn get(&self, index: u32) -> &InputTrack {
        &self.all[index as usize]
    }

    /// Changes the state of a track; "" for none.
    pub(super) fn change_state(&mut self, index: u32, name: &str) -> StateChange {
        let before = self.states.get(&index).map_or("", |state| state);
        let change = StateChange {
            ends: !before.is_empty() && before != name,
            begins: !name.is_empty() && before != name,
        };
        if change.begins {
            self.states.insert(index, name.into());
        } else if change.ends {
            self.states.remove(&index);
        }
        change
    }

    /// The track of the states, or of the other events, that have the UUID of a track. Importers keep the two
    /// apart: a state lasts whatever slices begin and end.
    pub(super) fn beside(
        &mut self,
        index: u32,
        for_states: bool,
        context: &mut Context,
        pending: &mut VecDeque<Pending>,
    ) -> u32 {
        let known = self.get(index);
        if for_states == known.track.has_states() {
            return index;
        }
        if let Some(beside) = self.beside.get(&index) {
            return *beside;
        }
        let kind = if for_states { TrackKind::States } else { TrackKind::Slices };
        let mut new = InputTrack { counter: None, ..known.clone() };
        // Tracks without a UUID of their own are processes, and the default track.
        let is_owner = known.track.process().is_some() || known.track.thread().is_some();
        let is_part = is_owner || known.track.source_id() == 0;
        if is_part {
            new.parent = Parent::Known(index);
        }
        new.track.change(|track| {
            (track.id, track.kind, track.source_id) = (context.new_track(), kind, 0);
            if is_part {
                track.name = STATES_OF.into();
            }
        });
        let beside = self.add(new, pending);
        self.beside.insert(index, beside);
        beside
    }

    /// The index of a described track.
    pub(super) fn find(&self, uuid: TrackUuid) -> Option<u32> {
        self.by_uuid.find(&uuid, |index| self.get(index).uuid())
    }

    /// The index of the track of an event, if it is described and has no states.
    #[inline]
    pub(super) fn find_again(&mut self, uuid: TrackUuid) -> Option<u32> {
        let recent = self.recent.0[slot(uuid)];
        match self.all.get(recent as usize) {
            Some(known) if known.uuid() == uuid => Some(recent),
            _ => {
                let index = self.find(uuid)?;
                if self.get(index).track.has_states() {
                    return None;
                }
                self.recent.0[slot(uuid)] = index;
                Some(index)
            }
        }
    }

    /// The track as an item.
    pub(super) fn item(&self, index: u32) -> Track {
        let known = self.get(index);
        Track { parent: known.parent().map(|parent| self.get(parent).id()), ..known.track.track() }
    }

    /// The index of the track of an event. Adds the track if it is not described.
    pub(super) fn used(
        &mut self,
        uuid: TrackUuid,
        context: &mut Context,
        pending: &mut VecDeque<Pending>,
    ) -> u32 {
        if let Some(index) = self.find_again(uuid).or_else(|| self.find(uuid)) {
            return index;
        }
        let mut known = InputTrack::new(context.new_track(), uuid, TrackKind::Slices);
        if uuid == TrackUuid(0) {
            known.track.change(|track| track.name = DEFAULT_TRACK.into());
        }
        self.add(known, pending)
    }

    fn add(&mut self, known: InputTrack, pending: &mut VecDeque<Pending>) -> u32 {
        #[allow(clippy::cast_possible_truncation)]
        // a track has several bytes of input, so there are fewer than 2^32
        let index = self.all.len() as u32;
        self.all.push(known);
        self.changed(index, pending);
        index
    }

    /// Queues the description of a track that is new or changed, and connects tracks that waited for it.
    fn changed(&mut self, index: u32, pending: &mut VecDeque<Pending>) {
        let known = self.get(index);
        let (uuid, is_orphan) = (known.uuid(), matches!(known.parent, Parent::Missing(_)));
        let is_thread = known.track.thread().is_some();
        if let Some(pid) = known.track.process() {
            self.by_pid.insert(pid, index);
        }
        if is_thread {
            self.by_thread.insert(index, |index| self.all[index as usize].track.thread());
        }
        if is_orphan && self.orphans.len() < MOST_ORPHANS && !self.orphans.contains(&index) {
            self.orphans.push(index);
        }
        pending.push_back(Pending::Track(index));
        if uuid != TrackUuid(0) || *self.get(index).track.track().name == *DEFAULT_TRACK {
            self.by_uuid.insert(index, |index| self.all[index as usize].uuid());
            self.recent.0[slot(uuid)] = NONE;
        }
        let missed = |tracks: &Self, orphan: u32| tracks.get(orphan).parent == Parent::Missing(uuid);
        let mut orphans = std::mem::take(&mut self.orphans);
        orphans.retain(|orphan| {
            let is_found = missed(self, *orphan) && !self.is_above(*orphan, index);
            if is_found {
                self.all[*orphan as usize].parent = Parent::Known(index);
                pending.push_back(Pending::Track(*orphan));
            }
            !is_found
        });
        self.orphans = orphans;
    }

    /// Whether `track` is `below` or one of its ancestors, or `below` is too deep for children.
    fn is_above(&self, track: u32, below: u32) -> bool {
        let mut at = below;
        for _ in 0..MOST_ANCESTORS {
            if at == track {
                return true;
            }
            match self.get(at).parent() {
                Some(parent) => at = parent,
                None => return false,
            }
        }
        true
    }

    /// The track of the async events with an id: in the process of the track `near`, or in the trace.
    pub(super) fn numbered(
        &mut self,
        near: Option<u32>,
        id: u64,
        scope: Arc<str>,
        context: &mut Context,
        pending: &mut VecDeque<Pending>,
    ) -> u32 {
        let parent = near.and_then(|track| self.process_of(track));
        let key = (parent, id, scope);
        if let Some(index) = self.asyncs.get(&key) {
            return *index;
        }
        let kind = TrackKind::Async { id, scope: Arc::clone(&key.2) };
        let parent = parent.map_or(Parent::None, Parent::Known);
        let new = InputTrack { parent, ..InputTrack::new(context.new_track(), TrackUuid(0), kind) };
        let index = self.add(new, pending);
        self.asyncs.insert(key, index);
        index
    }

    pub(super) fn process_of(&self, track: u32) -> Option<u32> {
        let mut at = Some(track);
        for _ in 0..MOST_ANCESTORS {
            let known = self.get(at?);
            if known.track.process().is_some() {
                return at;
            }
            at = known.parent();
        }
        None
    }

    /// The track of instants of the whole trace.
    pub(super) fn of_trace(&mut self, context: &mut Context, pending: &mut VecDeque<Pending>) -> u32 {
        if let Some(index) = self.of_trace {
            return index;
        }
        let index = self.add(InputTrack::new(context.new_track(), TrackUuid(0), TrackKind::Slices), pending);
        self.of_trace = Some(index);
        index
    }

    /// The process with an id. Adds it if it is not described.
    fn process(&mut self, pid: u64, context: &mut Context, pending: &mut VecDeque<Pending>) -> u32 {
        if let Some(index) = self.by_pid.get(&pid) {
            return *index;
        }
        self.add(InputTrack::new(context.new_track(), TrackUuid(0), TrackKind::process(pid)), pending)
    }

    fn thread(&self, pid: u64, tid: u64) -> Option<u32> {
        self.by_thread.find(&Some((pid, tid)), |index| self.get(index).track.thread())
    }

    /// The thread that a legacy event names by ids, instead of that of its sequence: `thread`. As in
    /// trace_processor, a process without a thread has the thread -1.
    pub(super) fn overridden(
        &mut self,
        thread: TrackUuid,
        event: &LegacyEvent<'_>,
        context: &mut Context,
        pending: &mut VecDeque<Pending>,
    ) -> Option<u32> {
        let own = self.find(thread).and_then(|index| self.get(index).track.thread());
        let (pid, tid) = match (event.pid_override, event.tid_override) {
            (None, None) => return None,
            (Some(pid), tid) => (u64::from(pid.cast_unsigned()), tid.unwrap_or(-1)),
            (None, Some(tid)) => (own?.0, tid),
        };
        let tid = u64::from(tid.cast_unsigned());
        let known = self.thread(pid, tid);
        Some(known.unwrap_or_else(|| self.add_thread((pid, tid), Arc::default(), context, pending)))
    }

    /// Adds a thread that is known only by its ids.
    fn add_thread(
        &mut self,
        (pid, tid): (u64, u64),
        name: Arc<str>,
        context: &mut Context,
        pending: &mut VecDeque<Pending>,
    ) -> u32 {
        let parent = Parent::Known(self.process(pid, context, pending));
        let kind = TrackKind::Thread { pid, tid };
        let mut new = InputTrack { parent, ..InputTrack::new(context.new_track(), TrackUuid(0), kind) };
        new.track.change(|track| track.name = name);
        self.add(new, pending)
    }

    /// Reads the description of a track.
    pub(super) fn describe(
        &mut self,
        track: &TrackDescriptor<'_>,
        texts: &mut SharedTexts,
        context: &mut Context,
        pending: &mut VecDeque<Pending>,
        report: &mut Report,
    ) -> Result<(), DecodeError> {
        let Some(uuid) = track.uuid else {
            report.add("track descriptors without a UUID");
            return Ok(());
        };
        report.add_many("unknown fields", u64::from(track.skipped));
        let (kind, counter) = kind(track, texts, context, report)?;
        let mut parent = track.parent_uuid.filter(|parent| *parent != TrackUuid(0));
        let mut place = self.find(uuid);
        // A process or a thread may be known only by its id.
        let is_bare = |at: &u32| self.get(*at).uuid() == TrackUuid(0);
        let above = match kind {
            TrackKind::Process { pid, .. } => {
                place = place.or_else(|| self.by_pid.get(&pid).copied().filter(is_bare));
                parent.and_then(|parent| self.find(parent))
            }
            TrackKind::Thread { pid, tid } => {
                place = place.or_else(|| self.thread(pid, tid).filter(is_bare));
                let above = parent.take().and_then(|parent| self.find(parent));
                Some(above.unwrap_or_else(|| self.process(pid, context, pending)))
            }
            _ => parent.and_then(|parent| self.find(parent)),
        };
        let mut new = match place {
            Some(index) => self.get(index).clone(),
            None => InputTrack::new(context.new_track(), uuid, TrackKind::Slices),
        };
        let mut about = new.track.track();
        about.source_id = uuid.0;
        // A late description leaves the states where they began.
        let is_late =
            kind == TrackKind::States && place.is_some_and(|place| self.beside.contains_key(&place));
        new.set_kind(&mut about, if is_late { TrackKind::Slices } else { kind }, counter);
        let fits = above.filter(|above| place.is_none_or(|place| !self.is_above(place, *above)));
        if fits.is_some() || parent.is_some() {
            new.parent = match (fits, above, parent) {
                (Some(fits), ..) => Parent::Known(fits),
                (None, None, Some(parent)) => Parent::Missing(parent),
                _ => Parent::None,
            };
        }
        if above != fits {
            report.add("tracks that are their own ancestors");
        }
        add_words(&mut about, track, report);
        new.track = about.into();
        match place {
            Some(index) if *self.get(index) == new => {}
            Some(index) => {
                self.all[index as usize] = new;
                self.changed(index, pending);
            }
            None => drop(self.add(new, pending)),
        }
        Ok(())
    }

    /// Reads a process of a process tree.
    pub(super) fn describe_process(
        &mut self,
        of: &TreeProcess<'_>,
        context: &mut Context,
        pending: &mut VecDeque<Pending>,
        report: &mut Report,
    ) -> Result<(), DecodeError> {
        let Some(pid) = of.pid else { return Ok(()) };
        let word = |word: Result<&str, _>| word.map(|word| kept(word, report).to_owned());
        let words = of.command_line().map(word).collect::<Result<Arc<[_]>, _>>()?;
        let id = |pid: i32| u64::from(pid.cast_unsigned());
        let index = self.process(id(pid), context, pending);
        // Of a process without one, importers take nothing.
        let Some(first) = words.first() else { return Ok(()) };
        let is_new = self.all[index as usize].track.change(|track| {
            let before = track.clone();
            // In the tree the first word is the name of the process. Its track has the original words.
            if !first.is_empty() {
                track.name = first.as_str().into();
            }
            if let TrackKind::Process { command_line, parent, .. } = &mut track.kind {
                *parent = Some(of.parent.map_or(0, id));
                if !is_same(command_line, &words) {
                    *command_line = Arc::clone(&words);
                }
            }
            *track != before
        });
        if is_new {
            pending.push_back(Pending::Track(index));
        }
        Ok(())
    }

    /// Reads a thread of a process tree. A thread with a description of its own keeps its name, which is not
    /// cut as that of the kernel is.
    pub(super) fn describe_thread(
        &mut self,
        of: &Thread<'_>,
        context: &mut Context,
        pending: &mut VecDeque<Pending>,
        report: &mut Report,
    ) {
        let (pid, tid) = (u64::from(of.pid.cast_unsigned()), u64::from(of.tid.cast_unsigned()));
        // A thread without a name has a process all the same.
        if pid == 0 || tid == 0 || of.name.is_empty() && self.thread(pid, tid).is_some() {
            return;
        }
        let name: Arc<str> = kept(of.name, report).into();
        let Some(index) = self.thread(pid, tid) else {
            self.add_thread((pid, tid), name, context, pending);
            return;
        };
        let is_bare = self.get(index).uuid() == TrackUuid(0);
        let known = &mut self.all[index as usize];
        let is_new = known.track.change(|track| {
            let is_new = track.name != name && (is_bare || track.name.is_empty());
            if is_new {
                track.name = name;
            }
            is_new
        });
        if is_new {
            pending.push_back(Pending::Track(index));
        }
    }
}

/// Whether two command lines are one but for the first word: in a process tree it is the process's name.
fn is_same(one: &[String], other: &[String]) -> bool {
    one.len() == other.len() && one.iter().skip(1).eq(other.iter().skip(1))
}

/// Reads names and display properties. Missing ones stay unchanged.
fn add_words(known: &mut Track, track: &TrackDescriptor<'_>, report: &mut Report) {
    let process = track.process.as_ref().and_then(|process| process.name);
    let thread = track.thread.as_ref().and_then(|thread| thread.name);
    let owner = process.or(thread);
    if owner.is_some() && track.name.is_some_and(|name| !name.is_empty()) && track.name != owner {
        report.add("track names that differ from the name of their process or thread");
    }
    let mut set = |word: &mut Arc<str>, new: Option<&str>| {
        if let Some(new) = new.filter(|new| !new.is_empty()) {
            *word = kept(new, report).into();
        }
    };
    // The name in the process tree stays, as in trace_processor.
    let is_named_by_tree = matches!(known.kind, TrackKind::Process { parent: Some(_), .. });
    if !is_named_by_tree {
        set(&mut known.name, owner.or(track.name));
    }
    set(&mut known.description, track.description);
    set(&mut known.merge_key, track.merge_key);
    known.rank = track.rank.or(known.rank);
    let ordering = track.child_ordering.filter(|ordering| *ordering != ChildOrdering::Unspecified);
    known.child_ordering = ordering.unwrap_or(known.child_ordering);
    known.merge = track.merge.filter(|merge| *merge != SiblingMerge::Unspecified).unwrap_or(known.merge);
}

fn kind(
    track: &TrackDescriptor<'_>,
    texts: &mut SharedTexts,
    context: &mut Context,
    report: &mut Report,
) -> Result<(TrackKind, Option<Counter>), DecodeError> {
    if let Some(thread) = &track.thread {
        let pid = u64::from(thread.pid.unwrap_or(0).cast_unsigned());
        return Ok((TrackKind::Thread { pid, tid: thread.tid.unwrap_or(0).cast_unsigned() }, None));
    }
    if let Some(process) = &track.process {
        let word = |word: Result<&str, _>| word.map(|word| kept(word, report).to_owned());
        let command_line = process.cmdline().map(word).collect::<Result<_, _>>()?;
        let pid = u64::from(process.pid.unwrap_or(0).cast_unsigned());
        return Ok((TrackKind::Process { pid, command_line, parent: None }, None));
    }
    let Some(counter) = &track.counter else {
        return Ok((if track.has_states { TrackKind::States } else { TrackKind::Slices }, None));
    };
    let mut categories = String::new();
    for category in counter.categories() {
        if !categories.is_empty() {
            categories.push(',');
        }
        categories.push_str(category?);
    }
    let categories = if categories.is_empty() { None } else { texts.intern(&categories, context) };
    let kind = TrackKind::Counter(Box::new(CounterTrack {
        unit: counter.unit.unwrap_or_default(),
        unit_name: kept(counter.unit_name.unwrap_or_default(), report).into(),
        multiplier: counter.unit_multiplier.filter(|multiplier| *multiplier > 0).unwrap_or(1),
        builtin: counter.builtin.unwrap_or_default(),
        y_axis_share_key: kept(counter.y_axis_share_key.unwrap_or_default(), report).into(),
        ..CounterTrack::default()
    }));
    Ok((kind, Some(Counter { is_incremental: counter.is_incremental, categories })))
}
