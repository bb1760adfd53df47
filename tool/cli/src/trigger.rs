//! `hairline trigger`

use hairline::wire::Packet;

use crate::listener::ask_each;
use crate::text::{one_line, say};

/// Makes the flight recorder of a running process write a snapshot.
///
/// The process must listen (HAIRLINE=listen, or `hairline::listen()`). It writes its latest events within
/// 0.2 s, as at `trigger!` in its code: to the output of its session, on its side. Triggers within the
/// recorder's interval (10 s) of one another cause one snapshot. `hairline snapshot` reads the ring from
/// outside, also of a process that does not listen, and lacks the slices on tracks that are still open.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline start server --overflow overwrite -o /var/tmp/server-%n.pftrace
  hairline trigger server")]
pub(crate) struct Arguments {
    /// The pid of a process, or its name.
    #[arg(value_name = "PID|NAME")]
    process: String,
}

pub(crate) fn run(Arguments { process }: &Arguments) -> crate::outcome::Outcome {
    ask_each(process, &Packet::new("trigger"), |process, answer| {
        let to = answer.get("output").map_or_else(|| "its output".to_owned(), one_line);
        say(format_args!("{process} writes a snapshot to {to}, on its own side"))
    })
}
