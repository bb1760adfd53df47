//! Flows: arrows from one slice to the next.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::on::base::platform::process;
use crate::on::base::uuid;
#[cfg(feature = "subscriber")]
use crate::on::callsite::Epoch;
use crate::on::callsite::registry;
use crate::on::event::begun::Begun;
#[cfg(feature = "subscriber")]
use crate::on::event::named_flows;
use crate::traceparent::{Origin, OwnFlags, Traceparent};

/// A sequence of arrows between slices, across threads: follows work from one thread to the next.
///
/// Events refer to a flow with `flow: &flow`; the last event may use `end_flow: &flow`. A flow does not fork:
/// it goes from each event to the next one in time.
///
/// A clone is the same flow, for another thread. The first clone of a flow allocates; later clones do not.
///
/// ```
/// use hairline::{Flow, trace_scope};
///
/// let flow = Flow::new();
/// let parts = [1, 2].map(|part| {
///     let flow = flow.clone();
///     std::thread::spawn(move || {
///         trace_scope!("queue", "run", part, flow: &flow);
///     })
/// });
/// parts.map(|part| part.join().unwrap());
/// trace_scope!("queue", "collect", end_flow: &flow);
/// ```
#[derive(Clone, Debug)]
pub struct Flow {
    id: u64,
    begun: Begun,
    origin: Origin,
}

/// The serial number of the first flow of this process.
static FIRST: AtomicU64 = AtomicU64::new(1);
/// The serial number of the next flow.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Starts new serial numbers in a forked child. The child has its parent's random number, so its flows would
/// otherwise get the ids of flows that the parent creates from now on.
pub(crate) fn detach_after_fork() {
    let first = u64::from_le_bytes(process::random()) >> 1;
    FIRST.store(first, Ordering::Relaxed);
    NEXT.store(first, Ordering::Relaxed);
}

impl Flow {
    /// Creates a flow that has not begun, with a random id.
    #[must_use]
    pub fn new() -> Self {
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        Self::made(uuid::mix(process::random_id() ^ serial.rotate_left(24)), Begun::new(0))
    }

    /// Creates a flow that began in another process, from the [`id`](Self::id) that the other process sent.
    ///
    /// ```
    /// use hairline::{Flow, trace_scope};
    ///
    /// let sent = Flow::new().id(); // goes to the other process with the request
    /// let flow = Flow::from_id(sent);
    /// trace_scope!("rpc", "serve", end_flow: &flow);
    /// ```
    #[must_use]
    pub fn from_id(id: u64) -> Self {
        Self::made(id, Begun::elsewhere())
    }

    fn made(id: u64, begun: Begun) -> Self {
        Self { id, begun, origin: Origin::default() }
    }

    /// Returns the id of the flow, which is the same in all processes.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Creates a flow that began in another process, from the [`traceparent`](crate::Traceparent) header that
    /// the process sent. `None` if the header is not valid as W3C Trace Context defines it (levels 1 and 2;
    /// later versions as level 1 demands): a request with such a header is to be served like one without.
    /// Spaces and tabs around the value are ignored.
    ///
    /// ```
    /// use hairline::{Flow, trace_scope};
    ///
    /// let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// let flow = Flow::from_traceparent(header).unwrap_or_default();
    /// trace_scope!("http", "serve", traceparent = header, flow: &flow);
    /// assert!(Flow::from_traceparent("00-0-0-00").is_none());
    /// ```
    #[must_use]
    pub fn from_traceparent(header: impl AsRef<str>) -> Option<Self> {
        let (id, origin) = Origin::parse(header.as_ref().as_bytes())?;
        Some(Self { origin, ..Self::from_id(id) })
    }

    /// Returns the header that carries the flow to another process. Its parent id is the flow's id. `None` if
    /// that is 0, which the standard does not allow.
    ///
    /// The trace id is that of the header which the flow came with, or of the flow that it is a
    /// [`child`](Self::child) of. Otherwise it is `hairline` in ASCII, exclusive-or the flow's id with its
    /// halves exchanged, and the flow's id. Then the flag `random` of level 2 says that this process made the
    /// flow: an id that [`from_id`](Self::from_id) got may be any number. `tracestate` is not carried.
    ///
    /// ```
    /// use hairline::{Flow, trace_scope};
    ///
    /// # #[cfg(feature = "enable")]
    /// # {
    /// let flow = Flow::new();
    /// trace_scope!("http", "send", flow: &flow);
    /// let header = flow.to_traceparent().unwrap();
    /// let received = Flow::from_traceparent(&header).unwrap(); // in the other process
    /// assert_eq!(received.id(), flow.id());
    /// assert_eq!(received.to_traceparent().unwrap().trace_id(), header.trace_id());
    /// # }
    /// ```
    #[must_use]
    pub fn to_traceparent(&self) -> Option<Traceparent> {
        #[cfg(feature = "subscriber")]
        self.note_begun();
        self.origin.header(self.id, self.own_flags())
    }

