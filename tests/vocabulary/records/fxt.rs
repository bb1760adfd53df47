//! FXT: tables, objects, arguments, whole slices, the clock's rate.

use hairline_formats::Value;
use hairline_formats::fxt::{
    Event, EventKind, KERNEL_OBJECT_PROCESS, KERNEL_OBJECT_THREAD, PROVIDER_EVENT_BUFFER_FULL, ProcessRef,
    StringRef, ThreadRef, event, initialization, kernel_object, provider_event, provider_info,
    provider_section, string_record, thread_record, userspace_object,
};
use hairline_tests::judge::load_bytes;

use super::{ARGUMENTS, SLICES, fxt_trace, inline, of_thread, require_passed_over, rows};

#[test]
fn a_userspace_object_is_passed_over_and_does_not_name_the_pointers_to_it() {
    require_passed_over(|out| {
        let args = [(inline("size"), Value::U64(512))];
        userspace_object(out, 0xabc, ProcessRef::Inline(7), inline("a buffer"), &args);
    });
    let trace = fxt_trace(|out| {
        userspace_object(out, 0xabc, ProcessRef::Inline(7), inline("a buffer"), &[]);
        let args = [(inline("buffer"), Value::Pointer(0xabc))];
        event(out, &Event { args: &args, ..of_thread(EventKind::Instant, 5, "use") });
    });
    assert_eq!(rows(&trace, [ARGUMENTS]), ["use\tbuffer\tpointer\t2748\t0xabc"]);
}

#[test]
fn kernel_objects_name_processes_and_threads_and_nothing_else() {
    const CHANNEL: u8 = 4;
    let trace = fxt_trace(|out| {
        kernel_object(out, KERNEL_OBJECT_PROCESS, 7, inline("a process"), &[]);
        let of_process = [(inline("process"), Value::Koid(7))];
        kernel_object(out, KERNEL_OBJECT_THREAD, 9, inline("a thread"), &of_process);
        kernel_object(out, CHANNEL, 77, inline("a channel"), &of_process);
        let args = [(inline("channel"), Value::Koid(77)), (inline("process"), Value::Koid(7))];
        event(out, &Event { args: &args, ..of_thread(EventKind::Instant, 5, "send") });
    });
    let [names, args, all] = rows(
        &trace,
        [
            "select p.pid, p.name, t.tid, t.name from thread t join process p using (upid) where t.tid = 9",
            ARGUMENTS,
            "select count(*) from (select name from thread union all select name from process) where name = 'a channel'",
        ],
    );
    assert_eq!(names, "7\ta process\t9\ta thread");
    assert_eq!(args, "send\tchannel\tint\t77\t77\nsend\tprocess\tint\t7\t7", "koids stay numbers");
    assert_eq!(all, "0");
    require_passed_over(|out| kernel_object(out, CHANNEL, 77, inline("a channel"), &[]));
}

#[test]
fn each_type_of_argument_has_its_type_and_value() {
    let args = [
        (inline("null"), Value::Null),
        (inline("i32"), Value::I64(-5)),
        (inline("u32"), Value::U64(4_000_000_000)),
        (inline("i64"), Value::I64(i64::MIN)),
        (inline("u64"), Value::U64(1 << 40)),
        (inline("u64 above i64"), Value::U64(u64::MAX)),
        (inline("double"), Value::F64(0.5)),
        (inline("string"), Value::Str("inline")),
        (inline("indexed"), Value::Interned { iid: 3, text: "not written" }),
        (inline("pointer"), Value::Pointer(0xdead_beef_0000)),
        (inline("koid"), Value::Koid(12)),
        (inline("true"), Value::Bool(true)),
        (inline("false"), Value::Bool(false)),
        (inline("blob"), Value::Blob(b"not text")),
        (StringRef::Index(4), Value::I64(1)),
    ];
    let trace = fxt_trace(|out| {
        string_record(out, 3, "a string of the table");
        string_record(out, 4, "name of the table");
        event(out, &Event { args: &args, ..of_thread(EventKind::Instant, 5, "e") });
    });
    let expected = [
        "e\tnull\tstring\tnull\tnull", // as the text "null"
        "e\ti32\tint\t-5\t-5",
        "e\tu32\tint\t4000000000\t4000000000",
        "e\ti64\tint\t-9223372036854775808\t-9223372036854775808",
        "e\tu64\tint\t1099511627776\t1099511627776",
        "e\tu64 above i64\tint\t-1\t-1", // the importer's integers are signed
        "e\tdouble\treal\t0.5\t0.5",
        "e\tstring\tstring\tinline\tinline",
        "e\tindexed\tstring\ta string of the table\ta string of the table",
        "e\tpointer\tpointer\t244837814042624\t0xdeadbeef0000",
        "e\tkoid\tint\t12\t12",
        "e\ttrue\tbool\t1\ttrue",
        "e\tfalse\tbool\t0\tfalse",
        "e\tblob\tstring\tunknown\tunknown", // the bytes are nowhere
        "e\tname of the table\tint\t1\t1",
    ];
    assert_eq!(rows(&trace, [ARGUMENTS]), [expected.join("\n")]);
}

