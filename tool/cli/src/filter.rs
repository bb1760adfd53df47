//! `hairline filter`

use hairline::wire::Packet;

use crate::listener::ask_each;
use crate::outcome::Outcome;
use crate::record::LEVELS;
use crate::text::complain;

/// Changes what a running process records.
///
/// The process must listen (HAIRLINE=listen, or `hairline::listen()`), and a session must run in it: that of
/// `hairline record -p`, or its own. The change counts from now on, and until that session ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline filter 4711 'net,db.*'
  hairline filter server --level debug")]
pub(crate) struct Arguments {
    /// The pid of a process, or its name.
    #[arg(value_name = "PID|NAME")]
    process: String,
    /// The categories to record: "net,db.*,-db.verbose".
    #[arg(value_name = "FILTER", required_unless_present = "level", allow_hyphen_values = true)]
    categories: Option<String>,
    /// The most verbose level of the crates `tracing` and `log` that is recorded.
    #[arg(long, value_name = "LEVEL", value_parser = LEVELS)]
    level: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if let Some(Err(e)) = arguments.categories.as_deref().map(hairline::Filter::parse) {
        complain(e);
        return Outcome::Usage;
    }
    let options = [("HAIRLINE_CATEGORIES", &arguments.categories), ("HAIRLINE_LEVEL", &arguments.level)];
    let request = options.into_iter().fold(Packet::new("filter"), |packet, (name, value)| match value {
        Some(value) => packet.with(name, value),
        None => packet,
    });
    ask_each(&arguments.process, &request, |_, _| Outcome::Done)
}
