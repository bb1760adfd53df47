//! One request and one answer on a connection: the part of HTTP/1.1 that `hairline view` needs.
//!
//! A client can send anything. So the head of a request has a length limit and a time limit, and the server
//! ignores everything after the head. It closes the connection after the answer, so the rest of a request is
//! never taken for a new one.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// The longest head of a request, in bytes. Browsers send less than 1 KiB.
const LONGEST_HEAD: usize = 8 << 10;

/// The most fields of a head. Browsers send 20.
const MOST_FIELDS: usize = 100;

/// How long a client may take to close its end after the answer.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);

/// The head of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// The field `Host`. `None` if it is missing, repeated or not UTF-8.
    pub(super) host: Option<String>,
}

/// Why there is no request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoRequest {
    /// The client closed the connection, or sent no complete head in time.
    Silence,
    /// The client sent something else. The value is the status of the answer.
    Refused(u16),
}

impl Request {
    /// Reads the head of a request, and waits `patience` for all of it.
    pub(super) fn read(mut stream: &TcpStream, patience: Duration) -> Result<Self, NoRequest> {
        let until = Instant::now() + patience;
        let mut head = [0; LONGEST_HEAD];
        let mut len = 0;
        while len < head.len() {
            // The remaining time for the whole head. A limit for each read would restart with each byte.
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
                return Err(NoRequest::Silence);
            }
            match stream.read(&mut head[len..]) {
                Ok(read) if read > 0 => len += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                _ => return Err(NoRequest::Silence),
            }
            if let Some(request) = Self::parse(&head[..len])? {
                return Ok(request);
            }
        }
        Err(NoRequest::Refused(431))
    }

    /// `None` if the head is not complete.
    fn parse(head: &[u8]) -> Result<Option<Self>, NoRequest> {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        match request.parse(head) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(NoRequest::Refused(431)),
            Err(_) => return Err(NoRequest::Refused(400)),
        }
        let mut hosts = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
        let host = hosts.next().filter(|_| hosts.next().is_none());
        Ok(Some(Self {
            method: request.method.unwrap_or_default().to_owned(),
            path: request.path.unwrap_or_default().to_owned(),
            host: host.and_then(|field| String::from_utf8(field.value.to_vec()).ok()),
        }))
    }
}

/// What follows the head of an answer.
#[derive(Debug)]
pub(super) enum Body {
    None,
    /// Nothing, but the head has the length in bytes: the answer to HEAD.
    Announced(u64),
    /// The first bytes of a file. A growing file is sent up to the length in the head.
    File(File, u64),
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    status: u16,
    fields: Vec<(&'static str, String)>,
    body: Body,
}

impl Answer {
    /// An answer without a body.
    pub(super) fn new(status: u16) -> Self {
        Self { status, fields: Vec::new(), body: Body::None }
    }

    /// Adds a field. The value must have no line ends.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    pub(super) fn with_body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    fn head(&self) -> String {
        let mut head = format!("HTTP/1.1 {} {}\r\nConnection: close\r\n", self.status, reason(self.status));
        let len = match self.body {
            Body::None if self.status == 204 => None, // by its status it has no length
            Body::None => Some(0),
            // With the length the UI can show its progress.
            Body::Announced(len) | Body::File(_, len) => Some(len),
        };
        for (name, value) in &self.fields {
            head += &format!("{name}: {value}\r\n");
        }
        if let Some(len) = len {
            head += &format!("Content-Length: {len}\r\n");
        }
        head + "\r\n"
    }

    /// Sends the answer.
    ///
    /// # Errors
    /// Fails if the client goes away or accepts nothing for `patience`, or if the file became shorter.
    pub(super) fn send(self, mut stream: &TcpStream, patience: Duration) -> io::Result<()> {
        stream.set_write_timeout(Some(patience))?;
        stream.write_all(self.head().as_bytes())?;
        let Body::File(file, len) = self.body else { return Ok(()) };
        if io::copy(&mut file.take(len), &mut stream)? < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

/// Closes a connection after the client received the answer. Reads the rest of the request first, because the
/// system would otherwise reset the connection and discard the answer.
pub(super) fn close(mut stream: &TcpStream) {
    let until = Instant::now() + CLOSE_PATIENCE;
    let mut rest = [0; 4096];
    if stream.shutdown(Shutdown::Write).is_err() {
        return;
    }
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return;
        }
        match stream.read(&mut rest) {
            Ok(read) if read > 0 => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

/// The text of a status.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        302 => "Found",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn a_request_has_one_host_or_none() {
        let host = |fields: &str| {
            let head = format!("GET /a?b HTTP/1.1\r\n{fields}\r\n");
            let request = Request::parse(head.as_bytes()).expect("a request").expect("whole");
            assert_eq!((&*request.method, &*request.path), ("GET", "/a?b"));
            request.host
        };
        assert_eq!(host("host: a:1\r\nX: y\r\n").as_deref(), Some("a:1"));
        for fields in ["", "X: y\r\n", "Host: a\r\nHost: a\r\n", "Host: \u{e4}\r\nHost: a\r\n"] {
            assert_eq!(host(fields), None, "{fields}");
        }
    }

    /// A client that takes nothing of a long answer.
    #[test]
    fn an_answer_that_nobody_takes_ends() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let (server, _) = listener.accept().expect("accepted");
        let file = tempfile::tempfile().expect("a file");
        // More than the system buffers.
        file.set_len(64 << 20).expect("grown");
        let answer = Answer::new(200).with_body(Body::File(file, 64 << 20));
        let sent = thread::spawn(move || answer.send(&server, Duration::from_millis(100)));
        let began = Instant::now();
        sent.join().expect("no panic").expect_err("nobody took it");
        assert!(began.elapsed() < Duration::from_secs(20));
        drop(client);
    }
}
