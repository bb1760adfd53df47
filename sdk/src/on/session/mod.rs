//! A session: from its start to its summary.
//!
//! ```text
//! Session (the user's handle) ──┐
//! CURRENT (attach, exit) ───────┼──> Shared: region, clock, wake-up, requests ──> writer thread: drain, sink
//! each recording thread ────────┘
//! ```
//!
//! [`Shared`] lives as long as anyone who may still write into its region: a thread lets go of a stopped
//! session at its next event or at its exit.

#[cfg(feature = "compress")]
mod compress;
pub(super) mod current;
mod late;
mod open_slices;
mod output;
mod recall;
mod recorder;
mod requests;
mod rotation;
mod shared;
mod sink;
pub(super) mod stream;
pub(super) mod tail;
mod upkeep;
mod writer;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hairline_shm::{BackingChoice, Output, Region, RegionConfig};

use super::clock::Calibration;
use super::{env, files, fork, process, registry, signals, thread};
pub(crate) use crate::builder::Detail;
use crate::builder::{Config, DEFAULT_CHUNK, OutputConfig, Rotate, SessionBuilder};
use crate::error::Error;
use crate::filter::Filter;
use crate::options::{Format, Overflow, Summary};
pub(crate) use current::current;
use current::{Reserved, running_until};
pub use recorder::trigger;
use rotation::Rotation;
use shared::About;
pub(crate) use shared::Shared;
use sink::Sink;
pub(crate) use stream::OWN_SEQUENCE;

/// Recording into one trace, until [`stop`](Session::stop) or drop. A process has one session at a time.
#[derive(Debug)]
#[must_use = "dropping the session stops it"]
pub struct Session {
    shared: Arc<Shared>,
}

