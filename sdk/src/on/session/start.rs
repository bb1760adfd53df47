//! The start of a session: creates the region, the output, the clock and the session's own thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hairline_shm::{BackingChoice, Output, Region, RegionConfig};

use crate::builder::{Config, DEFAULT_CHUNK, OutputConfig, Rotate};
use crate::error::Error;
use crate::on::base::clock::Clock;
use crate::on::base::platform::process;
use crate::on::base::this_thread::Busy;
use crate::on::base::{files, this_thread};
use crate::on::callsite::registry;
use crate::on::encode::stream;
#[cfg(feature = "compress")]
use crate::on::session::compress;
use crate::on::session::current::Reserved;
use crate::on::session::destination::Destination;
use crate::on::session::rotation::Rotation;
use crate::on::session::settings::Settings;
use crate::on::session::shared::Shared;
use crate::on::session::sink::Sink;
use crate::on::session::{drain_thread, output, recorder_thread, snapshot, trigger, without_effect};
use crate::options::{ClockSource, Format, Overflow};
use crate::process_counters::Group;

/// A session during its start. Until the start is over, no other session can start, and no signal handler
/// runs on this thread.
pub(crate) struct Starting {
    pid: u32,
    clock: Clock,
    reserved: Reserved,
    busy: Busy,
    /// A signal handler that forks would leave a second process that starts this session too.
    signals_blocked: process::SignalsBlocked,
    write_signals_blocked: files::WriteSignalsBlocked,
}

impl Starting {
    /// Reserves the place of the running session.
    ///
    /// # Errors
    /// When another session runs or starts, or when this process is a forked child that does not trace.
    pub(crate) fn new(clock: ClockSource) -> Result<Self, Error> {
        let write_signals_blocked = files::WriteSignalsBlocked::new();
        let signals_blocked = process::SignalsBlocked::new();
        let busy = this_thread::busy();
        if this_thread::is_detached() {
            return Err(Error::Forked);
        }
        let pid = process::id();
        let clock = Clock::start(clock);
        let reserved = Reserved::new()?;
        Ok(Self { pid, clock, reserved, busy, signals_blocked, write_signals_blocked })
    }

    /// Checks the settings, as far as that is possible before the session creates anything.
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
    /// When its region, its output or its thread cannot be created.
    pub(crate) fn finish(self, mut config: Config) -> Result<Arc<Shared>, Error> {
        let Self { pid, mut clock, reserved, busy, mut signals_blocked, write_signals_blocked: _blocked } =
            self;
        let format = output::format(&config)?;
        let child_config = output::child_config(&config);
        // The region comes first, so that wrong sizes are found before a file is touched.
        let uuid = u128::from_le_bytes(process::random()) | stream::VARIANT;
        let path = output::path(&config);
        let head = stream::head(format, uuid);
        let region = create_region(&config, format, uuid.to_le_bytes(), path.as_deref(), &head)?;
        let create = |source| Error::Create { path: path.clone().unwrap_or_default(), source };
        let mut sink = open_sink(&mut config, path.clone())?;
        let written = sink.as_mut().map_or(Ok(()), |sink| write_head(sink, &head, &mut signals_blocked));
        if pid != process::id() {
            std::mem::forget((sink, region, reserved)); // they are the parent's
            return Err(Error::Forked);
        }
        written.map_err(create)?;
        if let (Some(sink), Some(path)) = (&mut sink, &path) {
            rotate(sink, &config, path, (head, uuid), &region, format);
        }
        clock.calibrate();
        region.note_time(clock.parameters().now());
        // If the process is killed after this, recovery completes the trace.
        region.activate(sink.as_ref().and_then(Sink::file_len));
        let is_file = sink.as_ref().is_some_and(|sink| sink.file_len().is_some());
        let without_effect = without_effect::notes(&config, format, is_file);
        let settings = Settings::new(&config, path, without_effect);
        let shared = Arc::new(Shared::new(format, settings, region, &clock, child_config));
        if config.scheduling {
            record_switches(&shared); // before the session's own thread starts, so that it is seen too
        }
        count_hardware(&shared, &config);
        if let Some(frequency) = config.sampling {
            record_samples(&shared, &config, frequency);
        }
        let (filter, level) = (std::mem::take(&mut config.filter), config.level);
        let slow = std::mem::take(&mut config.slow);
        let slow = (config.overflow == Overflow::Overwrite).then_some(slow);
        spawn(&shared, sink, config, clock)?;
        reserved.fill(Arc::clone(&shared));
        registry::activate(shared.epoch(), filter, level, slow);
        // Released first, because the bridges look at callsites and run the program's code.
        drop((busy, signals_blocked));
        registry::notify_bridges();
        Ok(shared)
    }
}

