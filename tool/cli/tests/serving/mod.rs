//! `hairline view` as its clients meet it.

#![allow(dead_code)] // each test program needs a part of it

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// User and group of `nobody`.
pub(crate) const NOBODY: u32 = 65534;

/// The command, serving; where; the link that it printed; and the token in it, which all paths begin with.
pub(crate) struct View {
    pub(crate) child: Child,
    pub(crate) address: String,
    pub(crate) link: String,
    pub(crate) token: String,
}

impl View {
    /// On a free port.
    pub(crate) fn start(arguments: &[&str], folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
        command.args(["view", "--no-open", "--port", "0"]).args(arguments).current_dir(folder);
        Self::of(command.stdout(Stdio::piped()).spawn().expect("it starts"))
    }

    pub(crate) fn of(mut child: Child) -> Self {
        let mut link = String::new();
        BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut link).expect("a link");
        let at = link.rfind("http://").expect("an address") + "http://".len();
        let mut parts = link[at..].split('/').map(str::to_owned);
        let (address, token) = (parts.next().expect("an address"), parts.next().expect("a token"));
        Self { child, address, link: link.trim().to_owned(), token }
    }

    /// The path with the token.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("/{}{path}", self.token)
    }

    /// The answer's head and body.
    pub(crate) fn ask(&self, method: &str, path: &str) -> (String, Vec<u8>) {
        self.ask_host(method, path, &self.address)
    }

    pub(crate) fn ask_host(&self, method: &str, path: &str, host: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.address).expect("connected");
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .expect("asked");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("answered");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
        let body = answer.split_off(end);
        (String::from_utf8(answer).expect("text"), body)
    }

    /// The answer to a GET of `nobody`, by one of the names of 127.0.0.1. `None`, with a line on stderr,
    /// where this test does not run as root.
    pub(crate) fn ask_as_nobody(&self, name: &str, path: &str) -> Option<String> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("not root here, so there is no second user: not tested");
            return None;
        }
        let port = self.address.rsplit(':').next().expect("a port");
        let request = format!("GET {path} HTTP/1.1\\r\\nHost: {}\\r\\n\\r\\n", self.address);
        let script = format!("id -u; exec 3<>/dev/tcp/{name}/{port}; printf '{request}' >&3; cat <&3");
        let mut command = Command::new("bash");
        let output = command.args(["-c", &script]).uid(NOBODY).gid(NOBODY).output().expect("bash runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let answer = said.strip_prefix(&format!("{NOBODY}\n")).expect("another user");
        assert!(answer.starts_with("HTTP/1.1 "), "{output:?}");
        Some(answer.to_owned())
    }

    pub(crate) fn status(&self, method: &str, path: &str) -> u16 {
        status(&self.ask(method, path).0)
    }
}

pub(crate) fn status(head: &str) -> u16 {
    head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status")
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
