//! What is served, and at which paths: a trace and, if the user asks for it, a copy of the UI.
//!
//! All paths begin with a random token. It is in the link that the user opens and nowhere else.

use std::path::{Path, PathBuf};

use crate::platform::Trusted;
use crate::view::launch::Launch;
use crate::view::token::Token;

/// The address of the UI.
pub(super) const UI: &str = "https://ui.perfetto.dev";

/// The served files.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) trace: PathBuf,
    /// The trace's name.
    pub(super) name: String,
    /// The directory of the UI, if it is served too.
    pub(super) ui: Option<PathBuf>,
    /// The first part of all paths.
    pub(super) token: Token,
    /// The address for the browser that this command starts.
    pub(super) launch: Option<Launch>,
    /// The users whose requests are answered.
    pub(super) trusted: Trusted,
}

/// The resource at a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Resource {
    Trace,
    /// A file of the UI.
    File(PathBuf),
    Nothing,
}

impl Content {
    /// The path of the UI, if it is served.
    pub(super) fn ui_path(&self) -> String {
        format!("/{}/", self.token)
    }

    /// The path of the trace, in a directory of its own if the UI is served too.
    pub(super) fn trace_path(&self) -> String {
        let folder = if self.ui.is_some() { "trace/" } else { "" };
        format!("/{}/{folder}{}", self.token, encoded(&self.name))
    }

    pub(super) fn wanted(&self, url: &str) -> Resource {
        let path = url.split(['?', '#']).next().unwrap_or_default();
        if path == self.trace_path() {
            return Resource::Trace;
        }
        let Some(ui) = &self.ui else { return Resource::Nothing };
        let Some(path) = path.strip_prefix(&self.ui_path()) else { return Resource::Nothing };
        let path = if path.is_empty() { "index.html" } else { path };
        // The system resolves ".." and links. A file outside the directory is not served.
        let file = ui.join(decoded(path).trim_start_matches('/')).canonicalize();
        match file {
            Ok(file) if file.starts_with(ui) && file.is_file() => Resource::File(file),
            _ => Resource::Nothing,
        }
    }
}

/// Encodes a name for a link: all bytes except letters, digits and `-._~`.
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

/// The media type of a file of the UI. Without it browsers refuse scripts and WebAssembly.
pub(super) fn media_type(path: &Path) -> &'static str {
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
        let trusted = Trusted::new().expect("a table");
        let token = Token::from("0123456789abcdef0123456789abcdef");
        let at = |path: &str| format!("/{}{path}", "0123456789abcdef0123456789abcdef");
        let mut content =
            Content { trace: "/t".into(), name: "a b.fxt".into(), ui: None, token, launch: None, trusted };
        assert_eq!(content.wanted(&at("/a%20b.fxt")), Resource::Trace);
        assert_eq!(content.wanted(&at("/a%20b.fxt?x=1")), Resource::Trace);
        let without =
            ["/", "/index.html", "/etc/passwd", "", "/../t", "a%20b.fxt", "/a%20b.fxt", "//a%20b.fxt"];
        for url in without {
            assert_eq!(content.wanted(url), Resource::Nothing, "{url}");
        }
        for url in ["", "/", "/index.html", "/../t", "a%20b.fxt"] {
            assert_eq!(content.wanted(&at(url)), Resource::Nothing, "{url}");
        }
        content.ui = Some(ui.clone());
        assert_eq!(content.wanted(&at("/trace/a%20b.fxt")), Resource::Trace);
        assert_eq!(content.wanted(&at("/")), Resource::File(ui.join("index.html")));
        for url in without.into_iter().chain(["/trace/a%20b.fxt", "/x/../index.html"]) {
            assert_eq!(content.wanted(url), Resource::Nothing, "{url}");
        }
        for url in ["", "/../secret", "/%2e%2e/secret", "/link", "//etc/passwd", "/trace/other", "/no", "/."]
        {
            assert_eq!(content.wanted(&at(url)), Resource::Nothing, "{url}");
        }
    }
}