/// Opens the events of context switches. If that fails, the session goes on without.
fn record_switches(shared: &Shared) {
    if let Err(note) = shared.scheduling.open() {
        without_effect::say(&note, shared.settings.is_from_environment);
        let _ = shared.scheduling_note.set(note);
    }
}

/// Opens the hardware's counters. Those who ask for all counters need not know that a machine has none.
fn count_hardware(shared: &Shared, config: &Config) {
    let Some(wanted) = config.counters.filter(|wanted| wanted.has(Group::Hardware)) else { return };
    if let Err(note) = shared.hardware.open()
        && !wanted.are_all()
    {
        without_effect::say(&note, shared.settings.is_from_environment);
        let _ = shared.hardware_note.set(note);
    }
}

/// Opens the events of samples. If that fails, the session goes on without.
fn record_samples(shared: &Shared, config: &Config, frequency: u32) {
    let is_one_file = config.overflow != Overflow::Overwrite && config.rotate.is_none();
    let opened = if is_one_file {
        shared.sampling.open(frequency, shared.format(), || shared.region().new_sequence())
    } else {
        Err("samples are not recorded: a flight recorder and a rotated output have none".to_owned())
    };
    if let Err(note) = opened {
        without_effect::say(&note, shared.settings.is_from_environment);
        let _ = shared.sampling_note.set(note);
    }
}

/// Opens the sink of a session that drains. A flight recorder has none; its path is checked instead.
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

/// Makes the sink rotate its files, if the settings say so and the output is a file.
fn rotate(
    sink: &mut Sink,
    config: &Config,
    path: &Path,
    head: (Vec<u8>, u128),
    region: &Arc<Region>,
    format: Format,
) {
    if let (Some(Rotate { size, keep }), Some(_)) = (config.rotate, sink.file_len()) {
        sink.rotate(Rotation::new(size, keep, path.to_owned(), head, Arc::clone(region), format));
    }
}

/// Starts the session's own thread: the drain thread, or the recorder thread of a flight recorder.
fn spawn(shared: &Arc<Shared>, sink: Option<Sink>, config: Config, clock: Clock) -> Result<(), Error> {
    #[allow(unused_mut)] // only compression changes the sink
    if let Some(mut sink) = sink {
        #[cfg(feature = "compress")]
        if config.compress && shared.is_track_event() {
            sink.compressor = Some(compress::Compressor::default());
        }
        return shared.spawn(move |shared| drain_thread::run(&shared, sink, clock));
    }
    let destination = Destination::new(config.output, config.trigger_interval, config.keep_snapshots);
    if config.trigger_on_panic {
        trigger::set_for_panics();
    }
    shared.spawn(move |shared| recorder_thread::run(&shared, destination, clock))
}

/// Returns the size of a chunk in bytes. In a flight recorder each chunk begins with the context of the
/// chunks before it, so a chunk must be large compared with that context. There the default is 1/64 of the
/// ring, a power of two from 4 KiB to 64 KiB.
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

/// Checks the size of the buffer, as the creation of the region does.
pub(crate) fn check_buffer(config: &Config) -> Result<(), Error> {
    let chunks = RegionConfig::chunks_of(config.buffer_size, chunk_size(config));
    chunks.map(drop).map_err(|e| Error::Buffer(Box::new(e)))
}

/// Writes the stream's head. The program's own `Write`, and a pipe that may be full, run with the signals as
/// the program has set them.
fn write_head(sink: &mut Sink, head: &[u8], blocked: &mut process::SignalsBlocked) -> io::Result<()> {
    if sink.is_file_or_memory() { sink.write(head) } else { blocked.without(|| sink.write(head)) }
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
        // A file belongs to the effective user. That of a setgid program is its caller, who could read and
        // write the ring, and end the program by making the file shorter.
        backing: if process::is_privileged() { BackingChoice::Unnamed } else { BackingChoice::Auto },
        format: format as u32,
        session,
        process_name: process::name(),
        about: hairline_shm::About {
            output: output.map(Path::to_owned).unwrap_or_default(),
            prelude: head.to_owned(),
            process_track: process::track_uuid().0,
        },
    });
    region.map_err(|e| Error::Buffer(Box::new(e)))
}