impl Session {
    /// A session to be configured.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::new()
    }

    /// The session that this handle stands for: in a forked child with a session of its own that one, not the
    /// parent's.
    fn shared(&self) -> Arc<Shared> {
        let is_parents = !self.shared.is_of_this_process();
        let own = is_parents.then(|| running_until(Instant::now() + PATIENCE)).flatten();
        own.unwrap_or_else(|| Arc::clone(&self.shared))
    }

    /// The same. A forked child that has recorded nothing yet starts its own session first.
    fn started(&self) -> Arc<Shared> {
        if !self.shared.is_of_this_process() && !thread::is_barred() {
            let _busy = thread::busy(); // finds out whether this is a child that no handler announced
            if fork::is_pending() {
                env::start_once();
            }
        }
        self.shared()
    }

    pub(crate) fn start(mut config: Config) -> Result<Self, Error> {
        let _unharmed = files::WriteSignalsBlocked::new();
        // A signal handler that forks would leave a second process that starts this session too.
        let mut blocked = process::SignalsBlocked::new();
        let busy = thread::busy();
        if registry::is_detached() {
            return Err(Error::Forked);
        }
        let pid = process::id();
        let calibration = Calibration::start(config.clock);
        let reserved = Reserved::new()?;
        if fork::inherited().is_some() {
            env::set_heeded(); // whoever starts first in a forked child decides
        }
        let format = output::format(&config)?;
        output::check_limits(&config)?;
        signals::install(&config)?;
        let of_a_child = output::config_of_a_child(&config);
        // The region first: when its sizes make no sense no file has been touched.
        let uuid: [u8; 16] = process::random();
        let path = output::path(&config);
        let head = stream::head(format, u128::from_le_bytes(uuid));
        let region = create_region(&config, format, uuid, path.as_deref(), &head)?;
        let create = |source| Error::Create { path: path.clone().unwrap_or_default(), source };
        let mut sink = None;
        if config.overflow == Overflow::Overwrite {
            path.as_deref().map_or(Ok(()), recorder::probe).map_err(create)?;
        } else {
            let output = std::mem::replace(&mut config.output, OutputConfig::None);
            let mut opened = output::open(output, path.clone())?;
            opened.limit_to(config.max_file_size);
            sink = Some(opened);
        }
        region.populate(0..upkeep::POPULATED_AT_START);
        let clock = calibration.finish();
        let written = sink.as_mut().map_or(Ok(()), |sink| write_head(sink, &head, &mut blocked));
        if pid != process::id() {
            std::mem::forget((sink, region, reserved)); // the parent's
            return Err(Error::Forked);
        }
        written.map_err(create)?;
        if let Some(sink) = &mut sink
            && let (Some(Rotate { size, keep }), Some(path), Some(_)) =
                (config.rotate, &path, sink.file_len())
        {
            let region = Arc::clone(&region);
            sink.rotate(Rotation::new(size, keep, path.clone(), head, region, format));
        }
        region.note_time(clock.parameters().now());
        // From here on the trace is recovered if the process is killed.
        region.activate(sink.as_ref().and_then(Sink::file_len));
        let patience = if let Overflow::Block(longest) = config.overflow { longest } else { Duration::ZERO };
        let about = About { detail: config.detail, heartbeat: config.heartbeat, patience };
        let shared = Arc::new(Shared::new(format, about, region, &clock, path, of_a_child));
        match sink {
            #[allow(unused_mut)] // but for compression
            Some(mut sink) => {
                #[cfg(feature = "compress")]
                if config.compress && shared.is_track_event() {
                    sink.compressor = Some(compress::Compressor::default());
                }
                shared.spawn_writer(sink, clock)?;
            }
            None => {
                let to = recorder::Destination::new(config.output, config.trigger_interval);
                if config.trigger_on_panic {
                    recorder::trigger_on_panic();
                }
                shared.spawn_recorder(to, clock)?;
            }
        }
        reserved.fill(Arc::clone(&shared));
        registry::activate(shared.epoch(), config.filter);
        drop((busy, blocked)); // those who hear of the change look at callsites, and are code of the program
        registry::changed();
        Ok(Self { shared })
    }

    /// Records other categories from now on; see [`SessionBuilder::categories`].
    ///
    /// # Errors
    /// When the filter makes no sense; then nothing changes.
    pub fn set_categories(&self, filter: &str) -> Result<(), Error> {
        let filter = Filter::parse(filter)?;
        let shared = self.started();
        if shared.may_wait() {
            registry::set_filter(shared.epoch(), filter);
        }
        Ok(())
    }

    /// Waits until everything recorded before the call is in the output.
    ///
    /// # Errors
    /// When the output has failed.
    pub fn flush(&self) -> Result<(), Error> {
        self.shared().flush()
    }

    /// Writes the last of what was recorded, as much as the ring holds, to a file of its own, while threads go on recording.
    /// For sessions with [`Overflow::Overwrite`]. Slices that were begun before are there with their begin. Takes some
    /// milliseconds and as much memory as the ring.
    ///
    /// # Errors
    /// When the session does not overwrite, the file cannot be written, or this process is a forked child that does not
    /// trace. A file that was there is replaced when the new one is complete, and otherwise stays.
    pub fn snapshot(&self, path: impl AsRef<Path>) -> Result<Summary, Error> {
        self.started().snapshot(path.as_ref())
    }

    /// Stops recording and waits until the trace is complete.
    ///
    /// # Errors
    /// When the output has failed; the summary is in the error.
    pub fn stop(self) -> Result<Summary, Error> {
        self.shared().stop()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared().stop_or_report();
    }
}

/// The longest wait for the lock of the running session, which is held for some instructions: only a thread that does not exist any more
/// can make it as long.
const PATIENCE: Duration = Duration::from_secs(1);

/// Stops the running session, if there is one: the end of the process.
pub(crate) fn stop_current() {
    if let Some(shared) = running_until(Instant::now() + PATIENCE) {
        shared.stop_or_report();
    }
}

/// What a panic hook waits for, where it is asked to: a snapshot of the running flight recorder.
fn snapshot_for_panic() {
    if let Some(shared) = running_until(Instant::now() + PATIENCE) {
        shared.snapshot_for_panic();
    }
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
        clock: (0, 0),
        process_name: process::name(),
        about: hairline_shm::About {
            output: output.map(Path::to_owned).unwrap_or_default(),
            prelude: head.to_owned(),
            process_track: process::track_uuid(),
        },
    });
    region.map_err(|e| Error::Buffer(e.to_string()))
}
