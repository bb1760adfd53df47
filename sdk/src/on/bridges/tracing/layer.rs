//! A layer for tracing-subscriber's registry, which stores the spans.
//!
//! A layer without interest in a callsite switches it off for all layers, unless the layer has a filter of
//! its own. So above the registry this layer contains a filter around a layer that does nothing, and passes
//! the registry's queries to it. A callsite is then off only if no other layer wants it either. Entering and
//! leaving a span do not pass through the filter.
//!
//! Other subscribers know no such filters. There the layer leaves all callsites to the subscriber and to the
//! other layers, and selects what it records event by event.

#![allow(unsafe_code)] // `downcast_raw`, by which tracing-subscriber finds the filter

use std::any::TypeId;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Dispatch, Event, Interest, LevelFilter, Metadata, Subscriber};
use tracing_subscriber::filter::Filtered;
use tracing_subscriber::layer::{Context, Filter};
use tracing_subscriber::registry::{LookupSpan, Scope};

use crate::on::bridges::tracing::distant::Distant;
use crate::on::bridges::tracing::span::{Known, Span, Visit, VisitIn};
use crate::on::bridges::tracing::{cells, filters, interest, log_level, sites};
use crate::on::lifecycle::enabled;
use crate::spans::{Category, Mode};

/// Records the spans and events of the `tracing` crate, beside other layers.
///
/// ```
/// use tracing_subscriber::prelude::*;
///
/// tracing_subscriber::registry().with(hairline::layer()).init();
/// ```
///
/// Works like [`Subscriber`](super::Subscriber), above the registry or another subscriber that stores spans,
/// such as tracing-subscriber's `fmt`. Feature `tracing`.
///
/// Other layers get the spans and events that they want, whether a session runs or not. While no session
/// runs, the layer wants nothing: levels that the others do not want cost as much as without it. That is also
/// true of messages of `log`, which reach `tracing` by tracing-log.
pub struct Layer<S> {
    mode: Mode,
    category: Category,
    /// Distinguishes the spans of layers in several registries, whose ids may be equal.
    number: u32,
    /// The spans that are in no thread's table.
    distant: Distant,
    /// The filter, if the subscriber below supports filters.
    gate: Option<Filtered<Nothing, Gate, S>>,
    /// Whether the layer has recorded a span. Until then it looks for none.
    has_spans: AtomicBool,
    /// Where the layer is: one of the numbers below.
    place: AtomicU8,
    /// Whether nothing was to be recorded when `tracing` asked for the level last.
    is_off: AtomicBool,
}

/// The layer is not yet above a subscriber.
const UNPLACED: u8 = 0;
/// The layer is above a subscriber, in a place that is not known.
const PLACED: u8 = 1;
/// The layer is above a subscriber, by itself. There a level that the layer names limits no other layer.
const ALONE: u8 = 2;
/// The layer is in a tree of layers.
const IN_TREE: u8 = 3;

/// The way to a layer from a subscriber whose type is not known.
pub(crate) struct Branches(fn(&Dispatch, &Id, &mut VisitIn<'_>));

impl Branches {
    /// Visits the branch of a span, with the layer's mode.
    pub(crate) fn visit(&self, subscriber: &Dispatch, id: &Id, visit: &mut VisitIn<'_>) {
        (self.0)(subscriber, id, visit);
    }
}

/// The filter: a callsite is on if a session records its category.
#[derive(Debug)]
struct Gate(Category);

/// The layer inside of the filter. It does nothing.
#[derive(Debug)]
struct Nothing;

impl<S: Subscriber> tracing_subscriber::Layer<S> for Nothing {}

impl<S> Filter<S> for Gate {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        enabled::is_recording() // the callsite's word decides exactly
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        interest::of(metadata, self.0)
    }
}

/// Makes a [`Layer`] that records spans as [`Mode::Auto`] describes, with their target as category. Feature
/// `tracing`.
///
/// ```
/// use hairline::{Category, Mode};
/// use tracing_subscriber::prelude::*;
///
/// # fn main() -> Result<(), tracing_subscriber::util::TryInitError> {
/// let layer = hairline::layer().mode(Mode::Lifetimes).category(Category::Level);
/// tracing_subscriber::registry().with(layer).try_init()?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn layer<S>() -> Layer<S> {
    Layer::default()
}

