//! `hairline record`

mod arguments;
mod command;
mod neighbours;
mod parts;
mod quiet;
mod report;
mod running;
mod samples;
mod switches;
mod told;
mod trial;

use std::process::{self, ExitCode};

use crate::record::arguments::policy;
pub(crate) use crate::record::arguments::{Arguments, LEVELS, Options, check};
pub(crate) use crate::record::parts::PARTS;
pub(crate) use crate::record::report::FAILED;
use crate::record::report::{Failed, Made, report};
pub(crate) use crate::record::trial::{Trial, of_command, of_process};
use crate::text::complain;

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match record(arguments) {
        Ok(Made { whole, parts, code }) => {
            let waits = matches!(policy(&arguments.options), hairline::Overflow::Block(_));
            report(&whole, &parts, waits);
            parts.end();
            ExitCode::from(code)
        }
        Err(Failed { why, code }) => {
            complain(why);
            ExitCode::from(code)
        }
    }
}

fn record(arguments: &Arguments) -> Result<Made, Failed> {
    if !arguments.process.is_empty() {
        return running::record(arguments);
    }
    let mut command = process::Command::new(arguments.command.first().cloned().unwrap_or_default());
    command.args(arguments.command.iter().skip(1));
    command::record(arguments, command)
}
