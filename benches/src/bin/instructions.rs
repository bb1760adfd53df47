//! `instructions`: a fixed number of events of each kind. `ci/instructions.sh` runs it under callgrind, which
//! counts the instructions.
//!
//! Each line of the output names the events of one call of [`measured`], in the order of the calls.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io;
use std::net::Ipv4Addr;
use std::sync::PoisonError;

use hairline::{
    Error, Flow, Format, HeapProfile, Overflow, Session, SessionBuilder, Track, Unit, sync, trace_async,
    trace_begin, trace_counter, trace_end, trace_instant, trace_scope,
};
use hairline_benches::heap::pair_of_nothing;
use hairline_benches::row::label;
use hairline_benches::stuck::Gate;
use hairline_benches::timing::started;
use hairline_benches::{made, text};

/// The events in the shorter call. The longer one has twice as many, so the difference of their counts is
/// that of exactly this many events.
const EVENTS: u32 = 1000;

/// The calls of each length. A thread that was not scheduled for long takes the cold path once, so the least
/// count is the true one.
const CALLS: u32 = 8;

/// The function that callgrind counts, by this name.
#[inline(never)]
fn measured(events: u32, event: &mut dyn FnMut(u32)) {
    for n in 0..events {
        event(black_box(n));
    }
}

fn count(name: &str, event: &mut dyn FnMut(u32)) {
    (0..10).for_each(&mut *event); // the first hit
    for _ in 0..CALLS {
        for events in [EVENTS, 2 * EVENTS] {
            event(0); // the last one may be long ago
            measured(black_box(events), event);
            println!("{events} {name}");
        }
    }
}

/// The chunks have room for all events. `report --cold` measures the cost of the next chunk.
fn session(format: Format) -> SessionBuilder {
    Session::builder().output_writer(io::sink()).format(format).buffer_size(64 << 20).chunk_size(8 << 20)
}

fn recorded(format: Format) -> Result<(), Error> {
    let recording = started(session(format))?;
    let name = |what: &str| format!("{}: {what}", label(format));
    let text = black_box("sixteen bytes ..");
    count(&name("scope"), &mut |_| {
        trace_scope!("bench", "scope");
    });
    count(&name("scope + i64 + &str of 16"), &mut |n| {
        trace_scope!("bench", "scope with arguments", number = i64::from(n), text);
    });
    count(&name("instant"), &mut |_| {
        trace_instant!("bench", "instant");
    });
    count(&name("counter"), &mut |n| {
        trace_counter!("bench", "counter", i64::from(n));
    });
    composed(&name);
    locks(&name);
    count(&name("span of tracing, Subscriber"), &mut |_| {
        let _span = tracing::info_span!("span").entered();
    });
    count(&name("span of tracing + i64 + &str of 16"), &mut |n| {
        let _span = tracing::info_span!("span with fields", number = i64::from(n), text).entered();
    });
    on_tracks(&name);
    none_lost(recording)?;
    let recording = started(session(format).overflow(Overflow::Overwrite))?;
    count(&name("scope, flight recorder"), &mut |_| {
        trace_scope!("bench", "scope in a flight recorder");
    });
    none_lost(recording)
}

/// Locks that are free: nothing is recorded, but who holds them is noted.
fn locks(name: &impl Fn(&str) -> String) {
    let (mutex, lock) = (sync::Mutex::new(1_u64), sync::RwLock::new(1_u64));
    let parking = lock_api::Mutex::<sync::RawMutex<parking_lot::RawMutex>, u64>::new(1);
    count(&name("sync::Mutex, lock and unlock"), &mut |_| {
        *black_box(&mutex).lock().unwrap_or_else(PoisonError::into_inner) += 1;
    });
    count(&name("sync::RwLock, read and unlock"), &mut |_| {
        black_box(*black_box(&lock).read().unwrap_or_else(PoisonError::into_inner));
    });
    count(&name("sync::RawMutex of parking_lot, lock and unlock"), &mut |_| {
        *black_box(&parking).lock() += 1;
    });
}

/// The floor of the locks: those that they contain.
fn inner_locks() {
    let (mutex, lock) = (std::sync::Mutex::new(1_u64), std::sync::RwLock::new(1_u64));
    let parking = parking_lot::Mutex::new(1_u64);
    count("std::sync::Mutex alone", &mut |_| {
        *black_box(&mutex).lock().unwrap_or_else(PoisonError::into_inner) += 1;
    });
    count("std::sync::RwLock alone", &mut |_| {
        black_box(*black_box(&lock).read().unwrap_or_else(PoisonError::into_inner));
    });
    count("parking_lot::Mutex alone", &mut |_| {
        *black_box(&parking).lock() += 1;
    });
}

/// Events on tracks other than the thread's own, and counters with a unit.
fn on_tracks(name: &impl Fn(&str) -> String) {
    count(&name("async interval"), &mut |_| drop(trace_async!("bench", "interval")));
    let track = Track::new("track");
    count(&name("slice on a track"), &mut |_| {
        trace_begin!("bench", "slice", track: &track);
        trace_end!(&track);
    });
    count(&name("instant on a track"), &mut |_| {
        trace_instant!("bench", "on a track", track: &track);
    });
    count(&name("counter with a unit"), &mut |n| {
        trace_counter!("bench", "bytes", i64::from(n), unit: Unit::Bytes);
    });
    count(&name("counter on a track, with a unit"), &mut |n| {
        trace_counter!("bench", "bytes there", i64::from(n), unit: Unit::Bytes, track: &track);
    });
}

