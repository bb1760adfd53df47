//! Arguments beyond scalars, and arguments of ends.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use hairline::{Argument, Format, MapKey, bytes, interned, koid, scope, trace_instant, trace_scope};
use hairline_tests::recording::{FORMATS, record, record_tiny, record_with};

#[test]
fn arrays_and_maps_are_shown_with_the_path_to_each_value() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let hosts = BTreeMap::from([("a", vec![80, 443]), ("b", vec![])]);
            let deep = HashMap::from([(7_u8, BTreeMap::from([("x".to_owned(), Some([true, false]))]))]);
            trace_scope!(
                "t",
                "s",
                hosts,
                list = [1.5, 2.5],
                deep,
                words = &["one", "two"][..],
                none = [None::<i32>]
            );
        });
        let expected = [
            "s: hosts.a[0] = 80",
            "s: hosts.a[1] = 443",
            "s: hosts.b = []",
            "s: list[0] = 1.5",
            "s: list[1] = 2.5",
            "s: deep.7.x[0] = true",
            "s: deep.7.x[1] = false",
            "s: words[0] = one",
            "s: words[1] = two",
            "s: none[0] = null",
        ];
        assert_eq!(trace.arguments(), expected.join("\n"), "{format:?}");
    }
}

/// A type of the program, shown as its number.
struct UserId(u64);

impl Argument for UserId {
    type Held<'a> = u64;

    fn hold(&self) -> u64 {
        self.0
    }
}

/// A type of the program, shown as its text if it has one.
struct Label(Option<String>);

impl Argument for Label {
    type Held<'a> = Option<&'a str>;

    fn hold(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// A generic type of the program, shown as the values in it.
struct All<T>(Vec<T>);

impl<T: Argument> Argument for All<T> {
    type Held<'a>
        = <Vec<T> as Argument>::Held<'a>
    where
        T: 'a;

    fn hold(&self) -> Self::Held<'_> {
        self.0.hold()
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Queue {
    Urgent,
    Normal,
    Hidden,
}

impl MapKey for Queue {
    fn with_key(&self, f: impl FnOnce(&str)) {
        match self {
            Self::Urgent => f("urgent"),
            Self::Normal => f("normal"),
            Self::Hidden => {} // no key, so no entry
        }
    }
}

#[test]
fn types_of_the_program_are_arguments_and_keys() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let (name, none) = (Label(Some("it".into())), Label(None));
            trace_scope!("t", "s", user = UserId(7), name, none, list = All(vec![UserId(8), UserId(9)]));
            let queues = BTreeMap::from([
                (Queue::Urgent, UserId(2)),
                (Queue::Normal, UserId(3)),
                (Queue::Hidden, UserId(4)),
            ]);
            trace_scope!("t", "s", queues);
        });
        let expected = [
            "s: user = 7",
            "s: name = it",
            "s: list[0] = 8",
            "s: list[1] = 9",
            "s: queues.urgent = 2",
            "s: queues.normal = 3",
        ];
        assert_eq!(trace.arguments(), expected.join("\n"), "{format:?}");
        let types = "select distinct value_type from args where key like '%user' or key like '%list%'";
        let verdict = trace.ask(&[types]);
        verdict.require_clean();
        let number = if format == Format::Fxt { "int" } else { "uint" };
        assert_eq!(verdict.results[0].text(), number, "{format:?}: not text");
    }
}

/// A type of the program around another one: arrays and maps of it are not written into the chunk in place.
struct Own<T>(T);

impl<T: Argument> Argument for Own<T> {
    type Held<'a>
        = T::Held<'a>
    where
        Self: 'a;

    fn hold(&self) -> Self::Held<'_> {
        self.0.hold()
    }
}

