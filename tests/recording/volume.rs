//! Millions of events, which wait while the disk is slower than they are: every one is there, in order, once.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::thread;
use std::time::Duration;

use hairline::{Format, Overflow, trace_scope};
use hairline_formats::{Value, fxt, track_event};
use hairline_tests::recording::{FORMATS, record_with};

const THREADS: u64 = 4;
/// The judge and the decoder take their time without optimisation.
const SCOPES: u64 = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };

#[test]
fn every_scope_of_four_threads_is_in_the_file_in_order_exactly_once() {
    for format in FORMATS {
        let patient = Overflow::Block(Duration::from_secs(600));
        let trace = record_with(
            format,
            |builder| builder.overflow(patient),
            |_| {
                thread::scope(|threads| {
                    for _ in 0..THREADS {
                        threads.spawn(|| {
                            for n in 0..SCOPES {
                                trace_scope!("volume", "scope", n);
                            }
                        });
                    }
                });
            },
        );
        assert_eq!(
            (trace.summary.records, trace.summary.lost.total()),
            (2 * THREADS * SCOPES, 0),
            "{format:?}"
        );
        let sequences =
            if format == Format::Fxt { fxt_order(trace.path()) } else { packet_order(trace.path()) };
        assert_eq!(sequences, vec![(SCOPES, SCOPES); THREADS as usize], "{format:?}: begins in order, ends");
        let rows = trace.rows(
            "select count(*), sum(dur >= 0), max(depth) from slice s join thread_track tt on s.track_id = tt.id \
             group by utid",
        );
        assert_eq!(rows, vec![format!("{SCOPES}\t{SCOPES}\t0"); THREADS as usize].join("\n"), "{format:?}");
    }
}

/// What has been seen of one thread: the next number that a begin must carry, ends, and whether one is due.
#[derive(Default)]
struct Seen {
    begins: u64,
    ends: u64,
}

impl Seen {
    fn begin(&mut self, n: Option<u64>) {
        assert_eq!(
            (n, self.ends),
            (Some(self.begins), self.begins),
            "a begin with the next number, after the last end"
        );
        self.begins += 1;
    }

    fn end(&mut self) {
        self.ends += 1;
        assert_eq!(self.ends, self.begins, "an end after its begin");
    }
}

fn sorted(seen: HashMap<u64, Seen>) -> Vec<(u64, u64)> {
    seen.into_values().filter(|s| s.begins > 0).map(|s| (s.begins, s.ends)).collect()
}

fn number(value: Value<'_>) -> Option<u64> {
    match value {
        Value::U64(n) => Some(n),
        _ => None,
    }
}

fn fxt_order(path: &Path) -> Vec<(u64, u64)> {
    let mut reader = fxt::RecordReader::new(BufReader::new(File::open(path).expect("a file")));
    let (mut seen, mut thread) = (HashMap::<u64, Seen>::new(), 0);
    while let Some((_, record)) = reader.next().expect("a well-formed trace") {
        match record {
            fxt::Record::Thread { thread: id, .. } => thread = id,
            fxt::Record::Event(event) => {
                let seen = seen.entry(thread).or_default();
                match event.kind {
                    fxt::EventKind::DurationBegin => {
                        let (_, value) = event.args().next().expect("an argument").expect("well-formed");
                        let fxt::ArgumentValue::Value(value) = value else { panic!("{value:?}") };
                        seen.begin(number(value));
                    }
                    fxt::EventKind::DurationEnd => seen.end(),
                    other => panic!("{other:?}"),
                }
            }
            _ => {}
        }
    }
    sorted(seen)
}

fn packet_order(path: &Path) -> Vec<(u64, u64)> {
    let mut reader = track_event::PacketReader::new(BufReader::new(File::open(path).expect("a file")));
    let mut seen = HashMap::<u64, Seen>::new();
    while let Some((_, packet)) = reader.next().expect("a well-formed trace") {
        let Some(track_event::PacketData::Event(event)) = &packet.data else { continue };
        let seen = seen.entry(u64::from(packet.sequence.0)).or_default();
        match event.kind {
            Some(track_event::EventType::SliceBegin) => {
                let annotation = event.annotations().next().expect("an argument").expect("well-formed");
                let track_event::AnnotationValue::Value(value) = annotation.value else {
                    panic!("{annotation:?}")
                };
                seen.begin(number(value));
            }
            Some(track_event::EventType::SliceEnd) => seen.end(),
            other => panic!("{other:?}"),
        }
    }
    sorted(seen)
}
