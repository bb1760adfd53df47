//! `hairline start` and `hairline stop`: a session of a running process that outlives the command.

use std::path::PathBuf;

use hairline::wire::Packet;

use crate::listener::ask_each;
use crate::outcome::Outcome;
use crate::record::{Options, check};
use crate::text::{complain, count, grouped_count, one_line, say, size};

/// Starts a session in a running process, which outlives this command.
///
/// The process must listen (HAIRLINE=listen, or `hairline::listen()`). It opens the trace itself: FILE is a path
/// in the process's file system, and the process needs the right to write there. The session ends with
/// `hairline stop`, or with the process. A session that the program itself starts meanwhile is a handle of
/// this one, and ends it too. `hairline record -p` records for as long as the command runs, into a file on
/// the command's side.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline start server -o /var/tmp/server.pftrace
  hairline start 4711 -o /var/tmp/%e-%p.fxt --categories 'net,db.*'
  hairline stop server")]
pub(crate) struct Arguments {
    /// The pid of a process, or its name.
    #[arg(value_name = "PID|NAME")]
    process: String,
    /// The trace file: an absolute path on the side of the process, .pftrace or .fxt. It is replaced like the
    /// output of every session: a trace without its end stays, and the new one takes the next free name. %p
    /// becomes the process's id, %e its name, %h the host, %t the time, %u a random number, %n the first
    /// number whose name is free.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    options: Options,
}

/// Ends the session that `hairline start` has started in a running process.
///
/// Waits until the trace is complete. Other sessions are left alone: that of `hairline record -p` ends
/// with its command, that of the program or of the environment with the process.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline stop 4711
  hairline stop server")]
pub(crate) struct StopArguments {
    /// The pid of a process, or its name.
    #[arg(value_name = "PID|NAME")]
    process: String,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { process, output, options } = arguments;
    if let Err(why) = check(options) {
        complain(why);
        return Outcome::Usage;
    }
    if !output.is_absolute() || output.to_str().is_none() {
        let output = output.display();
        complain(format_args!(
            "{output}: give an absolute path in UTF-8: the process opens it, in its own file system"
        ));
        return Outcome::Usage;
    }
    let request = options.request("start", output);
    ask_each(process, &request, |process, answer| {
        let to = answer.get("output").map_or_else(|| output.display().to_string(), one_line);
        let pid = process.pid;
        say(format_args!("{process} records to {to}, on its own side; `hairline stop {pid}` ends it"))
    })
}

pub(crate) fn stop(StopArguments { process }: &StopArguments) -> Outcome {
    ask_each(process, &Packet::new("stop"), |process, answer| {
        let number = |name: &str| answer.get(name).and_then(|n| n.parse().ok()).unwrap_or(0);
        let why = answer.all("why").collect::<Vec<_>>();
        answer
            .all("note")
            .chain(why.iter().copied())
            .for_each(|note| complain(format_args!("{process}: {note}")));
        let lost = match number("lost") {
            0 => String::new(),
            lost => format!(", {} lost", count(lost, "event")),
        };
        let output = answer.get("output").map_or_else(String::new, one_line);
        let records = grouped_count(number("records"), "record");
        let said = say(format_args!("{process}: {output}: {records}, {}{lost}", size(number("bytes"))));
        if why.is_empty() { said } else { Outcome::Failed }
    })
}
