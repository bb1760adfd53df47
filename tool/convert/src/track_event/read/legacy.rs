//! Legacy events: Trace Event JSON inside of TrackEvents.

use hairline_formats::track_event::{FlowDirection, LegacyEvent, LegacyId};

use crate::starts::LATE;
use crate::track_event::read::current::TextRef;
use crate::track_event::read::state::State;
use crate::{Categories, Context, EventKind, FlowStep};

impl State {
    /// Reads a legacy event on `track`. Returns `false` if it has no equivalent.
    pub(super) fn legacy(&mut self, track: u32, legacy: &LegacyEvent<'_>, context: &mut Context) -> bool {
        if let (TextRef::None, Some(iid)) = (&self.current.name, legacy.name_iid) {
            self.current.name = TextRef::Iid(iid);
        }
        let kind = match legacy.phase {
            b'B' | b'b' | b'S' => Some(EventKind::Begin),
            b'E' | b'e' | b'F' => Some(EventKind::End),
            b'i' | b'I' | b'R' | b'n' | b'T' | b'p' => Some(EventKind::Instant),
            b'X' => legacy.duration_us.unwrap_or(0).checked_mul(1000).filter(|ns| *ns >= 0).map(complete),
            b's' => self.flow(legacy, FlowStep::Begin, false, context),
            b't' => self.flow(legacy, FlowStep::Step, false, context),
            b'f' => self.flow(legacy, FlowStep::End, !legacy.bind_to_enclosing, context),
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
            let scope = self.texts.intern(&self.scope(legacy), context);
            let Some(scope) = scope.and_then(|scope| self.texts.get(scope)).cloned() else {
                self.report.add("strings left out: there are too many");
                return false;
            };
            let lane = self.tracks.numbered(near, id, scope, context, &mut self.pending);
            self.current.track = self.tracks.get(lane).id();
        }
        if let EventKind::Complete { duration } = kind {
            let late = self.starts.is_late(self.current.track, self.current.time, duration);
            self.report.add_many(LATE, late.into());
        }
        let whole = match legacy.instant_scope {
            1 if kind == EventKind::Instant => Some(self.tracks.of_trace(context, &mut self.pending)),
            2 if kind == EventKind::Instant => self.tracks.process_of(track),
            _ => None,
        };
        if let Some(track) = whole {
            self.current.track = self.tracks.get(track).id();
        }
        self.current.kind = kind;
        true
    }

    /// Reads the flow that an event of any phase is bound to.
    pub(super) fn bind(&mut self, legacy: &LegacyEvent<'_>, context: &Context) {
        let Some((id, direction)) = legacy.bind else { return };
        let step = match direction {
            FlowDirection { comes: false, goes: true } => FlowStep::Begin,
            FlowDirection { comes: true, goes: true } => FlowStep::Step,
            FlowDirection { comes: true, goes: false } => FlowStep::End,
            FlowDirection { comes: false, goes: false } => {
                return self.report.add("flows without a direction");
            }
        };
        let id = context.flow(id);
        self.flows.count(id, step, &mut self.report);
        self.current.bound = Some((id, step));
    }

    /// The event of a flow. Importers identify such flows by name and category too, and keep them apart from
    /// the flow ids of other events.
    fn flow(
        &mut self,
        legacy: &LegacyEvent<'_>,
        step: FlowStep,
        to_next: bool,
        context: &Context,
    ) -> Option<EventKind> {
        let Some(LegacyId::Unscoped(id)) = legacy.id else { return None }; // importers ignore such flows
        let event = self.event();
        let (mut categories, name) = (String::new(), event.name.text.to_owned());
        event.categories.join(&mut categories);
        self.flows.keep_bound_ids();
        let id = self.flows.id(&categories, &name, context.flow(id));
        self.flows.count(id, step, &mut self.report);
        Some(EventKind::Flow { id, step, to_next, lasts: true })
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
