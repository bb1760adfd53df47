//! `hairline convert` and `hairline merge`: what is written, what is not, and what is said about it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use hairline_formats::track_event::{
    self as te, Event, EventType, Name, SequenceId, SequenceStart, TrackUuid,
};

fn hairline(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null()).output().expect("the command runs")
}

/// A thread with some instants.
fn trace(pid: i32, names: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    let number = u64::try_from(pid).expect("a number");
    let (track_uuid, parent_uuid) = (TrackUuid(number), TrackUuid(number + 1000));
    te::process_descriptor(
        &mut out,
        SequenceId(1),
        &te::ProcessTrack { uuid: parent_uuid, pid, name: "p", cmdline: &[] },
    );
    let thread = te::ThreadTrack { uuid: track_uuid, parent_uuid, pid, tid: i64::from(pid), name: "t" };
    te::thread_descriptor(&mut out, SequenceId(1), &thread);
    let start = SequenceStart {
        sequence: SequenceId(1),
        first: true,
        dropped: false,
        track_uuid,
        extra_counters: &[],
        timestamp_ns: 1000,
    };
    te::sequence_start(&mut out, &start);
    for name in names {
        te::event(
            &mut out,
            &Event { name: Some(Name::Text(name)), ..Event::new(SequenceId(1), EventType::Instant, 10) },
        );
    }
    out
}

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    files.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).expect("a file"));
    folder
}

/// The names of a folder's files.
fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name().into_string();
    let mut names: Vec<_> =
        fs::read_dir(folder).expect("the folder").map(|e| name(e).expect("text")).collect();
    names.sort();
    names
}

/// Checks that the command fails with this code and this message, and leaves only the unchanged inputs.
#[track_caller]
fn fails(files: &[(&str, &[u8])], arguments: &[&str], code: i32, complaint: &str) {
    let folder = folder(files);
    let before = names(folder.path());
    let output = hairline(folder.path(), arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(complaint) && said.starts_with("hairline: "), "{said}");
    assert_eq!(names(folder.path()), before);
    for (name, bytes) in files {
        assert_eq!(fs::read(folder.path().join(name)).expect("the input"), *bytes);
    }
}

#[test]
fn a_trace_is_converted_whole() {
    let folder = folder(&[("a.pftrace", &trace(7, &["one", "two"]))]);
    let output = hairline(folder.path(), &["convert", "a.pftrace", "b.pftrace"]);
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
    let written = fs::read(folder.path().join("b.pftrace")).expect("the output");
    assert!(written.windows(3).any(|bytes| bytes == b"two"));
    assert_eq!(names(folder.path()), ["a.pftrace", "b.pftrace"]);
}

#[test]
fn stdout_and_gzip_have_the_same_bytes() {
    let folder = folder(&[("a.pftrace", &trace(7, &["one", "two"]))]);
    let plain = hairline(folder.path(), &["convert", "a.pftrace", "-", "--to", "pftrace"]);
    assert!(hairline(folder.path(), &["convert", "a.pftrace", "b.pftrace.gz"]).status.success());
    let again = hairline(folder.path(), &["convert", "b.pftrace.gz", "-", "--to", "pftrace"]);
    assert!(!plain.stdout.is_empty());
    assert_eq!(plain.stdout, again.stdout);
}

