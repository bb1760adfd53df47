//! Trace Event Format as this project writes it: what trace_processor shows of each phase.

use hairline_formats::trace_event_json::{
    Args, Event, Id, Id2, InstantScope, Item, JsonReader, JsonWriter, Phase, TimeUnit,
};
use hairline_formats::{Entries, Value};
use hairline_tests::judge::rows;

const TRACKS: &str = "select s.ts, s.dur, s.category, s.name, p.pid, t.tid from slice s \
     left join thread_track tt on s.track_id = tt.id left join thread t using (utid) \
     left join process_track pt on s.track_id = pt.id left join process p on p.upid = ifnull(t.upid, pt.upid) order by s.ts, s.id";

/// An event of thread 9 of process 7, of the category "c", named "e".
fn event(ph: Phase, us: i64) -> Event<'static> {
    Event {
        ph: Some(ph),
        name: "e".into(),
        cat: "c".into(),
        ts: Some(us * 1000),
        pid: Some(Id::Number(7)),
        tid: Some(Id::Number(9)),
        ..Event::default()
    }
}

fn named(ph: Phase, us: i64, name: &str) -> Event<'_> {
    Event { name: name.into(), ..event(ph, us) }
}

fn array(events: &[Event<'_>]) -> Vec<u8> {
    let mut writer = JsonWriter::array(Vec::new());
    events.iter().for_each(|event| writer.event(event).unwrap());
    writer.finish().unwrap()
}

#[track_caller]
fn shows(events: &[Event<'_>], sql: &str, expected: &[&str]) {
    let [found] = rows(&array(events), [sql]);
    assert_eq!(found.lines().collect::<Vec<_>>(), expected);
}

/// The importer's times are floating point numbers, exact up to 2^51 ns, which is 26 days; those since 1970
/// are up to 0.1 us off.
#[test]
fn slices_have_their_times_to_the_nanosecond() {
    use Phase::{Begin, Complete, End};
    let unnamed_end = Event { name: "".into(), cat: "".into(), ..event(End, 12) };
    let complete = Event { ts: Some(1_001), dur: Some(2_999), ..named(Complete, 0, "complete") };
    let inner = Event { ts: Some(2_000), dur: Some(0), ..named(Complete, 0, "é\"\\") };
    let far = Event { ts: Some((1 << 51) - 1), dur: Some(1), ..named(Complete, 0, "far") };
    let events = [named(Begin, 10, "begin"), unnamed_end, complete, inner, far];
    let expected = [
        "1001\t2999\tc\tcomplete\t7\t9",
        "2000\t0\tc\té\"\\\\\t7\t9",
        "10000\t2000\tc\tbegin\t7\t9",
        "2251799813685247\t1\tc\tfar\t7\t9",
    ];
    shows(&events, TRACKS, &expected);
}

#[test]
fn instants_reach_as_far_as_they_say() {
    let of = |us, s| Event { s, ..event(Phase::Instant, us) };
    let events = [
        of(1, None),
        of(2, Some(InstantScope::Thread)),
        of(3, Some(InstantScope::Process)),
        of(4, Some(InstantScope::Global)),
        event(Phase::InstantOld, 5),
        event(Phase::Mark, 6),
    ];
    shows(
        &events,
        TRACKS,
        &[
            "1000\t0\tc\te\t7\t9",
            "2000\t0\tc\te\t7\t9",
            "3000\t0\tc\te\t7\tNULL",
            "4000\t0\tc\te\tNULL\tNULL",
            "5000\t0\tc\te\t7\t9",
            "6000\t0\tc\te\t7\t9",
        ],
    );
}

#[test]
fn counters_have_a_series_for_each_argument() {
    let of = |us, args| Event { args: Args::List(args), ..event(Phase::Counter, us) };
    let events = [
        of(1, &[("a", Value::I64(5)), ("b", Value::F64(0.5))]),
        of(2, &[("a", Value::I64(-6))]),
        Event { id: Some(Id::Number(3)), ..of(3, &[("a", Value::U64(1))]) },
    ];
    let sql = "select c.ts, t.name, c.value from counter c join counter_track t on c.track_id = t.id order by c.ts, t.name";
    shows(&events, sql, &["1000\te a\t5.0", "1000\te b\t0.5", "2000\te a\t-6.0", "3000\te a\t1.0"]);
}

#[test]
fn asyncs_are_intervals_and_the_deprecated_ones_are_passed_over() {
    use Phase::{AsyncBegin, AsyncEnd, AsyncFinish, AsyncInstant, AsyncStart, AsyncStepInto, AsyncStepPast};
    let of = |ph, us, id| Event { id: Some(Id::Text(id)), ..event(ph, us) };
    let of = |ph, us, id: &'static str| of(ph, us, id.into());
    let local = |ph, us| Event {
        id2: Id2 { local: Some(Id::Text("0x3".into())), global: None },
        ..named(ph, us, "local")
    };
    let events = [
        of(AsyncBegin, 1, "0x1"),
        of(AsyncInstant, 2, "0x1"),
        of(AsyncEnd, 4, "0x1"),
        of(AsyncStart, 11, "0x2"),
        of(AsyncStepInto, 12, "0x2"),
        of(AsyncStepPast, 13, "0x2"),
        of(AsyncFinish, 14, "0x2"),
        local(AsyncBegin, 21),
        local(AsyncEnd, 22),
    ];
    shows(
        &events,
        TRACKS,
        &["1000\t3000\tc\te\tNULL\tNULL", "2000\t0\tc\te\tNULL\tNULL", "21000\t1000\tc\tlocal\t7\tNULL"],
    );
}

#[test]
fn flows_go_from_slice_to_slice() {
    use Phase::{Complete, FlowEnd, FlowStart, FlowStep};
    let slice = |us, name| Event { dur: Some(10_000), ..named(Complete, us, name) };
    let flow = |ph, us| Event { id: Some(Id::Number(5)), bp: "e".into(), ..event(ph, us) };
    let bound = |us, name, flow_in, flow_out| Event {
        bind_id: Some(Id::Text("0x77".into())),
        flow_in,
        flow_out,
        ..slice(us, name)
    };
    let events = [
        slice(100, "one"),
        flow(FlowStart, 101),
        slice(200, "two"),
        flow(FlowStep, 201),
        slice(300, "three"),
        flow(FlowEnd, 301),
        bound(400, "four", false, true),
        bound(500, "five", true, true),
        bound(600, "six", true, false),
    ];
    let sql = "select o.name, i.name from flow join slice o on o.id = slice_out join slice i on i.id = slice_in order by o.ts";
    shows(&events, sql, &["one\ttwo", "two\tthree", "four\tfive", "five\tsix"]);
}

#[test]
fn metadata_names_processes_and_threads() {
    let of = |name, args| Event { args: Args::List(args), ts: None, ..named(Phase::Metadata, 0, name) };
    let events = [
        of("process_name", &[("name", Value::Str("app"))]),
        of("process_labels", &[("labels", Value::Str("a,b"))]),
        of("process_sort_index", &[("sort_index", Value::I64(-5))]),
        of("thread_name", &[("name", Value::Str("main"))]),
        of("thread_sort_index", &[("sort_index", Value::I64(5))]),
        of("unknown", &[]),
        event(Phase::Instant, 1),
    ];
    let sql = "select p.pid, p.name, t.tid, t.name from thread t join process p using (upid) where p.pid = 7 and t.tid = 9";
    shows(&events, sql, &["7\tapp\t9\tmain"]);
}

struct Nested;

impl Entries for Nested {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        show("number", Value::I64(1));
        show("list", Value::Array(&Elements));
    }
}

struct Elements;

impl Entries for Elements {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        show("", Value::Str("text"));
        show("", Value::F64(0.5));
    }
}

