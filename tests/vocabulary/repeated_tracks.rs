//! What happens on the same tracks again and again: a thread writes it another way once it has told of the
//! track, and nobody may see which way it was.

use std::sync::mpsc;

use hairline::{
    Format, OnTrack, Track, Unit, scope, trace_async, trace_begin, trace_counter, trace_end, trace_instant,
    trace_scope,
};
use hairline_tests::recording::{FORMATS, record, record_with};

const TIMES: i64 = 300;

// request  [ step [ wait ] · mark ]   [ step ... as often as TIMES says, one after the other
#[test]
fn an_interval_is_the_same_the_first_time_and_the_last() {
    for format in FORMATS {
        let trace = record(format, |_| {
            for n in 0..TIMES {
                trace_scope!("t", "own");
                let request = trace_async!("net", "request", n, text = "sixteen bytes ..", huge = u64::MAX);
                let mut step = trace_async!("net", "step", track: &request);
                drop(trace_async!("net", "wait", n = -n, track: &step));
                trace_instant!("net", "mark", n, track: &request);
                if n % 7 == 0 {
                    step.arg("late", n);
                }
            }
        });
        let rows = trace.rows(
            "select s.name, count(*), sum(s.dur < 0), count(distinct s.track_id), \
               (select count(*) from args a join slice x using (arg_set_id) where x.name = s.name and a.key not like 'legacy%'), \
               (select sum(int_value) from args a join slice x using (arg_set_id) where x.name = s.name and a.key like '%n') \
             from slice s group by s.name order by s.name",
        );
        let (args, sum) = (TIMES, TIMES * (TIMES - 1) / 2);
        let late = (TIMES + 6) / 7;
        let expected = format!(
            "mark\t{TIMES}\t0\t1\t{args}\t{sum}\nown\t{TIMES}\t0\t1\t0\tNULL\nrequest\t{TIMES}\t0\t1\t{}\t{sum}\n\
             step\t{TIMES}\t0\t1\t{late}\tNULL\nwait\t{TIMES}\t0\t1\t{args}\t-{sum}",
            3 * args
        );
        assert_eq!(rows, expected, "{format:?}");
        // Each lies within the one that it was put below, and after the one before it.
        let outside = trace.rows(
            "select count(*) from slice a join slice b on a.name = 'step' and b.name = 'request' \
             where a.ts < b.ts + b.dur and b.ts < a.ts + a.dur and not (b.ts <= a.ts and a.ts + a.dur <= b.ts + b.dur)",
        );
        assert_eq!(outside, "0", "{format:?}");
        let touching = trace.rows(
            "select count(*) from (select ts, lag(ts + dur) over (partition by name order by ts) as before from slice \
             where name = 'request') where before >= ts",
        );
        assert_eq!(
            touching, "0",
            "{format:?}: an interval begins after the end of the one before it on its track"
        );
    }
}

