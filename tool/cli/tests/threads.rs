//! `--threads`: what a command writes and says does not depend on it.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

/// A trace of more than a block, with names, arguments and counters.
fn trace() -> String {
    let event = |n: u32| match n % 4 {
        0 => format!(r#"{{"ph":"B","ts":{n},"pid":1,"tid":{},"name":"name {}"}}"#, n % 3, n % 100),
        1 => format!(r#"{{"ph":"E","ts":{n},"pid":1,"tid":{},"args":{{"n":{n}}}}}"#, (n - 1) % 3),
        2 => format!(r#"{{"ph":"C","ts":{n},"pid":1,"name":"count","args":{{"value":{n}}}}}"#),
        _ => format!(r#"{{"ph":"X","ts":{n},"dur":1,"pid":1,"tid":9,"name":"text {n}"}}"#),
    };
    format!("[{}]", (0..20_000).map(event).collect::<Vec<_>>().join(",\n"))
}

fn command(folder: &Path, threads: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    command.current_dir(folder).args(arguments).args(["--threads", threads]);
    command.env_remove("HAIRLINE").stdin(Stdio::null());
    command
}

/// The exit code and what is printed.
fn said(folder: &Path, threads: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = command(folder, threads, arguments).output().expect("it ran");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// All files below a folder, with their content.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below it").display().to_string();
                all.push((name, fs::read(&path).expect("read")));
            }
        }
    }
    all.sort();
    all
}

/// Writes the trace in each format, plain and packed, whole and cut. Returns the names.
fn inputs(folder: &Path) -> Vec<String> {
    fs::write(folder.join("a.json"), trace()).expect("written");
    for other in ["a.fxt", "a.pftrace"] {
        assert_eq!(said(folder, "1", &["convert", "a.json", other]).0, Some(0));
    }
    let mut names = Vec::new();
    for name in ["a.json", "a.fxt", "a.pftrace"] {
        let plain = fs::read(folder.join(name)).expect("read");
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all(&plain).expect("packed");
        let gz = gz.finish().expect("packed");
        let zst = zstd::encode_all(&plain[..], 1).expect("packed");
        for (end, bytes) in [("", &plain), (".gz", &gz), (".zst", &zst)] {
            // Cut in the first block, in the last one, and in the middle of one.
            for (cut, len) in [("", bytes.len()), ("1", 1000), ("2", bytes.len() / 2), ("3", bytes.len() - 5)]
            {
                let name = format!("{cut}{name}{end}");
                fs::write(folder.join(&name), &bytes[..len]).expect("written");
                names.push(name);
            }
            let mut damaged = bytes.clone();
            let middle = bytes.len() / 2;
            damaged[middle..middle + 64].fill(0xa5);
            let name = format!("damaged-{name}{end}");
            fs::write(folder.join(&name), damaged).expect("written");
            names.push(name);
        }
    }
    names
}

#[test]
fn outputs_do_not_depend_on_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let inputs = inputs(folder.path());
    assert_eq!(inputs.len(), 3 * 3 * 5);
    let [one, two] = ["1", "2"].map(|threads| folder.path().join(threads));
    for (input, n) in inputs.iter().zip(0..) {
        let input = format!("../{input}");
        // Each input to one format, so that all formats come from all.
        let output = ["o.json", "o.fxt.gz", "o.pftrace", "o.json.gz", "o.fxt"][n % 5];
        let all: [&[&str]; 5] = [
            &["convert", &input, output],
            &["stats", "--json", &input],
            &["validate", &input],
            &["convert", &input, "-", "--to", "json"],
            &["export", &input, "-o", "tables"],
        ];
        let ran = [(&one, "1"), (&two, "2")].map(|(folder, threads)| {
            fs::create_dir(folder).expect("made");
            let said = all.map(|arguments| said(folder, threads, arguments));
            let files = files(folder);
            fs::remove_dir_all(folder).expect("removed");
            (said, files)
        });
        let [(one_said, one_files), (two_said, two_files)] = ran;
        assert_eq!(one_said, two_said, "{input}");
        let names =
            |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&one_files), names(&two_files), "{input}");
        assert!(one_files == two_files, "{input}: the files differ");
    }
}

/// An input that is no trace ends the command, although the writer of the pipe writes no more and stays.
#[test]
fn no_command_waits_for_a_pipe_that_it_does_not_need() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = command(folder.path(), "2", &["convert", "-", "o.json"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all("no trace\n".repeat(1000).as_bytes()).expect("written");
    let began = Instant::now();
    while child.try_wait().expect("a state").is_none() {
        if began.elapsed() > Duration::from_secs(20) {
            child.kill().expect("killed");
            panic!("it waits for more");
        }
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(child.wait().expect("its end").code(), Some(1));
    drop(stdin);
    assert!(files(folder.path()).is_empty(), "nothing is left");
}

/// The reader of an output gets events while the pipe of the input is open.
#[test]
fn a_live_input_is_converted_as_it_comes() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = command(folder.path(), "2", &["convert", "-", "-", "--to", "fxt"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let (mut stdin, mut stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let ((over, is_over), (came, has_come)) = (channel::<()>(), channel());
    let writer = thread::spawn(move || {
        stdin.write_all(trace().as_bytes()).expect("written");
        let _ = is_over.recv(); // an error when it is dropped
    });
    let reader = thread::spawn(move || {
        stdout.read_exact(&mut [0; 1 << 16]).expect("some events");
        came.send(()).expect("it waits");
        io::copy(&mut stdout, &mut io::sink()).expect("the rest")
    });
    has_come.recv_timeout(Duration::from_secs(60)).expect("events while the input is open");
    drop(over);
    writer.join().expect("written");
    assert!(reader.join().expect("read") > 0);
    assert!(child.wait().expect("its end").success());
}