#[test]
fn a_process_that_becomes_several_is_told_with_what_joins_a_rotation() {
    let of = |uuid| {
        let mut out = trace(7, &["a"]);
        te::trace_uuid(&mut out, SequenceId(1), uuid);
        out
    };
    let folder = folder(&[("a.pftrace", &of(1)), ("b.pftrace", &of(2)), ("copy.pftrace", &of(1))]);
    let merge = |other, output| {
        let output = hairline(folder.path(), &["merge", "a.pftrace", other, "-o", output]);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = "hairline: process 7 is in 2 of the traces, and is 2 processes in the output; if they are the \
                files of one rotated output, join them with `cat`, the oldest first\n";
    assert_eq!(merge("b.pftrace", "all.pftrace"), said);
    let in_fxt = merge("b.pftrace", "all.fxt");
    assert!(
        in_fxt.starts_with(said) && in_fxt.contains("1 process with the id of another process"),
        "{in_fxt}"
    );
    // A state names its thread by the id, which threads of both have.
    let mut states = of(3);
    te::task_state(&mut states, SequenceId(1), 5, &te::TaskStateEvent::new(7, te::TaskState::Running));
    fs::write(folder.path().join("states.pftrace"), states).expect("a trace");
    let mixed = "hairline: states and samples say the id of their thread alone: those of process 7 may be with the \
                 threads of the wrong one of the 2\n";
    assert_eq!(merge("states.pftrace", "all.pftrace"), [said, mixed].concat());
    let copy =
        "hairline: copy.pftrace: it has the UUID of a.pftrace: what is in both is in the output twice\n";
    assert_eq!(merge("copy.pftrace", "all.pftrace"), copy, "no other file of a rotation");
    assert_eq!(merge("a.pftrace", "all.fxt").matches("it has the UUID of a.pftrace").count(), 1);
}

#[test]
fn a_slice_that_may_overlap_one_of_long_ago_is_counted() {
    let slice =
        |begin: u32, len: u32| format!(r#"{{"ph":"X","name":"a","pid":1,"tid":1,"ts":{begin},"dur":{len}}}"#);
    let backwards = |late: Option<String>| {
        let slices = (0..1_000).rev().map(|n| slice(100 * n, 50)).chain(late);
        format!("[{}]", slices.collect::<Vec<_>>().join(",")).into_bytes()
    };
    let folder =
        folder(&[("sound.json", &backwards(None)), ("late.json", &backwards(Some(slice(90_020, 50))))]);
    for output in ["a.pftrace", "a.fxt"] {
        let sound = hairline(folder.path(), &["convert", "--strict", "sound.json", output]);
        assert_eq!((sound.status.code(), sound.stderr), (Some(0), Vec::new()), "{output}");
        let late = hairline(folder.path(), &["convert", "--strict", "late.json", output]);
        let said = String::from_utf8_lossy(&late.stderr);
        assert_eq!(late.status.code(), Some(5), "{output}: {said}");
        assert!(
            said.contains(" 1 slice far out of order, which may overlap others of its thread\n"),
            "{said}"
        );
    }
}

#[test]
fn traces_are_merged_each_with_its_own_tracks() {
    let folder = folder(&[("a.pftrace", &trace(7, &["one"])), ("b.pftrace", &trace(8, &["two"]))]);
    let output = hairline(folder.path(), &["merge", "a.pftrace", "b.pftrace", "-o", "-", "--to", "pftrace"]);
    assert!(output.status.success());
    let has = |text: &[u8]| output.stdout.windows(text.len()).any(|bytes| bytes == text);
    assert!(has(b"one") && has(b"two"));
}

#[test]
fn what_is_no_trace_is_refused_and_nothing_is_written() {
    let arguments = &["convert", "in", "out.pftrace"];
    fails(&[("in", b"")], arguments, 1, "in: byte 0: it is empty");
    fails(&[("in", b"hello")], arguments, 1, "in: byte 0: neither a Perfetto trace");
    fails(
        &[("in", &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])],
        arguments,
        1,
        "byte 1",
    );
    fails(&[("in", &[0x0a, 2, 0x50, 0x80])], arguments, 1, "in: byte ");
    fails(&[], arguments, 1, "in: No such file");
    fails(&[("in", &[0x1f, 0x8b, 8, 0])], arguments, 1, "in: ");
}

#[test]
fn outputs_that_make_no_sense_are_refused() {
    let trace = trace(7, &["one"]);
    let input = [("a.pftrace", &trace[..])];
    fails(&input, &["convert", "a.pftrace", "out.txt"], 2, "out.txt: its name says no format");
    fails(&input, &["convert", "a.pftrace", "a.pftrace"], 1, "it is an input");
    fails(&input, &["convert", "a.pftrace", "./../missing/out.fxt"], 1, "out.fxt");
}

#[test]
fn all_that_is_whole_of_a_cut_trace_is_converted() {
    let whole = trace(7, &["one", "two"]);
    let folder = folder(&[("cut.pftrace", &whole[..whole.len() - 1])]);
    let output = hairline(folder.path(), &["convert", "cut.pftrace", "out.pftrace"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("the input ends inside a packet; all before that is in the output"), "{said}");
    let written = fs::read(folder.path().join("out.pftrace")).expect("the output");
    let has = |text: &[u8]| written.windows(3).any(|bytes| bytes == text);
    assert!(has(b"one") && !has(b"two"));
}

#[test]
fn strict_writes_nothing_where_something_is_left_out() {
    let mut trace = trace(7, &["one"]);
    te::event(&mut trace, &Event::new(SequenceId(1), EventType::Unspecified, 10));
    fails(&[("in", &trace)], &["convert", "--strict", "in", "out.pftrace"], 5, "not written");
    let folder = folder(&[("in", &trace)]);
    let output = hairline(folder.path(), &["convert", "in", "out.pftrace"]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 event of unknown types"));
}

/// The description of a thread may follow its first event. A file is read twice for it, a stream cannot be.
#[test]
fn a_file_is_read_twice_for_late_descriptions_and_a_stream_is_counted() {
    let mut trace = Vec::new();
    let thread = |kind, time| Event {
        needs_state: false,
        track_uuid: Some(te::TrackUuid(8)),
        name: Some(Name::Text("a")),
        ..Event::new(te::SequenceId(1), kind, time)
    };
    te::event(&mut trace, &thread(EventType::SliceBegin, 10));
    let descriptor =
        te::ThreadTrack { uuid: te::TrackUuid(8), parent_uuid: te::TrackUuid(0), pid: 7, tid: 8, name: "t" };
    te::thread_descriptor(&mut trace, te::SequenceId(1), &descriptor);
    te::event(&mut trace, &Event { name: None, ..thread(EventType::SliceEnd, 20) });
    let folder = folder(&[("in.pftrace", &trace)]);
    let output = hairline(folder.path(), &["convert", "--strict", "in.pftrace", "out.fxt"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let script = r#""$0" convert --strict - piped.fxt < in.pftrace"#;
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_hairline")]).current_dir(folder.path());
    let output = command.output().expect("it ran");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("1 track described as threads after its first event"), "{said}");
}

#[test]
fn what_cannot_be_made_is_called_as_it_was_asked_for() {
    let files: &[(&str, &[u8])] = &[("in.pftrace", &trace(1, &["a"]))];
    let folder = folder(files);
    for output in ["no/such/out.fxt", "/proc/out.fxt"] {
        let failed = hairline(folder.path(), &["convert", "in.pftrace", output]);
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!((failed.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.starts_with(&format!("hairline: {output}: ")) && !said.contains(".hairline-"), "{said}");
    }
}

#[test]
fn an_input_is_not_appended_to_while_it_is_read() {
    let before = trace(1, &["a"]);
    let folder = folder(&[("t.pftrace", &before)]);
    let path = folder.path().join("t.pftrace");
    let appended = fs::OpenOptions::new().append(true).open(&path).expect("opened");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    let command = command.current_dir(folder.path()).args(["convert", "t.pftrace", "-", "--to", "pftrace"]);
    let failed = command.stdout(appended).output().expect("it ran");
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert_eq!((failed.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(fs::read(&path).expect("read") == before);
}

#[test]
fn a_signal_leaves_nothing_half_written() {
    use std::io::Write;
    let folder = folder(&[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    let command = command.current_dir(folder.path()).args(["convert", "-", "out.fxt"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("piped");
    // It has begun when this goes through: the pipe holds less.
    let names = vec!["a name"; 10_000];
    (0..20).for_each(|_| input.write_all(&trace(1, &names)).expect("read"));
    assert_eq!(names_of_hidden(folder.path()), 1, "it is being written");
    let pid = child.id().to_string();
    assert!(Command::new("kill").arg(&pid).status().expect("sent").success());
    assert!(!child.wait().expect("its end").success());
    assert_eq!(names_of_hidden(folder.path()), 0);
}

fn names_of_hidden(folder: &Path) -> usize {
    names(folder).iter().filter(|name| name.starts_with(".hairline-")).count()
}

#[test]
fn an_output_is_its_users_own_until_it_is_whole() {
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;
    let folder = folder(&[("plain", b"")]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    command.current_dir(folder.path()).args(["convert", "-", "b.pftrace"]).stdin(Stdio::piped());
    let mut child = command.spawn().expect("the command runs");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(&trace(7, &["one"])).expect("read");
    let began = std::time::Instant::now();
    let unfinished = || names(folder.path()).into_iter().find(|name| name.starts_with(".hairline-"));
    while unfinished().is_none() {
        assert!(began.elapsed().as_secs() < 20, "no output");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let mode = |name: &str| fs::metadata(folder.path().join(name)).expect("there").mode() & 0o777;
    assert_eq!(mode(&unfinished().expect("a file")), 0o600);
    drop(input);
    assert!(child.wait().expect("its end").success());
    assert_eq!(mode("b.pftrace"), mode("plain"));
}

#[test]
fn spans_that_are_more_than_receivers_take_become_numbered_files() {
    let span = |n| format!(r#"{{"name":"span-{n:02}","ph":"X","ts":{n},"dur":1,"pid":1,"tid":1}}"#);
    let json = format!("[{}]", (0..20).map(span).collect::<Vec<_>>().join(","));
    for (name, first, last) in
        [("out.otlp", "out.1.otlp", "out.2.otlp"), ("out.otlp.json", "out.1.otlp.json", "out.2.otlp.json")]
    {
        let folder = folder(&[("a.json", json.as_bytes())]);
        let whole = hairline(folder.path(), &["convert", "a.json", name]);
        assert!(whole.status.success() && names(folder.path()).len() == 2);
        std::fs::remove_file(folder.path().join(name)).expect("it was written");
        let most = if name.ends_with("json") { "4000" } else { "1000" };
        let parts = hairline(folder.path(), &["convert", "a.json", name, "--max-bytes", most]);
        let said = String::from_utf8_lossy(&parts.stderr).into_owned();
        assert!(parts.status.success() && said.contains("(--max-bytes)") && said.contains(first), "{said}");
        let files: Vec<_> = names(folder.path()).into_iter().filter(|name| name.contains("otlp")).collect();
        assert!(files.contains(&last.to_owned()) && !files.contains(&name.to_owned()), "{files:?}");
        let mut all = Vec::new();
        for file in &files {
            let message = std::fs::read(folder.path().join(file)).expect("a message");
            assert!(message.len() <= most.parse().expect("a number"), "{file}: {}", message.len());
            all.extend(message);
        }
        for n in 0..20 {
            let span = format!("span-{n:02}");
            assert_eq!(
                all.windows(span.len()).filter(|bytes| *bytes == span.as_bytes()).count(),
                1,
                "{span}"
            );
        }
    }
}
