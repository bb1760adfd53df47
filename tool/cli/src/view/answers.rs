//! What a request gets: the trace, a file of the UI, or a refusal.
//!
//! Every user of the machine can connect to the port. Without the token there is nothing here, and with the
//! token there is nothing for another user. A page of another origin gets no field that lets it read, and a
//! name that merely leads to this address is refused.

use std::net::SocketAddr;

use crate::input::open_file;
use crate::platform::facts::Client;
use crate::text::complain;
use crate::view::content::{Content, Resource, UI, media_type};
use crate::view::http::{Answer, Body, Request};
use crate::view::launch::Launch;

/// An answer, and its content.
pub(super) struct Reply {
    pub(super) answer: Answer,
    /// Whether it contains the whole trace.
    pub(super) has_trace: bool,
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self { answer, has_trace: false }
    }
}

/// The answer to a request of `client` to `server`.
pub(super) fn reply(request: &Request, client: SocketAddr, server: SocketAddr, content: &Content) -> Reply {
    if !is_meant(request, server) {
        return Answer::new(403).into();
    }
    if let Some(launch) = content.launch.as_ref().filter(|launch| request.path == launch.path()) {
        let client = content.trusted.client(client, server);
        return to_link(request, client, launch).into();
    }
    let wanted = content.wanted(&request.path);
    let (path, kind) = match &wanted {
        Resource::Trace => (content.trace.as_path(), "application/octet-stream"),
        Resource::File(path) => (path.as_path(), media_type(path)),
        Resource::Nothing => return Answer::new(404).into(),
    };
    // Checked after the token, because reading a table of all sockets takes time that only the owner of the
    // token may use.
    let client = content.trusted.client(client, server);
    if client != Client::Trusted {
        if let Client::Other(user) = client {
            complain(format_args!("user {user} has the link and was refused"));
        }
        return Answer::new(403).into();
    }
    let has_body = match &*request.method {
        "GET" => true,
        "HEAD" => false,
        "OPTIONS" => return for_the_ui(Answer::new(204)).into(),
        _ => return Answer::new(405).with("Allow", "GET, HEAD, OPTIONS").into(),
    };
    let Ok((file, len)) = open_file(path) else { return Answer::new(404).into() };
    let body = if has_body { Body::File(file, len) } else { Body::Announced(len) };
    let answer = for_the_ui(Answer::new(200)).with("Content-Type", kind).with_body(body);
    Reply { answer, has_trace: wanted == Resource::Trace && has_body }
}

/// Whether the request names this server. Another web site's name may resolve to this address.
fn is_meant(request: &Request, server: SocketAddr) -> bool {
    let names = [format!("127.0.0.1:{}", server.port()), format!("localhost:{}", server.port())];
    request.host.as_ref().is_some_and(|host| names.contains(host))
}

/// Leads this user's browser to the link. Another user may have read the address from the browser's
/// arguments.
fn to_link(request: &Request, client: Client, launch: &Launch) -> Answer {
    let is_trusted = client == Client::Trusted;
    if !is_trusted {
        complain("a browser of another user was refused: open the link above yourself");
    }
    if !is_trusted || request.method != "GET" {
        return Answer::new(404);
    }
    match launch.take_link() {
        Some(link) => for_the_ui(Answer::new(302)).with("Location", link),
        None => Answer::new(404),
    }
}

/// Lets the UI read the answer, and no other page.
fn for_the_ui(answer: Answer) -> Answer {
    answer
        .with("Access-Control-Allow-Origin", UI)
        .with("Access-Control-Allow-Private-Network", "true")
        .with("Cache-Control", "no-cache")
        // The address of a page that is served here has the token in it.
        .with("Referrer-Policy", "no-referrer")
}
