//! A layer for tracing-subscriber's registry, which keeps the spans.

use std::sync::atomic::{AtomicU32, Ordering};

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Interest, Metadata, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use super::cells;
use super::sites;
use super::span::Span;
use super::{Category, Mode};

/// Records the spans and events of the `tracing` crate, beside other layers.
///
/// ```
/// use tracing_subscriber::prelude::*;
///
/// tracing_subscriber::registry().with(hairline::layer()).init();
/// ```
///
/// As [`Subscriber`](super::Subscriber), in a registry that keeps the spans. Feature `tracing`.
#[derive(Debug)]
pub struct Layer {
    mode: Mode,
    category: Category,
    /// Registries number their spans alike; this tells the spans of one layer from those of another.
    number: u32,
}

/// A [`Layer`] that shows spans as [`Mode::Auto`] says, with their target as category. Feature `tracing`.
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
pub fn layer() -> Layer {
    Layer::default()
}

impl Default for Layer {
    fn default() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self {
            mode: Mode::default(),
            category: Category::default(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl Layer {
    /// How spans are shown.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// What the category of spans and events is, which the session's filter goes by.
    #[must_use]
    pub fn category(mut self, category: Category) -> Self {
        self.category = category;
        self
    }

    #[inline]
    fn with_span<S: Subscriber + for<'a> LookupSpan<'a>>(
        &self,
        id: &Id,
        context: &Context<'_, S>,
        f: impl FnOnce(&Span),
    ) {
        match cells::find(self.number, id.into_u64()) {
            Some(cell) => f(&cell.span),
            None => self.with_distant_span(id, context, f),
        }
    }

    /// A span that another thread has made, or that the registry keeps.
    #[cold]
    fn with_distant_span<S: Subscriber + for<'a> LookupSpan<'a>>(
        &self,
        id: &Id,
        context: &Context<'_, S>,
        f: impl FnOnce(&Span),
    ) {
        let span = context.span(id);
        let extensions = span.as_ref().map(SpanRef::extensions);
        if let Some(own) = extensions.as_ref().and_then(|extensions| extensions.get::<Span>()) {
            f(own);
        } else if let Some(cell) = cells::search(self.number, id.into_u64()) {
            drop(extensions);
            f(&cell.span);
        }
    }

    #[cold]
    fn close_distant<S: Subscriber + for<'a> LookupSpan<'a>>(&self, id: &Id, context: &Context<'_, S>) {
        let span = context.span(id);
        let extensions = span.as_ref().map(SpanRef::extensions);
        if let Some(own) = extensions.as_ref().and_then(|extensions| extensions.get::<Span>()) {
            own.close();
        } else if let Some(cell) = cells::search(self.number, id.into_u64()) {
            cell.span.close();
            cell.clear();
        }
    }

    /// As [`with_span`](Self::with_span), None where there is no such span.
    fn with_some_span<S: Subscriber + for<'a> LookupSpan<'a>>(
        &self,
        id: Option<&Id>,
        context: &Context<'_, S>,
        f: impl FnOnce(Option<&Span>),
    ) {
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

    /// Shows the spans from the root to this one, each with the one above it.
    fn show_branch<S: Subscriber + for<'a> LookupSpan<'a>>(
        &self,
        id: &Id,
        context: &Context<'_, S>,
        show: &mut dyn FnMut(Option<&Span>, &Span),
    ) {
        let Some(branch) = context.span_scope(id) else { return };
        let mut above = None;
        for id in branch.from_root().map(|span| span.id()) {
            self.with_some_span(above.as_ref(), context, |above| {
                self.with_span(&id, context, |span| show(above, span));
            });
            above = Some(id);
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Layer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        sites::interest(metadata, self.category)
    }

    #[inline]
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(site) = sites::site(attributes.metadata(), self.category) else { return };
        let create = |span: &Span| span.create(site, |fields| attributes.record(fields));
        if !cells::put(self.number, id.into_u64(), create) {
            let Some(span) = context.span(id) else { return };
            let own = Span::default();
            create(&own);
            span.extensions_mut().replace(own);
        }
        if self.mode == Mode::Lifetimes {
            let parent = context.span(id).and_then(|span| span.parent()).map(|parent| parent.id());
            self.with_some_span(parent.as_ref(), &context, |parent| {
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

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        sites::event(event, self.category);
    }

    #[inline]
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        self.with_span(id, &context, |span| {
            span.enter(id.into_u64(), self.mode, |show| self.show_branch(id, &context, show));
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
                cell.span.close();
                cell.clear();
            }
            None => self.close_distant(&id, &context),
        }
    }
}
