//! What the command tells of its recording in the trace, as the sessions of processes tell of theirs.

use hairline::Format;
use hairline_formats::track_event as te;
use hairline_formats::{Value, fxt};

use crate::platform;
use crate::record::neighbours::Taken;
use crate::record::switches::{SEQUENCE, head};

const CATEGORY: &str = "hairline";

/// The track of the events. The splice gives it another number.
const TRACK: te::TrackUuid = te::TrackUuid(0x6c6f_7374);

/// What there is to tell.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The time of the last thread state: what is told does not make the trace longer. 0: now.
    pub(super) at: u64,
    /// The number of context switches that the kernel's rings had no room for.
    pub(super) lost: u64,
    /// What the system refused or had no room for, and why.
    pub(super) refused: Vec<(&'static str, String)>,
    /// What other processes took meanwhile.
    pub(super) others: Option<Taken>,
}

impl Told {
    /// Returns a part of the trace, if there is anything to tell. `command`: the process on whose track FXT
    /// shows it.
    pub(super) fn part(&self, format: Format, command: u32) -> Option<Vec<u8>> {
        let lost =
            (self.lost > 0).then(|| ("lost in all", vec![("kernel ring full", Value::U64(self.lost))]));
        let refused = self.refused.iter().map(|(what, why)| ("not recorded", vec![(*what, Value::Str(why))]));
        let others = self.others.as_ref().filter(|others| !others.by.is_empty()).map(|others| {
            let by = others.by.iter().map(|(name, time)| (&**name, Value::U64(*time)));
            ("other processes", std::iter::once(("recorded", Value::U64(others.of))).chain(by).collect())
        });
        let events: Vec<_> = lost.into_iter().chain(refused).chain(others).collect();
        (!events.is_empty()).then(|| match format {
            Format::Fxt => as_fxt(&events, self.time(), command),
            _ => self.as_packets(&events),
        })
    }

    fn time(&self) -> u64 {
        if self.at > 0 { self.at } else { platform::boottime() }
    }

    fn as_packets(&self, events: &[(&str, Vec<(&str, Value<'_>)>)]) -> Vec<u8> {
        let mut out = Vec::new();
        let track = te::CustomTrack { uuid: TRACK, name: "hairline record", ..te::CustomTrack::default() };
        te::custom_descriptor(&mut out, SEQUENCE, &track);
        if self.lost > 0 {
            let stats = te::TraceStats { events_lost: self.lost, ..te::TraceStats::default() };
            te::trace_stats(&mut out, SEQUENCE, &stats);
        }
        for (name, args) in events {
            let annotations: Vec<_> =
                args.iter().map(|(what, value)| (te::Name::Text(what), *value)).collect();
            let event = te::Event {
                needs_state: false,
                categories: &[te::Name::Text(CATEGORY)],
                name: Some(te::Name::Text(name)),
                track_uuid: Some(TRACK),
                annotations: &annotations,
                ..te::Event::new(SEQUENCE, te::EventType::Instant, self.time())
            };
            te::event(&mut out, &event);
        }
        out
    }
}

fn as_fxt(events: &[(&str, Vec<(&str, Value<'_>)>)], timestamp: u64, command: u32) -> Vec<u8> {
    let mut out = head(Format::Fxt);
    let inline = fxt::StringRef::Inline;
    let (process, thread) = (u64::from(command), u64::from(command));
    for (name, args) in events {
        let args: Vec<_> = args.iter().map(|(what, value)| (inline(what), *value)).collect();
        let event = fxt::Event {
            kind: fxt::EventKind::Instant,
            timestamp,
            thread: fxt::ThreadRef::Inline { process, thread },
            category: inline(CATEGORY),
            name: inline(name),
            args: &args,
            payload: None,
        };
        fxt::event(&mut out, &event);
    }
    out
}
