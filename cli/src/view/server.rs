//! Serves one trace to the UI, and to nobody else on this machine or its network.
//!
//! Every user of the machine can connect to the port. So all paths begin with a random token, which is in the
//! link that the user opens and nowhere else: without it there is nothing here. A page of another origin gets
//! no header that lets it read, and a name that merely leads to this address is refused.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tiny_http::{Header, Method, Request, Response, StatusCode};

use super::UI;
use crate::text::complain;

/// What is served.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) trace: PathBuf,
    /// What the trace is called.
    pub(super) name: String,
    /// The UI's files, if they are served too.
    pub(super) ui: Option<PathBuf>,
    /// What all paths on the server begin with.
    pub(super) token: Token,
    /// What the browser that this command starts is given.
    pub(super) launch: Option<Launch>,
}

/// An address that leads to the link, once, and only this user.
///
/// Every user of the machine can read the arguments of every process, so the link is no argument for a
/// browser. Nor is a file with the link in it: a browser in a sandbox of its own sees other files than this
/// process.
#[derive(Debug)]
pub(super) struct Launch {
    code: Token,
    link: String,
    is_used: Cell<bool>,
}

impl Launch {
    pub(super) fn new(link: String) -> io::Result<Self> {
        Ok(Self { code: Token::new()?, link, is_used: Cell::new(false) })
    }

    fn path(&self) -> String {
        format!("/open/{}", self.code.0)
    }

    pub(super) fn link(&self, address: SocketAddr) -> String {
        format!("http://{address}{}", self.path())
    }
}

/// 128 bits from the system as text: only who was given the link knows it.
#[derive(Debug)]
pub(super) struct Token(String);

impl Token {
    pub(super) fn new() -> io::Result<Self> {
        let mut random = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        Ok(Self(format!("{:032x}", u128::from_ne_bytes(random))))
    }
}

/// A socket of this machine that nobody else can reach.
pub(super) struct Server {
    http: tiny_http::Server,
    address: SocketAddr,
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Trace,
    /// A file of the UI.
    File(PathBuf),
    Nothing,
}

impl Server {
    pub(super) fn start(port: u16) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", port))?;
        let address = listener.local_addr()?;
        let http = tiny_http::Server::from_listener(listener, None).map_err(io::Error::other)?;
        Ok(Self { http, address })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers, until the trace was fetched, or for ever.
    pub(super) fn serve(&self, content: &Content, for_ever: bool) -> io::Result<()> {
        loop {
            let request = self.http.recv()?;
            if self.answer(request, content) && !for_ever {
                return Ok(());
            }
        }
    }

    /// Whether the trace was sent, all of it.
    fn answer(&self, request: Request, content: &Content) -> bool {
        if !self.is_meant(&request) {
            return refuse(request, 403);
        }
        if let Some(launch) = content.launch.as_ref().filter(|launch| request.url() == launch.path()) {
            answer_launch(request, launch);
            return false;
        }
        let wanted = content.wanted(request.url());
        let (path, kind) = match &wanted {
            Wanted::Trace => (content.trace.as_path(), "application/octet-stream"),
            Wanted::File(path) => (path.as_path(), media_type(path)),
            Wanted::Nothing => return refuse(request, 404),
        };
        let has_body = match request.method() {
            Method::Get => true,
            Method::Head => false,
            Method::Options => {
                let _ = request.respond(with_headers(Response::empty(204), None));
                return false;
            }
            _ => return refuse(request, 405),
        };
        let Ok((file, len)) = open(path) else { return refuse(request, 404) };
        // The length is known: with it the UI shows how far it is. A file that grows is sent as long as it was said to be.
        let mut body = file.take(len);
        let len = usize::try_from(len).ok();
        let response = Response::new(StatusCode(200), Vec::new(), &mut body, len, None);
        let response = with_headers(response.with_chunked_threshold(usize::MAX), Some(kind));
        let sent = request.respond(response);
        // A client that went away is no error to the server: what counts is whether it took all.
        wanted == Wanted::Trace && has_body && sent.is_ok() && body.limit() == 0
    }

    /// Whether the request names this server: a page of somebody else's may have let its own name lead here.
    fn is_meant(&self, request: &Request) -> bool {
        let host = request.headers().iter().find(|header| header.field.equiv("Host"));
        let port = self.address.port();
        let names = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        host.is_some_and(|host| names.iter().any(|name| name == host.value.as_str()))
    }
}

/// Leads this user's browser to the link. Another user may have read the address from the browser's
/// arguments.
fn answer_launch(request: Request, launch: &Launch) {
    let user = request.remote_addr().and_then(|client| user_of(*client));
    let is_own = user.is_none_or(|user| user == rustix::process::geteuid().as_raw());
    if !is_own {
        complain("a browser of another user was refused: open the link above yourself");
    }
    if !is_own || *request.method() != Method::Get || launch.is_used.replace(true) {
        refuse(request, 404);
        return;
    }
    let mut response = with_headers(Response::empty(302), None);
    if let Ok(location) = Header::from_bytes("Location", launch.link.as_str()) {
        response.add_header(location);
    }
    let _ = request.respond(response); // a client that went away
}

/// The user who has connected from this address of this machine. `None` where the system does not tell: there
/// is no `/proc`.
fn user_of(client: SocketAddr) -> Option<u32> {
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    let SocketAddr::V4(client) = client else { return None };
    // As the kernel prints it: the address as a number in the machine's order.
    let address = u32::from_ne_bytes(client.ip().octets());
    let local = format!("{address:08X}:{:04X}", client.port());
    let mut sockets = table.lines().map(|line| line.split_ascii_whitespace().skip(1));
    let found = sockets.find_map(|mut fields| (fields.next()? == local).then_some(fields));
    // Fields 8 of the line, which is 6 after the local address. Who has closed the socket is nobody's user.
    Some(found.and_then(|mut fields| fields.nth(5)?.parse().ok()).unwrap_or(u32::MAX))
}

