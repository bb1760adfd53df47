//! `hairline view`: what a browser gets, and nobody else; and what a shell and `man` are told.

mod serving;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};

use serving::{View, status};

fn hairline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hairline")).args(arguments).output().expect("it ran")
}

#[test]
fn the_ui_gets_the_trace_once_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace: Vec<u8> = (0..300_000_u32).map(|n| n as u8).collect();
    std::fs::write(folder.path().join("a trace.pftrace"), &trace).expect("written");
    std::fs::write(folder.path().join("other"), "secret").expect("written");
    let mut view = View::start(&["a trace.pftrace"], folder.path());
    let (address, token, trace_path) = (&view.address, &view.token, view.at("/a%20trace.pftrace"));
    assert_eq!(view.link, format!("https://ui.perfetto.dev/#!/?url=http://{address}{trace_path}"));
    assert!(token.len() == 32 && token.bytes().all(|b| b.is_ascii_hexdigit()), "{token}");
    for path in ["/", "/other", "/../other", "/a", "//etc/passwd"] {
        assert_eq!(view.status("GET", path), 404, "{path}");
        assert_eq!(view.status("GET", &view.at(path)), 404, "{path}");
    }
    assert_eq!(view.status("GET", &view.at("/a%20trace.pftrace/..")), 404);
    assert_eq!(view.status("POST", &trace_path), 405);
    assert_eq!(view.status("OPTIONS", &trace_path), 204);
    assert_eq!(status(&view.ask_host("GET", &trace_path, "evil.example").0), 403);
    let (head, body) = view.ask("HEAD", &trace_path);
    assert_eq!((status(&head), body.len()), (200, 0));
    assert!(head.contains("Content-Length: 300000"), "{head}");
    // None of these was the one.
    let (head, body) = view.ask("GET", &trace_path);
    assert!(head.contains("Access-Control-Allow-Origin: https://ui.perfetto.dev\r\n"), "{head}");
    assert!(head.contains("Referrer-Policy: no-referrer\r\n"), "{head}");
    assert!(body == trace);
    assert_eq!(view.child.wait().expect("its end").code(), Some(0), "it was fetched");
}

/// Another user of the machine can connect to the port, and knows the trace's name.
#[test]
fn who_was_not_given_the_link_gets_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("t.fxt"), "secret").expect("written");
    std::fs::create_dir(folder.path().join("ui")).expect("made");
    std::fs::write(folder.path().join("ui/index.html"), "<html>").expect("written");
    for arguments in [&["t.fxt"][..], &["--keep", "t.fxt"], &["--ui", "ui", "t.fxt"]] {
        let view = View::start(arguments, folder.path());
        let other = "0".repeat(32);
        let paths = ["/t.fxt", "/trace/t.fxt", "/", "/index.html", "/ui/index.html"];
        let others = paths.map(|path| format!("/{other}{path}"));
        let cut = format!("/{}/t.fxt", &view.token[..31]);
        for path in paths.into_iter().chain(others.iter().map(String::as_str)).chain([cut.as_str()]) {
            for method in ["GET", "HEAD", "OPTIONS", "POST"] {
                let (head, body) = view.ask(method, path);
                assert_eq!((status(&head), body.len()), (404, 0), "{method} {path}");
                assert!(!head.contains("Access-Control"), "{head}");
            }
        }
        let second = View::start(arguments, folder.path());
        assert_ne!(view.token, second.token);
    }
}

