//! The start of a session: creates the region, the output, the clock and the session's own thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hairline_shm::{BackingChoice, Output, Region, RegionConfig};

use crate::builder::{Config, DEFAULT_CHUNK, OutputConfig, Rotate};
use crate::error::Error;
use crate::heap_profile::HeapProfile;
use crate::on::base::clock::Clock;
use crate::on::base::platform::process;
use crate::on::base::this_thread::Busy;
use crate::on::base::{files, this_thread};
use crate::on::callsite::registry;
use crate::on::callsite::watched::Watched;
use crate::on::encode::{HEAP_TAPE, SAMPLES_TAPE, STATES_TAPE, stream};
use crate::on::prune::Pruning;
#[cfg(feature = "compress")]
use crate::on::session::compress;
use crate::on::session::current::Reserved;
use crate::on::session::destination::Destination;
use crate::on::session::drain_handle::Life;
use crate::on::session::heap_profile::{self, Parts};
use crate::on::session::own_files::OwnFiles;
use crate::on::session::placeholders::Placeholders;
use crate::on::session::rotation::Rotation;
use crate::on::session::sampling::{Wanted, tape_bytes};
use crate::on::session::scheduling::TAPE_BYTES;
use crate::on::session::settings::Settings;
use crate::on::session::shared::Shared;
use crate::on::session::sink::{Sink, Target};
use crate::on::session::upkeep::Upkeep;
use crate::on::session::{drain_thread, output, recorder_thread, snapshot, trigger, without_effect};
use crate::on::traced::output::ServiceOutput;
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

    /// Starts the session with these settings. `service`: instead of their output.
    ///
    /// # Errors
    /// When its region, its output or its thread cannot be created.
    pub(crate) fn finish(
        self,
        mut config: Config,
        service: Option<Box<ServiceOutput>>,
    ) -> Result<Arc<Shared>, Error> {
        let Self { pid, mut clock, reserved, busy, mut signals_blocked, write_signals_blocked: _blocked } =
            self;
        let format = output::format(&config)?;
        let child_config = output::child_config(&config);
        let names = Placeholders::now();
        // The output comes first, because the region names the file that was chosen. What was in the file is
        // replaced last, when nothing else can fail.
        let Opened { target, path, note } = match service {
            Some(service) => Opened { target: Some(Target::Service(service)), path: None, note: None },
            None => open_output(&mut config, names)?,
        };
        let uuid = u128::from_le_bytes(process::random()) | stream::VARIANT;
        let head = stream::head(format, uuid);
        let region = create_region(&config, format, uuid.to_le_bytes(), path.as_deref(), &head)?;
        clock.calibrate();
        let is_file = matches!(target, Some(Target::File(..)));
        let mut notes = without_effect::notes(&config, format, is_file);
        notes.extend(note.inspect(|note| without_effect::say(note, config.requester)));
        let settings = Settings::new(&config, path.clone(), notes);
        let shared = Arc::new(Shared::new(format, settings, Arc::clone(&region), &clock, child_config));
        if config.scheduling {
            record_switches(&shared); // before the session's own thread starts, so that it is seen too
        }
        count_hardware(&shared, &config);
        record_samples(&shared, &config);
        if let Some(profile) = config.heap_profile {
            profile_heap(&shared, &config, profile);
        }
        let own_thread = shared.spawn()?;
        let mut sink = target.map(|target| new_sink(target, &config, format));
        let written = sink.as_mut().map_or(Ok(()), |sink| begin(sink, &head, &mut signals_blocked));
        if pid != process::id() {
            std::mem::forget((sink, region, reserved, shared, own_thread)); // they are the parent's
            return Err(Error::Forked);
        }
        if let Err(source) = written {
            drop(own_thread);
            shared.drain.join();
            return Err(Error::Create { path: path.unwrap_or_default(), source });
        }
        if let (Some(sink), Some(path)) = (&mut sink, &path) {
            rotate(sink, &config, path, (head, uuid), &region, format);
        }
        region.note_time(clock.parameters().now());
        // If the process is killed after this, recovery completes the trace.
        region.activate(sink.as_ref().and_then(Sink::file_len));
        let (filter, level) = (std::mem::take(&mut config.filter), config.level);
        let slow = std::mem::take(&mut config.slow);
        let slow_stacks = config.slow_stacks;
        let slow = (config.overflow == Overflow::Overwrite || slow_stacks).then_some(slow);
        let ns = |limit: Duration| limit.as_nanos().try_into().unwrap_or(u64::MAX);
        let (hold_limit, poll_limit) = (config.hold_limit.map_or(0, ns), ns(config.poll_limit));
        let watched = Watched { slow, slow_stacks, stacks: config.stacks.take(), hold_limit, poll_limit };
        let files = own_files(sink.as_ref(), &config);
        if own_thread.begin(life(Arc::clone(&shared), files.clone(), sink, config, clock, names)) {
            files.close_in_process();
        } else {
            Pruning::new(process::name(), region.backing()).proceed(|| false);
        }
        reserved.fill(Arc::clone(&shared));
        registry::activate(shared.epoch(), filter, level, watched);
        // Released first, because the bridges look at callsites and run the program's code.
        drop((busy, signals_blocked));
        registry::notify_bridges();
        Ok(shared)
    }
}