impl<S> Default for Layer<S> {
    fn default() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (mode, category) = (Mode::default().or_environments(), Category::default());
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            mode,
            category,
            number,
            distant: Distant::new(),
            gate: None,
            place: AtomicU8::new(UNPLACED),
            is_off: AtomicBool::new(false),
            has_spans: AtomicBool::new(false),
        }
    }
}

impl<S> fmt::Debug for Layer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mode, category, .. } = self;
        f.debug_struct("Layer").field("mode", mode).field("category", category).finish_non_exhaustive()
    }
}

impl<S> Layer<S> {
    /// Sets how spans are recorded, unless the environment does: [`Mode`].
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode.or_environments();
        self
    }

    /// Sets the category of spans and events. The session's filter selects by it.
    #[must_use]
    pub fn category(mut self, category: Category) -> Self {
        self.category = category;
        self
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> {
    const BRANCHES: &'static Branches = &Branches(|subscriber, id, visit| {
        let (layer, below) = (subscriber.downcast_ref::<Self>(), subscriber.downcast_ref::<S>());
        if let (Some(layer), Some(below)) = (layer, below) {
            let branch = below.span(id).map(|span| span.scope());
            layer.visit_branch(branch, &mut |above, known| visit(layer.mode, above, known));
        }
    });

    /// Learns from a question for a part of the layer where the layer is. tracing-subscriber asks for a filter
    /// when it puts a layer above a subscriber or beside another layer.
    #[cold]
    fn place(&self, place: u8, id: TypeId) {
        let filter = Filtered::<_, _, S>::new(Nothing, Gate(self.category));
        // SAFETY: the pointer is not used.
        if unsafe { tracing_subscriber::Layer::<S>::downcast_raw(&filter, id) }.is_some() {
            self.place.store(if place == PLACED { ALONE } else { IN_TREE }, Ordering::Relaxed);
        }
    }

    #[inline]
    fn with_span(&self, id: &Id, f: impl FnOnce(&Span)) {
        // Relaxed: a thread that has the id of a recorded span sees the store before.
        if !self.has_spans.load(Ordering::Relaxed) {
            return;
        }
        match cells::find(self.number, id.into_u64()) {
            Some(cell) => f(&cell.span),
            None => self.with_distant_span(id.into_u64(), f),
        }
    }

    /// Calls `f` with a span that another thread made, or that is in no table.
    #[cold]
    fn with_distant_span(&self, id: u64, f: impl FnOnce(&Span)) {
        let span = self.distant.find(id).or_else(|| cells::search(self.number, id).map(|cell| &cell.span));
        if let Some(span) = span {
            f(span);
        }
    }

    #[cold]
    fn close_distant(&self, id: u64) {
        if !self.distant.close(id)
            && let Some(cell) = cells::search(self.number, id)
        {
            cell.span.close(id);
            cell.clear();
        }
    }

    /// As [`with_span`](Self::with_span). Calls `f` with `None` if there is no such span.
    fn with_optional_span(&self, id: Option<&Id>, f: impl FnOnce(Option<Known<'_>>)) {
        let mut f = Some(f);
        if let Some(id) = id {
            self.with_span(id, |span| {
                if let Some(f) = f.take() {
                    f(Some(Known { id: id.into_u64(), span }));
                }
            });
        }
        if let Some(f) = f {
            f(None);
        }
    }

    /// Calls `visit` with each recorded span of a branch from the root on, and with the recorded one above.
    fn visit_branch(&self, branch: Option<Scope<'_, S>>, visit: &mut Visit<'_>) {
        let mut above = None;
        for id in branch.into_iter().flat_map(Scope::from_root).map(|span| span.id()) {
            let mut is_known = false;
            self.with_optional_span(above.as_ref(), |above| {
                self.with_span(&id, |span| {
                    is_known = true;
                    visit(above, Known { id: id.into_u64(), span });
                });
            });
            if is_known {
                above = Some(id);
            }
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Layer<S> {
    fn on_layer(&mut self, subscriber: &mut S) {
        let place = self.place.get_mut();
        *place = (*place).max(PLACED);
        if filters::are_supported_by::<S>() {
            self.gate.insert(Filtered::new(Nothing, Gate(self.category))).on_layer(subscriber);
        }
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if let Some(gate) = &self.gate {
            return gate.register_callsite(metadata);
        }
        interest::of(metadata, self.category); // for the session that the environment requests
        Interest::always()
    }

    fn enabled(&self, metadata: &Metadata<'_>, context: Context<'_, S>) -> bool {
        log_level::receive_question();
        if let Some(gate) = &self.gate {
            return gate.enabled(metadata, context);
        }
        enabled::is_recording(); // for the session that the environment requests
        true
    }

    fn event_enabled(&self, event: &Event<'_>, context: Context<'_, S>) -> bool {
        self.gate.as_ref().is_none_or(|gate| gate.event_enabled(event, context))
    }

    /// Returns OFF while nothing is to be recorded, as a layer `None` does; otherwise no limit. A level in
    /// between would be a limit for a layer above this one that names none itself. So would OFF in a tree.
    fn max_level_hint(&self) -> Option<LevelFilter> {
        let is_off = interest::level() == LevelFilter::OFF && self.place.load(Ordering::Relaxed) == ALONE;
        self.is_off.store(is_off, Ordering::Relaxed);
        is_off.then_some(LevelFilter::OFF)
    }

    #[inline]
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(gate) = &self.gate {
            gate.on_new_span(attributes, id, context.clone());
        }
        let site = sites::site(attributes.metadata(), self.category);
        let Some(site) = site.filter(|site| site.registered_epoch().is_some()) else { return };
        if !self.has_spans.load(Ordering::Relaxed) {
            self.has_spans.store(true, Ordering::Relaxed);
        }
        let create = |span: &Span| {
            span.create(site, self.mode, |fields| {
                attributes.record(fields);
                sites::add_level_of_span(fields, attributes.metadata());
            });
        };
        if !cells::put(self.number, id.into_u64(), create) {
            self.distant.put(id.into_u64(), create);
        }
        if self.mode == Mode::Lifetimes {
            let parent = context.span(id).and_then(|span| span.parent()).map(|parent| parent.id());
            self.with_optional_span(parent.as_ref(), |parent| {
                self.with_span(id, |span| span.begin_life_now(parent));
            });
        }
    }

    fn on_record(&self, span: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.with_span(span, |span| span.record(values));
    }

    fn on_follows_from(&self, span: &Id, follows: &Id, _: Context<'_, S>) {
        self.with_span(span, |span| {
            self.with_span(follows, |followed| span.follow(followed));
        });
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if let Some(gate) = &self.gate {
            gate.on_event(event, context);
        }
        sites::event(event, self.category);
    }

    #[inline]
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        self.with_span(id, |span| {
            span.enter(id.into_u64(), self.mode, |_, visit| self.visit_branch(context.span_scope(id), visit));
        });
    }

    #[inline]
    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        self.with_span(id, |span| span.exit(id.into_u64()));
    }

    #[inline]
    fn on_close(&self, id: Id, _: Context<'_, S>) {
        if !self.has_spans.load(Ordering::Relaxed) {
            return;
        }
        match cells::find(self.number, id.into_u64()) {
            Some(cell) => {
                cell.span.close(id.into_u64());
                cell.clear();
            }
            None => self.close_distant(id.into_u64()),
        }
    }

    unsafe fn downcast_raw(&self, id: TypeId) -> Option<*const ()> {
        /// tracing-subscriber takes the level of a layer `None` for no limit of the other layers.
        static NONE: Option<Nothing> = None;
        if id == TypeId::of::<Self>() {
            return Some(std::ptr::from_ref(self).cast());
        }
        if id == TypeId::of::<Branches>() {
            return Some(std::ptr::from_ref(Self::BRANCHES).cast());
        }
        let place = self.place.load(Ordering::Relaxed);
        if place < ALONE {
            self.place(place, id);
        }
        // SAFETY: the caller keeps what `downcast_raw` asks of it; the filter lives as long as this layer.
        let gate = self.gate.as_ref().and_then(|gate| unsafe { gate.downcast_raw(id) });
        if gate.is_some() || !self.is_off.load(Ordering::Relaxed) {
            return gate;
        }
        // SAFETY: as above; `NONE` is static.
        unsafe { tracing_subscriber::Layer::<S>::downcast_raw(&NONE, id) }
    }
}