    /// Remembers that the flow has begun, for events that get only its header.
    #[cfg(feature = "subscriber")]
    fn note_begun(&self) {
        if let Some(epoch) = registry::active_epoch()
            && self.begun.time_in(epoch.get()).is_some()
            && let Some(serial) = Self::serial_of(self.id)
        {
            named_flows::begin(serial, epoch);
        }
    }

    /// Creates a flow with the same trace id: for a request that a program sends while it serves one. It has
    /// an arrow of its own. If a program sends the flow that it received instead, the arrow is one chain
    /// through all processes.
    ///
    /// ```
    /// use hairline::{Flow, trace_scope};
    ///
    /// let received = Flow::from_id(7);
    /// for part in 0..2 {
    ///     let flow = received.child();
    ///     let header = flow.to_traceparent();
    ///     trace_scope!("http", "send", part, traceparent = header, flow: &flow);
    /// }
    /// ```
    #[must_use]
    pub fn child(&self) -> Self {
        let origin = self.origin.of_child(self.id, self.own_flags());
        Self { origin, ..Self::new() }
    }

    fn own_flags(&self) -> OwnFlags {
        let records = registry::active_epoch().is_some();
        OwnFlags { is_random: Self::is_of_this_process(self.id), records }
    }

    /// Whether this process created the flow with this id.
    pub(crate) fn is_of_this_process(id: u64) -> bool {
        Self::serial_of(id).is_some()
    }

    /// Returns the serial number of the flow with this id, if this process created it.
    fn serial_of(id: u64) -> Option<u64> {
        let serial = (uuid::unmix(id) ^ process::random_id()).rotate_right(24);
        let own = FIRST.load(Ordering::Relaxed)..NEXT.load(Ordering::Relaxed);
        own.contains(&serial).then_some(serial)
    }

    /// In which session the flow began.
    #[inline(always)]
    pub(crate) fn state(&self) -> &Begun {
        &self.begun
    }

    /// Recreates a flow from its id and its [`begun`](Self::begun), for code that stores these two where
    /// threads share them.
    #[cfg(any(feature = "subscriber", feature = "sync"))]
    pub(crate) fn resumed(id: u64, begun: u32) -> Self {
        Self::made(id, Begun::new(begun))
    }

    /// Creates the flow of a header that a field has, in the trace of this epoch. A flow of this process
    /// begins at the first event with its header, unless it had begun when the header was made. A flow of
    /// another process has begun there.
    #[cfg(feature = "subscriber")]
    pub(crate) fn named_by(header: &str, epoch: Epoch) -> Option<Self> {
        let (id, origin) = Origin::parse(header.as_bytes())?;
        let begins = Self::serial_of(id).is_some_and(|serial| named_flows::begin(serial, epoch));
        Some(Self { origin, ..if begins { Self::made(id, Begun::new(0)) } else { Self::from_id(id) } })
    }

    /// Returns the epoch in which the flow began; 0 if it has not begun.
    #[cfg(any(feature = "subscriber", feature = "sync"))]
    pub(crate) fn begun(&self) -> u32 {
        self.begun.last()
    }
}

impl Default for Flow {
    fn default() -> Self {
        Self::new()
    }
}

impl AsRef<Flow> for Flow {
    fn as_ref(&self) -> &Flow {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_flow_shows_whether_this_process_created_it() {
        let own = Flow::new();
        assert!(Flow::is_of_this_process(own.id()));
        assert!(!Flow::is_of_this_process(own.id() + 1) && !Flow::is_of_this_process(0));
    }

    #[cfg(feature = "subscriber")]
    #[test]
    fn the_first_event_with_a_header_of_this_process_begins_the_flow() {
        let epoch = Epoch::from_raw(u32::MAX - 1).expect("not 0");
        let headers: Vec<_> = (0..4000).filter_map(|_| Flow::new().to_traceparent()).collect();
        let has_begun =
            |header: &Traceparent| Flow::named_by(header.as_str(), epoch).expect("valid").begun() != 0;
        assert!(!headers.iter().any(has_begun));
        assert!(headers.iter().all(has_begun), "the flow of a request begins again with its answer");
    }
}