#[test]
fn arrays_and_maps_of_every_length_show_the_same_whoever_made_their_types() {
    for format in FORMATS {
        let recorded = |is_own: bool| {
            record(format, |_| {
                for count in (0..40_u32).rev().chain(0..40) {
                    let numbers: Vec<i64> = (0..count).map(|n| (1 << n) * i64::from(n % 3) - 1).collect();
                    let flags: Vec<_> = (0..count % 4).map(|n| n == 1).collect();
                    let halves: Vec<_> = (0..count % 5).map(|n| f64::from(n) / 2.0).collect();
                    let text = |n: u32| (n % 5 != 3).then(|| "é".repeat((n * 7 % 80) as usize));
                    let texts: Vec<_> = (0..count % 9).map(|n| text(n + count)).collect();
                    let named = |n: u32| ("x".repeat((n % 7 * n) as usize), (n % 4 != 2).then_some(n));
                    let map: BTreeMap<_, _> = (0..count % 16).map(named).collect();
                    let pair = [count, 7];
                    if is_own {
                        fn own<T>(list: &[T]) -> Vec<Own<&T>> {
                            list.iter().map(Own).collect()
                        }
                        let map: BTreeMap<_, _> = map.iter().map(|(name, n)| (name, Own(n))).collect();
                        trace_instant!("t", "i", numbers = own(&numbers), flags = own(&flags), after = 1);
                        trace_instant!("t", "i", halves = own(&halves), texts = own(&texts));
                        trace_scope!("t", "s", map);
                        trace_scope!("t", "s", a = count, pair = own(&pair), b = "text", flags = own(&flags));
                    } else {
                        trace_instant!("t", "i", numbers, flags, after = 1);
                        trace_instant!("t", "i", halves, texts);
                        trace_scope!("t", "s", map);
                        trace_scope!("t", "s", a = count, pair, b = "text", flags);
                    }
                }
            })
        };
        let (own, other) = (recorded(true), recorded(false));
        assert_eq!(own.arguments(), other.arguments(), "{format:?}");
        assert_eq!(own.summary.lost, other.summary.lost, "{format:?}");
        other.ask(&[]).require_clean();
    }
}

#[derive(serde::Serialize)]
struct Request<'a> {
    path: &'a str,
    tries: u32,
    kind: Kind,
    body: Option<()>,
    pair: (i8, f32),
}

#[derive(serde::Serialize)]
enum Kind {
    Get,
    Post { size: u64 },
}

#[test]
fn what_serde_can_serialize_is_an_argument() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let get = Request { path: "/", tries: 2, kind: Kind::Get, body: None, pair: (-1, 0.5) };
            trace_instant!("t", "get", r = hairline::serialize(&get));
            trace_instant!("t", "post", kind = hairline::serialize(&Kind::Post { size: 9 }));
        });
        assert_eq!(
            trace.arguments(),
            "get: r.path = /\nget: r.tries = 2\nget: r.kind = Get\nget: r.pair[0] = -1\nget: r.pair[1] = 0.5\n\
             post: kind.Post.size = 9",
            "{format:?}"
        );
    }
}

#[test]
fn blobs_kernel_objects_and_interned_strings_arrive() {
    for format in FORMATS {
        let trace = record(format, |_| {
            for _ in 0..2 {
                trace_instant!(
                    "t",
                    "i",
                    blob = bytes(&[1, 2, 255]),
                    k = koid(42),
                    text = interned("a long text")
                );
            }
        });
        let blob = if format == Format::Fxt { "unknown" } else { "0102ff" };
        let one = format!("i: blob = {blob}\ni: k = 42\ni: text = a long text");
        assert_eq!(trace.arguments(), format!("{one}\n{one}"), "{format:?}");
        let file = std::fs::read(trace.path()).unwrap();
        let times = file.windows(11).filter(|w| w == b"a long text").count();
        assert_eq!(times, 1, "{format:?}: written once");
    }
}

#[test]
fn arguments_that_come_later_stand_at_the_end() {
    for format in FORMATS {
        let trace = record(format, |_| {
            for n in 0..3 {
                let mut scope = scope!("t", "s", n);
                scope.arg("rows", n * 10).arg("text", "t".repeat(n)).arg("list", [n, n + 1]);
            }
            let mut unused = scope!("t", "plain");
            unused.arg("none", None::<u8>);
        });
        let one = |n: usize| {
            format!(
                "s: n = {n}\ns: rows = {}\ns: text = {}\ns: list[0] = {n}\ns: list[1] = {}",
                n * 10,
                "t".repeat(n),
                n + 1
            )
        };
        let (shown, all) = (trace.arguments(), (0..3).map(one).collect::<Vec<_>>().join("\n"));
        assert_eq!(shown.replace("text = NULL", "text = "), all, "{format:?}");
        assert_eq!(trace.rows("select count(*), sum(dur < 0) from slice"), "4\t0", "{format:?}");
        assert_eq!(trace.summary.records, 8);
    }
}

