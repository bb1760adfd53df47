//! The start of a session: from its settings to a session that runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hairline_shm::{BackingChoice, Output, Region, RegionConfig};

use crate::builder::{Config, DEFAULT_CHUNK, OutputConfig, Rotate};
use crate::error::Error;
use crate::on::base::clock::{Calibration, Clock};
use crate::on::base::platform::process;
use crate::on::base::this_thread::Busy;
use crate::on::base::{files, this_thread};
use crate::on::callsite::registry;
use crate::on::encode::stream;
#[cfg(feature = "compress")]
use crate::on::session::compress;
use crate::on::session::current::Reserved;
use crate::on::session::rotation::Rotation;
use crate::on::session::shared::{About, Shared};
use crate::on::session::sink::Sink;
use crate::on::session::{drain_thread, output, panics, recorder, snapshot, upkeep};
use crate::options::{ClockSource, Format, Overflow};

/// A session that is being started: no other one can be, and no signal handler of this thread runs.
pub(crate) struct Starting {
    pid: u32,
    calibration: Calibration,
    reserved: Reserved,
    busy: Busy,
    // A signal handler that forks would leave a second process that starts this session too.
    blocked: process::SignalsBlocked,
    unharmed: files::WriteSignalsBlocked,
}

impl Starting {
    /// Reserves the place of the running session.
    ///
    /// # Errors
    /// When another session runs, or this process is a forked child that does not trace.
    pub(crate) fn new(clock: ClockSource) -> Result<Self, Error> {
        let unharmed = files::WriteSignalsBlocked::new();
        let blocked = process::SignalsBlocked::new();
        let busy = this_thread::busy();
        if this_thread::is_detached() {
            return Err(Error::Forked);
        }
        let pid = process::id();
        let calibration = Calibration::start(clock);
        let reserved = Reserved::new()?;
        Ok(Self { pid, calibration, reserved, busy, blocked, unharmed })
    }

    /// Checks what can be checked before anything is made.
    ///
    /// # Errors
    /// When the settings contradict each other.
    pub(crate) fn check(config: &Config) -> Result<(), Error> {
        output::format(config)?;
        output::check_limits(config)
    }

    /// Starts the session with these settings.
    ///
    /// # Errors
    /// When its memory, its output or its thread cannot be had.
    pub(crate) fn finish(self, mut config: Config) -> Result<Arc<Shared>, Error> {
        let Self { pid, calibration, reserved, busy, mut blocked, unharmed: _unharmed } = self;
        let format = output::format(&config)?;
        let of_a_child = output::config_of_a_child(&config);
        // The region first: when its sizes make no sense no file has been touched.
        let uuid: [u8; 16] = process::random();
        let path = output::path(&config);
        let head = stream::head(format, u128::from_le_bytes(uuid));
        let region = create_region(&config, format, uuid, path.as_deref(), &head)?;
        let create = |source| Error::Create { path: path.clone().unwrap_or_default(), source };
        let mut sink = open_sink(&mut config, path.clone())?;
        region.populate(0..upkeep::POPULATED_AT_START);
        let clock = calibration.finish();
        let written = sink.as_mut().map_or(Ok(()), |sink| write_head(sink, &head, &mut blocked));
        if pid != process::id() {
            std::mem::forget((sink, region, reserved)); // the parent's
            return Err(Error::Forked);
        }
        written.map_err(create)?;
        if let (Some(sink), Some(path)) = (&mut sink, &path) {
            rotate(sink, &config, path, head, &region, format);
        }
        region.note_time(clock.parameters().now());
        // From here on the trace is recovered if the process is killed.
        region.activate(sink.as_ref().and_then(Sink::file_len));
        let patience = if let Overflow::Block(longest) = config.overflow { longest } else { Duration::ZERO };
        let about = About { detail: config.detail, heartbeat: config.heartbeat, patience };
        let shared = Arc::new(Shared::new(format, about, region, &clock, path, of_a_child));
        let filter = std::mem::take(&mut config.filter);
        spawn(&shared, sink, config, clock)?;
        reserved.fill(Arc::clone(&shared));
        registry::activate(shared.epoch(), filter);
        drop((busy, blocked)); // those who hear of the change look at callsites, and are code of the program
        registry::notify_bridges();
        Ok(shared)
    }
}

/// The sink of a session that does not overwrite.
fn open_sink(config: &mut Config, path: Option<PathBuf>) -> Result<Option<Sink>, Error> {
    if config.overflow == Overflow::Overwrite {
        let create = |source| Error::Create { path: path.clone().unwrap_or_default(), source };
        path.as_deref().map_or(Ok(()), snapshot::probe).map_err(create)?;
        return Ok(None);
    }
    let output = std::mem::replace(&mut config.output, OutputConfig::None);
    let mut sink = output::open(output, path)?;
    sink.limit_to(config.max_file_size);
    Ok(Some(sink))
}

/// Changes files from time to time, where the settings ask for it and the output is a file.
fn rotate(
    sink: &mut Sink,
    config: &Config,
    path: &Path,
    head: Vec<u8>,
    region: &Arc<Region>,
    format: Format,
) {
    if let (Some(Rotate { size, keep }), Some(_)) = (config.rotate, sink.file_len()) {
        sink.rotate(Rotation::new(size, keep, path.to_owned(), head, Arc::clone(region), format));
    }
}

/// Starts the session's own thread: the drain thread, or the flight recorder's.
fn spawn(shared: &Arc<Shared>, sink: Option<Sink>, config: Config, clock: Clock) -> Result<(), Error> {
    #[allow(unused_mut)] // but for compression
    if let Some(mut sink) = sink {
        #[cfg(feature = "compress")]
        if config.compress && shared.is_track_event() {
            sink.compressor = Some(compress::Compressor::default());
        }
        return shared.spawn(move |shared| drain_thread::run(&shared, sink, clock));
    }
    let to = recorder::Destination::new(config.output, config.trigger_interval);
    if config.trigger_on_panic {
        panics::trigger_on_panic();
    }
    shared.spawn(move |shared| recorder::run(&shared, to, clock))
}

/// A chunk that begins with all it needs of the ones before should be large beside that.
fn chunk_size(config: &Config) -> u32 {
    let default = if config.overflow == Overflow::Overwrite {
        let share = config.buffer_size / 64;
        let share = u32::try_from(share).unwrap_or(u32::MAX).clamp(1, 64 << 10);
        (1 << share.ilog2()).max(4 << 10)
    } else {
        DEFAULT_CHUNK
    };
    config.chunk_size.unwrap_or(default)
}

/// Writes what the stream begins with. The program's own output, and a pipe that may be full, get it with the
/// signals as the program has set them.
fn write_head(sink: &mut Sink, head: &[u8], blocked: &mut process::SignalsBlocked) -> io::Result<()> {
    if sink.takes_at_once() { sink.write(head) } else { blocked.without(|| sink.write(head)) }
}

fn create_region(
    config: &Config,
    format: Format,
    session: [u8; 16],
    output: Option<&Path>,
    head: &[u8],
) -> Result<Arc<Region>, Error> {
    let region = Region::create(&RegionConfig {
        buffer_size: config.buffer_size,
        chunk_size: chunk_size(config),
        overwrite: config.overflow == Overflow::Overwrite,
        backing: BackingChoice::Auto,
        format: format as u32,
        session,
        process_name: process::name(),
        about: hairline_shm::About {
            output: output.map(Path::to_owned).unwrap_or_default(),
            prelude: head.to_owned(),
            process_track: process::track_uuid(),
        },
    });
    region.map_err(|e| Error::Buffer(Box::new(e)))
}
