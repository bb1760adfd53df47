//! Perfetto's tracing service, where `tests/oracle/traced.sh` has unpacked it, with a session that records
//! the category `bench` of all processes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Outcome;

const RUN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/oracle/traced/run");

const PRODUCERS: &str = "PERFETTO_PRODUCER_SOCK_NAME";
const CONSUMERS: &str = "PERFETTO_CONSUMER_SOCK_NAME";

/// One session for all processes. Its buffer keeps the newest events, so the service reads on whatever comes.
const CONFIG: &str = "buffers { size_kb: 131072 fill_policy: RING_BUFFER }
    data_sources { config { name: \"track_event\"
      track_event_config { enabled_categories: \"bench\" disabled_categories: \"*\" } } }";

/// The longest wait for the service.
const PATIENCE: Duration = Duration::from_secs(10);

/// The service and its session. They end with this value.
#[derive(Debug)]
pub struct Service {
    folder: PathBuf,
    traced: Child,
    consumer: Option<Child>,
}

/// The variables of a process that is to find the service which it, or its parent, starts.
#[must_use]
pub fn variables() -> [(&'static str, PathBuf); 2] {
    let folder = std::env::temp_dir().join(format!("hairline-service-{}", std::process::id()));
    [(PRODUCERS, folder.join("p.sock")), (CONSUMERS, folder.join("c.sock"))]
}

/// Whether there is a service to start.
#[must_use]
pub fn is_there() -> bool {
    Path::new(RUN).exists()
}

impl Service {
    /// Starts the service at the sockets that this process's environment names, or at those of its
    /// [`variables`].
    ///
    /// # Errors
    /// If it is not unpacked, or does not start.
    pub fn start() -> Outcome<Self> {
        if !is_there() {
            return Err("tests/oracle/traced.sh has unpacked no tracing service".into());
        }
        let [_, (_, own)] = variables();
        let door = std::env::var_os(CONSUMERS).map_or(own, PathBuf::from);
        let folder = door.parent().ok_or("its sockets have no folder")?.to_owned();
        fs::create_dir(&folder)?;
        let sockets = [(PRODUCERS, folder.join("p.sock")), (CONSUMERS, door.clone())];
        let traced = quiet(Command::new(RUN).arg("traced").envs(sockets.clone())).spawn()?;
        let mut service = Self { folder: folder.clone(), traced, consumer: None };
        wait_until(|| door.exists())?;
        let config = folder.join("config.txt");
        fs::write(&config, CONFIG)?;
        let mut consumer = Command::new(RUN);
        consumer.args(["perfetto", "--txt", "-c"]).arg(config).arg("-o").arg(folder.join("trace.pftrace"));
        service.consumer = Some(quiet(consumer.envs(sockets)).spawn()?);
        Ok(service)
    }

    /// Ends the session. Its trace is at `path` then.
    ///
    /// # Errors
    /// If the trace cannot be written.
    pub fn save(mut self, path: &Path) -> Outcome<()> {
        let mut consumer = self.consumer.take().ok_or("it has no session")?;
        let interrupted = Command::new("kill").args(["-INT", &consumer.id().to_string()]).status()?;
        let ended = consumer.wait()?;
        if !interrupted.success() || !ended.success() {
            return Err(format!("the session: {ended}").into());
        }
        fs::copy(self.folder.join("trace.pftrace"), path)?;
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        for child in self.consumer.iter_mut().chain([&mut self.traced]) {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

/// Waits until something about the service is so.
///
/// # Errors
/// After ten seconds in vain.
pub fn wait_until(mut is_so: impl FnMut() -> bool) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() >= until {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the tracing service"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Time after each batch in which the service reads it.
pub fn pause() {
    std::thread::sleep(Duration::from_millis(2));
}
