//! The state of a span, and the records that it writes when it is entered, left and closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use hairline_formats::Value;
use hairline_formats::track_event::TrackUuid;
use tracing_core::span::Record;

use crate::on::base::lock::{Mutex, MutexGuard};
use crate::on::bridges::polled;
use crate::on::bridges::tracing::far::Entry;
use crate::on::bridges::tracing::fields::Visited;
use crate::on::bridges::tracing::kept::Kept;
use crate::on::bridges::tracing::life::SpanLife;
use crate::on::bridges::tracing::{elsewhere, requests, stack};
use crate::on::callsite;
use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::extras::Extras;
use crate::on::event::flow::Flow;
use crate::on::event::track;
use crate::on::thread::guards::interval::AsyncScope;
use crate::on::thread::retraction::{self, Begun};
use crate::on::thread::slices::{self, OpenScope};
use crate::spans::Mode;

/// A span. If one thread makes, enters, leaves and closes it, none of its fields is written by an atomic
/// operation that costs more than a store.
#[derive(Debug)]
pub(crate) struct Span {
    callsite: AtomicPtr<Callsite>,
    /// The number of entries by the thread that made the span, which counts them without a read-modify-write.
    entered_here: AtomicU32,
    /// The number of entries by all other threads.
    entered_elsewhere: AtomicU32,
    /// The track of the thread that made the span.
    maker: AtomicU64,
    /// The track of the thread that entered the span first.
    first_thread: AtomicU64,
    /// The time of the first entry; 0 if the span's life began with its creation.
    first_entered_at: AtomicU64,
    /// The bits below: the records that the span needs beyond a plain slice.
    state: AtomicU32,
    /// The epoch in which the flow of the entries has begun, as [`Flow::begun`].
    flow_begun: AtomicU32,
    /// The flow that links the entries.
    flow: AtomicU64,
    rest: Mutex<Rest>,
}

/// The life, an interval on an async track, is being begun (`LIFE_BEGINS`) or is in `rest` (`LIFE_BEGUN`).
const LIFE_BEGINS: u32 = 1;
const LIFE_BEGUN: u32 = 2;
const LIFE: u32 = LIFE_BEGINS | LIFE_BEGUN;
/// `rest` has values that the first entry (`FIELDS`), or the next end (`LATE_FIELDS`), must record.
const FIELDS: u32 = 4;
const LATE_FIELDS: u32 = 8;
/// `rest` has an arrow, or a request's flow, for the next entry.
const ARROW: u32 = 16;
/// `rest` has late values, whether an end has recorded them or not.
const LATE: u32 = 32;
/// `flow` links the entries, from the first one on.
const FLOW: u32 = 64;

/// The parts of a span that a plain slice does not need.
///
/// The lock is held to copy, store or take one of these pointers, and while the hot path writes the fields.
/// Everything else is done outside of the lock: code of the program visits the fields and may record on this
/// very span, and so may its allocator.
#[derive(Debug, Default)]
struct Rest {
    fields: Option<Arc<Visited>>,
    /// The values recorded after the creation, the last call's first.
    late: Option<Arc<Visited>>,
    life: Option<Arc<SpanLife>>,
    /// The flow from the span that this one follows.
    arrow: Option<Box<Flow>>,
    /// The flow that the field `traceparent` names.
    request: Option<Box<Flow>>,
}

/// A span and its id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'s> {
    pub(crate) id: u64,
    pub(crate) span: &'s Span,
}

/// What is called with each span of a branch, from the root on, and with its parent.
pub(crate) type Visit<'v> = dyn FnMut(Option<Known<'_>>, Known<'_>) + 'v;

/// As [`Visit`], with the mode in which the spans are recorded.
pub(crate) type VisitIn<'v> = dyn FnMut(Mode, Option<Known<'_>>, Known<'_>) + 'v;

impl Default for Span {
    fn default() -> Self {
        Self::new()
    }
}

