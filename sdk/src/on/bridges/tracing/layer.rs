//! A layer for tracing-subscriber's registry, which stores the spans.
//!
//! A layer without interest in a callsite switches it off for all layers, unless the layer has a filter of
//! its own. So this layer contains a filter around a layer that does nothing, and passes the registry's
//! queries to it. A callsite is then off only if no other layer wants it either. Entering and leaving a span
//! do not pass through the filter.

#![allow(unsafe_code)] // `downcast_raw`, with which tracing-subscriber finds the filter

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Interest, Metadata, Subscriber};
use tracing_subscriber::filter::Filtered;
use tracing_subscriber::layer::{Context, Filter};
use tracing_subscriber::registry::LookupSpan;

use crate::on::bridges::tracing::span::Span;
use crate::on::bridges::tracing::{Category, Mode, cells, sites};
use crate::on::lifecycle::enabled;

/// Records the spans and events of the `tracing` crate, beside other layers.
///
/// ```
/// use tracing_subscriber::prelude::*;
///
/// tracing_subscriber::registry().with(hairline::layer()).init();
/// ```
///
/// Works like [`Subscriber`](super::Subscriber), in a registry that stores the spans. Feature `tracing`.
///
/// Other layers get the spans and events that they want, whether a session runs or not.
pub struct Layer<S> {
    mode: Mode,
    category: Category,
    /// Distinguishes the spans of layers in several registries, whose ids may be equal.
    number: u32,
    gate: Filtered<Nothing, Gate, S>,
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
        sites::interest(metadata, self.0)
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
        Self { mode, category, number, gate: Filtered::new(Nothing, Gate(category)) }
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
        *self.gate.filter_mut() = Gate(category);
        self
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> {
    #[inline]
    fn with_span(&self, id: &Id, context: &Context<'_, S>, f: impl FnOnce(&Span)) {
        match cells::find(self.number, id.into_u64()) {
            Some(cell) => f(&cell.span),
            None => self.with_distant_span(id, context, f),
        }
    }

    /// Calls `f` with a span that another thread made, or that the registry stores.
    #[cold]
    fn with_distant_span(&self, id: &Id, context: &Context<'_, S>, f: impl FnOnce(&Span)) {
        if let Some(own) = Self::registry_span(id, context) {
            f(&own);
        } else if let Some(cell) = cells::search(self.number, id.into_u64()) {
            f(&cell.span);
        }
    }

    /// Returns the span that the registry stores. Not the registry's reference: while that exists, the
    /// registry holds its lock of the span, and `f` above may be code of the program.
    fn registry_span(id: &Id, context: &Context<'_, S>) -> Option<Arc<Span>> {
        context.span(id)?.extensions().get::<Arc<Span>>().cloned()
    }

    #[cold]
    fn close_distant(&self, id: &Id, context: &Context<'_, S>) {
        if let Some(own) = Self::registry_span(id, context) {
            own.close(id.into_u64());
        } else if let Some(cell) = cells::search(self.number, id.into_u64()) {
            cell.span.close(id.into_u64());
            cell.clear();
        }
    }

    /// As [`with_span`](Self::with_span). Calls `f` with `None` if there is no such span.
    fn with_optional_span(&self, id: Option<&Id>, context: &Context<'_, S>, f: impl FnOnce(Option<&Span>)) {
        let mut f = Some(f);
        if let Some(id) = id {
            self.with_span(id, context, |span| {
                if let Some(f) = f.take() {
                    f(Some(span));
                }
            });
        }
        if let Some(f) = f {
            f(None);
        }
    }

    /// Calls `visit` with each span from the root to this one, and with its parent.
    fn visit_branch(&self, id: &Id, context: &Context<'_, S>, visit: &mut dyn FnMut(Option<&Span>, &Span)) {
        let Some(branch) = context.span_scope(id) else { return };
        let mut above = None;
        for id in branch.from_root().map(|span| span.id()) {
            self.with_optional_span(above.as_ref(), context, |above| {
                self.with_span(&id, context, |span| visit(above, span));
            });
            above = Some(id);
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Layer<S> {
    fn on_layer(&mut self, subscriber: &mut S) {
        self.gate.on_layer(subscriber);
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.gate.register_callsite(metadata)
    }

    fn enabled(&self, metadata: &Metadata<'_>, context: Context<'_, S>) -> bool {
        self.gate.enabled(metadata, context)
    }

    fn event_enabled(&self, event: &Event<'_>, context: Context<'_, S>) -> bool {
        self.gate.event_enabled(event, context)
    }

    #[inline]
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        self.gate.on_new_span(attributes, id, context.clone());
        let site = sites::site(attributes.metadata(), self.category);
        let Some(site) = site.filter(|site| site.registered_epoch().is_some()) else { return };
        let create = |span: &Span| {
            span.create(site, self.mode, |fields| {
                attributes.record(fields);
                sites::add_level(fields, attributes.metadata());
            });
        };
        if !cells::put(self.number, id.into_u64(), create) {
            let Some(span) = context.span(id) else { return };
            let own = Arc::new(Span::default());
            create(&own);
            let old = span.extensions_mut().replace(own);
            drop(old); // after the release of the lock
        }
        if self.mode == Mode::Lifetimes {
            let parent = context.span(id).and_then(|span| span.parent()).map(|parent| parent.id());
            self.with_optional_span(parent.as_ref(), &context, |parent| {
                self.with_span(id, &context, |span| span.begin_life_now(parent));
            });
        }
    }

    fn on_record(&self, span: &Id, values: &Record<'_>, context: Context<'_, S>) {
        self.with_span(span, &context, |span| span.record(values));
    }

    fn on_follows_from(&self, span: &Id, follows: &Id, context: Context<'_, S>) {
        self.with_span(span, &context, |span| {
            self.with_span(follows, &context, |followed| span.follow(followed));
        });
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        self.gate.on_event(event, context);
        sites::event(event, self.category);
    }

    #[inline]
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        self.with_span(id, &context, |span| {
            span.enter(id.into_u64(), self.mode, |visit| self.visit_branch(id, &context, visit));
        });
    }

    #[inline]
    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        self.with_span(id, &context, |span| span.exit(id.into_u64()));
    }

    #[inline]
    fn on_close(&self, id: Id, context: Context<'_, S>) {
        match cells::find(self.number, id.into_u64()) {
            Some(cell) => {
                cell.span.close(id.into_u64());
                cell.clear();
            }
            None => self.close_distant(&id, &context),
        }
    }
    unsafe fn downcast_raw(&self, id: TypeId) -> Option<*const ()> {
        if id == TypeId::of::<Self>() {
            return Some(std::ptr::from_ref(self).cast());
        }
        // SAFETY: the caller keeps what `downcast_raw` asks of it; the filter lives as long as this layer.
        unsafe { self.gate.downcast_raw(id) }
    }
}