#[test]
fn an_end_is_recorded_even_where_its_arguments_have_no_room() {
    for format in FORMATS {
        let trace = record_tiny(format, |_| {
            let mut cut = scope!("t", "cut");
            cut.arg("text", "x".repeat(100_000));
            drop(cut);
            let mut dropped = scope!("t", "dropped");
            dropped.arg("blob", bytes(&[7; 100_000]));
        });
        assert_eq!(
            trace.rows("select name, dur >= 0 from slice where category = 't' order by ts"),
            "cut\t1\ndropped\t1",
            "{format:?}"
        );
        assert!(trace.arguments().lines().next().is_some_and(|l| l.ends_with("…")), "{format:?}");
        assert_eq!((trace.summary.lost.arguments, trace.summary.lost.total()), (1, 0), "{format:?}");
    }
}

// 15 fit an FXT record; what is nested counts one by one.
#[test]
fn arguments_are_in_the_order_of_the_program_after_a_pause_too() {
    for format in FORMATS {
        for detailed in [false, true] {
            let trace = record_with(
                format,
                |builder| builder.thread_time(detailed).source_locations(detailed),
                |_| {
                    for n in 0..9 {
                        if n % 3 == 1 {
                            std::thread::sleep(Duration::from_millis(5)); // the next event takes another path
                        }
                        let list = [n, 7];
                        trace_instant!("t", "i", list, n, flags = [true], text = "text", last = 1);
                        let mut scope = scope!("t", "s", list, last = 1);
                        scope.arg("at the end", n);
                    }
                },
            );
            let keys = trace.rows(
                "select group_concat(k, ' ') from (select s.ts, s.name as name, s.id as id, replace(a.key, 'debug.', '') as k \
                 from slice s join args a using (arg_set_id) where s.name in ('i', 's') order by s.ts, a.id) \
                 group by id order by name, id",
            );
            let all: BTreeSet<_> = keys.lines().collect();
            assert_eq!(all.len(), 2, "{format:?}: {keys}");
        }
    }
}

#[test]
fn nested_values_beyond_the_fifteen_of_fxt_are_counted() {
    for (count, lost) in [(15, 0), (16, 1), (100, 85)] {
        for format in FORMATS {
            let trace = record(format, |_| {
                let list: Vec<usize> = (0..count).collect();
                trace_instant!("t", "i", list);
            });
            let (shown, lost) = if format == Format::Fxt { (count - lost, lost) } else { (count, 0) };
            assert_eq!(
                trace.arguments().lines().filter(|l| l.starts_with("i:")).count(),
                shown,
                "{format:?} {count}"
            );
            assert_eq!(trace.summary.lost.arguments, lost as u64, "{format:?} {count}");
        }
    }
}

#[test]
fn nested_values_too_large_for_a_chunk_are_left_out_with_a_mark() {
    for format in FORMATS {
        let trace = record_tiny(format, |_| {
            let list: Vec<String> = (0..200).map(|n| format!("{n}").repeat(20)).collect();
            trace_instant!("t", "i", list, n = 1);
        });
        let shown = trace.arguments();
        assert!(shown.ends_with("i: n = 1") || shown.contains("i: n = 1"), "{format:?}: {shown}");
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
    }
}

#[test]
fn pointers_are_shown_as_addresses() {
    let here = 7_u8;
    let address = &raw const here;
    for format in FORMATS {
        let trace = record(format, |_| {
            trace_instant!("t", "i", address, none = std::ptr::null_mut::<u8>());
        });
        assert_eq!(trace.arguments(), format!("i: address = {address:p}\ni: none = 0x0"), "{format:?}");
        let types = trace.rows("select distinct value_type from slice join args using (arg_set_id)");
        assert_eq!(types, "pointer", "{format:?}");
    }
}

#[test]
fn interned_strings_are_whole_or_cut_with_a_mark() {
    const LONG: &str = include_str!("arguments.rs");
    const SHORT: &str = LONG.split_at(3_000).0;
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.chunk_size(4096).buffer_size(64 << 10),
            |_| {
                trace_instant!("t", "short", text = interned(SHORT));
                trace_instant!("t", "long", text = interned(LONG));
            },
        );
        let rows = trace.rows(
            "select s.name, length(a.display_value) >= 3000 from slice s join args a using (arg_set_id) \
             where replace(a.key, 'debug.', '') = 'text' order by s.ts",
        );
        assert_eq!(rows, "short\t1\nlong\t1", "{format:?}");
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
    }
}
