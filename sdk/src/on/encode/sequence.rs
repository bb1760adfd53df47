//! What the cold path needs of one thread's sequence, in either format.
//!
//! The hot path writes the same records. It only pads the time of its packets to a fixed length.

use hairline_formats::Value;
use hairline_formats::track_event::{SequenceId, TrackUuid};

use crate::builder::Detail;
use crate::on::base::memory::{Bytes, List, Table};
use crate::on::base::platform::process;
use crate::on::base::sets::Bits;
use crate::on::base::this_thread::Hot;
use crate::on::callsite::{Callsite, Epoch, StringId};
use crate::on::encode::begin::{Begin, Note};
use crate::on::encode::no_room::NoRoom;
use crate::on::encode::track_event::message;
use crate::on::event::on_track::TrackRef;
use crate::on::event::track::own_uuid;
use crate::on::event::{Action, Event, Moment};

/// The most tracks that a sequence remembers to have described.
const MAX_TRACKS: usize = 4096;

/// The sequence of one thread in one session. Each format has a type that implements it.
///
/// The `put_` functions write records to `out`. A function `set_.._written` follows as soon as the records of
/// the `put_` function of that name are in the chunk.
pub(crate) trait Sequence {
    /// The part that both formats have.
    fn state(&self) -> &State;

    /// The part that both formats have, mutable.
    fn state_mut(&mut self) -> &mut State;

    /// The bytes that precede any fragment of this sequence.
    fn context(&self) -> Bytes;

    /// The most bytes by which CPU time lengthens the end of a scope.
    fn cpu_time_len(&self) -> i32;

    /// Writes the first records of the sequence.
    fn put_start(&self, out: &mut Bytes, now: u64);

    /// Writes the loss of `lost` scopes and events. `found_full`: at least one of them found the ring full.
    fn put_loss(&self, out: &mut Bytes, now: u64, lost: u64, found_full: bool);

    /// The loss is in the chunk.
    fn set_loss_written(&mut self);

    /// Forgets everything that the sequence has written: the records that follow are read without those
    /// before.
    fn forget_all(&mut self);

