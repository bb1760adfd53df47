//! A layer for tracing-subscriber's registry, which keeps the spans.

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Interest, Metadata, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

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
#[derive(Debug, Default)]
pub struct Layer {
    mode: Mode,
    category: Category,
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
}

fn with_span<S: Subscriber + for<'a> LookupSpan<'a>>(
    id: &Id,
    context: &Context<'_, S>,
    f: impl FnOnce(&Span),
) {
    if let Some(span) = context.span(id)
        && let Some(own) = span.extensions().get::<Span>()
    {
        f(own);
    }
}

/// Shows the spans from the root to this one, each with the one above it.
fn show_branch<S: Subscriber + for<'a> LookupSpan<'a>>(
    id: &Id,
    context: &Context<'_, S>,
    show: &mut dyn FnMut(Option<&Span>, &Span),
) {
    let Some(branch) = context.span_scope(id) else { return };
    let mut above: Option<SpanRef<'_, S>> = None;
    for span in branch.from_root() {
        {
            let extensions = above.as_ref().map(SpanRef::extensions);
            let own = span.extensions();
            if let Some(own) = own.get::<Span>() {
                show(extensions.as_ref().and_then(|above| above.get::<Span>()), own);
            }
        }
        above = Some(span);
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Layer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        sites::interest(metadata, self.category)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let (Some(site), Some(span)) = (sites::site(attributes.metadata(), self.category), context.span(id))
        else {
            return;
        };
        let own = Span::default();
        own.create(site, |fields| attributes.record(fields));
        if self.mode == Mode::Lifetimes {
            let parent = span.parent();
            let extensions = parent.as_ref().map(SpanRef::extensions);
            own.begin_life_now(extensions.as_ref().and_then(|parent| parent.get::<Span>()));
        }
        span.extensions_mut().replace(own);
    }

    fn on_record(&self, span: &Id, values: &Record<'_>, context: Context<'_, S>) {
        with_span(span, &context, |span| span.record(values));
    }

    fn on_follows_from(&self, span: &Id, follows: &Id, context: Context<'_, S>) {
        with_span(span, &context, |span| with_span(follows, &context, |followed| span.follow(followed)));
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        sites::event(event, self.category);
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        with_span(id, &context, |span| {
            span.enter(id.into_u64(), self.mode, |show| show_branch(id, &context, show));
        });
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        with_span(id, &context, |span| span.exit(id.into_u64()));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        with_span(&id, &context, Span::close);
    }
}
