//! Scopes, instants, counters and their arguments.

use std::borrow::Cow;

use hairline::{Format, scope, trace_counter, trace_instant, trace_scope};
use hairline_tests::recording::{FORMATS, SLICES, record, record_with};

// outer ─────────────────────────────
//   inner ────────   inner ────────
//     moment ·
#[test]
fn scopes_nest_as_they_do_in_the_code() {
    for format in FORMATS {
        let trace = record(format, |_| {
            trace_scope!("net", "outer");
            {
                trace_scope!("net.io", "inner");
                trace_instant!("net", "moment");
            }
            trace_scope!("net.io", "inner");
        });
        let rows =
            trace.rows("select depth, category, name, dur >= 0 as ended from slice order by ts, depth");
        assert_eq!(
            rows, "0\tnet\touter\t1\n1\tnet.io\tinner\t1\n2\tnet\tmoment\t1\n1\tnet.io\tinner\t1",
            "{format:?}"
        );
        assert_eq!((trace.summary.records, trace.summary.lost.total()), (7, 0));
    }
}

#[test]
fn every_kind_of_scalar_arrives_as_it_was() {
    let (small, text) = (-5_i8, String::from("owned"));
    let (some, none) = (Some(7_u32), None::<u32>);
    for format in FORMATS {
        let trace = record(format, |_| {
            trace_scope!(
                "t",
                "signed",
                small,
                a = i16::MIN,
                b = i32::MIN,
                c = i64::from(i32::MAX) + 1,
                d = i64::MIN,
                e = -1_isize
            );
            trace_scope!(
                "t",
                "unsigned",
                a = u8::MAX,
                b = u32::MAX,
                c = u64::from(u32::MAX) + 1,
                d = i64::MAX as u64
            );
            trace_scope!(
                "t",
                "text",
                text,
                a = "literal",
                b = Cow::from("cow"),
                c = "",
                d = "zwölf €uro 🦀",
                e = 'x'
            );
            trace_scope!(
                "t",
                "other",
                yes = true,
                no = false,
                half = 0.5,
                single = 0.25_f32,
                some,
                none,
                big = u128::MAX
            );
            trace_scope!("t", "formatted", shown = %format_args!("{}-{}", 1, 2), debug = ?[1, 2], long = %"y".repeat(300));
        });
        let long = "y".repeat(300);
        let expected = format!(
            "signed: small = -5\nsigned: a = -32768\nsigned: b = -2147483648\nsigned: c = 2147483648\n\
             signed: d = -9223372036854775808\nsigned: e = -1\n\
             unsigned: a = 255\nunsigned: b = 4294967295\nunsigned: c = 4294967296\nunsigned: d = 9223372036854775807\n\
             text: text = owned\ntext: a = literal\ntext: b = cow\ntext: c = \ntext: d = zwölf €uro 🦀\ntext: e = x\n\
             other: yes = true\nother: no = false\nother: half = 0.5\nother: single = 0.25\nother: some = 7\n\
             other: big = 340282366920938463463374607431768211455\n\
             formatted: shown = 1-2\nformatted: debug = [1, 2]\nformatted: long = {long}"
        );
        assert_eq!(trace.arguments(), expected, "{format:?}");
    }
}

#[test]
fn a_counter_has_the_values_it_was_given() {
    for format in FORMATS {
        let trace = record(format, |_| {
            trace_counter!("t", "depth", 3);
            trace_counter!("t", "depth", -4_i64);
            trace_counter!("t", "depth", i64::from(i32::MAX) + 1);
            trace_counter!("t", "share", 0.25);
            trace_counter!("t", "on", true);
            trace_counter!("t", "depth", u8::MAX);
        });
        assert_eq!(
            trace.counters(),
            "depth = 3.0\ndepth = -4.0\ndepth = 2147483648.0\nshare = 0.25\non = 1.0\ndepth = 255.0",
            "{format:?}"
        );
    }
}

#[test]
fn a_guard_ends_its_scope_when_it_is_dropped_and_a_panic_ends_all() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let first = scope!("t", "first", n = 1);
            drop(first);
            let second = scope!("t", "second");
            let panicked = std::panic::catch_unwind(|| {
                trace_scope!("t", "third");
                trace_scope!("t", "fourth");
                std::panic::resume_unwind(Box::new("on purpose"));
            });
            assert!(panicked.is_err());
            drop(second);
            trace_scope!("t", "fifth");
        });
        let rows = trace.rows("select depth, name, dur >= 0 as ended from slice order by ts, depth");
        assert_eq!(rows, "0\tfirst\t1\n0\tsecond\t1\n1\tthird\t1\n2\tfourth\t1\n0\tfifth\t1", "{format:?}");
    }
}

