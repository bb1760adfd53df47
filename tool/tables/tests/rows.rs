//! Rows of small traces, as a sink gets them.

use std::collections::BTreeMap;
use std::io;

use hairline_convert::{Error, TraceReader, open};
use hairline_tables::{Batch, Data, Sink, Source, Summary, TableId, Wanted, read, read_at_once};

struct Json<'j> {
    text: &'j str,
    is_repeatable: bool,
}

impl Source for Json<'_> {
    fn open(&mut self) -> Result<Box<dyn TraceReader + '_>, Error> {
        open(self.text.as_bytes(), None)
    }

    fn is_repeatable(&self) -> bool {
        self.is_repeatable
    }
}

/// The rows of each table, as text: a cell for each column that is wanted.
#[derive(Default)]
struct Rows(BTreeMap<TableId, Vec<String>>);

impl Sink for Rows {
    fn batch(&mut self, batch: &mut Batch) -> io::Result<()> {
        assert_eq!(batch.columns.len(), batch.table.table().columns.len());
        let rows = self.0.entry(batch.table).or_default();
        for row in 0..batch.rows {
            let cells = batch.columns.iter().flatten().map(|values| {
                assert!(values.data.len() == batch.rows);
                if values.is_valid.get(row) == Some(&false) {
                    return "-".to_owned();
                }
                match &values.data {
                    Data::Int(all) => all[row].to_string(),
                    Data::Float(all) => all[row].to_string(),
                    Data::Bool(all) => all[row].to_string(),
                    Data::Text { codes, texts } => texts.get(codes[row]).to_owned(),
                }
            });
            rows.push(cells.collect::<Vec<_>>().join(" "));
        }
        Ok(())
    }
}

fn rows_of(text: &str, wanted: &Wanted, is_repeatable: bool) -> (Rows, Summary) {
    let mut rows = Rows::default();
    let summary =
        read(&mut Json { text, is_repeatable }, wanted, tempfile::tempfile, &mut rows).expect("a trace");
    (rows, summary)
}

fn rows(text: &str, table: TableId, columns: &[&str]) -> Vec<String> {
    let wanted = Wanted::nothing().columns(table, columns);
    let (mut rows, summary) = rows_of(text, &wanted, true);
    let rows = rows.0.remove(&table).unwrap_or_default();
    assert_eq!(summary.rows[table as usize], rows.len() as u64);
    rows
}

/// Slices that come when they end, an instant before the slice that it is in, and flows.
const TRACE: &str = r#"[
{"name":"process_name","ph":"M","pid":1,"tid":1,"args":{"name":"web"}},
{"name":"note","cat":"app","ph":"i","ts":3,"pid":1,"tid":1,"s":"t"},
{"name":"inner","cat":"db","ph":"X","ts":2,"dur":3,"pid":1,"tid":1,"args":{"big":18446744073709551615}},
{"name":"outer","cat":"app,net","ph":"X","ts":0,"dur":10,"pid":1,"tid":1,"args":{"n":-1,"list":[1,{"a":"b"}],"ok":true}},
{"name":"arrow","cat":"f","ph":"s","id":7,"ts":4,"pid":1,"tid":1},
{"name":"later","cat":"app","ph":"B","ts":20,"pid":1,"tid":2},
{"name":"arrow","cat":"f","ph":"f","bp":"e","id":7,"ts":21,"pid":1,"tid":2},
{"name":"later","ph":"E","ts":25,"pid":1,"tid":2,"args":{"result":2.5}},
{"name":"open","cat":"app","ph":"B","ts":30,"pid":1,"tid":2}
]"#;

/// The ids of the slices, in order of time.
fn ids() -> Vec<String> {
    let rows = rows(TRACE, TableId::Slice, &["id", "start"]);
    rows.iter().map(|row| row.split(' ').next().expect("an id").to_owned()).collect()
}