// track     [ slice · mark ]  ...        intervals beside it, and counters below the track and the process
#[test]
fn events_without_arguments_are_the_same_the_first_time_and_the_last() {
    // Names of all lengths on both sides of the most bytes that are copied at once.
    macro_rules! rounds {
        ($track:expr, $($name:literal)+) => {$(
            for n in 0..TIMES {
                trace_begin!("t", concat!("slice", $name), track: $track);
                trace_instant!("t", concat!("mark", $name), track: $track);
                trace_end!($track);
                drop(trace_async!("t", concat!("interval", $name)));
                trace_counter!("t", concat!("bytes", $name), n, unit: Unit::Bytes);
                trace_counter!("t", concat!("there", $name), n << 30, unit: "frames", track: $track);
                trace_counter!("t", concat!("half", $name), n as f64 / 2.0, track: $track);
            }
        )+};
    }
    const NAMES: i64 = 6;
    for format in FORMATS {
        let trace = record(format, |_| {
            let track = Track::new("queue");
            rounds!(&track, "" " of 16 bytes ...." " of 32 bytes ....................."
                " of 64 bytes ....................................................."
                " of 80 bytes ....................................................................."
                " of 128 bytes ....................................................................................................................");
        });
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
        let rows = trace.rows(
            "select case when s.name glob 'slice*' then 'slice' when s.name glob 'mark*' then 'mark' else 'interval' end as kind, \
               count(*), count(distinct s.name), sum(s.dur < 0), sum(s.category = 't'), min(s.depth), max(s.depth) \
             from slice s group by kind order by kind",
        );
        let all = NAMES * TIMES;
        assert_eq!(
            rows,
            format!(
                "interval\t{all}\t{NAMES}\t0\t{all}\t0\t0\nmark\t{all}\t{NAMES}\t0\t{all}\t1\t1\n\
                 slice\t{all}\t{NAMES}\t0\t{all}\t0\t0"
            ),
            "{format:?}"
        );
        let rows = trace.rows(
            "select substr(t.name, 1, 5) as kind, count(*), count(distinct t.name), cast(sum(c.value) as int), \
               count(distinct t.unit) \
             from counter c join counter_track t on c.track_id = t.id \
             where t.name glob 'bytes*' or t.name glob 'there*' or t.name glob 'half*' group by kind order by kind",
        );
        let sum = NAMES * TIMES * (TIMES - 1) / 2;
        let half = rows.lines().filter(|row| row.starts_with("half")).count();
        let sums: Vec<_> =
            rows.lines().map(|row| row.split('\t').take(4).collect::<Vec<_>>().join(" ")).collect();
        assert!(half > 0, "{format:?}: {rows}");
        for (kind, sum) in [("bytes", sum), ("there", sum << 30)] {
            assert!(sums.contains(&format!("{kind} {all} {NAMES} {sum}")), "{format:?} {kind}: {rows}");
        }
        // Each event of the track comes after the one before it.
        let touching = trace.rows(
            "select count(*) from (select ts, lag(ts) over (order by ts) as before from slice s join track t \
             on s.track_id = t.id where t.name = 'queue') where before >= ts",
        );
        assert_eq!(touching, "0", "{format:?}");
    }
}

/// More tracks than a thread keeps at hand.
const TRACKS: usize = 200;

#[test]
fn many_tracks_in_turn_keep_their_slices_apart() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let tracks: Vec<_> = (0..TRACKS).map(|n| Track::process().child(format!("track {n}"))).collect();
            for round in 0..5 {
                for (n, track) in tracks.iter().enumerate() {
                    trace_begin!("t", "outer", round, n, track: track);
                }
                for track in &tracks {
                    trace_scope!("t", "inner", text = "", track: track);
                    trace_instant!("t", "mark", track: track);
                }
                tracks.iter().for_each(|track| trace_end!(track));
            }
        });
        let rows = trace.rows(
            "select name, depth, count(*), sum(dur < 0), count(distinct track_id) from slice group by name, depth order by depth, name",
        );
        let all = 5 * TRACKS;
        assert_eq!(
            rows,
            format!(
                "outer\t0\t{all}\t0\t{TRACKS}\ninner\t1\t{all}\t0\t{TRACKS}\nmark\t2\t{all}\t0\t{TRACKS}"
            ),
            "{format:?}"
        );
        let wrong = trace.rows(
            "select count(*) from slice s join args a using (arg_set_id) join track t on s.track_id = t.id \
             where a.key like '%n' and a.key not like '%round' and t.name != 'track ' || a.display_value",
        );
        assert_eq!(wrong, "0", "{format:?}: each slice is on the track that it names");
    }
}

// this thread   [ begins ]   [ begins ] ...
// the other            ends          ends
#[test]
fn what_one_thread_begins_another_one_ends_again_and_again() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let (give, take) = mpsc::sync_channel(0);
            let other = std::thread::spawn(move || {
                for (interval, slice) in take {
                    drop(slice);
                    drop(interval);
                }
            });
            let track = Track::new("shared");
            for n in 0..TIMES {
                let interval = trace_async!("t", "interval", n);
                let slice = scope!("t", "slice", n, track: &track);
                give.send((interval, slice)).unwrap();
            }
            drop(give);
            other.join().unwrap();
        });
        let rows = trace.rows(
            "select name, count(*), sum(dur < 0) from slice where category = 't' group by name order by name",
        );
        assert_eq!(rows, format!("interval\t{TIMES}\t0\nslice\t{TIMES}\t0"), "{format:?}");
    }
}

