//! One walk through a trace in either format: where slices begin and end, on which track, and with which
//! numbers among their arguments.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use hairline::Format;
use hairline_formats::track_event::{AnnotationValue, EventType, PacketData, SequenceId, TrackUuid};
use hairline_formats::{Value, fxt, track_event};

/// Where a slice begins or ends.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// By this number the format tells tracks apart. A thread's track has one too.
    pub track: u64,
    /// Whether the track is a thread's, as far as the file says until here.
    pub is_thread: bool,
}

/// What a trace says, in the order of the file.
#[derive(Clone, Copy, Debug)]
pub enum Mark<'a> {
    /// A slice begins. The numbers are those of its arguments that are integers.
    Begin(Place, &'a [u64]),
    /// A slice ends.
    End(Place),
    /// The statistics at the end of a TrackEvent trace.
    Tail,
}

/// Reads a trace with this project's own reader, and gives each mark to `visit`.
///
/// # Errors
/// When the file cannot be read to its end, or the first error of `visit`.
pub fn walk(
    path: &Path,
    format: Format,
    visit: &mut dyn FnMut(Mark<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let file = File::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    if format == Format::Fxt { walk_fxt(file, visit) } else { Packets::default().walk(file, visit) }
}

fn integer(value: &Value<'_>) -> Option<u64> {
    match value {
        Value::U64(n) => Some(*n),
        Value::I64(n) => u64::try_from(*n).ok(),
        _ => None,
    }
}

fn walk_fxt(file: impl Read, visit: &mut dyn FnMut(Mark<'_>) -> Result<(), String>) -> Result<(), String> {
    let mut reader = fxt::RecordReader::new(file);
    let mut current = 0;
    let mut numbers = Vec::new();
    while let Some((_, record)) = reader.next().map_err(|e| e.to_string())? {
        match record {
            fxt::Record::Thread { thread, .. } => current = thread,
            fxt::Record::Event(event) => {
                // An end that came late is written by another thread.
                let track = match event.thread {
                    fxt::ThreadRef::Inline { thread, .. } => thread,
                    fxt::ThreadRef::Index(_) => current,
                };
                let place = Place { track, is_thread: true }; // slices on tracks are asynchronous events
                match event.kind {
                    fxt::EventKind::DurationBegin => {
                        numbers.clear();
                        for argument in event.args() {
                            if let fxt::ArgumentValue::Value(value) = argument.map_err(|e| e.to_string())?.1 {
                                numbers.extend(integer(&value));
                            }
                        }
                        visit(Mark::Begin(place, &numbers))?;
                    }
                    fxt::EventKind::DurationEnd => visit(Mark::End(place))?,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[derive(Default)]
struct Packets {
    /// The track of a sequence's events that name none.
    of_sequence: HashMap<SequenceId, TrackUuid>,
    of_threads: HashSet<TrackUuid>,
    numbers: Vec<u64>,
}

impl Packets {
    fn walk(
        &mut self,
        file: impl Read,
        visit: &mut dyn FnMut(Mark<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut reader = track_event::PacketReader::new(file);
        while let Some((_, packet)) = reader.next().map_err(|e| e.to_string())? {
            if let Some(track) = packet.defaults.and_then(|defaults| defaults.track_uuid) {
                self.of_sequence.insert(packet.sequence, track);
                self.of_threads.insert(track);
            }
            match &packet.data {
                Some(PacketData::Event(event)) => {
                    // An end that came late is on another sequence.
                    let own = || self.of_sequence.get(&packet.sequence).copied();
                    let track = event.track_uuid.or_else(own).unwrap_or_default();
                    let place = Place { track: track.0, is_thread: self.of_threads.contains(&track) };
                    match event.kind {
                        Some(EventType::SliceBegin) => {
                            self.numbers.clear();
                            for annotation in event.annotations() {
                                if let AnnotationValue::Value(value) =
                                    annotation.map_err(|e| e.to_string())?.value
                                {
                                    self.numbers.extend(integer(&value));
                                }
                            }
                            visit(Mark::Begin(place, &self.numbers))?;
                        }
                        Some(EventType::SliceEnd) => visit(Mark::End(place))?,
                        _ => {}
                    }
                }
                Some(PacketData::Stats(_)) => visit(Mark::Tail)?,
                Some(PacketData::Compressed { bytes, .. }) => {
                    let mut inflated = Vec::new();
                    flate2::read::ZlibDecoder::new(*bytes)
                        .read_to_end(&mut inflated)
                        .map_err(|e| e.to_string())?;
                    self.walk(inflated.as_slice(), visit)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