/// Events of sessions that record more of each event. The read of the thread's CPU time is a system call,
/// whose instructions in the kernel are not counted.
fn detailed(format: Format) -> Result<(), Error> {
    let recording = started(session(format).source_locations(true))?;
    count(&format!("{}: scope, source locations", label(format)), &mut |_| {
        trace_scope!("bench", "located");
    });
    none_lost(recording)?;
    let recording = started(session(format).thread_time(true))?;
    count(&format!("{}: scope, thread CPU time", label(format)), &mut |_| {
        trace_scope!("bench", "timed by the CPU");
    });
    none_lost(recording)
}

/// Scopes for which a full ring has no room.
fn lost(format: Format) -> Result<(), Error> {
    const RING: u64 = 1 << 20;
    let gate = Gate::default();
    let recording = started(gate.of(Session::builder()).format(format).buffer_size(RING))?;
    let closed = gate.close();
    for _ in 0..RING / 8 {
        trace_scope!("bench", "scope that fills the ring");
    }
    count(&format!("{}: lost scope", label(format)), &mut |_| {
        trace_scope!("bench", "scope without room");
    });
    drop(closed);
    let summary = recording.stop()?;
    assert!(summary.lost.buffer_full > u64::from(CALLS * 3 * EVENTS), "all of them are lost");
    Ok(())
}

/// Events whose records are composed: with a name made at run time, nested arguments or arguments at the end.
fn composed(name: &impl Fn(&str) -> String) {
    let ten = black_box("ten bytes.");
    let sizes = black_box(BTreeMap::from([("read", 1), ("sent", 2)]));
    count(&name("scope, named at run time"), &mut |_| {
        trace_scope!("bench", "named", name: ten);
    });
    count(&name("scope + i64 at the end"), &mut |n| {
        let mut scope = hairline::scope!("bench", "late");
        scope.arg("number", i64::from(n));
    });
    count(&name("scope + two numbers at the end"), &mut |n| {
        let mut scope = hairline::scope!("bench", "late numbers");
        scope.arg("number", i64::from(n)).arg("half", 0.5);
    });
    count(&name("scope + &str of 10 at the end"), &mut |_| {
        let mut scope = hairline::scope!("bench", "late text");
        scope.arg("text", ten);
    });
    count(&name("scope + [i32; 2]"), &mut |n| {
        trace_scope!("bench", "array", list = [n.cast_signed(), 2]);
    });
    count(&name("scope + map of two"), &mut |_| {
        trace_scope!("bench", "map", sizes);
    });
    let (long, flow) = (black_box("11 letters ".repeat(20)), Flow::new());
    count(&name("scope + &str of 220"), &mut |_| {
        trace_scope!("bench", "long text", long);
    });
    count(&name("scope with a flow"), &mut |_| {
        trace_scope!("bench", "in a flow", flow: &flow);
    });
    let tuple = black_box(((7_u64, "db1"), 5432_u16));
    count(&name("scope + tuple in a tuple, by serde"), &mut |_| {
        trace_scope!("bench", "serde", tuple = hairline::serialize(&tuple));
    });
    let (address, pair) = (black_box(Ipv4Addr::new(192, 168, 1, 17)), black_box((1, "one")));
    count(&name("instant + %Ipv4Addr"), &mut |_| {
        trace_instant!("bench", "displayed", peer = %address);
    });
    count(&name("instant + ?(i32, &str)"), &mut |_| {
        trace_instant!("bench", "debugged", pair = ?pair);
    });
}

/// The floor of the events with text by `Display` and `Debug`: that text alone.
fn formatting() {
    let (address, pair) = (black_box(Ipv4Addr::new(192, 168, 1, 17)), black_box((1, "one")));
    count("the text of %Ipv4Addr alone", &mut |_| {
        black_box(text::text(format_args!("{address}")));
    });
    count("the text of ?(i32, &str) alone", &mut |_| {
        black_box(text::text(format_args!("{pair:?}")));
    });
}

fn at_many_callsites(format: Format) -> Result<(), Error> {
    let session = started(session(format))?;
    let callsites = made::callsites("callsite", 1024); // and those above
    callsites.iter().for_each(made::scope);
    if let Some(last) = callsites.last() {
        let name = format!("{}: scope, beyond the 1,024th callsite", label(format));
        count(&name, &mut |_| made::scope(black_box(last)));
    }
    none_lost(session)
}

/// A pair of calls of an allocator in a `Heap`, without the allocator.
fn heap() -> Result<(), Error> {
    let mut pair = |_| pair_of_nothing();
    pair(0); // announces it
    count("Heap: allocation and free, no session", &mut pair);
    let recording = started(session(Format::TrackEvent))?;
    count("Heap: allocation and free, counted", &mut pair);
    recording.stop()?;
    let recording = started(session(Format::TrackEvent).heap_profile(HeapProfile::new()))?;
    count("Heap: allocation and free, in a heap profile", &mut pair);
    recording.stop().map(drop)
}

fn none_lost(session: Session) -> Result<(), Error> {
    let summary = session.stop()?;
    assert_eq!(summary.lost.total(), 0, "events that are lost count for nothing");
    Ok(())
}

fn main() -> Result<(), Error> {
    count("nothing", &mut |n| {
        black_box(n);
    });
    count("scope, no session", &mut |_| {
        trace_scope!("off", "disabled");
    });
    formatting();
    inner_locks();
    locks(&|what| format!("{what}, no session"));
    let listens = tracing::subscriber::set_global_default(hairline::Subscriber::new());
    assert!(listens.is_ok(), "nobody else listens");
    for format in [Format::Fxt, Format::TrackEvent] {
        recorded(format)?;
        detailed(format)?;
        lost(format)?;
    }
    at_many_callsites(Format::Fxt)?;
    at_many_callsites(Format::TrackEvent)?;
    heap()
}