// One place in the code, and so one lane: below an interval that is left out, then below the process
#[test]
fn a_lane_that_was_an_interval_of_its_own_is_described_before_it_is_a_track() {
    fn job(on: &impl OnTrack) {
        drop(trace_async!("t", "job", track: on));
    }
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.categories("*,-off"),
            |_| {
                for _ in 0..3 {
                    job(&trace_async!("off", "outer"));
                    job(&Track::process());
                }
            },
        );
        let rows = trace.rows(
            "select s.name, count(*), count(distinct s.track_id), count(p.upid) from slice s \
             left join process_track p on s.track_id = p.id group by s.name",
        );
        // FXT's importer knows no process of an interval.
        let expected = if format == Format::Fxt { "job\t6\t2\t3" } else { "job\t6\t1\t6" };
        assert_eq!(rows, expected, "{format:?}");
    }
}

/// Texts around the longest that FXT holds in one argument, and beyond what a chunk does.
#[test]
fn a_long_text_on_a_track_is_cut_as_anywhere_else() {
    const LENGTHS: [usize; 6] = [0, 1, 31_999, 32_000, 32_001, 100_000];
    for format in FORMATS {
        let trace = record(format, |_| {
            let track = Track::process().child("texts");
            let texts = LENGTHS.map(|len| "x".repeat(len));
            for _ in 0..2 {
                for text in &texts {
                    trace_instant!("t", "on the track", text = text.as_str(), track: &track);
                    trace_instant!("t", "on the thread", text = text.as_str());
                    drop(trace_async!("t", "interval", text = text.as_str()));
                }
            }
        });
        let lengths = |name: &str| {
            trace.rows(&format!(
                "select length(a.string_value) from slice s join args a using (arg_set_id) where s.name = '{name}' and a.key like '%text' order by s.ts"
            ))
        };
        let expected = lengths("on the thread");
        assert_eq!(expected.lines().count(), 2 * LENGTHS.len(), "{format:?}");
        assert_eq!(lengths("interval"), expected, "{format:?}");
        // What FXT has no track for is a packet, which holds longer texts.
        let on_track = lengths("on the track");
        assert_eq!(on_track.lines().count(), 2 * LENGTHS.len(), "{format:?}");
    }
}

/// Names around the longest that a thread which knows the track writes at once into an FXT trace, and
/// categories of all sorts.
#[test]
fn names_and_categories_on_a_track_are_whole_at_any_length() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let tracks = [Track::process().child("track"), Track::thread()];
            for track in [&tracks[0], &tracks[0], &tracks[0], &tracks[1], &tracks[1]] {
                trace_instant!("t", "n", track: track);
                trace_instant!("t", "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", track: track);
                trace_instant!("t", "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", track: track);
                trace_instant!("t", "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", track: track);
                trace_instant!("t", "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", track: track);
                trace_instant!("one, two", "several", track: track);
                trace_instant!("", "without", track: track);
                trace_scope!("t", "slice", track: track);
            }
        });
        let rows = trace.rows(
            "select length(slice.name), category, count(*), sum(dur < 0) from slice join track t on track_id = t.id where t.name = 'track' \
             group by slice.name, category order by length(slice.name), category",
        );
        let rows_of = |rows: [(i32, &str); 8]| {
            rows.map(|(len, category)| format!("{len}\t{category}\t3\t0")).join("\n")
        };
        let all =
            [(1, "t"), (5, "t"), (7, "NULL"), (7, "one,two"), (82, "t"), (83, "t"), (84, "t"), (200, "t")];
        assert_eq!(rows, rows_of(all), "{format:?}");
        let on_thread =
            trace.rows("select count(*), sum(dur < 0) from slice join thread_track t on track_id = t.id");
        assert_eq!(on_thread, format!("{}\t0", 2 * all.len()), "{format:?}");
    }
}
