//! `hairline view`: what a browser gets, and nobody else; and what a shell and `man` are told.

mod programs;
mod serving;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serving::{NOBODY, View, status};

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

#[test]
fn the_ui_shows_the_part_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("t.fxt"), "a trace").expect("written");
    for (at, part) in [
        ("1300000000+55000000", "visStart=1286249999&visEnd=1368750001"),
        ("-5", "visStart=-500005&visEnd=499995"),
    ] {
        let view = View::start(&["--at", at, "t.fxt"], folder.path());
        assert!(view.link.ends_with(&format!("/t.fxt&{part}")), "{}", view.link);
    }
    for wrong in ["x", "1+-1", "1s", "1+"] {
        let output = hairline(&["view", "--at", wrong, "t.fxt"]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
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
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("t.fxt"), "secret").expect("written");
    let browser = folder.path().join("xdg-open");
    programs::script(&browser, "echo \"$@\" > arguments.part; mv arguments.part arguments");
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
    if let Some(answer) = view.ask_as_nobody("127.0.0.1", path) {
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    }
    assert_eq!(view.status("HEAD", path), 404);
    let (head, _) = view.ask("GET", path);
    assert!(head.starts_with("HTTP/1.1 302"), "{head}");
    assert!(head.contains(&format!("Location: {}\r\n", view.link)), "{head}");
    assert_eq!(view.status("GET", path), 404, "once");
    assert_eq!(view.ask("GET", &view.at("/t.fxt")).1, b"secret");
}

/// A link can come into the wrong hands: by the browser's arguments, its history or a screenshot.
#[test]
fn another_user_does_not_get_the_trace_with_the_link_either() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("t.fxt");
    std::fs::write(&trace, "secret").expect("written");
    std::fs::create_dir(folder.path().join("ui")).expect("made");
    std::fs::write(folder.path().join("ui/index.html"), "<html>").expect("written");
    // The other user may enter the folder, so it is the file itself that is closed.
    let change = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode));
    change(folder.path(), 0o755).expect("changed");
    change(&trace, 0o600).expect("changed");
    if rustix::process::geteuid().is_root() {
        let read = Command::new("cat").arg(&trace).uid(NOBODY).gid(NOBODY).output().expect("cat runs");
        assert!(!read.status.success() && read.stdout.is_empty(), "{read:?}");
    }
    for arguments in [&["t.fxt"][..], &["--keep", "t.fxt"], &["--ui", "ui", "t.fxt"]] {
        let view = View::start(arguments, folder.path());
        let has_ui = arguments.contains(&"--ui");
        let path = if has_ui { "/trace/t.fxt" } else { "/t.fxt" };
        // A socket of IPv6 can connect to the same port, and is in another table of the kernel's.
        let mapped = view.address.replace("127.0.0.1", "[::ffff:127.0.0.1]");
        let has_ipv6 = TcpStream::connect(&mapped).is_ok();
        if !has_ipv6 {
            eprintln!("no sockets of IPv6 here: not tested");
        }
        for name in ["127.0.0.1", "::ffff:127.0.0.1"].into_iter().take(1 + usize::from(has_ipv6)) {
            for guessed in ["/t.fxt".to_owned(), format!("/{}{path}", "0".repeat(32))] {
                let Some(answer) = view.ask_as_nobody(name, &guessed) else { continue };
                assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
            }
            for right in [path, "/"].into_iter().take(1 + usize::from(has_ui)) {
                let Some(answer) = view.ask_as_nobody(name, &view.at(right)) else { continue };
                assert!(answer.starts_with("HTTP/1.1 403") && !answer.contains("Access-Control"), "{answer}");
                assert!(!answer.contains("secret") && !answer.contains("<html>"), "{answer}");
            }
        }
        // The user of the command is answered, by a socket of either kind.
        if has_ipv6 {
            let mut stream = TcpStream::connect(&mapped).expect("connected");
            let request = format!("HEAD {} HTTP/1.1\r\nHost: {}\r\n\r\n", view.at(path), view.address);
            stream.write_all(request.as_bytes()).expect("asked");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("answered");
            assert_eq!(status(&answer), 200);
        }
        assert_eq!(view.ask("GET", &view.at(path)).1, b"secret");
    }
}

/// `sudo hairline view`: the browser is that of the user who called sudo.
#[test]
fn the_user_who_called_sudo_gets_the_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("t.fxt"), "secret").expect("written");
    for (caller, status) in [(NOBODY, 200), (NOBODY - 1, 403)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
        command.args(["view", "--keep", "--no-open", "--port", "0", "t.fxt"]).current_dir(folder.path());
        command.env("SUDO_UID", caller.to_string()).stdout(Stdio::piped());
        let view = View::of(command.spawn().expect("it starts"));
        let Some(answer) = view.ask_as_nobody("127.0.0.1", &view.at("/t.fxt")) else { return };
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
}

#[test]
fn where_the_system_does_not_say_who_connects_nothing_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("t.fxt"), "secret").expect("written");
    let run = |script: &str| {
        let mut command = Command::new("timeout");
        command.args([
            "20",
            "unshare",
            "--mount",
            "sh",
            "-c",
            &format!("mount -t tmpfs none /proc && {script}"),
        ]);
        command.args(["sh", env!("CARGO_BIN_EXE_hairline")]).current_dir(folder.path());
        command.output().expect("it ran")
    };
    if !run("true").status.success() {
        eprintln!("no mounts of one's own here: not tested");
        return;
    }
    let output = run("exec \"$1\" view --no-open --port 0 t.fxt");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count(), output.stdout.len()), (Some(1), 1, 0), "{said}");
    assert!(said.contains("/proc/net/tcp"), "{said}");
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

#[test]
fn a_port_that_the_ui_cannot_reach_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("t.fxt"), "secret").expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    command.args(["view", "--no-open", "--port", "0", "t.fxt"]).current_dir(folder.path());
    let mut view =
        View::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"));
    assert_eq!(view.ask("GET", &view.at("/t.fxt")).1, b"secret");
    let mut said = String::new();
    view.child.stderr.take().expect("piped").read_to_string(&mut said).expect("its words");
    assert!(said.contains("ui.perfetto.dev cannot fetch the trace from port"), "{said}");
}

#[test]
fn a_trace_that_a_browser_can_hardly_hold_is_told_with_what_helps() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = std::fs::File::create(folder.path().join("t.fxt")).expect("a file");
    file.set_len(3 << 30).expect("a file with a hole");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    command.args(["view", "--no-open", "--port", "0", "t.fxt"]).current_dir(folder.path());
    let mut view =
        View::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"));
    view.child.kill().expect("it serves until the trace is fetched");
    let mut said = String::new();
    view.child.stderr.take().expect("piped").read_to_string(&mut said).expect("its words");
    assert!(
        said.contains("3.0 GiB may be more than a browser can hold") && said.contains("--time-range"),
        "{said}"
    );
}
