//! FIFOs as inputs and outputs: a command that can use one does, and none hangs at one.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A trace with one slice.
const TRACE: &str = r#"[{"ph":"B","ts":1,"pid":1,"tid":1,"name":"slice"},{"ph":"E","ts":2,"pid":1,"tid":1}]"#;

/// A folder with the trace `t.json` and a FIFO `fifo.fxt`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("t.json"), TRACE).expect("written");
    assert!(Command::new("mkfifo").arg(folder.path().join("fifo.fxt")).status().expect("mkfifo").success());
    folder
}

fn hairline(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    command.current_dir(folder).args(arguments).env_remove("HAIRLINE");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

/// What the process leaves.
///
/// # Panics
/// When it takes longer than 20 s.
#[track_caller]
fn end(mut child: Child) -> Output {
    let began = Instant::now();
    while child.try_wait().expect("a state").is_none() {
        if began.elapsed() > Duration::from_secs(20) {
            child.kill().expect("killed");
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("its end")
}

#[test]
fn an_output_without_a_reader_is_an_error_and_no_wait() {
    let folder = folder();
    let all: [&[&str]; 4] = [
        &["convert", "t.json", "fifo.fxt"],
        &["merge", "t.json", "t.json", "-o", "fifo.fxt"],
        &["flame", "t.json", "-o", "fifo.fxt"],
        &["record", "-o", "fifo.fxt", "--", "true"],
    ];
    for arguments in all {
        let output = end(hairline(folder.path(), arguments));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(said.lines().count() == 1 && said.contains("fifo.fxt"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_reader_of_a_fifo_gets_the_whole_output() {
    let folder = folder();
    let direct = end(hairline(folder.path(), &["convert", "t.json", "-", "--to", "json"]));
    // More than what a pipe holds: it is waited for room.
    let name = "n".repeat(200_000);
    let long = format!(r#"[{{"ph":"i","ts":1,"pid":1,"tid":1,"name":"{name}"}}]"#);
    fs::write(folder.path().join("long.json"), long).expect("written");
    for (input, len) in [("t.json", direct.stdout.len()), ("long.json", name.len())] {
        let mut reader = fs::File::options();
        // With a writing end of its own the open does not wait.
        let mut reader = reader.read(true).write(true).open(folder.path().join("fifo.fxt")).expect("opened");
        let child = hairline(folder.path(), &["convert", input, "fifo.fxt", "--to", "json"]);
        let (mut read, mut buffer) = (Vec::new(), [0; 1000]);
        while read.len() < len {
            let n = reader.read(&mut buffer).expect("read");
            read.extend_from_slice(&buffer[..n]);
            std::thread::sleep(Duration::from_micros(100));
        }
        // What is left is less than the pipe holds.
        let output = end(child);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        assert!(input != "t.json" || read == direct.stdout);
    }
}

/// Nothing can be served from it, nor fetched twice.
#[test]
fn a_fifo_cannot_be_viewed() {
    let folder = folder();
    let output = end(hairline(folder.path(), &["view", "--no-open", "--port", "0", "fifo.fxt"]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.starts_with("hairline: fifo.fxt: ") && said.contains("`hairline view -`"), "{said}");
}

/// As with every command that reads: whoever writes may come later.
#[test]
fn an_input_may_be_a_fifo_or_the_output_of_another_command() {
    let folder = folder();
    let direct = end(hairline(folder.path(), &["stats", "t.json", "--csv"])).stdout;
    assert!(!direct.is_empty());
    let child = hairline(folder.path(), &["stats", "fifo.fxt", "--csv"]);
    std::thread::sleep(Duration::from_millis(100));
    fs::write(folder.path().join("fifo.fxt"), fs::read(folder.path().join("t.json")).expect("a trace"))
        .expect("written");
    assert!(end(child).stdout == direct);
    let script = r#""$0" convert <(cat t.json) a.pftrace && "$0" convert t.json b.pftrace && cmp a.pftrace b.pftrace &&
        "$0" convert t.json >(cat > c.pftrace) --to pftrace && while ! cmp a.pftrace c.pftrace; do sleep 0.01; done"#;
    let mut command = Command::new("bash");
    command.args(["-c", script, env!("CARGO_BIN_EXE_hairline")]).current_dir(folder.path());
    let output = end(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("bash"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// `/dev/stdout` is a link that only the kernel can follow.
#[test]
fn an_output_may_be_what_stdout_is() {
    let folder = folder();
    let plain = end(hairline(folder.path(), &["convert", "t.json", "-", "--to", "pftrace"])).stdout;
    let child = hairline(folder.path(), &["convert", "t.json", "/dev/stdout", "--to", "pftrace"]);
    assert!(end(child).stdout == plain && !plain.is_empty());
    let script = r#"exec "$0" convert t.json /dev/stdout --to pftrace > file"#;
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_hairline")]).current_dir(folder.path());
    assert!(command.status().expect("it ran").success());
    assert!(fs::read(folder.path().join("file")).expect("a file") == plain);
}

/// `-` is a name of the file that the shell has opened.
#[test]
fn what_stdin_is_does_not_become_the_output() {
    let folder = folder();
    let all: [&[&str]; 7] = [
        &["flame", "-", "-o", "own"],
        &["flame", "-", "--svg", "-o", "own"],
        &["convert", "-", "own", "--to", "fxt"],
        &["convert", "/dev/stdin", "own", "--to", "fxt"],
        &["convert", "-", "own.otlp"],
        &["merge", "-", "t.json", "-o", "own", "--to", "pftrace"],
        &["convert", "-", "-", "--to", "fxt"],
    ];
    for arguments in all {
        for name in ["own", "own.otlp"] {
            fs::write(folder.path().join(name), TRACE).expect("written");
        }
        let own = folder.path().join(if arguments.contains(&"own.otlp") { "own.otlp" } else { "own" });
        let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
        command.current_dir(folder.path()).args(arguments).stdin(fs::File::open(&own).expect("opened"));
        if arguments.ends_with(&["-", "--to", "fxt"]) {
            command.stdout(fs::File::options().append(true).open(&own).expect("opened"));
        } else {
            command.stdout(Stdio::piped());
        }
        let output = end(command.stderr(Stdio::piped()).spawn().expect("it starts"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("it is an input, and inputs are never changed"), "{arguments:?}: {said}");
        assert_eq!(fs::read_to_string(&own).expect("the input"), TRACE, "{arguments:?}");
    }
    // Another file is replaced, and a file with the name `-` is not meant.
    fs::write(folder.path().join("-"), "no trace").expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    command.current_dir(folder.path()).args(["flame", "-", "-o", "own"]);
    command.stdin(fs::File::open(folder.path().join("t.json")).expect("opened"));
    assert!(end(command.spawn().expect("it starts")).status.success());
    assert_ne!(fs::read_to_string(folder.path().join("own")).expect("the output"), TRACE);
}

/// A full disk is `/dev/full`.
#[test]
fn an_output_that_cannot_be_printed_is_an_error_of_one_line() {
    let folder = folder();
    let all: [&[&str]; 6] = [
        &["export", "t.json", "-o", "tables"],
        &["flame", "t.json"],
        &["stats", "t.json"],
        &["validate", "t.json"],
        &["convert", "t.json", "-", "--to", "fxt"],
        &["completions", "bash"],
    ];
    for arguments in all {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
        command.current_dir(folder.path()).args(arguments).stdin(Stdio::null()).stderr(Stdio::piped());
        command.stdout(fs::File::options().write(true).open("/dev/full").expect("opened"));
        let output = end(command.spawn().expect("it starts"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{arguments:?}: {said}");
        assert!(said.starts_with("hairline: stdout: "), "{arguments:?}: {said}");
    }
}

#[test]
fn the_size_of_a_fifo_is_what_was_read_of_it() {
    let folder = folder();
    let child = hairline(folder.path(), &["stats", "fifo.fxt"]);
    fs::write(folder.path().join("fifo.fxt"), TRACE).expect("written");
    let said = String::from_utf8(end(child).stdout).expect("text");
    assert!(said.starts_with(&format!("fifo.fxt: {} B, ", TRACE.len())), "{said}");
}

#[test]
fn a_stream_can_be_one_input_only() {
    let folder = folder();
    let all: [&[&str]; 5] = [
        &["export", "-", "/dev/stdin", "-o", "tables"],
        &["export", "fifo.fxt", "fifo.fxt", "-o", "tables"],
        &["merge", "-", "-", "-o", "x.fxt"],
        &["merge", "t.json", "-", "/dev/stdin", "-o", "x.fxt"],
        &["merge", "fifo.fxt", "./fifo.fxt", "-o", "x.fxt"],
    ];
    for arguments in all {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
        command.current_dir(folder.path()).args(arguments);
        // Nobody writes to it or closes it.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let stdin = child.stdin.take();
        let output = end(child);
        drop(stdin);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{arguments:?}: {said}");
        assert!(said.contains("it is more than one input, but can be read only once"), "{said}");
    }
}

#[test]
fn each_signal_that_ends_a_command_leaves_no_temporary_file() {
    for signal in ["HUP", "INT", "QUIT", "TERM"] {
        let folder = folder();
        // Under `nohup` the tests ignore SIGHUP, and so would the command.
        let mut command = Command::new("env");
        command.current_dir(folder.path());
        command.args(["--default-signal", env!("CARGO_BIN_EXE_hairline"), "convert", "-", "x.fxt"]);
        command.stdin(Stdio::piped()).stderr(Stdio::piped()).env_remove("HAIRLINE");
        let mut child = command.spawn().expect("it starts");
        let stdin = child.stdin.take();
        let began = Instant::now();
        let names = || fs::read_dir(folder.path()).expect("the folder").count();
        while names() < 3 {
            assert!(began.elapsed() < Duration::from_secs(20), "no temporary file");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(100));
        let kill = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
        assert!(kill.expect("kill").success());
        let output = end(child);
        drop(stdin);
        assert!(!output.status.success(), "{signal}");
        assert_eq!(names(), 2, "{signal}");
    }
}