#[test]
fn numbers_of_strings_and_threads_may_be_given_anew() {
    let indexed = |timestamp| Event {
        category: StringRef::Index(1),
        name: StringRef::Index(2),
        thread: ThreadRef::Index(1),
        ..of_thread(EventKind::Instant, timestamp, "")
    };
    let trace = fxt_trace(|out| {
        string_record(out, 1, "c");
        string_record(out, 2, "one");
        thread_record(out, 1, 7, 9);
        event(out, &indexed(5));
        string_record(out, 2, "two");
        event(out, &indexed(6));
        thread_record(out, 1, 7, 10);
        event(out, &indexed(7));
        string_record(out, 0, "of number 0"); // these two are to be ignored
        thread_record(out, 0, 7, 11);
        event(out, &Event { name: StringRef::Empty, ..indexed(8) });
    });
    let [slices] = rows(&trace, [SLICES]);
    assert_eq!(slices, "5\t0\tc\tone\t7\t9\n6\t0\tc\ttwo\t7\t9\n7\t0\tc\ttwo\t7\t10\n8\t0\tc\t\t7\t10");
}

// provider 1: ns, "one" | provider 2: us, "two" | provider 1 again
#[test]
fn each_provider_has_its_own_clock_and_tables() {
    let indexed = |timestamp| Event {
        name: StringRef::Index(2),
        thread: ThreadRef::Index(1),
        ..of_thread(EventKind::Instant, timestamp, "")
    };
    let trace = fxt_trace(|out| {
        string_record(out, 2, "one");
        thread_record(out, 1, 7, 9);
        provider_info(out, 2, "another provider");
        initialization(out, 1_000_000);
        string_record(out, 2, "two");
        thread_record(out, 1, 8, 10);
        event(out, &indexed(6));
        provider_section(out, 1);
        event(out, &indexed(7));
    });
    assert_eq!(rows(&trace, [SLICES]), ["7\t0\tc\tone\t7\t9\n6000\t0\tc\ttwo\t8\t10"]);
    require_passed_over(|out| provider_info(out, 1, "the same provider")); // its name is in no table
}

#[test]
fn a_provider_event_is_passed_over_even_where_it_tells_of_loss() {
    require_passed_over(|out| {
        provider_event(out, 1, PROVIDER_EVENT_BUFFER_FULL);
        provider_event(out, 1, 15);
    });
}

#[test]
fn ticks_have_the_length_that_the_record_before_them_says() {
    let trace = fxt_trace(|out| {
        for (ticks_per_second, ticks) in [(1_000_000, 6), (3_000_000_000, 60_000), (3, 6)] {
            initialization(out, ticks_per_second);
            event(out, &of_thread(EventKind::Instant, ticks, "e"));
        }
    });
    assert_eq!(
        rows(&trace, [SLICES]),
        ["6000\t0\tc\te\t7\t9\n20000\t0\tc\te\t7\t9\n2000000000\t0\tc\te\t7\t9"]
    );
}

