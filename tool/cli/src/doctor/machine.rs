//! This machine and this environment: what each session needs.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use hairline::Format;
use hairline_perf::{Attributes, Event};

use crate::doctor::finding::Finding;
use crate::platform;
use crate::record::{Trial, of_command};
use crate::text::{shown, size};

/// Less free memory for regions than this is little: a region has 16 MiB without `--buffer`.
const LITTLE: u64 = 64 << 20;

pub(super) fn findings() -> Vec<Finding> {
    let mut findings = vec![clock(), regions(), events_of_the_kernel()];
    findings.extend(variables());
    findings.extend(test_event());
    findings
}

fn clock() -> Finding {
    if hairline::has_steady_counter() {
        return Finding::good("clock", "the processor's counter, which is steady");
    }
    Finding::remark(
        "clock",
        "the processor's counter is not steady, or the system does not use it",
        "each event asks the system for the time, which costs more",
    )
}

/// The variables of the environment. The recorder says which begin with `HAIRLINE_` and are none of its own.
fn variables() -> Vec<Finding> {
    const WHAT: &str = "HAIRLINE";
    let is_set = |(_, value): &(OsString, OsString)| !value.is_empty();
    let all = std::env::vars_os().filter(is_set).map(|(name, _)| name.to_string_lossy().into_owned());
    // As `HAIRLIN`, `hairline` and `HAIRLIEN_SCHED`.
    let stem = |name: &str| name.split('_').next().map(str::to_owned).unwrap_or_default();
    let is_close = |stem: &str| stem.len() < 10 && stem.to_ascii_uppercase().starts_with("HAIRL");
    let (own, close): (Vec<String>, Vec<String>) =
        all.filter(|name| is_close(&stem(name))).partition(|name| stem(name) == WHAT);
    let wrong = close.into_iter().map(|name| {
        let found = format!("{name} is none of the recorder's variables, and has no effect");
        Finding::wrong(WHAT, found, "do you mean HAIRLINE?")
    });
    let mut findings: Vec<Finding> = wrong.collect();
    match std::env::var_os(WHAT).filter(|value| !value.is_empty()) {
        Some(value) => findings.push(output(&value)),
        None if !own.is_empty() && findings.is_empty() => {
            let found = format!("it is not set: with {} alone nothing is recorded", own.join(", "));
            let advice = "set HAIRLINE=trace.pftrace too, or start the program with `hairline record`";
            findings.push(Finding::remark(WHAT, found, advice));
        }
        None => {}
    }
    findings
}

/// The folder of the regions.
fn regions() -> Finding {
    const WHAT: &str = "shared memory";
    let folder = hairline_shm::folder();
    let at = folder.display();
    let without = "sessions use memory that a kill loses: mount a tmpfs there that this user may write";
    if let Err(e) = tempfile::Builder::new().prefix(".doctor-").tempfile_in(&folder) {
        return Finding::remark(WHAT, format!("{at}: {}", without_path(&e)), without);
    }
    match platform::free_bytes(&folder) {
        Some(free) if free < LITTLE => {
            let found = format!("{at}: {} are free", size(free));
            Finding::remark(WHAT, found, "a session needs 16 MiB, or its --buffer: make more room there")
        }
        Some(free) => Finding::good(WHAT, format!("{at}: {} are free", size(free))),
        None => Finding::good(WHAT, format!("{at} can be written")),
    }
}

fn events_of_the_kernel() -> Finding {
    const WHAT: &str = "events of the kernel";
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let paranoid = match paranoid.trim() {
        "" => String::new(),
        level => format!(" (kernel.perf_event_paranoid is {level})"),
    };
    let opened: io::Result<Vec<Event>> = [Attributes::switches(), Attributes::cpu_clock(1)]
        .iter()
        .map(|attributes| Event::open(attributes, 0, None))
        .collect();
    match opened {
        Ok(_) => Finding::good(WHAT, format!("--sched and --sample have them{paranoid}")),
        Err(e) => {
            let found = format!(
                "{e}: no --sched, and --sample only of programs with the feature `sampling`{paranoid}"
            );
            Finding::remark(WHAT, found, hairline_perf::advice(&e))
        }
    }
}

