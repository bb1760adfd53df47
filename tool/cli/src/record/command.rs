//! A trace of a command and of all that it starts.

use std::ffi::OsString;
use std::process;
use std::time::Duration;

use hairline_perf::Switches;

use crate::platform::facts::NotStarted;
use crate::platform::{self, Command};
use crate::record::arguments::{Arguments, check, output};
use crate::record::parts::Parts;
use crate::record::report::{FAILED, Failed, Made};
use crate::record::samples::{self, Opened};
use crate::record::switches::{self, Recording, States};

/// Runs the command, and records it.
pub(super) fn record(arguments: &Arguments, mut command: process::Command) -> Result<Made, Failed> {
    let failed = |why: String| Failed { why, code: FAILED };
    check(&arguments.options).map_err(failed)?;
    let (output, format) = output(arguments).map_err(failed)?;
    let mut parts = Parts::begin(&output, format, arguments.keep_parts).map_err(failed)?;
    let (mut events, mut opened) = (None, None);
    let mut open = |pid| {
        let sched = arguments.options.sched;
        let has_stacks = sched && !arguments.no_wait_stacks;
        let with_switches = |opened: Opened| if has_stacks { opened.with_switches(pid) } else { opened };
        opened =
            arguments.options.sample.map(|frequency| samples::open(pid, frequency, sched).map(with_switches));
        events = sched.then(|| match &opened {
            Some(Ok(_)) => Ok(Switches::of_records(pid)),
            _ => Switches::of_command(pid, switches::BYTES),
        });
    };
    let has_events = arguments.options.sched || arguments.options.sample.is_some();
    let before_exec: Option<&mut dyn FnMut(u32)> = if has_events { Some(&mut open) } else { None };
    let cpu_time = platform::cpu_time_of_children();
    command.envs(variables(arguments, &parts));
    let command = Command::start(command, before_exec).map_err(|e| {
        let code = if matches!(e, NotStarted::NotFound(_)) { 127 } else { 126 };
        Failed { why: e.to_string(), code }
    })?;
    if arguments.options.sched {
        parts.look_at_neighbours(); // the command does not wait for that
    }
    let (mut states, mut recording) = (None, None);
    match events {
        Some(Ok(switches)) if matches!(opened, Some(Ok(_))) => {
            match States::new(switches, parts.folder(), format) {
                Ok(made) => states = Some(made),
                Err(e) => recording = Some(Recording::begin(Err(e), parts.folder(), format)),
            }
        }
        Some(events) => recording = Some(Recording::begin(events, parts.folder(), format)),
        None => {}
    }
    if let Some(opened) = opened {
        parts.sample(opened, states);
    }
    let pid = command.pid();
    let ended = command.wait();
    let code = ended.code();
    let had = platform::cpu_time_of_children().zip(cpu_time).map(|(now, before)| now.saturating_sub(before));
    let switches = recording.map(Recording::end);
    let whole = parts.make_whole(switches, (pid, had), Duration::from_secs(arguments.wait.into()), &|| {
        ended.is_interrupted()
    });
    match whole {
        Ok((whole, parts)) => Ok(Made { whole, parts, code }),
        // The command's own failure is more important.
        Err(why) => Err(Failed { why, code: if code == 0 { FAILED } else { code } }),
    }
}

/// The environment variables for the processes.
fn variables(arguments: &Arguments, parts: &Parts) -> Vec<(&'static str, OsString)> {
    let permitted = |frequency: u32| if samples::are_permitted(frequency) { 0 } else { frequency };
    let own_sample = arguments.options.sample.map(permitted);
    let own = [
        ("HAIRLINE", Some(parts.template())),
        // This process does both for them: they need not do it again. Where it may not, they sample
        // themselves.
        ("HAIRLINE_SCHED", arguments.options.sched.then(|| "off".into())),
        ("HAIRLINE_SAMPLE", own_sample.map(|frequency| frequency.to_string().into())),
    ];
    let options = arguments.options.variables().map(|(name, value)| (name, value.map(OsString::from)));
    let options = own.into_iter().chain(options);
    options.filter_map(|(name, value)| Some((name, value?))).collect()
}