    /// Whether the event's records contain all their strings, so that no string goes before them.
    fn is_self_contained(&self, event: &Event<'_>) -> bool;

    /// Writes the strings of the callsite that the sequence does not have: all of them, or only number
    /// `which`.
    fn put_strings(&self, out: &mut Bytes, callsite: &'static Callsite, which: Option<usize>);

    /// Returns the number of strings that [`put_strings`](Self::put_strings) writes at most.
    fn string_count(&self, callsite: &'static Callsite) -> usize;

    /// All strings of the callsite are in the chunk. The hot path may write the callsite's events from now
    /// on, if it can.
    fn set_strings_written(&mut self, hot: &Hot, callsite: &'static Callsite);

    /// Writes the strings that the event's values refer to by their id, and the body of its log message.
    fn put_values(&self, out: &mut Bytes, event: &Event<'_>);

    /// Writes the descriptions of the tracks that the event needs and the sequence does not have.
    fn put_tracks(&mut self, out: &mut Bytes, event: &Event<'_>);

    /// Whether the event needs no description of its track, since its record names the track.
    fn describes_no_track_of(&self, event: &Event<'_>) -> bool;

    /// Writes the records of an event. `in_slice`: a slice of this thread is open. Returns the number of
    /// arguments that do not fit.
    ///
    /// # Errors
    /// If the format has no room for values of this length.
    fn put_event(
        &mut self,
        out: &mut Bytes,
        event: &Event<'_>,
        at: &Moment,
        in_slice: bool,
    ) -> Result<u64, NoRoom>;

    /// Writes the begin or the end of a slice on a track so that it needs no other record: with the
    /// descriptions of its tracks, its strings and its absolute time. Returns the number of arguments that do
    /// not fit.
    ///
    /// # Errors
    /// As [`put_event`](Self::put_event).
    fn put_self_contained(&mut self, out: &mut Bytes, event: &Event<'_>, now: u64) -> Result<u64, NoRoom>;

    /// The event is in the chunk.
    fn set_event_written(&mut self, _event: &Event<'_>) {}

    /// Writes the end of a scope, of at most the length that its begin has reserved.
    fn put_end(&self, out: &mut Bytes, callsite: &'static Callsite, at: &Moment);

    /// Returns the note of a begin that happens `now`.
    fn note_of_begin(&self, event: &Event<'_>, now: u64) -> Note;

    /// Repeats the begins of open slices, the outermost first, for the start of the next chunk. They are in
    /// `chunk`. Of begins that exceed `room` the outermost are dropped. Replaces the content of `out`, and
    /// sets the offsets of `begins` to those in `out`.
    fn repeat_begins(&mut self, out: &mut Bytes, chunk: &[u8], begins: &mut [Begin], room: usize);

    /// Publishes the first bytes of every packet of this sequence to the hot path.
    fn set_packet_constants(&self, hot: &Hot) {
        message::set_packet_constants(hot, self.state().number);
    }

    /// The callsites whose events the hot path may write.
    fn seen_callsites(&self) -> &Bits {
        &self.state().seen_callsites
    }

    /// The records of [`put_values`](Self::put_values) are in the chunk.
    fn set_values_written(&mut self, event: &Event<'_>) {
        let state = self.state_mut();
        for (id, _) in interned_values(event) {
            state.written_values.insert(id.0);
        }
        if event.log.is_some() {
            state.written_tags.insert(event.callsite.serial());
        }
    }

    /// The records of [`put_tracks`](Self::put_tracks) are in the chunk.
    fn set_tracks_written(&mut self) {
        self.state_mut().tracks.set_written();
    }

    /// Whether this sequence has described the track. A slice that ends here may have begun on another
    /// thread.
    fn has_described(&self, track: TrackRef<'_>) -> bool {
        self.state().tracks.contains(track.uuid())
    }
}

/// The part of a sequence that both formats have.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) epoch: Epoch,
    /// The id of the packet sequence.
    pub(crate) number: SequenceId,
    pub(crate) thread: process::Thread,
    /// The track of the thread.
    pub(crate) track_uuid: TrackUuid,
    pub(crate) detail: Detail,
    /// Callsites whose events the hot path may write.
    pub(crate) seen_callsites: Bits,
    /// Callsites whose strings are in the sequence.
    pub(crate) written_callsites: Bits,
    /// Strings that are in the sequence as the values of arguments.
    pub(crate) written_values: Bits,
    /// Callsites whose tag for log messages is in the sequence.
    pub(crate) written_tags: Bits,
    pub(crate) tracks: Tracks,
}

/// What the descriptions of tracks have of the sequence that they are in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Describer {
    pub(crate) sequence: SequenceId,
    pub(crate) epoch: Epoch,
    /// The id of this process.
    pub(crate) pid: u32,
}

impl State {
    /// Returns what the descriptions of tracks have of the sequence.
    pub(crate) fn describer(&self) -> Describer {
        Describer { sequence: self.number, epoch: self.epoch, pid: self.thread.pid }
    }

    pub(crate) fn new(epoch: Epoch, number: SequenceId, thread: process::Thread, detail: Detail) -> Self {
        Self {
            epoch,
            number,
            thread,
            track_uuid: own_uuid(),
            detail,
            seen_callsites: Bits::default(),
            written_callsites: Bits::default(),
            written_values: Bits::default(),
            written_tags: Bits::default(),
            tracks: Tracks::default(),
        }
    }

    /// Forgets the strings that the sequence has.
    pub(crate) fn forget_strings(&mut self) {
        self.seen_callsites.clear();
        self.written_callsites.clear();
        self.written_values.clear();
        self.written_tags.clear();
    }

    /// Whether the event's records contain its place in the source.
    pub(crate) fn is_located(&self, event: &Event<'_>) -> bool {
        self.detail.source_locations && matches!(event.action, Action::Begin | Action::Instant)
    }
}

/// The interned values of an event: their ids and texts.
pub(crate) fn interned_values<'a>(event: &Event<'a>) -> impl Iterator<Item = (StringId, &'a str)> {
    event.values.iter().filter_map(|value| match *value {
        Value::Interned { iid, text } => Some((StringId(u32::try_from(iid).ok()?), text)),
        _ => None,
    })
}

/// The tracks that a sequence has described.
#[derive(Debug, Default)]
pub(crate) struct Tracks {
    written: Table<TrackUuid>,
    /// Those whose descriptions are not in the chunk yet.
    new: List<TrackUuid>,
}

impl Tracks {
    pub(crate) fn with(written: impl IntoIterator<Item = TrackUuid>) -> Self {
        let mut tracks = Self::default();
        tracks.new.extend(written);
        tracks.set_written();
        tracks
    }

    pub(crate) fn clear(&mut self) {
        self.written.clear();
    }

    /// Forgets the tracks whose descriptions did not get into the chunk.
    pub(crate) fn clear_new(&mut self) {
        self.new.clear();
    }

    /// Adds a track that is described now. Returns whether it needs the description.
    pub(crate) fn add(&mut self, uuid: TrackUuid) -> bool {
        let is_new = !self.contains(uuid) && !self.new.contains(&uuid);
        if is_new {
            self.new.push(uuid);
        }
        is_new
    }

    fn set_written(&mut self) {
        if self.new.is_empty() {
            return;
        }
        if self.written.len() + self.new.len() > MAX_TRACKS {
            self.written.clear(); // a second description does no harm
        }
        while let Some(uuid) = self.new.pop() {
            self.written.insert(uuid.0, uuid);
        }
    }

    fn contains(&self, uuid: TrackUuid) -> bool {
        self.written.get(uuid.0, |written| *written == uuid).is_some()
    }
}