#[test]
fn slices_have_parents_depths_and_self_times() {
    let columns = ["start", "duration", "self_time", "depth", "category", "name"];
    let expected = [
        "0 10000 7000 0 app,net outer",
        "2000 3000 3000 1 db inner",
        "20000 5000 5000 0 app later",
        "30000 - - 0 app open",
    ];
    assert_eq!(rows(TRACE, TableId::Slice, &columns), expected);
    let owners = ["start", "name", "tid", "pid", "process_name", "track_name"];
    assert_eq!(rows(TRACE, TableId::Slice, &owners)[1], "2000 inner - 1 1 web");
    let ids = ids();
    let parents = rows(TRACE, TableId::Slice, &["start", "parent"]);
    assert_eq!(parents, ["0 -".to_owned(), format!("2000 {}", ids[0]), "20000 -".into(), "30000 -".into()]);
}

#[test]
fn an_instant_is_in_its_slice_even_if_that_comes_later() {
    let columns = ["time", "depth", "category", "name"];
    assert_eq!(rows(TRACE, TableId::Instant, &columns), ["3000 2 app note"]);
    assert_eq!(rows(TRACE, TableId::Instant, &["parent"])[0], ids()[1]);
}

#[test]
fn arguments_have_types_and_those_of_an_end_belong_to_its_slice() {
    let values = ["value_type", "int_value", "float_value", "bool_value", "text_value"];
    let columns = [&["of", "flat_key", "key"][..], &values].concat();
    let mut all = rows(TRACE, TableId::Arg, &columns);
    all.sort();
    assert_eq!(
        all,
        [
            "slice big big uint -1 - - -",
            "slice list list[0] int 1 - - -",
            "slice list.a list[1].a text - - - b",
            "slice n n int -1 - - -",
            "slice ok ok bool - - true -",
            "slice result result float - 2.5 - -",
        ]
    );
}

#[test]
fn an_arrow_leads_from_slice_to_slice() {
    assert_eq!(rows(TRACE, TableId::Flow, &["time", "time_out"]), ["21000 4000"]);
    let ids = ids();
    let arrow = format!("{} {}", ids[1], ids[2]);
    assert_eq!(rows(TRACE, TableId::Flow, &["slice_out", "slice_in"]), [arrow]);
    let of_end = rows(TRACE, TableId::Arg, &["owner", "key"]);
    assert!(of_end.contains(&format!("{} result", ids[2])), "{of_end:?}");
}

/// What is wanted does not change what is shown.
#[test]
fn a_part_of_the_tables_has_the_same_rows() {
    let (all, _) = rows_of(TRACE, &Wanted::everything(), true);
    for table in TableId::ALL {
        let (one, _) = rows_of(TRACE, &Wanted::nothing().table(table), true);
        assert_eq!(one.0.get(&table), all.0.get(&table), "{table:?}");
        let (counted, summary) = rows_of(TRACE, &Wanted::nothing().columns(table, &[]), true);
        let count = all.0.get(&table).map_or(0, Vec::len);
        assert_eq!(
            (counted.0.get(&table).map_or(0, Vec::len), summary.rows[table as usize]),
            (count, count as u64)
        );
    }
    // The instant's slices are known only after a first reading.
    let (piped, _) = rows_of(TRACE, &Wanted::nothing().table(TableId::Slice), false);
    assert_eq!(piped.0[&TableId::Slice], all.0[&TableId::Slice]);
}

#[test]
fn a_filter_keeps_what_belongs_to_its_slices() {
    let wanted = Wanted::everything().category(|category| category == "db");
    let (all, _) = rows_of(TRACE, &wanted, true);
    let count = |table| all.0.get(&table).map_or(0, Vec::len);
    let counts = [TableId::Slice, TableId::Instant, TableId::Arg, TableId::Flow].map(count);
    assert_eq!(counts, [1, 0, 1, 1], "the arrow leaves a chosen slice");
}

/// Begins in reverse order of time, more than the builder of slices sorts by itself.
#[test]
fn slices_far_from_the_order_of_time_are_sorted() {
    let text = pairs((0..70_000).rev());
    let durations = rows(&text, TableId::Slice, &["duration"]);
    assert_eq!(durations.len(), 70_000);
    assert!(durations.iter().all(|duration| duration == "5000"));
}

/// Pairs of a begin and an end, 10 us apart.
fn pairs(times: impl Iterator<Item = u32>) -> String {
    let events = times.map(|n| {
        let (begin, end) = (10 * n, 10 * n + 5);
        format!(
            r#"{{"name":"a","ph":"B","ts":{begin},"pid":1,"tid":1}},{{"name":"a","ph":"E","ts":{end},"pid":1,"tid":1}}"#
        )
    });
    format!("[{}]", events.collect::<Vec<_>>().join(","))
}