/// A regular file and its length. Nonblocking: it may be a FIFO by now, which must not keep the server.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    if about.is_file() { Ok((file, about.len())) } else { Err(io::Error::other("is no file")) }
}

fn refuse(request: Request, status: u16) -> bool {
    let _ = request.respond(Response::empty(StatusCode(status))); // a client that went away
    false
}

fn with_headers<R: io::Read>(mut response: Response<R>, kind: Option<&str>) -> Response<R> {
    let headers = [
        ("Access-Control-Allow-Origin", Some(UI)),
        ("Access-Control-Allow-Private-Network", Some("true")),
        ("Cache-Control", Some("no-cache")),
        // The address of a page that is served here has the token in it.
        ("Referrer-Policy", Some("no-referrer")),
        ("Content-Type", kind),
    ];
    for (name, value) in headers.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    response
}

impl Content {
    /// Where the UI is on the server, if it is served.
    pub(super) fn ui_path(&self) -> String {
        format!("/{}/", self.token.0)
    }

    /// Where the trace is on the server. In a folder of its own where the UI has files too.
    pub(super) fn trace_path(&self) -> String {
        let folder = if self.ui.is_some() { "trace/" } else { "" };
        format!("/{}/{folder}{}", self.token.0, encoded(&self.name))
    }

    fn wanted(&self, url: &str) -> Wanted {
        let path = url.split(['?', '#']).next().unwrap_or_default();
        if path == self.trace_path() {
            return Wanted::Trace;
        }
        let Some(ui) = &self.ui else { return Wanted::Nothing };
        let Some(path) = path.strip_prefix(&self.ui_path()) else { return Wanted::Nothing };
        let path = if path.is_empty() { "index.html" } else { path };
        // The system resolves "..", links and all; what is not below the folder then is none of ours.
        let file = ui.join(decoded(path).trim_start_matches('/')).canonicalize();
        match file {
            Ok(file) if file.starts_with(ui) && file.is_file() => Wanted::File(file),
            _ => Wanted::Nothing,
        }
    }
}

/// A name as a part of a link: all but letters, digits and `-._~` by their bytes.
fn encoded(name: &str) -> String {
    let byte = |b: u8| {
        let is_plain = b.is_ascii_alphanumeric() || b"-._~".contains(&b);
        if is_plain { char::from(b).to_string() } else { format!("%{b:02X}") }
    };
    name.bytes().map(byte).collect()
}

fn decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.first_chunk::<2>().filter(|_| first == b'%');
        let byte = digits
            .and_then(|two| std::str::from_utf8(two).ok())
            .and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Without it browsers refuse scripts and WebAssembly.
fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(|e| e.to_str()).unwrap_or_default() {
        "css" => "text/css",
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript",
        "json" | "map" => "application/json",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "wasm" => "application/wasm",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_from_links() {
        for name in ["trace.pftrace", "a b%c.fxt", "läufe/1?#.json", "%", "%zz", "100%%"] {
            assert_eq!(decoded(&encoded(name)), name);
        }
        assert_eq!(encoded("a b.fxt"), "a%20b.fxt");
    }

    #[test]
    fn nothing_but_the_trace_and_the_uis_files_is_served() {
        let folder = tempfile::tempdir().expect("a folder");
        let ui = folder.path().canonicalize().expect("a path").join("ui");
        std::fs::create_dir(&ui).expect("made");
        std::fs::write(ui.join("index.html"), "").expect("written");
        std::fs::write(folder.path().join("secret"), "").expect("written");
        std::os::unix::fs::symlink(folder.path().join("secret"), ui.join("link")).expect("a link");
        let token = Token("0123456789abcdef0123456789abcdef".to_owned());
        let at = |path: &str| format!("/{}{path}", "0123456789abcdef0123456789abcdef");
        let mut content =
            Content { trace: "/t".into(), name: "a b.fxt".into(), ui: None, token, launch: None };
        assert_eq!(content.wanted(&at("/a%20b.fxt")), Wanted::Trace);
        assert_eq!(content.wanted(&at("/a%20b.fxt?x=1")), Wanted::Trace);
        let without =
            ["/", "/index.html", "/etc/passwd", "", "/../t", "a%20b.fxt", "/a%20b.fxt", "//a%20b.fxt"];
        for url in without {
            assert_eq!(content.wanted(url), Wanted::Nothing, "{url}");
        }
        for url in ["", "/", "/index.html", "/../t", "a%20b.fxt"] {
            assert_eq!(content.wanted(&at(url)), Wanted::Nothing, "{url}");
        }
        content.ui = Some(ui.clone());
        assert_eq!(content.wanted(&at("/trace/a%20b.fxt")), Wanted::Trace);
        assert_eq!(content.wanted(&at("/")), Wanted::File(ui.join("index.html")));
        for url in without.into_iter().chain(["/trace/a%20b.fxt", "/x/../index.html"]) {
            assert_eq!(content.wanted(url), Wanted::Nothing, "{url}");
        }
        for url in ["", "/../secret", "/%2e%2e/secret", "/link", "//etc/passwd", "/trace/other", "/no", "/."]
        {
            assert_eq!(content.wanted(&at(url)), Wanted::Nothing, "{url}");
        }
    }

    #[test]
    fn no_token_comes_twice() {
        let token = || Token::new().expect("random").0;
        assert!(token() != token() && token().len() == 32);
    }
}