#[test]
fn arguments_of_each_kind_have_their_values() {
    let args = [
        ("bool", Value::Bool(true)),
        ("int", Value::I64(i64::MIN)),
        ("uint", Value::U64(1 << 40)),
        ("whole", Value::F64(2.0)),
        ("half", Value::F64(-0.5)),
        ("nan", Value::F64(f64::NAN)),
        ("string", Value::Str("a\"\\\n\u{1}é𝄞")),
        ("pointer", Value::Pointer(0xabc)),
        ("koid", Value::Koid(12)),
        ("blob", Value::Blob(&[0, 255])),
        ("null", Value::Null),
        ("dict", Value::Dict(&Nested)),
    ];
    let events = [Event { dur: Some(1), args: Args::List(&args), ..event(Phase::Complete, 1) }];
    let sql = "select a.key, a.value_type, a.display_value from slice s join args a using (arg_set_id) order by a.id";
    shows(
        &events,
        sql,
        &[
            "args.bool\tbool\ttrue",
            "args.int\tint\t-9223372036854775808",
            "args.uint\tint\t1099511627776",
            "args.whole\treal\t2.0",
            "args.half\treal\t-0.5",
            "args.nan\tstring\tNaN",
            "args.string\tstring\ta\"\\\\\\n\u{1}é𝄞",
            "args.pointer\tstring\t0xabc",
            "args.koid\tint\t12",
            "args.blob\tstring\t00ff",
            "args.dict.number\tint\t1",
            "args.dict.list[0]\tstring\ttext",
            "args.dict.list[1]\treal\t0.5",
        ],
    );
}

