//! The output of a session: its format, its path, and the open sink.

use std::path::{Path, PathBuf};

use crate::builder::{Config, OutputConfig};
use crate::error::Error;
use crate::filter::Filter;
use crate::on::base::files;
use crate::on::base::platform::process;
use crate::on::session::sink::{Sink, Target};
use crate::options::{Format, Overflow};

/// Returns the format of the trace: the format that is set, else the format of the file's extension, else
/// `TrackEvent`.
pub(crate) fn format(config: &Config) -> Result<Format, Error> {
    match (&config.output, config.format) {
        (OutputConfig::None, _) if config.overflow != Overflow::Overwrite => Err(Error::NoOutput),
        (OutputConfig::Path(path), Some(format)) => format.check_extension(path).map(|()| format),
        (_, Some(format)) => Ok(format),
        (OutputConfig::Path(path), None) => {
            Format::from_path(path).ok_or_else(|| Error::UnknownFormat { path: path.clone() })
        }
        (OutputConfig::None | OutputConfig::Memory(_) | OutputConfig::Writer(_), None) => {
            Ok(Format::TrackEvent)
        }
    }
}

/// The smallest size limit in bytes. Head and tail need part of it.
const LEAST_LIMIT: u64 = 64 << 10;

/// The names of the size limits in errors.
pub(crate) const LIMIT_OF_OUTPUT: &str = "size limit of the output";
pub(crate) const LIMIT_OF_FILE: &str = "size limit of a rotated file";

/// Checks the size limits.
///
/// # Errors
/// When a limit is less than 64 KiB.
pub(crate) fn check_limits(config: &Config) -> Result<(), Error> {
    let sizes =
        [(LIMIT_OF_OUTPUT, config.max_file_size), (LIMIT_OF_FILE, config.rotate.map(|rotate| rotate.size))];
    for (what, size) in sizes {
        if let Some(bytes) = size.filter(|bytes| *bytes < LEAST_LIMIT) {
            return Err(Error::Value { what, value: bytes.to_string(), expected: "use 64 KiB or more" });
        }
    }
    Ok(())
}

/// Returns the path of the output, if the output is a file. The path is absolute, because the program may
/// change its directory.
pub(crate) fn path(config: &Config) -> Option<PathBuf> {
    match &config.output {
        OutputConfig::Path(template) => Some(absolute(expand(template, 1))),
        OutputConfig::None | OutputConfig::Memory(_) | OutputConfig::Writer(_) => None,
    }
}

/// Creates the output. `path` comes from [`path`].
///
/// # Errors
/// When the session has no output, or the file cannot be created.
pub(crate) fn open(output: OutputConfig, path: Option<PathBuf>) -> Result<Sink, Error> {
    let target = match output {
        OutputConfig::None => return Err(Error::NoOutput),
        OutputConfig::Memory(memory) => Target::Memory(memory),
        OutputConfig::Writer(writer) => Target::Writer(writer),
        OutputConfig::Path(template) => {
            let path = path.clone().unwrap_or(template);
            match files::create(&path) {
                Ok((file, true)) => Target::File(file, 0),
                Ok((pipe, false)) => Target::Writer(Box::new(pipe)), // a pipe cannot be truncated
                Err(source) => return Err(Error::Create { path, source }),
            }
        }
    };
    Ok(Sink::new(target))
}

/// Returns the absolute path, or `path` if the directory is unknown.
pub(crate) fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// Returns whether each snapshot has a path of its own.
pub(crate) fn has_serial(template: &Path) -> bool {
    expand(template, 1) != expand(template, 2)
}

/// Returns the settings of a forked child's own session, without the filter. `None`: the child's path would
/// be the parent's.
pub(crate) fn child_config(config: &Config) -> Option<Box<Config>> {
    let OutputConfig::Path(template) = &config.output else { return None };
    let names_process = expand_for(template, 1, 1) != expand_for(template, 2, 1);
    names_process.then(|| {
        let output = OutputConfig::Path(template.clone());
        Box::new(Config { output, filter: Filter::default(), slow: config.slow.clone(), ..*config })
    })
}

/// Returns the first `%` of a path, and the character after it, that [`expand`] does not know.
pub(crate) fn unknown_placeholder(template: &str) -> Option<&str> {
    let mut rest = template;
    while let Some(at) = rest.find('%') {
        let after = &rest[at + 1..];
        match after.chars().next() {
            Some('p' | 'n' | 'e' | '%') => rest = &after[1..],
            c => return rest.get(at..at + 1 + c.map_or(0, char::len_utf8)),
        }
    }
    None
}

/// Replaces `%p` by the process id, `%e` by the program's name, `%n` by `serial` and `%%` by `%`.
pub(crate) fn expand(template: &Path, serial: u64) -> PathBuf {
    expand_for(template, process::id(), serial)
}

fn expand_for(template: &Path, pid: u32, serial: u64) -> PathBuf {
    let Some(text) = template.to_str().filter(|t| t.contains('%')) else { return template.to_owned() };
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let mut ahead = rest.clone();
        match (c, ahead.next()) {
            ('%', Some('p')) => out.push_str(&pid.to_string()),
            ('%', Some('n')) => out.push_str(&serial.to_string()),
            ('%', Some('e')) => out.push_str(&process::name()),
            ('%', Some('%')) => out.push('%'),
            _ => {
                out.push(c);
                continue;
            }
        }
        rest = ahead;
    }
    PathBuf::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_name_the_process() {
        let of = |t: &str| expand(Path::new(t), 7).to_string_lossy().into_owned();
        assert_eq!(of("a-%p.fxt"), format!("a-{}.fxt", std::process::id()));
        assert_eq!(of("%e"), process::name());
        assert_eq!(of("100%%.fxt"), "100%.fxt");
        assert_eq!(of("%n.fxt"), "7.fxt");
        assert!(has_serial(Path::new("%n.fxt")) && !has_serial(Path::new("%%n.fxt")));
        assert_eq!(of("50%x-%"), "50%x-%");
        let unknown = ["%p-%%q-%e%n.fxt", "%p-%q.fxt", "%%%é", "a%"].map(unknown_placeholder);
        assert_eq!(unknown, [None, Some("%q"), Some("%é"), Some("%")]);
    }
}
