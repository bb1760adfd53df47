//! TrackEvent: what is said of tracks, processes and counters.

use hairline_formats::track_event::{
    self as te, CounterTrack, CounterType, CounterValue, CustomTrack, EventType, Name, Process, ProcessTrack,
    SequenceId, SiblingMerge, ThreadTrack, TrackUuid, Unit, counter_descriptor, custom_descriptor,
    process_descriptor, process_tree, thread_descriptor,
};
use hairline_tests::judge::load_bytes;

use super::{instant, on_track, root, rows, slice, start};

const COUNTERS: &str = "select c.ts, t.name, c.value, ifnull(t.unit, '-') from counter c join counter_track t on c.track_id = t.id \
     order by c.ts, c.id";

/// The process 70 "app" with the track 20, and its thread 71 "main" with the track 21.
fn app(out: &mut Vec<u8>) {
    process_descriptor(
        out,
        SequenceId(1),
        &ProcessTrack { uuid: TrackUuid(20), pid: 70, name: "app", cmdline: &["app", "-v"] },
    );
    thread_descriptor(
        out,
        SequenceId(1),
        &ThreadTrack { uuid: TrackUuid(21), parent_uuid: TrackUuid(20), pid: 70, tid: 71, name: "main" },
    );
}

fn count(out: &mut Vec<u8>, track: u64, timestamp: u64, value: CounterValue) {
    te::event(out, &te::Event { counter: Some(value), ..on_track(track, EventType::Counter, timestamp) });
}

// Two tracks under one, each with a slice. Which group they are in is `track_group_id`: the UI shows a group
// in a row.
#[test]
fn siblings_merge_by_name_by_key_or_not_at_all() {
    const SAME: &str = "in one group";
    const OTHER: &str = "in two groups";
    const NONE: &str = "in no group";
    let cases = [
        (SiblingMerge::Unspecified, ["x", "x"], ["", ""], SAME),
        (SiblingMerge::Unspecified, ["x", "y"], ["", ""], OTHER),
        (SiblingMerge::ByTrackName, ["x", "x"], ["", ""], SAME),
        (SiblingMerge::None, ["x", "x"], ["", ""], NONE),
        (SiblingMerge::ByKey, ["x", "y"], ["key", "key"], SAME),
        (SiblingMerge::ByKey, ["x", "x"], ["key", "another"], OTHER),
    ];
    for (merge, names, keys, expected) in cases {
        let mut trace = Vec::new();
        root(&mut trace, 10, "root");
        for (uuid, (name, merge_key)) in (11..).zip(names.into_iter().zip(keys)) {
            let track = CustomTrack {
                uuid: TrackUuid(uuid),
                parent_uuid: Some(TrackUuid(10)),
                name,
                merge,
                merge_key,
                ..CustomTrack::default()
            };
            custom_descriptor(&mut trace, SequenceId(1), &track);
            slice(&mut trace, uuid, "s", (uuid, uuid + 10));
        }
        let groups = format!(
            "select case when count(g) = 0 then '{NONE}' when count(distinct g) = 1 then '{SAME}' else '{OTHER}' end, count(*), \
             min(parent) from (select t.track_group_id as g, p.name as parent from slice s join track t on s.track_id = t.id \
             join track p on t.parent_id = p.id)"
        );
        let case = format!("{merge:?} {names:?} {keys:?}");
        assert_eq!(rows(&trace, [&groups]), [format!("{expected}\t2\troot")], "{case}");
    }
}

#[test]
fn counters_say_their_categories_and_the_key_of_their_scale() {
    let mut trace = Vec::new();
    app(&mut trace);
    let memory = CounterTrack {
        categories: &["mem", "gc"],
        y_axis_share_key: "bytes of all kinds",
        unit: Unit::SizeBytes,
        ..CounterTrack::new(TrackUuid(30), TrackUuid(20), "memory")
    };
    counter_descriptor(&mut trace, SequenceId(1), &memory);
    let heap = CounterTrack {
        categories: &[],
        name: "heap",
        uuid: TrackUuid(31),
        parent_uuid: TrackUuid(21),
        ..memory
    };
    counter_descriptor(&mut trace, SequenceId(1), &heap);
    let frames = CounterTrack {
        unit_name: Some("frames"),
        multiplier: 10,
        ..CounterTrack::new(TrackUuid(32), TrackUuid(21), "frames")
    };
    counter_descriptor(&mut trace, SequenceId(1), &frames);
    count(&mut trace, 30, 1, CounterValue::Int(5));
    count(&mut trace, 31, 2, CounterValue::Int(-6));
    count(&mut trace, 32, 3, CounterValue::Double(0.5));
    let [counters, said] = rows(
        &trace,
        [
            COUNTERS,
            "select t.name, a.key, a.display_value from track t join args a on t.source_arg_set_id = a.arg_set_id \
             where a.key in ('category', 'trace_id', 'y_axis_share_key') order by t.name, a.key",
        ],
    );
    assert_eq!(counters, "1\tmemory\t5.0\tbytes\n2\theap\t-6.0\tbytes\n3\tframes\t5.0\tframes");
    let expected = [
        "NULL\ttrace_id\t20", // of the process
        "frames\ttrace_id\t32",
        "heap\ttrace_id\t31",
        "heap\ty_axis_share_key\tbytes of all kinds",
        "memory\tcategory\tmem,gc",
        "memory\ttrace_id\t30",
        "memory\ty_axis_share_key\tbytes of all kinds",
    ];
    assert_eq!(said, expected.join("\n"));
}