#[test]
fn one_reading_shows_what_two_show_or_nothing() {
    let at_once = |text: &str, wanted: &Wanted| {
        let mut rows = Rows::default();
        let summary = read_at_once(&mut Json { text, is_repeatable: true }, wanted, &mut rows)?;
        Ok((rows, summary))
    };
    let columns = TableId::Slice.table().columns.iter().map(|column| column.name);
    let known: Vec<_> = columns.filter(|name| !["running", "waiting"].contains(name)).collect();
    let in_order = pairs(0..1000);
    for columns in [&known[..], &["name", "duration"], &["track_name", "parent"], &[]] {
        let wanted = Wanted::nothing().columns(TableId::Slice, columns).table(TableId::Thread);
        let (rows, summary) = at_once(&in_order, &wanted).expect("in order");
        let (both, two) = rows_of(&in_order, &wanted, true);
        assert_eq!((rows.0, summary.rows), (both.0, two.rows), "{columns:?}");
    }
    let slices = Wanted::nothing().columns(TableId::Slice, &["start"]);
    let named = r#",{"name":"process_name","ph":"M","pid":1,"tid":1,"args":{"name":"web"}}]"#;
    let named_late = in_order.replace(']', named);
    for (text, wanted) in [
        (&*pairs((0..70_000).rev()), &slices),
        (&named_late, &slices),
        (TRACE, &slices),
        (&in_order, &Wanted::nothing().table(TableId::Arg)),
        (&in_order, &Wanted::nothing().columns(TableId::Slice, &["running"])),
    ] {
        let result: Result<(Rows, Summary), _> = at_once(text, wanted);
        assert!(matches!(result, Err(hairline_tables::Error::NotAtOnce)), "{}", &text[..70]);
    }
}

#[test]
fn an_error_of_the_sink_ends_the_reading() {
    struct Full;
    impl Sink for Full {
        fn batch(&mut self, _: &mut Batch) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }
    let mut json = Json { text: TRACE, is_repeatable: true };
    let result = read(&mut json, &Wanted::everything(), tempfile::tempfile, &mut Full);
    assert!(matches!(result, Err(hairline_tables::Error::Sink(e)) if e.kind() == io::ErrorKind::StorageFull));
}

#[test]
fn what_is_no_trace_is_an_error() {
    let mut json = Json { text: "no trace", is_repeatable: true };
    let result = read(&mut json, &Wanted::everything(), tempfile::tempfile, &mut Rows::default());
    assert!(matches!(result, Err(hairline_tables::Error::Read(Error::UnknownFormat))));
}

/// The end of an async slice is written before its begin.
#[test]
fn events_of_a_track_that_several_threads_write_are_put_in_order() {
    let text = r#"[{"name":"a","cat":"c","ph":"e","id":1,"ts":20,"pid":1,"tid":1},
        {"name":"a","cat":"c","ph":"b","id":1,"ts":10,"pid":1,"tid":1}]"#;
    for is_repeatable in [true, false] {
        let wanted = Wanted::nothing().columns(TableId::Slice, &["start", "duration"]);
        let (rows, summary) = rows_of(text, &wanted, is_repeatable);
        assert_eq!(rows.0[&TableId::Slice], ["10000 10000"], "{is_repeatable}");
        assert!(summary.left_out.is_empty(), "{:?}", summary.left_out);
    }
}

