//! Containers that locks guard: they grow outside.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use hairline::{Track, trace_async, trace_begin, trace_end};
use hairline_tests::recording::Trace;
use log::{Log, Record};
use tracing::Subscriber;
use tracing::callsite::Identifier;
use tracing::field::FieldSet;
use tracing::metadata::Kind;
use tracing::subscriber::Interest;

use crate::{Contention, contend, each_format};

/// The trace has as many slices of this name, and all of its slices end. The judge has the losses of the
/// allocator to complain of.
fn assert_shown(trace: &Trace, name: &str, count: u64) {
    let slices = format!("select sum(name = '{name}'), sum(dur < 0) from slice");
    assert_eq!(trace.ask(&[&slices]).results[0].text(), format!("{count}\t0"), "{:?}", trace.format);
}

#[test]
fn the_lanes_of_intervals_grow_outside_of_their_lock() {
    const ROUNDS: u64 = 100;
    each_format(|turn, format| {
        let trace = contend(turn, format, || Contention {
            record: Box::new(|| drop(trace_async!("t", "under the mutex"))),
            work: |_| {
                let track = Track::process().child("parent"); // lanes of its own
                drop(trace_async!("t", "interval", track: &track));
            },
            rounds: ROUNDS,
        });
        assert_shown(&trace, "interval", ROUNDS);
    });
}

#[test]
fn the_list_of_open_slices_grows_outside_of_its_lock() {
    const ROUNDS: usize = 20;
    const DEPTH: usize = 150; // the first 64 need no list
    each_format(|turn, format| {
        let trace = contend(turn, format, || {
            let tracks: Vec<Track> = (0..ROUNDS).map(|_| Track::process().child("track")).collect();
            let shared = Arc::new((tracks, AtomicUsize::new(0)));
            let of_allocator = Arc::clone(&shared);
            Contention {
                record: Box::new(move || {
                    let (tracks, at) = &*of_allocator;
                    let track = &tracks[at.load(Ordering::Relaxed)];
                    trace_begin!("t", "under the mutex", track: track);
                    trace_end!(track);
                }),
                work: move |round| {
                    let (tracks, at) = &*shared;
                    at.store(round as usize, Ordering::Relaxed);
                    let track = &tracks[round as usize];
                    (0..DEPTH).for_each(|_| trace_begin!("t", "slice", track: track));
                    (0..DEPTH).for_each(|_| trace_end!(track));
                },
                rounds: ROUNDS as u64,
            }
        });
        assert_shown(&trace, "slice", (ROUNDS * DEPTH) as u64);
    });
}

/// The subscriber of these tests. It is called without `tracing`, which has locks of its own.
static SUBSCRIBER: LazyLock<hairline::Subscriber> = LazyLock::new(hairline::Subscriber::new);

/// A callsite of `tracing` that is made at run time.
struct Made;

static MADE: Made = Made;

impl tracing::callsite::Callsite for Made {
    fn set_interest(&self, _: Interest) {}

    fn metadata(&self) -> &tracing::Metadata<'_> {
        span_metadata()
    }
}

fn new_metadata(name: &'static str, kind: Kind) -> &'static tracing::Metadata<'static> {
    let fields = FieldSet::new(&[], Identifier(&MADE));
    let level = tracing::Level::INFO;
    Box::leak(Box::new(tracing::Metadata::new(name, "t", level, None, None, None, fields, kind)))
}

fn span_metadata() -> &'static tracing::Metadata<'static> {
    static METADATA: LazyLock<&'static tracing::Metadata<'static>> =
        LazyLock::new(|| new_metadata("span", Kind::SPAN));
    *METADATA
}

fn new_span() -> tracing::Id {
    let metadata = span_metadata();
    let values = metadata.fields().value_set_all(&[]);
    SUBSCRIBER.new_span(&tracing::span::Attributes::new_root(metadata, &values))
}

#[test]
fn the_free_slots_of_spans_grow_outside_of_their_lock() {
    each_format(|turn, format| {
        contend(turn, format, || Contention {
            record: Box::new(|| {
                // More than a thread has at hand. From inside of an event no span is made.
                let spans: [_; 200] = std::array::from_fn(|_| new_span());
                for span in spans {
                    SUBSCRIBER.try_close(span);
                }
            }),
            work: |round| {
                // Ever new pages of slots, and then all of their slots free.
                let spans: Vec<_> = (0..100 << round).map(|_| new_span()).collect();
                spans.into_iter().for_each(|span| assert!(SUBSCRIBER.try_close(span)));
            },
            rounds: 11,
        });
    });
}

#[test]
fn callsites_of_tracing_are_made_outside_of_their_lock() {
    each_format(|turn, format| {
        let trace = contend(turn, format, || {
            SUBSCRIBER.register_callsite(span_metadata());
            Contention {
                record: Box::new(|| {
                    let span = new_span();
                    SUBSCRIBER.enter(&span);
                    let _ = SUBSCRIBER.current_span(); // looks among the callsites
                    SUBSCRIBER.exit(&span);
                    SUBSCRIBER.try_close(span);
                }),
                work: |_| {
                    SUBSCRIBER.register_callsite(new_metadata("made", Kind::EVENT));
                },
                rounds: 100,
            }
        });
        assert_shown(&trace, "none", 0);
    });
}

/// Logs without `log`'s macros, whose callsites have no target that is made at run time.
fn log(target: &str, line: u32) {
    static LOGGER: LazyLock<hairline::Logger> = LazyLock::new(hairline::Logger::new);
    LOGGER.log(
        &Record::builder()
            .target(target)
            .file_static(Some(file!()))
            .module_path_static(Some(module_path!()))
            .line(Some(line))
            .level(log::Level::Info)
            .args(format_args!("message"))
            .build(),
    );
}

#[test]
fn callsites_of_log_are_made_outside_of_their_lock() {
    const ROUNDS: u32 = 100;
    each_format(|turn, format| {
        let trace = contend(turn, format, || Contention {
            record: Box::new(|| log("under the mutex", 0)),
            work: |round| {
                let line = round as u32 + if format == hairline::Format::Fxt { 0 } else { ROUNDS };
                log(module_path!(), line);
                log(&format!("target {line}"), line);
            },
            rounds: ROUNDS.into(),
        });
        let count = "select count(*) from slice where name = 'message' and category != 'under the mutex'";
        assert_eq!(trace.ask(&[count]).results[0].text(), (2 * ROUNDS).to_string(), "{format:?}");
    });
}
