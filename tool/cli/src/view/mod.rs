//! `hairline view`

mod answers;
mod connections;
mod content;
mod http;
mod launch;
mod server;
mod token;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::str::FromStr;

use crate::incomplete::Removal;
use crate::input::open_file;
use crate::outcome::Outcome;
use crate::platform::{self, Trusted};
use crate::text::{complain, failed, say, size};
use crate::view::content::{Content, UI};
use crate::view::launch::Launch;
use crate::view::server::Server;
use crate::view::token::Token;

/// Opens a trace in the Perfetto UI.
///
/// The trace stays on this machine: the UI in the browser fetches it from this command, which then ends. Only
/// this user can fetch it, and only with the link, which contains a random number. The trace may have any
/// format that the UI knows.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline view trace.pftrace
  hairline view --no-open trace.fxt            prints the link only
  hairline view --ui ~/perfetto-ui trace.fxt   with a copy of the UI, on a machine without internet")]
pub(crate) struct Arguments {
    /// The trace; - for stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Open no browser.
    #[arg(long)]
    no_open: bool,
    /// Show this time of the trace: the begin of a slice and its duration, in nanoseconds of the trace's
    /// clock, as `hairline explain` prints them.
    #[arg(long, value_name = "BEGIN[+DURATION]", allow_hyphen_values = true)]
    at: Option<At>,
    /// Keep serving until Ctrl-C, so the page can be reloaded.
    #[arg(long)]
    keep: bool,
    /// A build of the UI (the directory with its index.html), served in place of ui.perfetto.dev until
    /// Ctrl-C.
    #[arg(long, value_name = "DIR")]
    ui: Option<PathBuf>,
    /// The port; 0 for any free one. ui.perfetto.dev can reach only the default, a copy of the UI any port.
    #[arg(long, value_name = "PORT", default_value_t = UI_PORT)]
    port: u16,
}

/// A part of a trace, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct At {
    begin: i64,
    duration: i64,
}

impl FromStr for At {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (begin, duration) = text.split_once('+').unwrap_or((text, "0"));
        let number =
            |text: &str| text.parse().map_err(|_| "not a number of nanoseconds, or two with a + between");
        let (begin, duration) = (number(begin)?, number(duration)?);
        if duration < 0 { Err("a duration below 0") } else { Ok(Self { begin, duration }) }
    }
}

impl At {
    /// The parameters of the UI. The part has a margin, and a moment has 1 ms.
    fn parameters(self) -> String {
        let margin = if self.duration == 0 { 500_000 } else { self.duration / 4 + 1 };
        let (begin, end) = (self.begin.saturating_sub(margin), self.begin.saturating_add(self.duration));
        format!("&visStart={begin}&visEnd={}", end.saturating_add(margin))
    }
}

/// Browsers give a page some 4 GiB of memory, and the UI needs several times the size of a trace.
const MOST_BYTES: u64 = 1 << 30;

/// The only local port that the UI's security policy allows.
const UI_PORT: u16 = 9001;

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    match view(arguments) {
        Ok(()) => Outcome::Done,
        Err(why) => failed(why),
    }
}

fn view(arguments: &Arguments) -> Result<(), String> {
    let (trace, name, _spooled) = trace(&arguments.trace)?;
    let ui = arguments.ui.as_deref().map(ui_build).transpose()?;
    let trusted = Trusted::new().map_err(|e| e.to_string())?;
    let server = Server::start(arguments.port).map_err(|e| taken(arguments.port, &e))?;
    let address = server.address();
    let random = |e| format!("no random number for the link: {e}");
    let token = Token::new().map_err(random)?;
    let mut content = Content { trace, name, ui, token, launch: None, trusted };
    let link = link(&content, address) + &arguments.at.map(At::parameters).unwrap_or_default();
    let is_reachable = content.ui.is_some() || address.port() == UI_PORT;
    if say(&link) != Outcome::Done {
        return Err("nobody could read the link of the trace".to_owned());
    }
    if !is_reachable {
        complain(format_args!(
            "ui.perfetto.dev cannot fetch the trace from port {}, only from {UI_PORT}: omit --port, or give a \
             copy of the UI with --ui",
            address.port()
        ));
    }
    if !arguments.no_open {
        let launch = Launch::new(link).map_err(random)?;
        if !open(&launch.address(address)) {
            complain("no browser found: open the link above in a browser on this machine");
        }
        content.launch = Some(launch);
    }
    let for_ever = arguments.keep || content.ui.is_some();
    server.serve(content, for_ever).map_err(|e| format!("{address}: {e}"))
}

/// A trace from stdin, and its removal by a signal.
type Spooled = (tempfile::NamedTempFile, Removal);

/// The file, its name, and the handles that remove a temporary file.
fn trace(path: &Path) -> Result<(PathBuf, String, Option<Spooled>), String> {
    let at = |e: io::Error| format!("{}: {e}", path.display());
    if path == Path::new("-") {
        let (mut spooled, removal) = Removal::of_new(tempfile::NamedTempFile::new).map_err(at)?;
        io::copy(&mut io::stdin().lock(), &mut spooled).map_err(at)?;
        return Ok((spooled.path().to_owned(), "stdin".to_owned(), Some((spooled, removal))));
    }
    // Checked now, not when the UI fetches it.
    let (_, len) = open_file(path).map_err(|e| match e.kind() {
        io::ErrorKind::Other => at(e) + "; `hairline view -` takes a trace from stdin",
        _ => at(e),
    })?;
    if len == 0 {
        return Err(format!("{}: is empty", path.display()));
    }
    if len > MOST_BYTES {
        complain(format_args!(
            "{}: {} may be more than a browser can hold: `hairline convert --time-range 10s..12s` writes a \
             part of it, `hairline stats` shows where the time went",
            path.display(),
            size(len)
        ));
    }
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok((path.to_owned(), name, None))
}

/// The canonical path of the UI's directory, which served paths are compared with.
fn ui_build(folder: &Path) -> Result<PathBuf, String> {
    if !folder.join("index.html").is_file() {
        return Err(format!("{}: has no index.html, and so is no build of the UI", folder.display()));
    }
    folder.canonicalize().map_err(|e| format!("{}: {e}", folder.display()))
}

fn taken(port: u16, e: &io::Error) -> String {
    let mut why = format!("127.0.0.1:{port}: {e}");
    if e.kind() == io::ErrorKind::AddrInUse {
        why += ": another `hairline view` or trace_processor uses this port; stop it";
        if port == UI_PORT {
            why += " (ui.perfetto.dev can reach no other port)";
        }
    }
    why
}

fn link(content: &Content, address: SocketAddr) -> String {
    let ui = if content.ui.is_some() {
        format!("http://{address}{}", content.ui_path())
    } else {
        format!("{UI}/")
    };
    format!("{ui}#!/?url=http://{address}{}", content.trace_path())
}

/// Starts a browser. Returns whether there is one.
fn open(link: &str) -> bool {
    platform::browser().is_some_and(|mut command| {
        command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
    })
}
