//! What is known of a span, and what its entering, leaving and closing record.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use hairline_formats::Value;
use tracing_core::span::Record;

use crate::on::base::lock::{Mutex, MutexGuard};
use crate::on::bridges::tracing::fields::{Fields, Visited};
use crate::on::bridges::tracing::stack::Entry;
use crate::on::bridges::tracing::{Mode, stack};
use crate::on::callsite;
use crate::on::callsite::Callsite;
use crate::on::event::extras::Extras;
use crate::on::event::flow::Flow;
use crate::on::event::track;
use crate::on::thread::guards::interval::AsyncScope;
use crate::on::thread::slices;

/// A span. Where one thread makes, enters, leaves and closes it, none of its fields is written by an atomic operation that
/// costs more than a store.
#[derive(Debug)]
pub(crate) struct Span {
    callsite: AtomicPtr<Callsite>,
    /// Entries by the thread that made it, which counts them without a read-modify-write, and by all others.
    entered_here: AtomicU32,
    entered_elsewhere: AtomicU32,
    /// The thread that made it, by its track.
    maker: AtomicU64,
    /// The thread that entered it first, by its track.
    thread: AtomicU64,
    /// When it was entered first; 0: its life began with its creation.
    since: AtomicU64,
    /// What is to be said beyond a plain slice: the bits below.
    state: AtomicU32,
    /// The flow that links its entries once it has a life, and the epoch in which the flow has begun. Id 0:
    /// there is none.
    flow_begun: AtomicU32,
    flow: AtomicU64,
    rest: Mutex<Rest>,
}

/// Its life on an async track is being written, or has been: `rest` has it.
const LIFE_BEGINS: u32 = 1;
const LIFE_BEGUN: u32 = 2;
const LIFE: u32 = LIFE_BEGINS | LIFE_BEGUN;
/// There are values in `rest` that its first entry, or its next end, has to say.
const FIELDS: u32 = 4;
const LATE_FIELDS: u32 = 8;
/// There is an arrow in `rest`, to its next entry.
const ARROW: u32 = 16;
/// There are late values in `rest`, whether an end has said them or not.
const LATE: u32 = 32;

/// What is not needed to enter a span that is no more than a slice.
///
/// Its lock is held to copy, put or take one of these pointers, and while the hot path writes the fields. All
/// else is done outside of the lock: fields are shown by code of the program, which may record on this very
/// span, and so may its allocator.
#[derive(Debug, Default)]
struct Rest {
    fields: Option<Arc<Visited>>,
    /// What was recorded after the creation, the last call's values first.
    late: Option<Arc<Visited>>,
    life: Option<Arc<Life>>,
    /// From the span that it follows.
    arrow: Option<Box<Flow>>,
}

/// An interval on an async track. It ends when nobody has it any more: the span itself, or a thread that is
/// recording below it.
#[derive(Debug)]
struct Life {
    interval: AsyncScope,
    /// The values for its end.
    late: OnceLock<Arc<Visited>>,
}

impl Drop for Life {
    fn drop(&mut self) {
        let late = self.late.take();
        if let Some(late) = &late {
            late.show_all(|values| self.interval.set_arguments(values));
        }
        Visited::keep_memory(late);
    }
}

impl Default for Span {
    fn default() -> Self {
        Self::new()
    }
}

impl Span {
    /// Of no callsite.
    pub(crate) const fn new() -> Self {
        Self {
            callsite: AtomicPtr::new(std::ptr::null_mut()),
            entered_here: AtomicU32::new(0),
            entered_elsewhere: AtomicU32::new(0),
            maker: AtomicU64::new(0),
            thread: AtomicU64::new(0),
            since: AtomicU64::new(0),
            state: AtomicU32::new(0),
            flow_begun: AtomicU32::new(0),
            flow: AtomicU64::new(0),
            rest: Mutex::new(Rest { fields: None, late: None, life: None, arrow: None }),
        }
    }

