//! TrackEvent: what an event may say.

use hairline_formats::track_event::{
    self as te, Correlation, Event, EventType, Interned, InternedKind, Location, LogMessage, Name, Priority,
    ProcessTrack, SequenceId, SourceLocation, ThreadTrack, TrackUuid, interned, process_descriptor,
    thread_descriptor,
};
use hairline_formats::{Entries, Value};

use super::{ARGUMENTS, instant, on_track, root, rows, start};

/// An event of the sequence's own track and state.
fn own(kind: EventType) -> Event<'static> {
    Event { name: Some(Name::Text("e")), ..Event::new(SequenceId(1), kind, 5) }
}

struct Dict;

impl Entries for Dict {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        show("number", Value::I64(1));
        show("list", Value::Array(&Array));
        show("null", Value::Null);
        show("empty", Value::Dict(&Empty));
    }
}

struct Array;

impl Entries for Array {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        show("", Value::Str("text"));
        show("", Value::Null);
        show("", Value::Dict(&Leaf));
        show("", Value::Array(&Empty));
    }
}

struct Leaf;

impl Entries for Leaf {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        show("half", Value::F64(0.5));
    }
}

struct Empty;

impl Entries for Empty {
    fn each(&self, _: &mut dyn FnMut(&str, Value<'_>)) {}
}

#[test]
fn each_kind_of_annotation_has_its_type_and_value() {
    let name = Name::Text;
    let annotations = [
        (name("bool"), Value::Bool(true)),
        (name("int"), Value::I64(i64::MIN)),
        (name("uint"), Value::U64(1 << 40)),
        (name("uint above int"), Value::U64(u64::MAX)),
        (name("double"), Value::F64(0.5)),
        (name("string"), Value::Str("text")),
        (name("interned"), Value::Interned { iid: 2, text: "not written" }),
        (Name::Iid(1), Value::I64(3)),
        (name("pointer"), Value::Pointer(0xabc)),
        (name("koid"), Value::Koid(12)),
        (name("blob"), Value::Blob(&[0, 255])),
        (name("null"), Value::Null),
        (name("dict"), Value::Dict(&Dict)),
        (name("array"), Value::Array(&Array)),
    ];
    let mut trace = Vec::new();
    root(&mut trace, 10, "root");
    start(&mut trace, 10, &[]);
    let strings = [
        Interned::Text { kind: InternedKind::AnnotationName, iid: 1, name: "interned name" },
        Interned::Text { kind: InternedKind::AnnotationText, iid: 2, name: "interned text" },
    ];
    interned(&mut trace, SequenceId(1), &strings);
    te::event(&mut trace, &Event { annotations: &annotations, ..own(EventType::Instant) });
    let expected = [
        "e\tdebug.bool\tbool\t1\ttrue",
        "e\tdebug.int\tint\t-9223372036854775808\t-9223372036854775808",
        "e\tdebug.uint\tuint\t1099511627776\t1099511627776",
        "e\tdebug.uint above int\tuint\t-1\t-1",
        "e\tdebug.double\treal\t0.5\t0.5",
        "e\tdebug.string\tstring\ttext\ttext",
        "e\tdebug.interned\tstring\tinterned text\tinterned text",
        "e\tdebug.interned name\tint\t3\t3",
        "e\tdebug.pointer\tpointer\t2748\t0xabc",
        "e\tdebug.koid\tuint\t12\t12",
        "e\tdebug.blob\tstring\t00ff\t00ff",
        "e\tdebug.dict.number\tint\t1\t1",
        "e\tdebug.dict.list[0]\tstring\ttext\ttext",
        "e\tdebug.dict.list[1]\tstring\tnull\tnull",
        "e\tdebug.dict.list[2].half\treal\t0.5\t0.5",
        "e\tdebug.dict.list[3]\tstring\t[]\t[]",
        "e\tdebug.dict.empty\tstring\t{}\t{}",
        "e\tdebug.array[0]\tstring\ttext\ttext",
        "e\tdebug.array[1]\tstring\tnull\tnull",
        "e\tdebug.array[2].half\treal\t0.5\t0.5",
        "e\tdebug.array[3]\tstring\t[]\t[]",
    ];
    assert_eq!(rows(&trace, [ARGUMENTS])[0].lines().collect::<Vec<_>>(), expected);
}

#[test]
fn of_two_annotations_of_a_name_the_later_one_is_shown() {
    let mut trace = Vec::new();
    root(&mut trace, 10, "root");
    let annotations = [(Name::Text("n"), Value::I64(1)), (Name::Text("n"), Value::I64(2))];
    te::event(&mut trace, &Event { annotations: &annotations, ..on_track(10, EventType::Instant, 5) });
    let [arguments] = rows(&trace, ["select key, display_value from slice join args using (arg_set_id)"]);
    assert_eq!(arguments, "debug.n\t2");
}

#[test]
fn a_source_location_is_shown_under_another_key_in_full_than_by_its_number() {
    let at = SourceLocation { file: "src/a.rs", function: "run", line: 7 };
    let mut trace = Vec::new();
    root(&mut trace, 10, "root");
    start(&mut trace, 10, &[]);
    interned(&mut trace, SequenceId(1), &[Interned::Location { iid: 4, at }]);
    let only_file = SourceLocation { file: "src/b.rs", ..SourceLocation::default() };
    for location in [Location::At(at), Location::At(only_file), Location::Iid(4)] {
        te::event(&mut trace, &Event { location: Some(location), ..own(EventType::Instant) });
    }
    let [arguments] =
        rows(&trace, ["select key, display_value from slice join args using (arg_set_id) order by ts, key"]);
    let expected = [
        "source_location.file_name\tsrc/a.rs",
        "source_location.function_name\trun",
        "source_location.line_number\t7",
        "source_location.file_name\tsrc/b.rs",
        "source.file_name\tsrc/a.rs",
        "source.function_name\trun",
        "source.line_number\t7",
        "source_location_iid\t4",
    ];
    assert_eq!(arguments, expected.join("\n"));
}

#[test]
fn each_priority_of_a_log_message_has_its_number_and_a_place_becomes_its_tag() {
    let priorities = [
        Priority::Unspecified,
        Priority::Unused,
        Priority::Verbose,
        Priority::Debug,
        Priority::Info,
        Priority::Warn,
        Priority::Error,
        Priority::Fatal,
    ];
    let mut trace = Vec::new();
    process_descriptor(
        &mut trace,
        SequenceId(1),
        &ProcessTrack { uuid: TrackUuid(20), pid: 70, name: "app", cmdline: &[] },
    );
    let thread =
        ThreadTrack { uuid: TrackUuid(21), parent_uuid: TrackUuid(20), pid: 70, tid: 71, name: "main" };
    thread_descriptor(&mut trace, SequenceId(1), &thread);
    start(&mut trace, 21, &[]);
    let at = SourceLocation { file: "src/a.rs", function: "run", line: 7 };
    interned(
        &mut trace,
        SequenceId(1),
        &[
            Interned::Text { kind: InternedKind::LogBody, iid: 1, name: "text" },
            Interned::Location { iid: 4, at },
        ],
    );
    for priority in priorities {
        let source_location_iid = if priority == Priority::Fatal { 4 } else { 0 };
        let log = Some(LogMessage { body_iid: 1, priority, source_location_iid });
        te::event(&mut trace, &Event { log, ..own(EventType::Instant) });
    }
    let [logs, place] = rows(
        &trace,
        [
            "select l.prio, l.tag, l.msg, t.tid from android_logs l join thread t using (utid) order by l.ts",
            "select key, display_value from slice join args using (arg_set_id) where key like 'track_event.log_message.%'",
        ],
    );
    let mut expected: Vec<String> = (0..7).map(|prio| format!("{prio}\tNULL\ttext\t71")).collect();
    expected.push("7\tsrc/a.rs:7\ttext\t71".to_owned());
    assert_eq!(logs, expected.join("\n"));
    let said = ["file_name\tsrc/a.rs", "function_name\trun", "line_number\t7"];
    assert_eq!(place, said.map(|line| format!("track_event.log_message.{line}")).join("\n"));
}

#[test]
fn correlation_ids_of_every_kind_are_shown() {
    let mut trace = Vec::new();
    root(&mut trace, 10, "root");
    start(&mut trace, 10, &[]);
    interned(
        &mut trace,
        SequenceId(1),
        &[Interned::Text { kind: InternedKind::CorrelationId, iid: 1, name: "interned" }],
    );
    let ids = [Correlation::Id(7), Correlation::Name(Name::Text("in full")), Correlation::Name(Name::Iid(1))];
    for correlation in ids {
        te::event(&mut trace, &Event { correlation: Some(correlation), ..own(EventType::Instant) });
    }
    let [shown] =
        rows(&trace, ["select key, display_value from slice join args using (arg_set_id) order by ts"]);
    assert_eq!(shown, "correlation_id\ttp:#7\ncorrelation_id\tin full\ncorrelation_id\tinterned");
}

// pid 100  [ send ]              · again
// pid 200             [ receive ]
#[test]
fn a_flow_goes_from_one_process_to_another_and_ends_there() {
    const FLOW: [u64; 1] = [0xdead_beef_dead_beef];
    let mut trace = Vec::new();
    for (sequence, pid, process, thread) in [(1, 100, 10, 11), (2, 200, 20, 21)] {
        let name = ["one", "two"][sequence as usize - 1];
        let (sequence, process, thread) = (SequenceId(sequence), TrackUuid(process), TrackUuid(thread));
        process_descriptor(&mut trace, sequence, &ProcessTrack { uuid: process, pid, name, cmdline: &[] });
        let tid = i64::from(pid) + 1;
        let track = ThreadTrack { uuid: thread, parent_uuid: process, pid, tid, name: "main" };
        thread_descriptor(&mut trace, sequence, &track);
    }
    let named = |name, event| Event { name: Some(Name::Text(name)), ..event };
    let send = Event { flow_ids: &FLOW, ..named("send", on_track(11, EventType::SliceBegin, 10)) };
    te::event(&mut trace, &send);
    te::event(&mut trace, &on_track(11, EventType::SliceEnd, 20));
    let receive = named("receive", on_track(21, EventType::SliceBegin, 30));
    te::event(&mut trace, &Event { sequence: SequenceId(2), terminating_flow_ids: &FLOW, ..receive });
    te::event(&mut trace, &Event { sequence: SequenceId(2), ..on_track(21, EventType::SliceEnd, 40) });
    let again = Event { flow_ids: &FLOW, ..named("again", on_track(11, EventType::Instant, 50)) };
    te::event(&mut trace, &again);
    let of = "slice s join thread_track tt on s.track_id = tt.id join thread using (utid) join process p using (upid)";
    let [flows] = rows(
        &trace,
        [format!(
            "with named as (select s.id, s.name || ' ' || p.pid || ' ' || p.name as n from {of}) \
             select o.n, i.n from flow join named o on o.id = slice_out join named i on i.id = slice_in"
        )
        .as_str()],
    );
    assert_eq!(flows, "send 100 one\treceive 200 two", "the number may be used again after its end");
}

#[test]
fn an_event_without_a_track_is_of_the_whole_trace() {
    let mut trace = Vec::new();
    te::event(&mut trace, &Event { track_uuid: None, ..on_track(0, EventType::Instant, 5) });
    instant(&mut trace, 0, "of track 0", 6);
    let sql = "select s.name, t.name from slice s join track t on s.track_id = t.id order by s.ts";
    assert_eq!(rows(&trace, [sql]), ["NULL\tDefault Track\nof track 0\tDefault Track"]);
}