/// It decodes the escapes only of text in which there is a quote.
#[test]
fn a_backslash_at_the_end_of_a_text_does_not_end_the_trace() {
    let events = [named(Phase::Instant, 1, "C:\\a\\"), named(Phase::Instant, 2, "\"\\")];
    shows(
        &events,
        "select length(name), substr(name, 1, 3) from slice order by ts",
        &["11\tC:\\\\", "2\t\"\\\\"],
    );
}

#[test]
fn phases_that_the_importer_passes_over_do_no_harm() {
    use Phase::{
        ClockSync, ContextEnter, ContextLeave, LinkIds, MemoryDumpGlobal, MemoryDumpProcess, ObjectCreated,
        ObjectDeleted, ObjectSnapshot, Sample,
    };
    let of = |ph| Event { id: Some(Id::Text("0x1".into())), ..event(ph, 1) };
    let phases = [
        ClockSync,
        ContextEnter,
        ContextLeave,
        LinkIds,
        MemoryDumpGlobal,
        MemoryDumpProcess,
        ObjectCreated,
        ObjectDeleted,
        ObjectSnapshot,
        Sample,
        Phase::Other('Z'),
    ];
    for ph in phases {
        shows(&[of(ph), event(Phase::Instant, 2)], TRACKS, &["2000\t0\tc\te\t7\t9"]);
    }
}

#[test]
fn the_object_form_and_a_trace_without_its_end_load_too() {
    let instant = event(Phase::Instant, 1);
    let expected = "1000\t0\tc\te\t7\t9";
    let mut writer = JsonWriter::object(Vec::new());
    writer.display_time_unit(TimeUnit::Nanoseconds).unwrap();
    writer.member("otherData", &Value::Dict(&Nested)).unwrap();
    writer.event(&instant).unwrap();
    writer.member("stackFrames", &Value::Dict(&Nested)).unwrap();
    assert_eq!(rows(&writer.finish().unwrap(), [TRACKS]), [expected]);

    let mut cut = Vec::new();
    let mut writer = JsonWriter::array(&mut cut);
    writer.event(&instant).unwrap();
    writer.flush().unwrap();
    drop(writer);
    assert_eq!(rows(&cut, [TRACKS]), [expected]);
}

#[test]
fn what_was_read_and_written_again_shows_the_same() {
    let original = r#"{"traceEvents": [
        {"name":"a","cat":"x,y","ph":"X","ts":"1.5","dur":2e1,"pid":7,"tid":9,"args":{"n":{"m":[1,2.5,null,"\u00e9𝄞"]}}},
        {"name":"b","ph":"i","ts":3,"pid":7,"tid":9,"s":"p"},
        {"name":"c","ph":"b","id":"0x1","cat":"x","ts":4,"pid":7,"tid":9}, {"name":"c","ph":"e","id":"0x1","cat":"x","ts":5,"pid":7,"tid":9},
        {"name":"thread_name","ph":"M","pid":7,"tid":9,"args":{"name":"main"}}], "displayTimeUnit": "ns"}"#;
    let mut reader = JsonReader::new(original.as_bytes());
    let mut writer = JsonWriter::object(Vec::new());
    while let Some((_, item)) = reader.next().unwrap() {
        match item {
            Item::Event(event) => writer.event(&event).unwrap(),
            Item::Member { key, value } => value.with(|value| writer.member(&key, &value)).unwrap(),
            other => panic!("{other:?}"),
        }
    }
    let sql = [
        TRACKS,
        "select key, display_value from args order by id",
        "select tid, name from thread order by tid",
    ];
    let again = rows(&writer.finish().unwrap(), sql);
    assert_eq!(again, rows(original.as_bytes(), sql));
    assert!(again[0].lines().count() == 3 && again[1].contains("args.n.m[2]"), "{again:?}");
}
