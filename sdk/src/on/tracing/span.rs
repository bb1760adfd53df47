//! What is known of a span, and what its entering, leaving and closing record.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

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

/// A span.
#[derive(Debug)]
pub(super) struct Span {
    callsite: AtomicPtr<Callsite>,
    entered: AtomicU32,
    /// When it was entered first; 0: its life began with its creation.
    since: AtomicU64,
    /// The thread that entered it first, by its track.
    thread: AtomicU64,
    life: AtomicU8,
    /// Whether there is something in `rest` that its next entry or its next end has to say.
    has_fields: AtomicBool,
    has_late_fields: AtomicBool,
    has_arrow: AtomicBool,
    rest: Mutex<Rest>,
}

/// States of a span's life on an async track.
const NONE: u8 = 0;
const BEGINS: u8 = 1;
const BEGUN: u8 = 2;

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
        Self {
            callsite: AtomicPtr::new(std::ptr::null_mut()),
            entered: AtomicU32::new(0),
            since: AtomicU64::new(0),
            thread: AtomicU64::new(0),
            life: AtomicU8::new(NONE),
            has_fields: AtomicBool::new(false),
            has_late_fields: AtomicBool::new(false),
            has_arrow: AtomicBool::new(false),
            rest: Mutex::default(),
        }
    }
}

impl Span {
    /// A span of the callsite, with the values that `visit` shows.
    pub(super) fn create(&self, callsite: &'static Callsite, visit: impl FnOnce(&mut Fields)) {
        self.callsite.store(std::ptr::from_ref(callsite).cast_mut(), Ordering::Release);
        self.entered.store(0, Ordering::Relaxed);
        self.life.store(NONE, Ordering::Relaxed);
        self.has_late_fields.store(false, Ordering::Relaxed);
        self.has_arrow.store(false, Ordering::Relaxed);
        if callsite.keys().is_empty() {
            self.has_fields.store(false, Ordering::Relaxed);
        } else if let Some(mut rest) = self.rest() {
            rest.fields.clear();
            rest.late.clear();
            visit(&mut rest.fields);
            self.has_fields.store(true, Ordering::Relaxed);
        }
    }

    /// None in a forked child that lost the lock: then nothing of it is said any more.
    fn rest(&self) -> Option<MutexGuard<'_, Rest>> {
        self.rest.lock_unless_lost()
    }

    fn callsite(&self) -> Option<&'static Callsite> {
        registry::pointee(self.callsite.load(Ordering::Acquire))
    }

    /// A life from now on, below the life of `above`.
    pub(super) fn begin_life_now(&self, above: Option<&Span>) {
        self.since.store(0, Ordering::Relaxed);
        self.begin_life(above);
    }

    /// Its life, if what happened to it so far says that it should have one: it was entered again. The drop of an
    /// instrumented future enters its span once more, so twice on one thread may be no more than a future that was ready
    /// at once.
    pub(super) fn begin_life_if_async(&self, above: Option<&Span>, entries: u32) {
        if self.entered.load(Ordering::Relaxed) >= entries && self.life.load(Ordering::Acquire) == NONE {
            self.begin_life(above);
        }
    }

    /// This thread enters the span. `branch` shows the spans from the root to this one, each with the one above it.
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

    fn begin_slice(
        &self,
        callsite: &'static Callsite,
        word: u32,
        mode: Mode,
        branch: impl FnOnce(&mut dyn FnMut(Option<&Span>, &Span)),
    ) -> u32 {
        let before = self.entered.fetch_add(1, Ordering::Relaxed);
        if before > 0 && mode == Mode::Auto && self.life.load(Ordering::Acquire) == NONE {
            let moved = self.thread.load(Ordering::Relaxed) != thread::own_uuid();
            if moved || before >= 2 {
                // Those above it are inside of their second entry at least, or this would not be.
                branch(&mut |above, span| span.begin_life_if_async(above, 2));
            }
        }
        if self.has_arrow.swap(false, Ordering::Relaxed) {
            return self.begin_slice_after(callsite, word);
        }
        if self.life.load(Ordering::Acquire) == BEGUN {
            let rest = self.rest();
            if let Some(flow) = rest.as_ref().and_then(|rest| rest.flow.as_ref()) {
                return thread::begin_flow_slice(callsite, word, flow);
            }
        }
        let recorded = if self.has_fields.load(Ordering::Relaxed)
            && before == 0
            && let Some(rest) = self.rest()
        {
            rest.fields.with_values(callsite, |values| thread::begin_slice_with(callsite, word, values))
        } else {
            thread::begin_slice(callsite, word)
        };
        if before == 0 && mode == Mode::Auto {
            self.thread.store(thread::own_uuid(), Ordering::Relaxed);
            self.since.store(thread::last_time(), Ordering::Relaxed);
        }
        recorded
    }

    /// A slice that an arrow from another span ends at.
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
    fn begin_life(&self, parent: Option<&Span>) {
        let begins = self.life.compare_exchange(NONE, BEGINS, Ordering::AcqRel, Ordering::Relaxed);
        let (Ok(_), Some(callsite)) = (begins, self.callsite()) else { return };
        let word = callsite.registered_word();
        let since = Some(self.since.load(Ordering::Relaxed)).filter(|since| *since != 0);
        let flow = Flow::new();
        let life = (word != 0).then(|| {
            let above = parent.and_then(Span::rest);
            let above = above.as_ref().and_then(|rest| rest.life.as_ref());
            let extras = above.map_or_else(Extras::new, |above| Extras::new().track(above));
            let own = self.rest();
            let begin = |values: &[Value<'_>]| AsyncScope::begin_at(callsite, word, values, &extras, since);
            match own.filter(|_| self.has_fields.load(Ordering::Relaxed)) {
                Some(own) => own.fields.with_values(callsite, begin),
                None => begin(&[]),
            }
        });
        let Some(mut rest) = self.rest() else { return };
        rest.life = life;
        rest.flow = rest.life.is_some().then_some(flow);
        drop(rest);
        self.life.store(BEGUN, Ordering::Release);
    }

    /// This thread leaves the span.
    pub(super) fn exit(&self, id: u64) {
        stack::leave(id, |entry| {
            if entry.word == 0 {
                return;
            }
            if self.has_late_fields.load(Ordering::Relaxed)
                && self.life.load(Ordering::Acquire) == NONE
                && let Some(rest) = self.rest()
            {
                thread::end_slice_with(entry.callsite, entry.word, &rest.late.kept);
                self.has_late_fields.store(false, Ordering::Relaxed);
            } else {
                thread::end_slice(entry.callsite, entry.word);
            }
        });
    }

    /// Values that are known only now: they go on the end.
    pub(super) fn record(&self, record: &Record<'_>) {
        let Some(mut rest) = self.rest() else { return };
        record.record(&mut rest.late);
        self.has_late_fields.store(true, Ordering::Relaxed);
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
        self.has_arrow.store(true, Ordering::Relaxed);
    }

    /// It is over.
    pub(super) fn close(&self) {
        if self.life.swap(NONE, Ordering::AcqRel) == NONE {
            return;
        }
        let Some(mut rest) = self.rest() else { return };
        rest.flow = None;
        if let Some(mut life) = rest.life.take() {
            life.set_arguments(&rest.late.kept); // also what an entry's end has said
            drop(rest);
            drop(life);
        }
    }
}
