//! `hairline filter`

use hairline::wire::Packet;

use crate::listener::{Listener, processes_of};
use crate::outcome::Outcome;
use crate::record::LEVELS;
use crate::text::{complain, failed};

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
    let processes = match processes_of(&arguments.process) {
        Ok(processes) => processes,
        Err(why) => {
            complain(why);
            return Outcome::NotFound;
        }
    };
    for pid in processes {
        let listener = match Listener::connect(pid) {
            Ok(listener) => listener,
            Err(why) => {
                complain(why);
                return Outcome::NotFound;
            }
        };
        if let Err(why) = listener.ask(&request, None) {
            return failed(why);
        }
    }
    Outcome::Done
}
