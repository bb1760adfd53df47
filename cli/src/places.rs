//! What the tracks of a trace are called.

use hairline_convert::{Track, TrackId, TrackKind};

/// Tracks, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Places {
    places: Vec<Place>,
    pub(crate) processes: u64,
    pub(crate) threads: u64,
}

#[derive(Debug, Default)]
struct Place {
    name: String,
    parent: Option<TrackId>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    Process(u64),
    Thread(u64),
    #[default]
    Other,
}

impl Places {
    /// Takes note of what is known of a track.
    pub(crate) fn set(&mut self, track: &Track<'_>) {
        let index = track.id.0 as usize;
        if self.places.len() <= index {
            self.places.resize_with(index + 1, Place::default);
        }
        let place = &mut self.places[index];
        let (kind, count) = match track.kind {
            TrackKind::Process { pid, .. } => (Kind::Process(pid), Some(&mut self.processes)),
            TrackKind::Thread { tid, .. } => (Kind::Thread(tid), Some(&mut self.threads)),
            _ => (Kind::Other, None),
        };
        // It may be told of again.
        if let Some(count) = count.filter(|_| place.kind == Kind::Other) {
            *count += 1;
        }
        *place = Place { name: track.name.to_owned(), parent: track.parent, kind };
    }

    /// What a track is called.
    pub(crate) fn name(&self, track: TrackId) -> String {
        let Some(place) = self.places.get(track.0 as usize) else { return format!("track {}", track.0) };
        match (place.kind, place.name.as_str()) {
            (Kind::Process(pid), "") => format!("process {pid}"),
            (Kind::Process(pid), name) => format!("{name} (process {pid})"),
            (Kind::Thread(tid), "") => format!("thread {tid}"),
            (Kind::Thread(tid), name) => format!("{name} ({tid})"),
            (Kind::Other, "") => format!("track {}", track.0),
            (Kind::Other, name) => format!("track {name}"),
        }
    }

    /// The process of a track, if it has one: itself, or one above it.
    pub(crate) fn process_of(&self, track: TrackId) -> Option<TrackId> {
        // No track lies deeper, but what is told of them again may lead in a circle.
        const DEEPEST: usize = 64;
        let place = |id: &TrackId| self.places.get(id.0 as usize);
        let mut above = std::iter::successors(Some(track), |id| place(id)?.parent).take(DEEPEST);
        above.find(|id| place(id).is_some_and(|place| matches!(place.kind, Kind::Process(_))))
    }
}
