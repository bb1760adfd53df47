//! What is known of a span, and what its entering, leaving and closing record.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use hairline_formats::Value;
use tracing_core::span::Record;

use super::super::callsite::Callsite;
use super::super::extras::Extras;
use super::super::flow::Flow;
use super::super::lock::{Mutex, MutexGuard};
use super::super::registry;
use super::super::thread::{self, AsyncScope};
use super::Mode;
use super::fields::Fields;
use super::stack::{self, Entry};

/// A span. Where one thread makes, enters, leaves and closes it, none of its fields is written by an atomic operation that
/// costs more than a store.
#[derive(Debug)]
pub(super) struct Span {
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
    /// Made when first needed, and kept for the next span in this place.
    rest: OnceLock<Box<Mutex<Rest>>>,
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

/// What is not needed to enter a span that is no more than a slice.
#[derive(Debug, Default)]
struct Rest {
    fields: Fields,
    /// What was recorded after the creation.
    late: Fields,
    life: Option<AsyncScope>,
    flow: Option<Flow>,
    /// From the span that it follows.
    arrow: Option<Flow>,
}

impl Default for Span {
    fn default() -> Self {
        Self::new()
    }
}

impl Span {
    /// Of no callsite.
    pub(super) const fn new() -> Self {
        Self {
            callsite: AtomicPtr::new(std::ptr::null_mut()),
            entered_here: AtomicU32::new(0),
            entered_elsewhere: AtomicU32::new(0),
            maker: AtomicU64::new(0),
            thread: AtomicU64::new(0),
            since: AtomicU64::new(0),
            state: AtomicU32::new(0),
            rest: OnceLock::new(),
        }
    }

    /// A span of the callsite, with the values that `visit` shows.
    #[inline]
    pub(super) fn create(&self, callsite: &'static Callsite, visit: impl FnOnce(&mut Fields)) {
        self.callsite.store(std::ptr::from_ref(callsite).cast_mut(), Ordering::Release);
        self.entered_here.store(0, Ordering::Relaxed);
        self.entered_elsewhere.store(0, Ordering::Relaxed);
        self.maker.store(thread::own_uuid(), Ordering::Relaxed);
        let state = if callsite.keys().is_empty() { 0 } else { self.keep_fields(visit) };
        self.state.store(state, Ordering::Relaxed);
    }

    fn keep_fields(&self, visit: impl FnOnce(&mut Fields)) -> u32 {
        let Some(mut rest) = self.rest() else { return 0 };
        rest.fields.clear();
        rest.late.clear();
        visit(&mut rest.fields);
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
        self.rest.get_or_init(Box::default).lock_unless_lost()
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
        registry::pointee(self.callsite.load(Ordering::Acquire))
    }

    /// A life from now on, below the life of `above`.
    #[cold]
    pub(super) fn begin_life_now(&self, above: Option<&Span>) {
        self.since.store(0, Ordering::Relaxed);
        self.begin_life(above);
    }

    /// Its life, if what happened to it so far says that it should have one: it was entered again. The drop of an
    /// instrumented future enters its span once more, so twice on one thread may be no more than a future that was ready
    /// at once.
    pub(super) fn begin_life_if_async(&self, above: Option<&Span>, entries: u32) {
        if self.entries() >= entries && !self.has(LIFE) {
            self.begin_life(above);
        }
    }

    /// This thread enters the span. `branch` shows the spans from the root to this one, each with the one above it.
    #[inline]
    pub(super) fn enter(
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
        let thread = thread::own_uuid();
        let before = self.count_entry(thread);
        if before > 0 && mode == Mode::Auto && !self.has(LIFE) {
            let moved = self.thread.load(Ordering::Relaxed) != thread;
            if moved || before >= 2 {
                // Those above it are inside of their second entry at least, or this would not be.
                branch(&mut |above, span| span.begin_life_if_async(above, 2));
            }
        }
        let recorded = if self.state.load(Ordering::Relaxed) == 0 {
            thread::begin_slice(callsite, word)
        } else {
            self.begin_slice_with_more(callsite, word, before == 0)
        };
        if before == 0 && mode == Mode::Auto {
            self.thread.store(thread, Ordering::Relaxed);
            self.since.store(thread::last_time(), Ordering::Relaxed);
        }
        recorded
    }