/// Whether the value of `HAIRLINE` asks for no session, but to wait for one.
pub(super) fn is_waiting(value: &OsString) -> bool {
    value
        .to_str()
        .is_some_and(|value| value.split(',').all(|word| matches!(word.trim(), "listen" | "traced")))
}

/// Perfetto's tracing service, with which a program registers.
fn service() -> Finding {
    let named = std::env::var("PERFETTO_PRODUCER_SOCK_NAME").ok().filter(|name| !name.is_empty());
    let folder = Path::new("/run/perfetto");
    let path = match named.as_deref().and_then(|name| name.split(',').next()) {
        Some(name) => Path::new(name.trim()).to_owned(),
        None if folder.is_dir() => folder.join("traced-producer.sock"),
        None => "/tmp/perfetto-producer".into(),
    };
    let at = shown(&path);
    if path.exists() || at.starts_with('@') {
        Finding::good("traced", format!("a program registers with the tracing service at {at}"))
    } else {
        let advice = "start `traced`, or name its socket in PERFETTO_PRODUCER_SOCK_NAME";
        Finding::wrong("traced", format!("no tracing service at {at}"), advice)
    }
}

/// The output that the variable `HAIRLINE` asks for.
pub(super) fn output(value: &OsString) -> Finding {
    const WHAT: &str = "HAIRLINE";
    let path = Path::new(value);
    let named = shown(path);
    if is_waiting(value) {
        let is_registered =
            value.to_str().is_some_and(|value| value.split(',').any(|word| word.trim() == "traced"));
        return if is_registered {
            service()
        } else {
            Finding::good(WHAT, "a program listens for `hairline record -p`, from its first event on")
        };
    }
    if Format::from_path(path).is_none() {
        let advice = "use a file with the extension .pftrace or .fxt, or the words listen and traced";
        return Finding::wrong(WHAT, format!("{named}: no extension of a trace"), advice);
    }
    let path = &hairline::expand_path(path, "program", 1);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match tempfile::Builder::new().prefix(".hairline-").tempfile_in(folder) {
        Ok(_) => Finding::good(WHAT, format!("{named}: its folder can be written")),
        Err(e) => {
            let found = format!("{named}: a file cannot be made there: {}", without_path(&e));
            Finding::wrong(WHAT, found, "name a folder that exists and that this user may write")
        }
    }
}

/// The error of the system, without the random name of a temporary file.
fn without_path(e: &io::Error) -> String {
    let of_system = e.get_ref().and_then(|e| e.source());
    of_system.map_or_else(|| e.to_string(), ToString::to_string)
}

/// Records an event in a process of this program, and reads it.
fn test_event() -> Vec<Finding> {
    const WHAT: &str = "test event";
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(e) => return vec![Finding::remark(WHAT, format!("this program has no path: {e}"), "")],
    };
    let command = [program.into_os_string(), "doctor".into(), "--test-event".into()];
    // The filter of the environment is for the program.
    match of_command(&command, Some("")) {
        Ok(Trial { whole, messages, .. }) => {
            let is_there = whole.totals.events > 0;
            let event = if is_there {
                Finding::good(WHAT, "recorded, and read back")
            } else {
                Finding::wrong(WHAT, "it did not come back", "see the other lines")
            };
            said(messages, false).chain([event]).collect() // a setting without effect is wrong
        }
        Err(why) => vec![Finding::wrong(WHAT, why, "")],
    }
}

/// Messages of the recorder as findings. They give the reason only of a trace that is empty.
pub(super) fn said(messages: Vec<String>, has_events: bool) -> impl Iterator<Item = Finding> {
    let finding = move |message| match has_events {
        true => Finding::remark("recorder", message, ""),
        false => Finding::wrong("recorder", message, ""),
    };
    messages.into_iter().map(finding)
}