/// A slice with the extra counters 33, of the thread's time as differences, and 32, of its instructions.
fn with_builtin_counters(time: &str, instructions: &str) -> Vec<u8> {
    let mut trace = Vec::new();
    app(&mut trace);
    let of_thread = |uuid, name, builtin| CounterTrack {
        builtin,
        ..CounterTrack::new(TrackUuid(uuid), TrackUuid(21), name)
    };
    let time = of_thread(33, time, CounterType::ThreadTimeNs);
    counter_descriptor(&mut trace, SequenceId(1), &CounterTrack { is_incremental: true, ..time });
    counter_descriptor(
        &mut trace,
        SequenceId(1),
        &of_thread(32, instructions, CounterType::ThreadInstructionCount),
    );
    start(&mut trace, 21, &[33, 32]);
    let name = Some(Name::Text("s"));
    let begin = te::Event {
        name,
        extra_counters: &[100, 5000],
        ..te::Event::new(SequenceId(1), EventType::SliceBegin, 10)
    };
    te::event(&mut trace, &begin);
    let end =
        te::Event { extra_counters: &[50, 7000], ..te::Event::new(SequenceId(1), EventType::SliceEnd, 10) };
    te::event(&mut trace, &end);
    trace
}

#[test]
fn counters_of_time_and_instructions_belong_to_slices_if_they_have_the_names_the_importer_knows() {
    const OF_SLICES: &str = "select thread_ts, thread_dur, thread_instruction_count from slice";
    let known = with_builtin_counters("thread_time", "thread_instruction_count");
    let [slices, counters] = rows(&known, [OF_SLICES, COUNTERS]);
    assert_eq!(slices, "100\t50\t5000");
    let values = [
        "1010\tthread_time\t100.0\tns",
        "1010\tthread_instruction_count\t5000.0\tcount",
        "1020\tthread_time\t150.0\tns",
        "1020\tthread_instruction_count\t7000.0\tcount",
    ];
    assert_eq!(counters, values.join("\n"));
    // The importer takes the count at the end for 0.
    assert_eq!(rows(&known, ["select thread_instruction_delta from slice"]), ["-5000"]);
    let named = with_builtin_counters("time", "instructions");
    assert_eq!(rows(&named, [OF_SLICES]), ["NULL\tNULL\tNULL"]);
    assert_eq!(rows(&named, [COUNTERS])[0].lines().count(), 4);
    // Without a name the importer puts its own in its place.
    assert_eq!(
        rows(&with_builtin_counters("", ""), [OF_SLICES, COUNTERS]),
        rows(&known, [OF_SLICES, COUNTERS])
    );
}

#[test]
fn a_process_tree_tells_command_line_and_parent_and_outdoes_the_process_s_track() {
    const PROCESSES: &str = "select p.pid, p.name, p.cmdline, q.pid from process p left join process q on p.parent_upid = q.upid \
         where p.pid != 0 order by p.pid";
    let mut trace = Vec::new();
    app(&mut trace);
    instant(&mut trace, 20, "i", 60);
    assert_eq!(rows(&trace, [PROCESSES]), ["70\tapp\tNULL\tNULL"], "a track's command line is not shown");
    let process = Process { pid: 70, parent: Some(60), command_line: &["/bin/app", "-v", "x y"] };
    process_tree(&mut trace, SequenceId(1), 50, &process);
    assert_eq!(rows(&trace, [PROCESSES]), ["60\tNULL\tNULL\tNULL\n70\t/bin/app\t/bin/app -v x y\t60"]);
}

#[test]
fn a_track_whose_parent_is_never_described_loses_its_events() {
    let mut trace = Vec::new();
    let orphan = CustomTrack {
        uuid: TrackUuid(10),
        parent_uuid: Some(TrackUuid(99)),
        name: "orphan",
        ..CustomTrack::default()
    };
    custom_descriptor(&mut trace, SequenceId(1), &orphan);
    instant(&mut trace, 10, "lost", 5);
    let verdict = load_bytes(&trace, &["select count(*) from slice"]);
    assert_eq!(verdict.results[0].single_i64(), 0);
    assert_eq!(verdict.stat("track_event_parser_errors"), 2);
}
