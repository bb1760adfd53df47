//! `hairline view` and clients that send what no browser sends: each gets an answer at once or none, and
//! keeps nobody else waiting.

mod serving;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serving::{View, status};

/// How long an answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long an answer may take beside idle connections, which the server waits for 5 s.
const AT_ONCE: Duration = Duration::from_secs(4);

/// The command, which serves the trace `t.fxt` as often as it is asked for, and its folder.
fn view() -> (View, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("t.fxt"), "trace").expect("written");
    (View::start(&["--keep", "t.fxt"], folder.path()), folder)
}

impl View {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream
    }

    /// The status of the answer to these bytes, which nothing follows though the connection stays open.
    #[track_caller]
    fn answer_to(&self, request: &[u8]) -> u16 {
        let mut stream = self.connect();
        stream.write_all(request).expect("asked");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer and the connection's end");
        let head = String::from_utf8_lossy(&answer);
        assert!(head.contains("\r\nConnection: close\r\n"), "{head}");
        status(&head)
    }

    fn request(&self, method: &str, path: &str, fields: &str) -> Vec<u8> {
        format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{fields}\r\n", self.address).into_bytes()
    }

    /// That a browser still gets the trace, at once.
    #[track_caller]
    fn still_serves(&self) {
        let began = Instant::now();
        assert_eq!(self.ask("GET", &self.at("/t.fxt")).1, b"trace");
        assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    }
}

/// A body is of no use to the server, so it is never waited for, whatever its announcement says.
#[test]
fn a_body_that_is_announced_keeps_nobody_waiting() {
    let (view, _folder) = view();
    let path = view.at("/t.fxt");
    for announced in [
        "Content-Length: 18446744073709551615",
        "Content-Length: 99999999999999999999999999",
        "Content-Length: 9223372036854775807",
        "Content-Length: 1000000000000",
        "Content-Length: 10",
        "Content-Length: -1",
        "Content-Length: many",
        "Content-Length: 5\r\nContent-Length: 6",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 7",
        "Expect: 100-continue\r\nContent-Length: 10",
    ] {
        let fields = format!("{announced}\r\n");
        let status = |method, path| view.answer_to(&view.request(method, path, &fields));
        assert_eq!(status("POST", "/"), 404, "{announced}");
        assert_eq!(status("POST", &path), 405, "{announced}");
        assert_eq!(status("GET", &path), 200, "{announced}");
    }
    view.still_serves();
}

/// The answer arrives although the client has sent more than the server reads.
#[test]
fn a_body_that_comes_destroys_no_answer() {
    let (view, _folder) = view();
    let path = view.at("/t.fxt");
    for _ in 0..50 {
        let mut request = view.request("POST", &path, "Content-Length: 30000\r\n");
        request.resize(request.len() + 30_000, b'x');
        assert_eq!(view.answer_to(&request), 405);
    }
}

#[test]
fn a_head_of_more_than_8_kib_is_refused() {
    let (view, _folder) = view();
    let path = view.at("/t.fxt");
    let of_len = |len: usize| {
        let around = view.request("GET", &path, "X: \r\n").len();
        view.request("GET", &path, &format!("X: {}\r\n", "x".repeat(len - around)))
    };
    assert_eq!(view.answer_to(&of_len(8192)), 200);
    assert_eq!(view.answer_to(&of_len(8193)), 431);
    assert_eq!(view.answer_to(&of_len(100_000)), 431);
    let without_end = b"GET /".iter().copied().chain(std::iter::repeat_n(b'x', 100_000)).collect::<Vec<_>>();
    assert_eq!(view.answer_to(&without_end), 431);
    assert_eq!(view.answer_to(&view.request("GET", &path, &"X: x\r\n".repeat(1000))), 431);
    view.still_serves();
}

#[test]
fn what_is_no_request_is_refused() {
    let (view, _folder) = view();
    let path = view.at("/t.fxt");
    for request in [
        "\0\0\0\0\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        format!("GET {path}\r\n\r\n"),
        format!("GET {path} HTTP/2.0\r\n\r\n"),
        format!("GET {path} HTTP/1.1\r\nno field\r\n\r\n"),
    ] {
        assert_eq!(view.answer_to(request.as_bytes()), 400, "{request:?}");
    }
    for fields in ["", "Host: \r\n", "Host: 127.0.0.1\r\n", "Host: evil.example\r\n"] {
        let request = format!("GET {path} HTTP/1.1\r\n{fields}\r\n");
        assert_eq!(view.answer_to(request.as_bytes()), 403, "{fields:?}");
    }
    // It could be that a proxy heeds the one, and this server the other.
    let twice = view.request("GET", &path, "Host: evil.example\r\n");
    assert_eq!(view.answer_to(&twice), 403);
    view.still_serves();
}

#[test]
fn connections_that_send_nothing_keep_nobody_waiting() {
    let (view, _folder) = view();
    let mut idle = Vec::new();
    for _ in 0..16 {
        let mut stream = view.connect();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: ").expect("sent");
        idle.push(stream);
    }
    view.still_serves();
    // Any number of them.
    idle.extend((0..300).map(|_| view.connect()));
    view.still_serves();
    let threads = std::fs::read_dir(format!("/proc/{}/task", view.child.id())).expect("threads").count();
    assert!(threads < 50, "{threads} threads");
}

/// A time limit for each read would be met by a byte now and then.
#[test]
fn a_head_that_comes_byte_by_byte_is_not_waited_for() {
    let (view, _folder) = view();
    let mut stream = view.connect();
    stream.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
    let began = Instant::now();
    loop {
        let sent = stream.write_all(b"G");
        match stream.read(&mut [0; 1]) {
            _ if sent.is_err() => break,
            Ok(_) => break,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
        assert!(began.elapsed() < Duration::from_secs(15), "it is still waited for");
        thread::sleep(Duration::from_millis(100));
    }
    view.still_serves();
}

/// Who asks for the trace and then takes none of it is no hindrance to others.
#[test]
fn a_client_that_reads_nothing_keeps_nobody_waiting() {
    let folder = tempfile::tempdir().expect("a folder");
    // More than what the system takes off the server's hands.
    std::fs::write(folder.path().join("t.fxt"), vec![7; 32 << 20]).expect("written");
    let view = View::start(&["--keep", "t.fxt"], folder.path());
    let mut slow = view.connect();
    slow.write_all(&view.request("GET", &view.at("/t.fxt"), "")).expect("asked");
    thread::sleep(Duration::from_millis(100));
    let mut other = view.connect();
    other.write_all(&view.request("HEAD", &view.at("/t.fxt"), "")).expect("asked");
    let mut answer = Vec::new();
    other.read_to_end(&mut answer).expect("an answer");
    assert_eq!(status(&String::from_utf8_lossy(&answer)), 200);
}