impl Span {
    /// Makes a span without a callsite.
    pub(crate) const fn new() -> Self {
        Self {
            callsite: AtomicPtr::new(std::ptr::null_mut()),
            entered_here: AtomicU32::new(0),
            entered_elsewhere: AtomicU32::new(0),
            maker: AtomicU64::new(0),
            first_thread: AtomicU64::new(0),
            first_entered_at: AtomicU64::new(0),
            state: AtomicU32::new(0),
            flow_begun: AtomicU32::new(0),
            flow: AtomicU64::new(0),
            rest: Mutex::new(Rest { fields: None, late: None, life: None, arrow: None, request: None }),
        }
    }

    /// Starts a span of the callsite, with the values that `visit` records.
    #[inline]
    pub(crate) fn create(&self, callsite: &'static Callsite, mode: Mode, visit: impl FnOnce(&mut Kept)) {
        self.callsite.store(std::ptr::from_ref(callsite).cast_mut(), Ordering::Release);
        self.entered_here.store(0, Ordering::Relaxed);
        self.entered_elsewhere.store(0, Ordering::Relaxed);
        self.maker.store(track::own_uuid().0, Ordering::Relaxed);
        let mut state = if callsite.keys().is_empty() { 0 } else { self.keep_fields(callsite, visit) };
        if match mode {
            Mode::Auto => callsite.may_wait(),
            Mode::Threads => false,
            Mode::Lifetimes => true,
        } {
            self.begin_flow();
            state |= FLOW;
        }
        self.state.store(state, Ordering::Relaxed);
    }

    /// Joins the flow that the field `traceparent` names, at the next entry. Returns the bit to set, if any.
    #[cold]
    fn join_request(&self, callsite: &'static Callsite, visited: &Visited) -> u32 {
        let Some(epoch) = callsite.registered_epoch() else { return 0 };
        let Some(flow) = requests::flow_of(visited.iter(callsite), epoch) else { return 0 };
        let flow = Box::new(flow);
        let Some(mut rest) = self.rest() else { return 0 };
        let old = rest.request.replace(flow);
        drop(rest);
        drop(old);
        ARROW
    }

    /// Makes the flow that links the entries.
    fn begin_flow(&self) {
        self.flow.store(Flow::new().id(), Ordering::Relaxed);
        self.flow_begun.store(0, Ordering::Relaxed);
    }

    fn keep_fields(&self, callsite: &'static Callsite, visit: impl FnOnce(&mut Kept)) -> u32 {
        let visited = Visited::of(visit);
        let joined = if callsite.carries_flow() { self.join_request(callsite, &visited) } else { 0 };
        let Some(mut rest) = self.rest() else { return 0 };
        // Those of the last span in this place.
        let old = rest.fields.replace(visited);
        let late = rest.late.take();
        drop(rest);
        Visited::keep_memory(old);
        Visited::keep_memory(late);
        FIELDS | joined
    }

    /// Returns whether any of these bits is set.
    #[inline]
    fn has(&self, bits: u32) -> bool {
        // Acquire pairs with the Release of the thread that set the bit: the part of `rest` that the bit
        // announces is there.
        self.state.load(Ordering::Acquire) & bits != 0
    }