/// As in trace_processor: a flow's end without `bp: "e"` leads to the next slice or instant of its thread.
#[test]
fn a_flow_leads_to_what_is_next_in_time_not_in_the_file() {
    let next = |middle: &str| {
        let text = format!(
            r#"[{{"name":"a","ph":"X","ts":1,"dur":3,"pid":1,"tid":1}},
            {{"name":"early","ph":"X","ts":20,"dur":3,"pid":1,"tid":2}},
            {{"name":"f","ph":"s","id":7,"ts":2,"pid":1,"tid":1}},
            {{"name":"f","ph":"f","id":7,"ts":10,"pid":1,"tid":2}},
            {{"name":"late","ph":"X","ts":30,"dur":3,"pid":1,"tid":2}},{middle}
            {{"name":"before","ph":"X","ts":5,"dur":1,"pid":1,"tid":2}}]"#
        );
        let wanted = Wanted::nothing()
            .columns(TableId::Flow, &["slice_in"])
            .columns(TableId::Slice, &["id", "name"])
            .columns(TableId::Instant, &["id", "name"]);
        let (mut all, summary) = rows_of(&text, &wanted, true);
        assert!(summary.left_out.is_empty(), "{:?}", summary.left_out);
        let [id] = &all.0[&TableId::Flow][..] else { panic!("one arrow") };
        let id = format!("{id} ");
        let named = [TableId::Slice, TableId::Instant].map(|table| all.0.remove(&table).unwrap_or_default());
        named.concat().iter().find_map(|row| row.strip_prefix(&id)).map(str::to_owned)
    };
    assert_eq!(next("").as_deref(), Some("early"));
    let instant = r#"{"name":"moment","ph":"i","ts":15,"pid":1,"tid":2,"s":"t"},"#;
    assert_eq!(next(instant).as_deref(), Some("moment"));
}

#[test]
fn a_flow_that_leads_to_nothing_is_counted() {
    let text = r#"[{"name":"a","ph":"X","ts":1,"dur":3,"pid":1,"tid":1},
        {"name":"f","ph":"s","id":7,"ts":2,"pid":1,"tid":1},
        {"name":"f","ph":"f","id":7,"ts":10,"pid":1,"tid":1},
        {"name":"f","ph":"f","id":7,"ts":11,"pid":1,"tid":1}]"#;
    for is_repeatable in [true, false] {
        let (all, summary) = rows_of(text, &Wanted::everything(), is_repeatable);
        assert!(!all.0.contains_key(&TableId::Flow));
        let loose = summary.left_out.iter().find(|(what, _)| what.contains("lead to no arrow"));
        assert_eq!(loose.map(|(_, count)| count), Some(2), "{:?}", summary.left_out);
    }
}

/// A name of 1 MB, and ten thousand times a value: 10 GB if each had its own.
#[test]
fn nested_values_with_a_long_name_take_little_memory() {
    let (name, zeros) = ("x".repeat(1 << 20), "0,".repeat(9_999) + "0");
    for (begin, end) in
        [("{}", format!(r#"{{"{name}":[{zeros}]}}"#)), (&*format!(r#"{{"{name}":[{zeros}]}}"#), "{}".into())]
    {
        let text = format!(
            r#"[{{"name":"a","ph":"B","ts":1,"pid":1,"tid":1,"args":{begin}}},
            {{"name":"a","ph":"E","ts":2,"pid":1,"tid":1,"args":{end}}}]"#
        );
        let (all, summary) = rows_of(&text, &Wanted::nothing().columns(TableId::Arg, &["key"]), true);
        assert_eq!(all.0[&TableId::Arg].len(), 10_000);
        assert!(all.0[&TableId::Arg].iter().all(|key| key.len() == 1 << 10));
        let cut = summary.left_out.iter().find(|(what, _)| what.contains("nested names"));
        assert_eq!(cut.map(|(_, count)| count), Some(10_000), "{:?}", summary.left_out);
    }
}

/// Ends whose begins do not come.
#[test]
fn arguments_of_ends_take_bounded_memory() {
    let long = "x".repeat(1 << 20);
    let end = |n: u32| {
        format!(
            r#"{{"name":"a","cat":"c","id":{n},"ph":"e","ts":{n},"pid":1,"tid":1,"args":{{"text":"{long}"}}}}"#
        )
    };
    let text = format!("[{}]", (1..40).map(end).collect::<Vec<_>>().join(","));
    let (_, summary) = rows_of(&text, &Wanted::nothing().table(TableId::Arg), true);
    let count = |words: &str| summary.left_out.iter().find(|(what, _)| what.contains(words)).map(|(_, n)| n);
    assert_eq!(count("have no memory"), Some(8), "{:?}", summary.left_out);
    assert_eq!(count("but without a begin"), Some(31), "{:?}", summary.left_out);
}
