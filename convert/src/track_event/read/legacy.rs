//! Legacy events: Trace Event JSON inside of TrackEvents.

use hairline_formats::track_event::{FlowDirection, LegacyEvent, LegacyId};

use crate::track_event::read::current::TextRef;
use crate::track_event::read::state::State;
use crate::track_event::read::table::InternedText;
use crate::{Categories, Context, EventKind, FlowStep};

impl State {
    /// Reads a legacy event on `track`. Returns `false` if it has no equivalent.
    pub(super) fn legacy(&mut self, track: u32, legacy: &LegacyEvent<'_>, context: &mut Context) -> bool {
        if let (TextRef::None, Some(iid)) = (&self.current.name, legacy.name_iid) {
            self.current.name = TextRef::Iid(iid);
        }
        match legacy.bind {
            Some((id, FlowDirection { comes: true, goes: false })) => {
                self.current.ending_flows.push(context.flow(id));
            }
            Some((id, FlowDirection { goes: true, .. })) => self.current.flows.push(context.flow(id)),
            _ => {}
        }
        let flow = |step, to_next| match legacy.id {
            Some(LegacyId::Unscoped(id)) => Some(EventKind::Flow { id: context.flow(id), step, to_next }),
            _ => None, // importers ignore such flows
        };
        let kind = match legacy.phase {
            b'B' | b'b' | b'S' => Some(EventKind::Begin),
            b'E' | b'e' | b'F' => Some(EventKind::End),
            b'i' | b'I' | b'R' | b'n' | b'T' | b'p' => Some(EventKind::Instant),
            b'X' => legacy.duration_us.unwrap_or(0).checked_mul(1000).filter(|ns| *ns >= 0).map(complete),
            b's' => flow(FlowStep::Begin, false),
            b't' => flow(FlowStep::Step, false),
            b'f' => flow(FlowStep::End, !legacy.bind_to_enclosing),
            _ => None,
        };
        let Some(kind) = kind else {
            self.report.add_defects("legacy events of other kinds", 1);
            return false;
        };
        if matches!(legacy.phase, b'b' | b'e' | b'n' | b'S' | b'F' | b'T' | b'p') {
            let (id, near) = match legacy.id {
                Some(LegacyId::Local(id)) => (id, Some(track)),
                Some(LegacyId::Global(id) | LegacyId::Unscoped(id)) => (id, None),
                None => {
                    self.report.add_defects("async events without an id", 1);
                    return false;
                }
            };
            // Stored once for all intervals: a scope may be a long text, but an interval has only a few bytes
            // of input.
            let scope = self.texts.name(&self.scope(legacy), context);
            let Some(InternedText { text: scope, .. }) = scope else {
                self.report.add("strings left out: there are too many");
                return false;
            };
            let lane = self.tracks.numbered(near, id, scope, context, &mut self.pending);
            self.current.track = self.tracks.get(lane).id();
        }
        self.current.kind = kind;
        true
    }

    /// Distinguishes async events with equal ids: by the category, or by the name for the older phases, and
    /// by the event's own scope.
    fn scope(&self, legacy: &LegacyEvent<'_>) -> String {
        let event = self.event();
        let mut scope = String::new();
        match event.categories {
            _ if legacy.phase.is_ascii_uppercase() || legacy.phase == b'p' => scope.push_str(event.name.text),
            Categories::One(category) => scope.push_str(category.text),
            _ => {}
        }
        if let Some(of) = legacy.id_scope {
            scope.push(':');
            scope.push_str(of);
        }
        scope
    }
}

fn complete(duration: i64) -> EventKind {
    EventKind::Complete { duration }
}