/// Opens the events of context switches. If that fails, the session goes on without.
fn record_switches(shared: &Shared) {
    if let Err(note) = shared.scheduling.open(shared.region()) {
        without_effect::say(&note, shared.settings.requester);
        let _ = shared.scheduling_note.set(note);
    }
}

/// Opens the hardware's counters. Those who ask for all counters need not know that a machine has none.
fn count_hardware(shared: &Shared, config: &Config) {
    let Some(wanted) = config.counters.filter(|wanted| wanted.has(Group::Hardware)) else { return };
    if let Err(note) = shared.hardware.open()
        && !wanted.are_all()
    {
        without_effect::say(&note, shared.settings.requester);
        let _ = shared.hardware_note.set(note);
    }
}

/// Returns the bytes of the tapes: for samples, for the states of threads in a flight recorder, and for
/// the heap profile.
fn tapes(config: &Config) -> [u32; 3] {
    let mut tapes = [0; 3];
    tapes[SAMPLES_TAPE] = tape_bytes(keeps_last(config), config.buffer_size);
    if config.scheduling && config.overflow == Overflow::Overwrite {
        tapes[STATES_TAPE] = TAPE_BYTES;
    }
    if config.heap_profile.is_some() {
        tapes[HEAP_TAPE] = heap_profile::TAPE_BYTES;
    }
    tapes
}

/// Whether samples wait for a snapshot, or for the end of a file: each file of a rotation has the samples of
/// its time, as a snapshot has.
fn keeps_last(config: &Config) -> bool {
    config.overflow == Overflow::Overwrite || config.rotate.is_some()
}

/// Begins to take the samples and stacks that are asked for. If that fails, the session goes on without.
fn record_samples(shared: &Shared, config: &Config) {
    let wanted = Wanted {
        samples: config.sampling.clone(),
        of_events: config.stacks.is_some(),
        of_slow_slices: config.slow_stacks,
        own: config.own_stacks,
        keeps_last: keeps_last(config),
        stays_on: config.overflow == Overflow::Overwrite,
    };
    let opened = shared.sampling.open(wanted, shared.format(), shared.region());
    for note in opened.no_samples.iter().chain(&opened.notes) {
        without_effect::say(note, shared.settings.requester);
    }
    if let Some(why) = opened.no_samples {
        let _ = shared.no_samples.set(why);
    }
    let _ = shared.sampling_notes.set(opened.notes);
    opened.threads.into_iter().for_each(|threads| _ = shared.sampled_threads.set(threads));
}