#[test]
fn a_duration_complete_event_is_a_slice_with_its_end_and_arguments() {
    let args = [(inline("bytes"), Value::I64(1))];
    let complete =
        |name, from, to| Event { payload: Some(to), ..of_thread(EventKind::DurationComplete, from, name) };
    let trace = fxt_trace(|out| {
        event(out, &Event { args: &args, ..complete("outer", 10, 100) });
        event(out, &complete("inner", 20, 50));
    });
    let [slices, args, depths] =
        rows(&trace, [SLICES, ARGUMENTS, "select name, depth from slice order by ts"]);
    assert_eq!(slices, "10\t90\tc\touter\t7\t9\n20\t30\tc\tinner\t7\t9");
    assert_eq!(args, "outer\tbytes\tint\t1\t1");
    assert_eq!(depths, "outer\t0\ninner\t1");
    let backwards = fxt_trace(|out| event(out, &complete("backwards", 200, 150)));
    let verdict = load_bytes(&backwards, &["select count(*) from slice"]);
    assert_eq!((verdict.results[0].single_i64(), verdict.stat("fuchsia_timestamp_overflow")), (0, 1));
}

// thread       [ first ]   [ second ]   [ third ]
// flow records     begin       step         end
#[test]
fn flow_records_connect_the_slices_around_them() {
    let trace = fxt_trace(|out| {
        let kinds = [EventKind::FlowBegin, EventKind::FlowStep, EventKind::FlowEnd];
        for (n, (name, kind)) in ["first", "second", "third"].into_iter().zip(kinds).enumerate() {
            let at = 10 * n as u64;
            event(out, &of_thread(EventKind::DurationBegin, at, name));
            event(out, &Event { payload: Some(1), ..of_thread(kind, at + 1, "flow") });
            event(out, &of_thread(EventKind::DurationEnd, at + 2, name));
        }
    });
    let flows =
        "select o.name, i.name from flow join slice o on o.id = slice_out join slice i on i.id = slice_in";
    assert_eq!(rows(&trace, [flows]), ["first\tsecond\nsecond\tthird"]);
}

#[test]
fn flow_records_outside_of_any_slice_are_left_out() {
    let trace = fxt_trace(|out| {
        event(out, &Event { payload: Some(1), ..of_thread(EventKind::FlowBegin, 5, "flow") });
        event(out, &of_thread(EventKind::Instant, 6, "instant"));
        event(out, &Event { payload: Some(1), ..of_thread(EventKind::FlowEnd, 6, "flow") });
    });
    let verdict = load_bytes(&trace, &["select count(*) from flow"]);
    assert_eq!(verdict.results[0].single_i64(), 0);
    assert_eq!((verdict.stat("flow_no_enclosing_slice"), verdict.stat("flow_end_without_start")), (1, 1));
}

#[test]
fn async_records_are_slices_of_no_thread_and_a_counter_has_a_track_for_each_number() {
    let trace = fxt_trace(|out| {
        let kinds = [EventKind::AsyncBegin, EventKind::AsyncInstant, EventKind::AsyncEnd];
        for (ts, (kind, name)) in (5..).zip(kinds.into_iter().zip(["job", "note", "job"])) {
            event(out, &Event { payload: Some(3), ..of_thread(kind, ts, name) });
        }
        let args = [(inline("read"), Value::I64(1)), (inline("written"), Value::F64(0.5))];
        event(out, &Event { payload: Some(2), args: &args, ..of_thread(EventKind::Counter, 9, "bytes") });
    });
    let [slices, counters] = rows(
        &trace,
        [
            "select s.ts, s.dur, s.name, t.type from slice s join track t on s.track_id = t.id order by s.ts",
            "select t.name, t.type, c.value from counter c join track t on c.track_id = t.id order by t.name",
        ],
    );
    assert_eq!(slices, "5\t2\tjob\tlegacy_async_global_slice\n6\t0\tnote\tlegacy_async_global_slice");
    assert_eq!(counters, "bytes:read:2\tfuchsia_counter\t1.0\nbytes:written:2\tfuchsia_counter\t0.5");
}
