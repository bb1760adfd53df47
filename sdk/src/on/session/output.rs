//! The output of a session: its format, its path, and the open sink.

use std::path::{Path, PathBuf};

use crate::builder::{Config, OutputConfig};
use crate::error::Error;
use crate::filter::Filter;
use crate::on::base::files::claim::{Claimed, Ended, claim};
use crate::on::base::files::output_file::OutputFile;
use crate::on::session::placeholders::{self, Placeholders};
use crate::on::session::sink::Target;
use crate::options::{Format, Overflow};

/// Returns the format of the trace: the format that is set, else the format of the file's extension, else
/// `TrackEvent`.
pub(crate) fn format(config: &Config) -> Result<Format, Error> {
    match (&config.output, config.format) {
        (OutputConfig::None, _) if config.overflow != Overflow::Overwrite => Err(Error::NoOutput),
        (OutputConfig::Path(path) | OutputConfig::Lent(_, path), Some(format)) => {
            format.check_extension(path).map(|()| format)
        }
        (_, Some(format)) => Ok(format),
        (OutputConfig::Path(path) | OutputConfig::Lent(_, path), None) => {
            Format::from_path(path).ok_or_else(|| Error::UnknownFormat { path: path.clone() })
        }
        (_, None) => Ok(Format::TrackEvent),
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
pub(crate) fn path(config: &Config, names: Placeholders) -> Option<PathBuf> {
    match &config.output {
        OutputConfig::Path(template) => Some(absolute(names.expand(template, 1))),
        OutputConfig::Lent(_, path) => Some(path.clone()),
        _ => None,
    }
}

/// Opens the output. A file keeps its content until [`Sink::begin`](crate::on::session::sink::Sink::begin).
/// `path` comes from [`path`].
///
/// # Errors
/// When the session has no output, or the file cannot be created.
pub(crate) fn open(output: OutputConfig, path: Option<&Path>, rotates: bool) -> Result<Opened, Error> {
    let opened = |target| Opened { target, path: None, note: None };
    match output {
        OutputConfig::None | OutputConfig::Service => Err(Error::NoOutput),
        OutputConfig::Memory(memory) => Ok(opened(Target::Memory(memory))),
        OutputConfig::Lent(file, path) => {
            let target = Target::File(OutputFile::lent(file), 0);
            Ok(Opened { target, path: Some(path), note: None })
        }
        OutputConfig::Writer(writer) => Ok(opened(Target::Writer(writer))),
        OutputConfig::Path(template) => {
            let path = path.map_or_else(|| template.clone(), Path::to_owned);
            let ended = if rotates { Ended::IsNumbered } else { Ended::IsReplaced };
            let claimed = claim(&path, ended, placeholders::advice(&template));
            let Claimed { file, path, is_regular, note } =
                claimed.map_err(|source| Error::Create { path, source })?;
            let target = match is_regular {
                true => Target::File(file, 0),
                false => Target::Pipe(file),
            };
            Ok(Opened { target, path: Some(path), note })
        }
    }
}

/// The opened output of a session.
pub(crate) struct Opened {
    pub(crate) target: Target,
    /// The path of a file.
    pub(crate) path: Option<PathBuf>,
    /// What the user should know of that path.
    pub(crate) note: Option<String>,
}

/// Returns the absolute path, or `path` if the directory is unknown.
pub(crate) fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// Returns the settings of a forked child's own session, without the filter. `None`: the child's path would
/// be the parent's.
pub(crate) fn child_config(config: &Config) -> Option<Box<Config>> {
    let OutputConfig::Path(template) = &config.output else { return None };
    placeholders::has_process(template).then(|| {
        let output = OutputConfig::Path(template.clone());
        let (slow, stacks, sampling) = (config.slow.clone(), config.stacks.clone(), config.sampling.clone());
        Box::new(Config { output, filter: Filter::default(), slow, stacks, sampling, ..*config })
    })
}