/// Begins the heap profile. If that fails, the session goes on without.
fn profile_heap(shared: &Shared, config: &Config, profile: HeapProfile) {
    let is_one_file = config.overflow != Overflow::Overwrite && config.rotate.is_none();
    let parts = if is_one_file { Parts::One } else { Parts::Several };
    let sequence = || shared.region().new_sequence();
    let (wanted, format, region) = ((profile, config.own_stacks), shared.format(), shared.region());
    if let Err(note) = shared.heap_profile.open(wanted, parts, format, region, sequence) {
        without_effect::say(&note, shared.settings.requester);
        let _ = shared.heap_note.set(note);
    }
}

/// The output of a session that drains, or the path of a flight recorder.
struct Opened {
    target: Option<Target>,
    path: Option<PathBuf>,
    note: Option<String>,
}

/// Opens the output of a session that drains. A flight recorder has none; its path is checked instead.
fn open_output(config: &mut Config, names: Placeholders) -> Result<Opened, Error> {
    let path = output::path(config, names);
    if config.overflow == Overflow::Overwrite {
        let create = |source| Error::Create { path: path.clone().unwrap_or_default(), source };
        path.as_deref().map_or(Ok(()), snapshot::probe).map_err(create)?;
        return Ok(Opened { target: None, path, note: None });
    }
    let output = std::mem::replace(&mut config.output, OutputConfig::None);
    let output::Opened { target, path, note } =
        output::open(output, path.as_deref(), config.rotate.is_some())?;
    Ok(Opened { target: Some(target), path, note })
}

fn new_sink(target: Target, config: &Config, format: Format) -> Sink {
    let mut sink = Sink::new(target);
    sink.limit_to(config.max_file_size);
    #[cfg(feature = "compress")]
    if config.compress && format == Format::TrackEvent {
        sink.compressor = Some(compress::Compressor::default());
    }
    #[cfg(not(feature = "compress"))]
    let _ = format;
    sink
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

/// Returns the files of the session.
fn own_files(sink: Option<&Sink>, config: &Config) -> OwnFiles {
    let is_programs =
        sink.is_some_and(Sink::is_of_program) || matches!(config.output, OutputConfig::Writer(_));
    OwnFiles::new(sink.and_then(Sink::number), is_programs)
}

/// Returns what the session's own thread does: as the drain thread, or the recorder thread of a flight
/// recorder.
fn life(
    shared: Arc<Shared>,
    files: OwnFiles,
    sink: Option<Sink>,
    config: Config,
    clock: Clock,
    names: Placeholders,
) -> Life {
    if let Some(sink) = sink {
        return Box::new(move |has_files| {
            let has_own_files = files.take(&shared);
            let _ = has_files.send(has_own_files);
            drain_thread::run(&shared, sink, Upkeep::new(clock));
        });
    }
    let destination = Destination::new(config.output, names, config.trigger_interval, config.keep_snapshots);
    if config.trigger_on_panic {
        trigger::set_for_panics();
    }
    Box::new(move |has_files| {
        let has_own_files = files.take(&shared);
        let _ = has_files.send(has_own_files);
        recorder_thread::run(&shared, destination, Upkeep::new(clock));
    })
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

/// Empties the output, and writes the stream's head. The program's own `Write`, and a pipe that may be full,
/// run with the signals as the program has set them.
fn begin(sink: &mut Sink, head: &[u8], blocked: &mut process::SignalsBlocked) -> io::Result<()> {
    if sink.is_file_or_memory() { sink.begin(head) } else { blocked.without(|| sink.begin(head)) }
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
        process_name: process::name().to_owned(),
        about: hairline_shm::About {
            output: output.map(Path::to_owned).unwrap_or_default(),
            prelude: head.to_owned(),
            process_track: process::track_uuid().0,
        },
        tapes: tapes(config),
    });
    region.map_err(|e| Error::Buffer(Box::new(e)))
}
