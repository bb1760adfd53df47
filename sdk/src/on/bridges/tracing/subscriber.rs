//! A subscriber that needs only tracing-core.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering;

use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_core::{Event, Interest, LevelFilter, Metadata};

use crate::on::base::few::Few;
use crate::on::bridges::tracing::slots::{SLOTS, Slot};
use crate::on::bridges::tracing::span::{Known, Visit, VisitIn};
use crate::on::bridges::tracing::{interest, log_level, sites, stack};
use crate::spans::{Category, Mode};

/// Records the spans and events of the `tracing` crate.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = std::env::temp_dir().join(format!("hairline-subscriber-{}.pftrace", std::process::id()));
/// let session = hairline::Session::builder().output(&path).start()?;
/// tracing::subscriber::set_global_default(hairline::Subscriber::new())?;
/// tracing::info_span!("request", id = 7).in_scope(|| tracing::info!("answered"));
/// session.stop()?;
/// # std::fs::remove_file(path)?;
/// # Ok(())
/// # }
/// ```
///
/// The category of a span or event is its target, unless [`category`](Self::category) sets another. Its
/// arguments are its fields, and `level` if that is not INFO. An event with a message is a log message. While
/// no session records a category, its callsites cost as much as without a subscriber.
///
/// The program needs no session of its own: the first span or event starts the session that `HAIRLINE` asks
/// for, and is in its trace. Feature `subscriber`.
///
/// At most 2^32 spans are open at a time; further ones are not recorded.
#[derive(Debug)]
pub struct Subscriber {
    mode: Mode,
    category: Category,
}

impl Subscriber {
    /// Makes a subscriber that records spans as [`Mode::Auto`] describes, with their target as category.
    #[must_use]
    pub fn new() -> Self {
        Self { mode: Mode::Auto.or_environments(), category: Category::Target }
    }

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

    /// Returns the slot of a span that is not closed.
    fn slot(id: u64) -> Option<&'static Slot> {
        SLOTS.get(&Id::from_non_zero_u64(NonZeroU64::new(id)?))
    }

    /// Calls `visit` with each span from the root to this one, and with its parent.
    fn visit_branch(id: u64, visit: &mut Visit<'_>) {
        let mut branch = Few::<Option<Known<'_>>>::new(None);
        let mut next = id;
        while let Some(slot) = Self::slot(next) {
            branch.push(Some(Known { id: next, span: &slot.span }));
            next = slot.parent.load(Ordering::Relaxed);
        }
        let mut above = None;
        for known in branch.as_slice().iter().rev().flatten() {
            visit(above, *known);
            above = Some(*known);
        }
    }

    /// Visits the branch of a span, with the subscriber's mode.
    pub(crate) fn visit_open(&self, id: &Id, visit: &mut VisitIn<'_>) {
        Self::visit_branch(id.into_u64(), &mut |above, known| visit(self.mode, above, known));
    }
}

impl Default for Subscriber {
    fn default() -> Self {
        Self::new()
    }
}

/// Frees the slot if the program's code panics while it visits the span's fields.
struct Unfilled<'i>(&'i Id);

impl Drop for Unfilled<'_> {
    #[cold]
    fn drop(&mut self) {
        SLOTS.release(self.0, |_| {});
    }
}

/// The id of spans that are not recorded. No slot has it.
const UNRECORDED: u64 = u64::MAX;

impl tracing_core::Subscriber for Subscriber {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        interest::of(metadata, self.category)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(interest::level())
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // tracing asks this only for macros that query whether a callsite is enabled: callsites are always or
        // never of interest.
        log_level::receive_question();
        sites::would_record(metadata, self.category)
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let slot =
            sites::site(attributes.metadata(), self.category).and_then(|site| Some((site, SLOTS.take()?)));
        let Some((site, (slot, id))) = slot else { return Id::from_u64(UNRECORDED) };
        let parent = if attributes.is_contextual() {
            stack::top_span()
        } else {
            attributes.parent().map_or(0, Id::into_u64)
        };
        slot.parent.store(parent, Ordering::Relaxed);
        let unfilled = Unfilled(&id);
        slot.span.create(site, self.mode, |fields| {
            attributes.record(fields);
            sites::add_level_of_span(fields, attributes.metadata());
        });
        std::mem::forget(unfilled);
        if self.mode == Mode::Lifetimes {
            slot.span.begin_life_now(Self::slot(parent).map(|slot| Known { id: parent, span: &slot.span }));
        }
        id
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        if let Some(slot) = SLOTS.get(span) {
            slot.span.record(values);
        }
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        if let (Some(slot), Some(followed)) = (SLOTS.get(span), SLOTS.get(follows)) {
            slot.span.follow(&followed.span);
        }
    }

    fn event(&self, event: &Event<'_>) {
        sites::event(event, self.category);
    }

    #[inline]
    fn enter(&self, span: &Id) {
        if let Some(slot) = SLOTS.get(span) {
            slot.span.enter(span.into_u64(), self.mode, Self::visit_branch);
        }
    }

    #[inline]
    fn exit(&self, span: &Id) {
        if let Some(slot) = SLOTS.get(span) {
            slot.span.exit(span.into_u64());
        }
    }

    fn clone_span(&self, id: &Id) -> Id {
        SLOTS.share(id);
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        SLOTS.release(&id, |slot| slot.span.close(id.into_u64()))
    }

    fn current_span(&self) -> Current {
        match stack::top().and_then(|entry| Some((NonZeroU64::new(entry.span)?, entry.callsite))) {
            Some((id, callsite)) => match sites::metadata(callsite) {
                Some(metadata) => Current::new(Id::from_non_zero_u64(id), metadata),
                None => Current::none(),
            },
            None => Current::none(),
        }
    }
}