    /// A slice with whatever there is to say besides.
    #[inline(never)]
    fn begin_slice_with_more(&self, callsite: &'static Callsite, word: u32, is_first: bool) -> u32 {
        if self.has(ARROW) && self.state.fetch_and(!ARROW, Ordering::AcqRel) & ARROW != 0 {
            return self.begin_slice_after(callsite, word);
        }
        if self.has(LIFE_BEGUN) {
            let rest = self.rest();
            if let Some(flow) = rest.as_ref().and_then(|rest| rest.flow.as_ref()) {
                return thread::begin_flow_slice(callsite, word, flow);
            }
        }
        if self.has(FIELDS)
            && is_first
            && let Some(rest) = self.rest()
        {
            return rest
                .fields
                .with_values(callsite, |values| thread::begin_slice_with(callsite, word, values));
        }
        thread::begin_slice(callsite, word)
    }

    /// A slice that an arrow from another span ends at.
    #[cold]
    fn begin_slice_after(&self, callsite: &'static Callsite, word: u32) -> u32 {
        let rest = self.rest();
        let mut extras = Extras::new();
        if let Some(flow) = rest.as_ref().and_then(|rest| rest.flow.as_ref()) {
            extras = extras.flow(flow);
        }
        if let Some(arrow) = rest.as_ref().and_then(|rest| rest.arrow.as_ref()) {
            extras = extras.end_flow(arrow);
        }
        thread::begin_slice_rich(callsite, word, &extras)
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
        let flow = Flow::new();
        let life = (word != 0).then(|| {
            let above = parent.and_then(Span::rest);
            let above = above.as_ref().and_then(|rest| rest.life.as_ref());
            let extras = above.map_or_else(Extras::new, |above| Extras::new().track(above));
            let own = self.rest();
            let begin = |values: &[Value<'_>]| AsyncScope::begin_at(callsite, word, values, &extras, since);
            match own.filter(|_| self.has(FIELDS)) {
                Some(own) => own.fields.with_values(callsite, begin),
                None => begin(&[]),
            }
        });
        let Some(mut rest) = self.rest() else { return };
        rest.life = life;
        rest.flow = rest.life.is_some().then_some(flow);
        drop(rest);
        self.state.fetch_or(LIFE_BEGUN, Ordering::Release);
    }

    /// This thread leaves the span.
    #[inline]
    pub(super) fn exit(&self, id: u64) {
        stack::leave(id, |entry| {
            if entry.word == 0 {
                return;
            }
            if self.state.load(Ordering::Relaxed) & (LATE_FIELDS | LIFE) == LATE_FIELDS {
                self.end_slice_with_late_fields(entry);
            } else {
                thread::end_slice(entry.callsite, entry.word);
            }
        });
    }

    #[cold]
    fn end_slice_with_late_fields(&self, entry: &Entry) {
        match self.rest() {
            Some(rest) => thread::end_slice_with(entry.callsite, entry.word, &rest.late.kept),
            None => thread::end_slice(entry.callsite, entry.word),
        }
        self.state.fetch_and(!LATE_FIELDS, Ordering::Relaxed);
    }

    /// Values that are known only now: they go on the end.
    pub(super) fn record(&self, record: &Record<'_>) {
        let Some(mut rest) = self.rest() else { return };
        record.record(&mut rest.late);
        self.state.fetch_or(LATE_FIELDS, Ordering::Release);
    }

    /// It comes after `followed`: an arrow from a point on the life of that, or on this thread, to its next entry.
    pub(super) fn follow(&self, followed: &Span) {
        let (Some(callsite), Some(own)) = (followed.callsite(), self.callsite()) else { return };
        let word = callsite.registered_word();
        if word == 0 {
            return;
        }
        let flow = Flow::new();
        {
            let rest = followed.rest();
            let life = rest.as_ref().and_then(|rest| rest.life.as_ref());
            let extras = life.map_or_else(Extras::new, |life| Extras::new().track(life));
            thread::instant_of(callsite, word, &extras.flow(&flow).name(own.name()));
        }
        let Some(mut rest) = self.rest() else { return };
        rest.arrow = Some(flow);
        self.state.fetch_or(ARROW, Ordering::Release);
    }

    /// It is over. Nobody else has it any more.
    #[inline]
    pub(super) fn close(&self) {
        if self.has(LIFE) {
            self.end_life();
        }
    }

    fn end_life(&self) {
        self.state.store(0, Ordering::Relaxed);
        let Some(mut rest) = self.rest() else { return };
        rest.flow = None;
        if let Some(mut life) = rest.life.take() {
            life.set_arguments(&rest.late.kept); // also what an entry's end has said
            drop(rest);
            drop(life);
        }
    }
}