    /// A span of the callsite, with the values that `visit` shows.
    #[inline]
    pub(crate) fn create(&self, callsite: &'static Callsite, visit: impl FnOnce(&mut Fields)) {
        self.callsite.store(std::ptr::from_ref(callsite).cast_mut(), Ordering::Release);
        self.entered_here.store(0, Ordering::Relaxed);
        self.entered_elsewhere.store(0, Ordering::Relaxed);
        self.maker.store(track::own_uuid(), Ordering::Relaxed);
        let state = if callsite.keys().is_empty() { 0 } else { self.keep_fields(visit) };
        self.state.store(state, Ordering::Relaxed);
    }

    fn keep_fields(&self, visit: impl FnOnce(&mut Fields)) -> u32 {
        let visited = Visited::of(visit);
        let Some(mut rest) = self.rest() else { return 0 };
        // Of the span that was here before.
        let old = rest.fields.replace(visited);
        let late = rest.late.take();
        drop(rest);
        Visited::keep_memory(old);
        Visited::keep_memory(late);
        FIELDS
    }

    /// Whether any of these bits is set.
    #[inline]
    fn has(&self, bits: u32) -> bool {
        // Acquire pairs with the Release of whoever set it: what it says is in `rest` is there.
        self.state.load(Ordering::Acquire) & bits != 0
    }