#[test]
fn only_what_the_filter_takes_is_recorded_and_evaluated() {
    for format in FORMATS {
        let mut evaluated = 0;
        let mut costly = |n: u32| {
            evaluated += 1;
            n
        };
        let trace = record_with(
            format,
            |b| b.categories("net,db.*,-db.verbose"),
            |session| {
                let mut all = |round: u32| {
                    trace_scope!("net", "net", round, n = costly(1));
                    trace_scope!("db.read", "read");
                    trace_scope!("db.verbose", "verbose", n = costly(2));
                    trace_scope!("gpu", "gpu", n = costly(3));
                };
                all(1);
                {
                    // Begun while its category is on, ended while it is off.
                    trace_scope!("net", "across");
                    session.set_categories("gpu").expect("a filter");
                    all(2);
                }
                session.set_categories("-net").expect("a filter");
                all(3);
            },
        );
        let rows = trace.rows("select name, count(*), min(dur) >= 0 from slice group by name order by name");
        assert_eq!(rows, "across\t1\t1\ngpu\t2\t1\nnet\t1\t1\nread\t2\t1\nverbose\t1\t1", "{format:?}");
        assert_eq!(evaluated, 4, "net once, gpu twice, verbose once");
    }
}

#[test]
fn recursion_deeper_than_a_chunk_of_ends_nests_exactly() {
    fn down(levels: u32) {
        trace_scope!("t", "level", levels);
        if levels > 1 {
            down(levels - 1);
        }
    }
    // 4000 bytes of a chunk hold the ends of at most 250 scopes.
    for format in FORMATS {
        let trace = record_with(format, |b| b.chunk_size(4096), |_| (0..3).for_each(|_| down(400)));
        let rows = trace.rows("select count(*), count(distinct depth), max(depth), sum(dur < 0) from slice");
        assert_eq!(rows, "1200\t400\t399\t0", "{format:?}");
        let wrong = trace.rows(
            "select count(*) from slice s join args a using (arg_set_id) \
             where a.key in ('levels', 'debug.levels') and a.int_value != 400 - s.depth",
        );
        assert_eq!(wrong, "0", "{format:?}");
    }
}

#[test]
fn strings_too_long_for_a_chunk_are_cut_with_a_mark() {
    let long = "é".repeat(20_000);
    for format in FORMATS {
        let trace = record(format, |_| {
            trace_scope!("t", "long", before = 1, long, after = 2);
        });
        let rows = trace.rows(
            "select replace(key, 'debug.', ''), length(string_value) > 1000, substr(string_value, -1, 1), int_value \
             from args where key like '%before' or key like '%long' or key like '%after' order by id",
        );
        assert_eq!(rows, "before\tNULL\tNULL\t1\nlong\t1\t…\tNULL\nafter\tNULL\tNULL\t2", "{format:?}");
    }
}

/// 1,500 callsites, beyond the 1,024 whose bits stand in the thread-local struct.
#[test]
fn more_callsites_than_the_nearest_bits_reach_have_their_own_names() {
    // Few at a time: the compiler takes minutes for a function with hundreds of guards.
    macro_rules! ten {
        ($($prefix:literal)*) => {$({
            trace_scope!("t", concat!($prefix, "0")); trace_scope!("t", concat!($prefix, "1"));
            trace_scope!("t", concat!($prefix, "2")); trace_scope!("t", concat!($prefix, "3"));
            trace_scope!("t", concat!($prefix, "4")); trace_scope!("t", concat!($prefix, "5"));
            trace_scope!("t", concat!($prefix, "6")); trace_scope!("t", concat!($prefix, "7"));
            trace_scope!("t", concat!($prefix, "8")); trace_scope!("t", concat!($prefix, "9"));
        })*};
    }
    macro_rules! hundred {
        ($($p:literal)*) => {$({
            fn hundred() {
                trace_instant!("t", $p);
                ten!("a" "b" "c" "d" "e" "f" "g" "h" "i" "j");
            }
            hundred();
        })*};
    }
    for format in FORMATS {
        let trace = record(format, |_| {
            for _ in 0..2 {
                hundred!("p1" "p2" "p3" "p4" "p5" "p6" "p7" "p8" "p9" "p10" "p11" "p12" "p13" "p14" "p15");
            }
        });
        let rows = trace.rows("select count(*), count(distinct name), sum(name is null) from slice");
        assert_eq!(rows, format!("{}\t115\t0", 2 * 15 * 101), "{format:?}");
        assert!(trace.rows(SLICES).lines().count() == 2 * 15 * 101);
    }
}

/// A scope with fifteen arguments, and more.
macro_rules! with_fifteen {
    ($name:literal $($more:tt)*) => {
        trace_scope!(
            "t", $name, a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, i = 9, j = 10, k = 11, l = 12, m = 13,
            n = 14, o = 15 $($more)*
        );
    };
}

#[test]
fn arguments_beyond_the_fifteen_of_fxt_are_counted() {
    for format in FORMATS {
        let trace = record(format, |_| {
            with_fifteen!("15");
            with_fifteen!("18", p = 16, q = 17, none = None::<u8>, s = 18);
        });
        let (arguments, lost) = if format == Format::Fxt { (30, 3) } else { (33, 0) };
        let of_ours = |line: &&str| line.starts_with('1'); // in FXT the loss is told by an event with arguments too
        assert_eq!(trace.arguments().lines().filter(of_ours).count(), arguments, "{format:?}");
        assert_eq!((trace.summary.lost.arguments, trace.summary.lost.total()), (lost, 0), "{format:?}");
        assert_eq!(trace.summary.records, 4);
    }
}