/// What a browser is started with is for every user to read. It leads to the link once, and only the user who
/// started the command.
#[test]
fn the_link_is_in_no_argument_of_a_process() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("t.fxt"), "secret").expect("written");
    let browser = folder.path().join("xdg-open");
    let script = "#!/bin/sh\necho \"$@\" > arguments.part\nmv arguments.part arguments\n";
    std::fs::write(&browser, script).expect("written");
    std::fs::set_permissions(&browser, PermissionsExt::from_mode(0o755)).expect("changed");
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").expect("a path"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    command.args(["view", "--keep", "--port", "0", "t.fxt"]).current_dir(folder.path());
    command.env("PATH", path).env("DISPLAY", ":0").stdout(Stdio::piped());
    let view = View::of(command.spawn().expect("it starts"));
    let began = std::time::Instant::now();
    let arguments = loop {
        match std::fs::read_to_string(folder.path().join("arguments")) {
            Ok(arguments) => break arguments,
            Err(_) => assert!(began.elapsed().as_secs() < 20, "no browser was started"),
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert!(!arguments.contains(&view.token), "{arguments}");
    let path = arguments.trim().strip_prefix(&format!("http://{}", view.address)).expect("an address");
    // Nobody else uses it up.
    let request = format!(
        "exec 3<>/dev/tcp/{}; printf 'GET {path} HTTP/1.1\\r\\nHost: {}\\r\\n\\r\\n' >&3; head -1 <&3",
        view.address.replace(':', "/"),
        view.address
    );
    let mut other = Command::new("bash");
    other.args(["-c", &request]).uid(65534).gid(65534);
    match other.output() {
        Ok(answer) => {
            let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
            assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        }
        Err(e) => eprintln!("there is no second user here ({e}): not tested"),
    }
    assert_eq!(view.status("HEAD", path), 404);
    let (head, _) = view.ask("GET", path);
    assert!(head.starts_with("HTTP/1.1 302"), "{head}");
    assert!(head.contains(&format!("Location: {}\r\n", view.link)), "{head}");
    assert_eq!(view.status("GET", path), 404, "once");
    assert_eq!(view.ask("GET", &view.at("/t.fxt")).1, b"secret");
}

#[test]
fn a_trace_that_was_fetched_in_part_may_be_fetched_again() {
    let folder = tempfile::tempdir().expect("a folder");
    // More than what the system takes off the server's hands.
    let trace = vec![7; 32 << 20];
    std::fs::write(folder.path().join("t.fxt"), &trace).expect("written");
    let mut view = View::start(&["t.fxt"], folder.path());
    let mut stream = TcpStream::connect(&view.address).expect("connected");
    write!(stream, "GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", view.at("/t.fxt"), view.address).expect("asked");
    stream.read_exact(&mut [0; 1000]).expect("some of it");
    drop(stream);
    assert!(view.ask("GET", &view.at("/t.fxt")).1 == trace);
    assert_eq!(view.child.wait().expect("its end").code(), Some(0), "it was fetched");
}

#[test]
fn a_copy_of_the_ui_is_served_with_the_trace_as_often_as_it_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("ui")).expect("made");
    std::fs::write(folder.path().join("ui/index.html"), "<html>").expect("written");
    std::fs::write(folder.path().join("ui/engine.wasm"), "wasm").expect("written");
    std::fs::write(folder.path().join("t.fxt"), "trace").expect("written");
    let view = View::start(&["--ui", "ui", "t.fxt"], folder.path());
    let address = &view.address;
    let (ui, trace) = (view.at("/"), view.at("/trace/t.fxt"));
    assert_eq!(view.link, format!("http://{address}{ui}#!/?url=http://{address}{trace}"));
    for _ in 0..2 {
        assert_eq!(view.ask("GET", &trace).1, b"trace");
        let (head, body) = view.ask("GET", &ui);
        assert!(body == b"<html>" && head.contains("Referrer-Policy: no-referrer\r\n"), "{head}");
        assert!(view.ask("GET", &view.at("/engine.wasm")).0.contains("Content-Type: application/wasm"));
        assert_eq!(view.status("GET", &view.at("/../t.fxt")), 404);
    }
}

#[test]
fn what_cannot_be_shown_is_told_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    std::fs::write(at("empty"), "").expect("written");
    std::fs::write(at("trace"), "trace").expect("written");
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = taken.local_addr().expect("its number").port().to_string();
    let all: [&[&str]; 5] = [
        &[&at("missing")],
        &[&at("empty")],
        &[&at("")],
        &["--ui", &at(""), &at("trace")],
        &["--port", &port, &at("trace")],
    ];
    for arguments in all {
        let output = hairline(&[&["view", "--no-open"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{arguments:?}: {said}");
    }
}

#[test]
fn shells_and_man_are_told_of_every_command() {
    let commands = ["record", "snapshot", "view", "recover", "ls"];
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = hairline(&["completions", shell]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && commands.iter().all(|c| text.contains(c)), "{shell}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    assert!(hairline(&["man", &folder.path().to_string_lossy()]).status.success());
    for command in commands {
        let page =
            std::fs::read_to_string(folder.path().join(format!("hairline-{command}.1"))).expect("a page");
        assert!(page.starts_with(".") && page.contains("SYNOPSIS"), "{command}");
        let help = hairline(&[command, "--help"]);
        assert!(String::from_utf8_lossy(&help.stdout).contains("Examples:"), "{command}");
    }
    assert!(String::from_utf8_lossy(&hairline(&["man"]).stdout).contains(".TH hairline 1"));
    assert_eq!(hairline(&["man", "/no/such/folder"]).status.code(), Some(1));
}