    /// None in a forked child that lost the lock: then nothing of it is said any more.
    fn rest(&self) -> Option<MutexGuard<'_, Rest>> {
        self.rest.lock_unless_lost()
    }

    fn fields(&self) -> Option<Arc<Visited>> {
        if self.has(FIELDS) { self.rest()?.fields.clone() } else { None }
    }

    fn life(&self) -> Option<Arc<Life>> {
        if self.has(LIFE_BEGUN) { self.rest()?.life.clone() } else { None }
    }

    /// Hands on the flow of its entries, if there is one.
    fn with_flow<R>(&self, f: impl FnOnce(&Flow) -> R) -> Option<R> {
        if !self.has(LIFE_BEGUN) {
            return None;
        }
        let id = self.flow.load(Ordering::Relaxed);
        let begun = self.flow_begun.load(Ordering::Relaxed);
        let flow = Flow::resumed(id, begun);
        let result = (id != 0).then(|| f(&flow));
        if flow.begun() != begun {
            self.flow_begun.store(flow.begun(), Ordering::Relaxed);
        }
        result
    }

    /// Entries so far.
    fn entries(&self) -> u32 {
        self.entered_here.load(Ordering::Relaxed) + self.entered_elsewhere.load(Ordering::Relaxed)
    }

    /// One more. Entries before it.
    #[inline]
    fn count_entry(&self, thread: u64) -> u32 {
        let (here, elsewhere) = (&self.entered_here, &self.entered_elsewhere);
        if self.maker.load(Ordering::Relaxed) == thread {
            let before = here.load(Ordering::Relaxed);
            here.store(before + 1, Ordering::Relaxed);
            before + elsewhere.load(Ordering::Relaxed)
        } else {
            elsewhere.fetch_add(1, Ordering::Relaxed) + here.load(Ordering::Relaxed)
        }
    }

    #[inline]
    fn callsite(&self) -> Option<&'static Callsite> {
        callsite::pointee(self.callsite.load(Ordering::Acquire))
    }

    /// A life from now on, below the life of `above`.
    #[cold]
    pub(crate) fn begin_life_now(&self, above: Option<&Span>) {
        self.since.store(0, Ordering::Relaxed);
        self.begin_life(above);
    }

    /// Its life, if what happened to it so far says that it should have one: it was entered again. The drop of an
    /// instrumented future enters its span once more, so twice on one thread may be no more than a future that was ready
    /// at once.
    pub(crate) fn begin_life_if_async(&self, above: Option<&Span>, entries: u32) {
        if self.entries() >= entries && !self.has(LIFE) {
            self.begin_life(above);
        }
    }

    /// This thread enters the span. `branch` shows the spans from the root to this one, each with the one above it.
    #[inline]
    pub(crate) fn enter(
        &self,
        id: u64,
        mode: Mode,
        branch: impl FnOnce(&mut dyn FnMut(Option<&Span>, &Span)),
    ) {
        let Some(callsite) = self.callsite() else { return };
        let word = match callsite.registered_word() {
            0 => 0,
            word => self.begin_slice(callsite, word, mode, branch),
        };
        stack::push(Entry { span: id, callsite, word });
    }

    #[inline]
    fn begin_slice(
        &self,
        callsite: &'static Callsite,
        word: u32,
        mode: Mode,
        branch: impl FnOnce(&mut dyn FnMut(Option<&Span>, &Span)),
    ) -> u32 {
        let thread = track::own_uuid();
        let before = self.count_entry(thread);
        if before > 0 && mode == Mode::Auto && !self.has(LIFE) {
            let moved = self.thread.load(Ordering::Relaxed) != thread;
            if moved || before >= 2 {
                // Those above it are inside of their second entry at least, or this would not be.
                branch(&mut |above, span| span.begin_life_if_async(above, 2));
            }
        }
        let recorded = if self.state.load(Ordering::Relaxed) == 0 {
            slices::begin_slice(callsite, word)
        } else {
            self.begin_slice_with_more(callsite, word, before == 0)
        };
        if before == 0 && mode == Mode::Auto {
            self.thread.store(thread, Ordering::Relaxed);
            self.since.store(slices::last_time(), Ordering::Relaxed);
        }
        recorded
    }

    /// A slice with whatever there is to say besides.
    #[inline(never)]
    fn begin_slice_with_more(&self, callsite: &'static Callsite, word: u32, is_first: bool) -> u32 {
        if self.has(ARROW) && self.state.fetch_and(!ARROW, Ordering::AcqRel) & ARROW != 0 {
            return self.begin_slice_after(callsite, word);
        }
        if let Some(recorded) = self.with_flow(|flow| slices::begin_flow_slice(callsite, word, flow)) {
            return recorded;
        }
        if is_first
            && self.has(FIELDS)
            && let Some(rest) = self.rest()
        {
            return Self::begin_slice_with_fields(callsite, word, rest);
        }
        slices::begin_slice(callsite, word)
    }

    /// A slice with the fields of the creation.
    fn begin_slice_with_fields(callsite: &'static Callsite, word: u32, rest: MutexGuard<'_, Rest>) -> u32 {
        let Some(visited) = &rest.fields else {
            drop(rest);
            return slices::begin_slice(callsite, word);
        };
        // Under the lock: it costs less than a reference to the fields.
        let begin = |values: &[Value<'_>]| slices::begin_slice_hot(callsite, word, values);
        if visited.fields.with_few_values(callsite, begin) == Some(true) {
            return word;
        }
        let visited = Arc::clone(visited);
        drop(rest);
        let begin = |values: &[Value<'_>]| slices::begin_slice_with(callsite, word, values);
        visited.fields.with_values(callsite, begin)
    }

    /// A slice that an arrow from another span ends at.
    #[cold]
    fn begin_slice_after(&self, callsite: &'static Callsite, word: u32) -> u32 {
        let arrow = self.rest().and_then(|mut rest| rest.arrow.take());
        let begin = |flow: Option<&Flow>| {
            let extras = flow.map_or_else(Extras::new, |flow| Extras::new().flow(flow));
            let extras = match arrow.as_deref() {
                Some(arrow) => extras.end_flow(arrow),
                None => extras,
            };
            slices::begin_slice_rich(callsite, word, &extras)
        };
        self.with_flow(|flow| begin(Some(flow))).unwrap_or_else(|| begin(None))
    }

    /// Its life begins, on an async track, at the time it was entered first.
    #[cold]
    fn begin_life(&self, parent: Option<&Span>) {
        let Some(callsite) = self.callsite() else { return };
        if self.state.fetch_or(LIFE_BEGINS, Ordering::AcqRel) & LIFE != 0 {
            return;
        }
        let word = callsite.registered_word();
        let since = Some(self.since.load(Ordering::Relaxed)).filter(|since| *since != 0);
        let life = (word != 0).then(|| {
            let above = parent.and_then(Span::life);
            let extras =
                above.as_ref().map_or_else(Extras::new, |above| Extras::new().track(&above.interval));
            let begin = |values: &[Value<'_>]| AsyncScope::begin_at(callsite, word, values, &extras, since);
            let interval = match self.fields() {
                Some(visited) => visited.fields.with_values(callsite, begin),
                None => begin(&[]),
            };
            Arc::new(Life { interval, late: OnceLock::new() })
        });
        self.flow.store(if life.is_some() { Flow::new().id() } else { 0 }, Ordering::Relaxed);
        self.flow_begun.store(0, Ordering::Relaxed);
        let Some(mut rest) = self.rest() else { return };
        let old = std::mem::replace(&mut rest.life, life);
        drop(rest);
        drop(old);
        self.state.fetch_or(LIFE_BEGUN, Ordering::Release);
    }

    /// This thread leaves the span.
    #[inline]
    pub(crate) fn exit(&self, id: u64) {
        stack::leave(id, |entry| {
            if entry.word == 0 {
                return;
            }
            if self.state.load(Ordering::Relaxed) & (LATE_FIELDS | LIFE) == LATE_FIELDS {
                self.end_slice_with_late_fields(entry);
            } else {
                slices::end_slice(entry.callsite, entry.word);
            }
        });
    }

    #[cold]
    fn end_slice_with_late_fields(&self, entry: &Entry) {
        // Before the values are read: those that another thread adds from now on are for the next end.
        self.state.fetch_and(!LATE_FIELDS, Ordering::AcqRel);
        match self.rest().and_then(|rest| rest.late.clone()) {
            Some(late) => late.show_all(|values| slices::end_slice_with(entry.callsite, entry.word, values)),
            None => slices::end_slice(entry.callsite, entry.word),
        }
    }

    /// Values that are known only now: they go on the end.
    pub(crate) fn record(&self, record: &Record<'_>) {
        let visited = Visited::of(|fields| record.record(fields));
        let Some(mut rest) = self.rest() else { return };
        visited.link(&mut rest.late);
        drop(rest);
        self.state.fetch_or(LATE_FIELDS | LATE, Ordering::Release);
    }

    /// It comes after `followed`: an arrow from a point on the life of that, or on this thread, to its next entry.
    pub(crate) fn follow(&self, followed: &Span) {
        let (Some(callsite), Some(own)) = (followed.callsite(), self.callsite()) else { return };
        let word = callsite.registered_word();
        if word == 0 {
            return;
        }
        let flow = Box::new(Flow::new());
        let life = followed.life();
        let extras = life.as_ref().map_or_else(Extras::new, |life| Extras::new().track(&life.interval));
        slices::instant_of(callsite, word, &extras.flow(&*flow).name(own.name()));
        drop(life);
        let Some(mut rest) = self.rest() else { return };
        let old = rest.arrow.replace(flow);
        drop(rest);
        drop(old);
        self.state.fetch_or(ARROW, Ordering::Release);
    }

    /// It is over. Nobody else has it any more.
    #[inline]
    pub(crate) fn close(&self) {
        if self.has(LIFE | LATE) {
            self.end();
        }
    }

    fn end(&self) {
        self.state.store(0, Ordering::Relaxed);
        let Some(mut rest) = self.rest() else { return };
        let (life, late) = (rest.life.take(), rest.late.take());
        drop(rest);
        match (life, late) {
            // Also what an entry's end has said.
            (Some(life), Some(late)) => drop(life.late.set(late)),
            (_, late) => Visited::keep_memory(late),
        }
    }
}