    /// Locks `rest`. Returns `None` in a forked child that lost the lock: the span then records nothing more.
    fn rest(&self) -> Option<MutexGuard<'_, Rest>> {
        self.rest.lock_unless_lost()
    }

    fn fields(&self) -> Option<Arc<Visited>> {
        if self.has(FIELDS) { self.rest()?.fields.clone() } else { None }
    }

    pub(crate) fn life(&self) -> Option<Arc<SpanLife>> {
        if self.has(LIFE_BEGUN) { self.rest()?.life.clone() } else { None }
    }

    /// Returns the flow of its entries, if there is one. Call [`keep_flow`](Self::keep_flow) when an event
    /// has it.
    fn resumed_flow(&self) -> Option<Flow> {
        let resume =
            || Flow::resumed(self.flow.load(Ordering::Relaxed), self.flow_begun.load(Ordering::Relaxed));
        self.has(FLOW).then(resume)
    }

    fn keep_flow(&self, flow: Option<&Flow>) {
        if let Some(flow) = flow
            && flow.begun() != self.flow_begun.load(Ordering::Relaxed)
        {
            self.flow_begun.store(flow.begun(), Ordering::Relaxed);
        }
    }

    /// Returns the number of entries so far.
    fn entries(&self) -> u32 {
        self.entered_here.load(Ordering::Relaxed) + self.entered_elsewhere.load(Ordering::Relaxed)
    }

    /// Counts an entry. Returns the number of entries before it.
    #[inline]
    fn count_entry(&self, thread: TrackUuid) -> u32 {
        let (here, elsewhere) = (&self.entered_here, &self.entered_elsewhere);
        if self.maker.load(Ordering::Relaxed) == thread.0 {
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

    /// Begins the life of a new span, below the life of `above`.
    #[cold]
    pub(crate) fn begin_life_now(&self, above: Option<Known<'_>>) {
        self.first_entered_at.store(0, Ordering::Relaxed);
        self.begin_life(above, Some(stack::len()));
    }

    /// Begins a life, at the time of the first entry, if the span was entered at least `entries` times and
    /// has none. `place`: as of [`begin_life`](Self::begin_life).
    pub(crate) fn begin_life_if_async(&self, above: Option<Known<'_>>, place: Option<usize>, entries: u32) {
        if self.entries() >= entries && !self.has(LIFE) {
            self.begin_life(above, place);
        }
    }

    /// Enters the span on this thread. `branch` gets its id, and calls its argument with each span from the root
    /// to this one, and with its parent.
    #[inline]
    pub(crate) fn enter(&self, id: u64, mode: Mode, branch: impl FnOnce(u64, &mut Visit<'_>)) {
        let Some(callsite) = self.callsite() else { return };
        let open = match callsite.registered_epoch() {
            Some(epoch) => self.begin_entry(id, callsite, epoch, mode, branch),
            None => None,
        };
        stack::push(Entry { span: id, callsite, open });
    }

    /// Begins the slice of an entry. Returns the begin if it was recorded.
    #[inline]
    fn begin_entry(
        &self,
        id: u64,
        callsite: &'static Callsite,
        epoch: Epoch,
        mode: Mode,
        branch: impl FnOnce(u64, &mut Visit<'_>),
    ) -> Option<OpenScope> {
        let thread = track::own_uuid();
        let before = self.count_entry(thread);
        if before > 0 {
            return self.begin_again(id, callsite, epoch, mode, (thread, before), branch);
        }
        let recorded = self.begin_slice(callsite, epoch, true);
        self.first_thread.store(thread.0, Ordering::Relaxed); // also for an exit on another thread
        if mode == Mode::Auto {
            self.first_entered_at.store(slices::last_event(), Ordering::Relaxed);
        }
        recorded
    }

    /// Begins the slice of an entry on `thread`, after `before` entries.
    #[inline(never)]
    fn begin_again(
        &self,
        id: u64,
        callsite: &'static Callsite,
        epoch: Epoch,
        mode: Mode,
        (thread, before): (TrackUuid, u32),
        branch: impl FnOnce(u64, &mut Visit<'_>),
    ) -> Option<OpenScope> {
        if mode == Mode::Auto && !self.has(LIFE) {
            let moved = self.first_thread.load(Ordering::Relaxed) != thread.0;
            // Two entries on one thread may come from a future that was ready at once: its drop enters the
            // span once more.
            if moved || before >= 2 {
                // Two entries of an ancestor are enough: this entry is inside of the second, so the second is
                // not that of a drop. One is, of an ancestor on another thread: a future that waits for this
                // entry is not polled before it is over.
                branch(id, &mut |above, known| {
                    let place = if known.id == id { Some(stack::len()) } else { stack::place_of(known.id) };
                    let is_elsewhere = moved && place.is_none();
                    known.span.begin_life_if_async(above, place, if is_elsewhere { 1 } else { 2 });
                });
            }
        }
        // This entry may be that of the drop. It stays if an arrow leads to it.
        let (position, has_arrow) = (retraction::position(), self.has(ARROW));
        let recorded = self.begin_slice(callsite, epoch, false);
        stack::keep_begun(
            id,
            recorded.filter(|_| !has_arrow).map(|open| (Begun::new(position), open.epoch())),
        );
        recorded
    }

    #[inline]
    fn begin_slice(&self, callsite: &'static Callsite, epoch: Epoch, is_first: bool) -> Option<OpenScope> {
        if self.state.load(Ordering::Relaxed) == 0 {
            slices::begin_slice(callsite)
        } else {
            self.begin_slice_with_details(callsite, epoch, is_first)
        }
    }

    /// Begins a slice with an arrow, a flow or fields.
    #[inline(never)]
    fn begin_slice_with_details(
        &self,
        callsite: &'static Callsite,
        epoch: Epoch,
        is_first: bool,
    ) -> Option<OpenScope> {
        let flow = self.resumed_flow();
        let recorded = if self.has(ARROW) && self.state.fetch_and(!ARROW, Ordering::AcqRel) & ARROW != 0 {
            self.begin_slice_with_arrow(callsite, epoch, is_first, flow.as_ref())
        } else if is_first
            && self.shows_fields_on_slice()
            && let Some(rest) = self.rest()
        {
            Self::begin_slice_with_fields(callsite, epoch, rest, flow.as_ref())
        } else {
            match &flow {
                Some(flow) => slices::begin_flow_slice(callsite, epoch, flow),
                None => slices::begin_slice(callsite),
            }
        };
        self.keep_flow(flow.as_ref());
        recorded
    }

    /// Whether the first slice has the fields: a life has them from its begin.
    fn shows_fields_on_slice(&self) -> bool {
        self.state.load(Ordering::Acquire) & (FIELDS | LIFE_BEGUN) == FIELDS
    }

    /// Begins a slice with the fields of the creation.
    fn begin_slice_with_fields(
        callsite: &'static Callsite,
        epoch: Epoch,
        rest: MutexGuard<'_, Rest>,
        flow: Option<&Flow>,
    ) -> Option<OpenScope> {
        let Some(visited) = &rest.fields else {
            drop(rest);
            return slices::begin_slice_with(callsite, epoch, &[], flow);
        };
        // Under the lock: this costs less than a reference to the fields.
        let begin = |values: &[Value<'_>]| slices::begin_slice_hot(callsite, epoch, values, flow);
        if let Some(open) = visited.with_few_values(callsite, begin).flatten() {
            return Some(open);
        }
        let visited = Arc::clone(visited);
        drop(rest);
        let begin = |values: &[Value<'_>]| slices::begin_slice_with(callsite, epoch, values, flow);
        visited.with_values(callsite, begin)
    }

    /// Begins a slice at which an arrow from another span ends.
    #[cold]
    fn begin_slice_with_arrow(
        &self,
        callsite: &'static Callsite,
        epoch: Epoch,
        is_first: bool,
        flow: Option<&Flow>,
    ) -> Option<OpenScope> {
        let (arrow, request) = self.take_arrows();
        let extras = slices::extras_of(flow);
        let extras = match arrow.as_deref() {
            Some(arrow) => extras.end_flow(arrow),
            None => extras,
        };
        let extras = match request.as_deref() {
            Some(request) => extras.flow(request),
            None => extras,
        };
        let begin = |values: &[Value<'_>]| slices::begin_slice_rich(callsite, epoch, values, &extras);
        match self.fields().filter(|_| is_first && self.shows_fields_on_slice()) {
            Some(visited) => visited.with_values(callsite, begin),
            None => begin(&[]),
        }
    }

    fn take_arrows(&self) -> (Option<Box<Flow>>, Option<Box<Flow>>) {
        self.rest().map_or((None, None), |mut rest| (rest.arrow.take(), rest.request.take()))
    }

    /// Begins a life, on an async track, at the time of the first entry. `place`: that of the span among
    /// those that this thread has entered, if it is there.
    ///
    /// The life is below that of the parent, or of the future that this thread polls, if that is between the
    /// two.
    #[cold]
    fn begin_life(&self, parent: Option<Known<'_>>, place: Option<usize>) {
        let Some(callsite) = self.callsite() else { return };
        if self.state.fetch_or(LIFE_BEGINS, Ordering::AcqRel) & LIFE != 0 {
            return;
        }
        let epoch = callsite.registered_epoch();
        let since = Some(self.first_entered_at.load(Ordering::Relaxed)).filter(|since| *since != 0);
        let begin = |epoch, extras: &Extras<'_>| {
            let begin = |values: &[Value<'_>]| AsyncScope::begin_at(callsite, epoch, values, extras, since);
            let interval = match self.fields() {
                Some(visited) => visited.with_values(callsite, begin),
                None => begin(&[]),
            };
            Arc::new(SpanLife::new(callsite, interval))
        };
        let life = epoch.map(|epoch| {
            let above = parent.and_then(|parent| parent.span.life());
            polled::with_interval(|polled| {
                let between = polled.filter(|(_, spans)| {
                    let is_inside =
                        |parent: Known<'_>| stack::place_of(parent.id).is_some_and(|at| at < *spans);
                    place.is_some_and(|at| at >= *spans) && (above.is_none() || parent.is_some_and(is_inside))
                });
                match (between, &above) {
                    (Some((polled, _)), _) => begin(epoch, &Extras::new().track(polled)),
                    (None, Some(above)) => begin(epoch, &Extras::new().below(above)),
                    (None, None) => begin(epoch, &Extras::new()),
                }
            })
        });
        callsite.set_waits();
        if !self.has(FLOW) {
            self.begin_flow();
            self.state.fetch_or(FLOW, Ordering::Release);
        }
        let Some(mut rest) = self.rest() else { return };
        let old = std::mem::replace(&mut rest.life, life);
        drop(rest);
        drop(old);
        self.state.fetch_or(LIFE_BEGUN, Ordering::Release);
    }

    /// Leaves the span on this thread.
    #[inline]
    pub(crate) fn exit(&self, id: u64) {
        match stack::leave_near(id) {
            Some(entry) => self.end_entry(&entry),
            None => self.exit_in_any_order(id),
        }
    }

    #[cold]
    #[inline(never)]
    fn exit_in_any_order(&self, id: u64) {
        stack::remove_left_elsewhere();
        if !stack::leave(id, |entry| self.end_entry(entry)) {
            elsewhere::leave(self.entered_on(), id);
        }
    }

    /// Returns the thread that has entered the span, if it was one, by the uuid of its track.
    fn entered_on(&self) -> u64 {
        let here = self.entered_here.load(Ordering::Relaxed) > 0;
        (if here { &self.maker } else { &self.first_thread }).load(Ordering::Relaxed)
    }

    #[inline]
    fn end_entry(&self, entry: &Entry) {
        let Some(open) = entry.open else { return };
        self.end_slice(entry.callsite, open);
    }

    #[inline]
    fn end_slice(&self, callsite: &'static Callsite, open: OpenScope) {
        if self.state.load(Ordering::Relaxed) & (LATE_FIELDS | LIFE) == LATE_FIELDS {
            self.end_slice_with_late_fields(callsite, open);
        } else {
            slices::end_slice(callsite, open);
        }
    }

    #[cold]
    fn end_slice_with_late_fields(&self, callsite: &'static Callsite, open: OpenScope) {
        // Before the values are read: values that another thread adds from now on are for the next end.
        self.state.fetch_and(!LATE_FIELDS, Ordering::AcqRel);
        stack::keep_last_slice(); // no other record has the values
        match self.rest().and_then(|rest| rest.late.clone()) {
            Some(late) => {
                late.show_all(callsite, |values| slices::end_slice_with(callsite, open, values));
            }
            None => slices::end_slice(callsite, open),
        }
    }

    /// Records values after the creation. They go on the next end.
    pub(crate) fn record(&self, record: &Record<'_>) {
        let visited = Visited::of(|kept| record.record(kept));
        let callsite = self.callsite().filter(|callsite| callsite.carries_flow());
        let joined = callsite.map_or(0, |callsite| self.join_request(callsite, &visited));
        let Some(mut rest) = self.rest() else { return };
        visited.link(&mut rest.late);
        drop(rest);
        self.state.fetch_or(LATE_FIELDS | LATE | joined, Ordering::Release);
    }

    /// Records that this span follows from `followed`: an arrow from a point on the life of `followed`, or on
    /// this thread, to this span's next entry.
    pub(crate) fn follow(&self, followed: &Span) {
        let (Some(callsite), Some(own)) = (followed.callsite(), self.callsite()) else { return };
        let Some(epoch) = callsite.registered_epoch() else { return };
        let flow = Box::new(Flow::new());
        let life = followed.life();
        let extras = life.as_ref().map_or_else(Extras::new, |life| Extras::new().track(&life.interval));
        slices::instant_of(callsite, epoch, &extras.flow(&*flow).name(own.name()));
        drop(life);
        let Some(mut rest) = self.rest() else { return };
        let old = rest.arrow.replace(flow);
        drop(rest);
        drop(old);
        self.state.fetch_or(ARROW, Ordering::Release);
    }

    /// Closes the span with this id. Nobody else refers to it.
    #[inline]
    pub(crate) fn close(&self, id: u64) {
        let state = self.state.load(Ordering::Acquire); // as in `has`
        if state & (FLOW | LIFE | LATE | ARROW) != 0 || self.entries() > 1 {
            self.close_with_details(id, state);
        }
    }

    #[inline(never)]
    fn close_with_details(&self, id: u64, state: u32) {
        if state & (FLOW | LIFE) == FLOW
            && let Some(callsite) = self.callsite()
        {
            callsite.count_done_at_once();
        }
        if self.entries() > 1 {
            stack::retract_left(id);
        }
        if state & ARROW != 0 {
            // Nothing entered the span after that. The next span in this place must not have them.
            drop(self.take_arrows());
        }
        if state & (LIFE | LATE) != 0 {
            self.end();
        }
    }

    /// Returns the memory of the fields. The span is closed.
    #[cold]
    pub(crate) fn return_memory(&self) {
        let Some(mut rest) = self.rest() else { return };
        let fields = rest.fields.take();
        drop(rest);
        Visited::keep_memory(fields);
    }

    fn end(&self) {
        let has_unrecorded = self.state.swap(0, Ordering::Relaxed) & LATE_FIELDS != 0;
        let Some(mut rest) = self.rest() else { return };
        let (life, late) = (rest.life.take(), rest.late.take());
        drop(rest);
        match (life, late) {
            // All values, also those that a slice's end has recorded.
            (Some(life), Some(late)) => life.end_with(late),
            (None, Some(late)) => {
                if has_unrecorded {
                    self.record_late_fields(&late);
                }
                Visited::keep_memory(Some(late));
            }
            (_, None) => {}
        }
    }

    /// Records the values that came after the last exit, as an event of their own: there is no end that could
    /// have them.
    #[cold]
    fn record_late_fields(&self, late: &Visited) {
        let Some(callsite) = self.callsite() else { return };
        if let Some(epoch) = callsite.registered_epoch() {
            late.show_all(callsite, |values| slices::instant_with(callsite, epoch, values));
        }
    }
}
