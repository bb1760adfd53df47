//! A process that waits for Perfetto's tracing service to record it: a producer of the data source
//! `track_event`.
//!
//! ```text
//! HAIRLINE=traced, output_traced() -> a thread that sleeps in `poll` -> commands of the service
//!     start    the first instance starts a session, further ones join it; it records what any of them wants
//!     flush    the session's thread makes a pass, and gives all to the service
//!     stop     the last instance ends the session
//! ```
//!
//! The thread has a table of open files of its own, as that of `listen` has, and so has the session's: no
//! file of either is the program's. A forked child registers itself, from its first event on.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use hairline_shm::Uncancelled;

use crate::builder::{Config, OutputConfig, Requester, SessionBuilder};
use crate::error::Error;
use crate::filter::Filter;
use crate::on::base::platform::facts::Heard;
use crate::on::base::platform::own_thread::{self, OwnThread};
use crate::on::base::platform::service::{Connection, SharedMemory};
use crate::on::base::platform::{self, process};
use crate::on::base::stderr::{self, Level};
use crate::on::base::{this_thread, variables};
use crate::on::callsite::registry;
use crate::on::lifecycle::place::{REGISTRATION, this_process};
use crate::on::lifecycle::{connect, env, start};
use crate::on::session::current;
use crate::on::session::shared::Shared;
use crate::on::traced::changes::{Change, Changes};
use crate::on::traced::frames::{self, Bound, Command, Method, Said};
use crate::on::traced::link::{Link, PATIENCE};
use crate::on::traced::memory::{PAGE, PAGES};
use crate::on::traced::output::{Ground, ServiceOutput};
use crate::on::traced::wanted::Wanted;
use crate::options::{Format, Overflow};

/// The most instances at a time. Further ones record nothing.
const MOST_INSTANCES: usize = 32;

/// Time between two looks for new categories, and whether the thread is to end.
const LOOK: Duration = Duration::from_secs(1);

/// The first and the longest pause before the next attempt to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// A service that has kept a connection for this time is looked for at once when it goes.
const ENOUGH: Duration = Duration::from_millis(500);

/// Most bytes of the categories that the service is told. A call has a limit of 128 KiB.
const CATEGORY_BYTES: usize = 64 << 10;

/// The sockets of the service where no variable names one: Perfetto's own choice.
const IN_RUN: &str = "/run/perfetto/traced-producer.sock";
const IN_TMP: &str = "/tmp/perfetto-producer";

/// A process that is registered with Perfetto's tracing service, until this value is dropped. See
/// [`SessionBuilder::output_traced`].
#[derive(Debug)]
#[must_use = "dropping it ends the registration"]
pub struct Registered {
    thread: Option<OwnThread>,
    /// The process of this value: that of a forked child is a copy.
    process: (u32, u32),
}

impl SessionBuilder {
    /// Registers the process with Perfetto's tracing service, `traced`, instead of starting a session: the
    /// service starts and ends sessions, and says which categories they have. Linux 5.9 or later. The
    /// variable `HAIRLINE=traced` does the same from outside.
    ///
    /// What the service records are the sources `track_event` of its config. Up to 32 of them record at a
    /// time, each with its own categories. This builder's output, format, categories and level have no
    /// effect. A service that does not run, or ends, is looked for again, at most 15 s later.
    ///
    /// Until a session starts, a thread looks for new categories once a second, and an event costs what it
    /// costs without a session. While a session of the program runs, one of the service gets no events, which
    /// stderr says. While one of the service runs, [`start`](Self::start) returns a handle of it, as with
    /// `HAIRLINE`.
    ///
    /// ```no_run
    /// let _traced = hairline::Session::builder().thread_time(true).output_traced()?; // to the end of `main`
    /// # Ok::<(), hairline::Error>(())
    /// ```
    ///
    /// # Errors [`Error::Traced`] if the system cannot give a thread files of its own (before Linux 5.9, or
    /// in a sandbox that forbids it), or if the process has more rights than its caller (setuid), who could
    /// read its trace. [`Error::Value`] if an option has an invalid value, or the session is to be a flight
    /// recorder.
    pub fn output_traced(self) -> Result<Registered, Error> {
        start(self)
    }
}

impl Registered {
    /// Stays registered for the rest of the process's life.
    pub fn keep_on(self) {
        std::mem::forget(self);
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.process != this_process() {
            return std::mem::forget(thread); // it does not exist here
        }
        REGISTRATION.set_wanted(false);
        REGISTRATION.set_ends();
        drop(thread); // it ends within `LOOK`, and nobody waits for that
        let _uncancelled = Uncancelled::new();
        if let Some(session) = current::running().filter(|it| it.settings.requester == Requester::Service) {
            session.stop_or_report();
        }
    }
}

/// Starts the thread, unless it runs.
pub(crate) fn start(builder: SessionBuilder) -> Result<Registered, Error> {
    let _uncancelled = Uncancelled::new();
    connect::connect();
    let process = this_process();
    if process::is_privileged() || this_thread::is_detached() {
        let why = "the process has more rights than its caller, or was forked without handlers";
        return Err(Error::Traced(io::Error::new(io::ErrorKind::PermissionDenied, why)));
    }
    let config = builder.into_config()?;
    if config.overflow == Overflow::Overwrite {
        let expected = "use drop or block: the tracing service's buffers overwrite";
        return Err(Error::Value { what: "overflow", value: "overwrite".to_owned(), expected });
    }
    if !reserve()? {
        return Ok(Registered { thread: None, process });
    }
    let thread = spawn(config).map_err(Error::Traced);
    let thread = thread.inspect_err(|_| REGISTRATION.free())?;
    REGISTRATION.set_wanted(true);
    Ok(Registered { thread: Some(thread), process })
}

/// Takes the place of the one registration, after one that is about to end. Returns false if this process is
/// registered.
fn reserve() -> Result<bool, Error> {
    let until = Instant::now() + 2 * LOOK;
    while REGISTRATION.is_taken() && REGISTRATION.ends() {
        if Instant::now() >= until {
            return Err(Error::Traced(io::Error::new(
                io::ErrorKind::TimedOut,
                "the last registration has not ended",
            )));
        }
        std::thread::sleep(FIRST_PAUSE);
    }
    Ok(REGISTRATION.reserve())
}

fn spawn(config: Config) -> io::Result<OwnThread> {
    // A signal handler that forks would leave a child that waits for a thread which does not exist there.
    let _signals_blocked = process::SignalsBlocked::new();
    let (sender, ready) = sync_channel(1);
    let serve = move || {
        if platform::own_files(&[]) {
            if sender.send(Ok(())).is_ok() {
                run(&config);
            }
        } else {
            let why = "the thread cannot have open files of its own (close_range, Linux 5.9)";
            let _ = sender.send(Err(io::Error::new(io::ErrorKind::Unsupported, why)));
        }
        REGISTRATION.free();
    };
    let thread = own_thread::spawn(c"hairline-traced", serve)?;
    ready.recv_timeout(PATIENCE).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    Ok(thread)
}

/// In a forked child of a registered process: registers the child, with the settings of the environment. A
/// failure is reported.
pub(crate) fn go_on_in_child() {
    if REGISTRATION.is_wanted() && !REGISTRATION.is_taken() {
        let settings =
            if env::asks_for_traced() { env::settings_for_service() } else { Ok(SessionBuilder::new()) };
        match settings.and_then(start) {
            Ok(traced) => traced.keep_on(),
            Err(e) => stderr::report_error(&e),
        }
    }
}

/// Connects to the service, again and again, and does what it commands.
fn run(config: &Config) {
    let (mut pause, mut said) = (FIRST_PAUSE, None);
    while !REGISTRATION.ends() {
        match Producer::connect(config) {
            Ok(mut producer) => {
                stderr::write(Level::Info, format_args!("registered with the tracing service"));
                said = None;
                let began = Instant::now();
                producer.serve();
                if began.elapsed() > ENOUGH {
                    pause = FIRST_PAUSE;
                }
            }
            Err(e) => {
                // Once, until it is another reason.
                let text = e.to_string();
                if said.as_ref() != Some(&text) {
                    stderr::write(Level::Error, format_args!("{text}"));
                    said = Some(text);
                }
            }
        }
        let until = Instant::now() + pause;
        while !REGISTRATION.ends() && Instant::now() < until {
            std::thread::sleep(FIRST_PAUSE.min(until.saturating_duration_since(Instant::now())));
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Returns the path of the service's socket, and whether anybody could have made it.
fn socket_path() -> (PathBuf, bool) {
    // The variable has further addresses after a comma.
    let named = variables::of_perfetto().and_then(|names| {
        names.to_str().and_then(|names| names.split(',').next()).map(|name| PathBuf::from(name.trim()))
    });
    match named {
        Some(path) => (path, false),
        None if Path::new(IN_RUN).parent().is_some_and(Path::is_dir) => (IN_RUN.into(), false),
        None => (IN_TMP.into(), true),
    }
}

/// The registration of one connection.
struct Producer<'c> {
    config: &'c Config,
    link: Link,
    inbox: Inbox,
    ground: Ground,
    changes: Changes,
    /// The request whose answers are commands.
    commands: u64,
    instances: Vec<(u64, Wanted)>,
    session: Option<Arc<Shared>>,
    /// The categories that the service knows.
    categories: Vec<&'static str>,
}

/// Bytes of the service that are not read yet.
#[derive(Debug, Default)]
struct Inbox(Vec<u8>);

/// What the inbox has.
enum Next {
    Said(Said),
    Nothing,
    End,
}

impl Inbox {
    fn next(&mut self, connection: &Connection) -> Next {
        loop {
            match frames::split(&self.0) {
                Err(()) => return Next::End,
                Ok(Some((frame, len))) => {
                    let said = frames::said(frame);
                    self.0.drain(..len);
                    return Next::Said(said);
                }
                Ok(None) => {}
            }
            let mut bytes = [0; 4096];
            match connection.receive(&mut bytes) {
                Heard::Bytes(len) => self.0.extend_from_slice(bytes.get(..len).unwrap_or_default()),
                Heard::Nothing => return Next::Nothing,
                Heard::End => return Next::End,
            }
        }
    }

    /// Waits for what `find` accepts.
    fn wait<T>(&mut self, connection: &Connection, mut find: impl FnMut(Said) -> Option<T>) -> io::Result<T> {
        let until = Instant::now() + PATIENCE;
        loop {
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() || REGISTRATION.ends() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match self.next(connection) {
                Next::Said(said) => {
                    if let Some(found) = find(said) {
                        return Ok(found);
                    }
                }
                Next::End => return Err(io::ErrorKind::UnexpectedEof.into()),
                Next::Nothing => connection.wait(rest.min(LOOK)),
            }
        }
    }
}

impl<'c> Producer<'c> {
    /// Connects and registers.
    fn connect(config: &'c Config) -> Result<Self, String> {
        let (path, is_of_anybody) = socket_path();
        let at = path.display();
        let failed = |e: io::Error| format!("the tracing service at {at}: {e}");
        let connection = Connection::open(&path).map_err(|e| unreachable(&path, &e))?;
        if is_of_anybody && !connection.is_trusted() {
            return Err(format!(
                "the tracing service at {at} is another user's, and anybody can make a file there; if it is the \
                 right one, name it in PERFETTO_PRODUCER_SOCK_NAME"
            ));
        }
        let mut inbox = Inbox::default();
        let bound = bind(&connection, &mut inbox).map_err(failed)?;
        let bound =
            bound.ok_or_else(|| format!("the service at {at} takes no producers: it has another version"))?;
        let (memory, file) = SharedMemory::new(PAGE * PAGES).map_err(failed)?;
        let link = Link::new(connection, bound, 1);
        let arguments = frames::connection(PAGE, PAGE * PAGES, process::name());
        let request = link.call(Method::InitializeConnection, &arguments, Some(&file)).map_err(failed)?;
        let taken = inbox.wait(link.connection(), |said| match said {
            Said::Reply { request: of, has_succeeded, bytes } if of == request => {
                Some(has_succeeded && frames::takes_our_memory(&bytes))
            }
            _ => None,
        });
        if !taken.map_err(failed)? {
            return Err(format!(
                "the tracing service at {at} does not take a producer's memory: use Perfetto 12 or later"
            ));
        }
        let commands = link.call(Method::GetAsyncCommand, &[], None).map_err(failed)?;
        let categories = categories();
        link.call(Method::RegisterDataSource, &frames::data_source(&categories), None).map_err(failed)?;
        Ok(Self {
            config,
            link,
            inbox,
            ground: Ground::new(memory),
            changes: Changes::default(),
            commands,
            instances: Vec::new(),
            session: None,
            categories,
        })
    }

    /// Does what the service commands, until it goes or this registration ends.
    fn serve(&mut self) {
        while !REGISTRATION.ends() && !self.link.is_broken() {
            match self.inbox.next(self.link.connection()) {
                Next::Said(Said::Reply { request, has_succeeded, bytes }) if request == self.commands => {
                    if !has_succeeded || self.obey(frames::command(&bytes)).is_err() {
                        break;
                    }
                }
                Next::Said(_) => {}
                Next::Nothing => {
                    self.link.connection().wait(LOOK);
                    self.tell_categories();
                }
                Next::End => break,
            }
        }
        if !REGISTRATION.ends() {
            self.link.break_off(); // the service has gone, and waits for nothing
        }
        self.end_session();
    }

    fn obey(&mut self, command: Command) -> io::Result<()> {
        match command {
            Command::Start { id, buffer, wanted } => {
                self.start(id, buffer, wanted);
                self.link.call(Method::NotifyDataSourceStarted, &frames::number(id), None)?;
            }
            Command::Stop { id } => {
                self.stop(id);
                self.link.call(Method::NotifyDataSourceStopped, &frames::number(id), None)?;
                self.tell_categories();
            }
            Command::Flush { request } => {
                self.flush();
                self.link.call(Method::CommitData, &frames::commit(&[], Some(request)), None)?;
            }
            Command::Clear { ids } => {
                if self.running().is_some() {
                    let known = self.instances.iter().map(|(id, _)| *id).filter(|id| ids.contains(id));
                    known.for_each(|id| self.changes.add(Change::Again(id)));
                    self.flush();
                }
            }
            Command::Other => {}
        }
        Ok(())
    }

    /// Returns the session, if it still runs: the program may have ended it.
    fn running(&self) -> Option<&Arc<Shared>> {
        let session = self.session.as_ref()?;
        current::running().is_some_and(|running| running.epoch() == session.epoch()).then_some(session)
    }

    fn start(&mut self, id: u64, buffer: u16, wanted: Wanted) {
        if self.instances.iter().any(|(of, _)| *of == id) {
            return; // it has started
        }
        if self.instances.len() >= MOST_INSTANCES {
            let most = MOST_INSTANCES;
            let message =
                format_args!("the tracing service has more than {most} sessions: this one gets no events");
            return stderr::write(Level::Error, message);
        }
        let join = Change::Join { id, buffer, filter: wanted.filter.clone() };
        let thread_time = wanted.thread_time;
        if self.running().is_some() {
            self.instances.push((id, wanted));
            self.changes.add(join);
            // The output sorts events before there are any that only this instance wants.
            self.flush();
            return self.set_filter();
        }
        self.instances = vec![(id, wanted)]; // those before ended with their session
        self.changes = Changes::default();
        self.changes.add(join);
        let (filter, level) = self.wanted();
        let of = self.config;
        let mut detail = of.detail;
        detail.thread_time |= thread_time;
        let config = Config {
            output: OutputConfig::Service,
            format: Some(Format::TrackEvent),
            filter: filter.unwrap_or_default(),
            level,
            detail,
            slow: of.slow.clone(),
            stacks: of.stacks.clone(),
            sampling: of.sampling.clone(),
            requester: Requester::Service,
            max_file_size: None,
            rotate: None,
            #[cfg(feature = "compress")]
            compress: false, // the service takes no compressed packets
            ..*of
        };
        let started = self.link.again().map_err(Error::Traced).and_then(|link| {
            let output = ServiceOutput::new(link, self.ground.clone(), self.changes.clone());
            start::start_for(config, Some(Box::new(output)))
        });
        match started {
            Ok(session) => self.session = Some(session),
            Err(e) => {
                self.instances.clear();
                let message = format_args!("the tracing service gets no events of this process: {e}");
                stderr::write(Level::Error, message);
            }
        }
    }

    fn stop(&mut self, id: u64) {
        let Some(place) = self.instances.iter().position(|(of, _)| *of == id) else { return };
        self.instances.remove(place);
        if self.instances.is_empty() {
            return self.end_session();
        }
        if self.running().is_some() {
            self.set_filter(); // first: the output does not wait for what nobody wants any more
            self.changes.add(Change::Leave(id));
            self.flush();
        }
    }

    fn end_session(&mut self) {
        self.instances.clear();
        if let Some(session) = self.session.take() {
            session.stop_or_report();
        }
    }

    fn flush(&self) {
        if let Some(session) = self.running() {
            let _ = session.flush(); // an error is that of the connection, or of the session, which reports it
        }
    }

    /// Returns what any of the instances wants.
    fn wanted(&self) -> (Option<Filter>, crate::vocabulary::Level) {
        let filter = Filter::any(self.instances.iter().map(|(_, wanted)| wanted.filter.clone()));
        let levels = self.instances.iter().map(|(_, wanted)| wanted.level);
        (filter, levels.min().unwrap_or(crate::vocabulary::Level::Info))
    }

    fn set_filter(&self) {
        if let Some(session) = self.running() {
            let (filter, level) = self.wanted();
            registry::set_filter(session.epoch(), filter, Some(level));
        }
    }

    /// Tells the service of categories that the program has reached since.
    fn tell_categories(&mut self) {
        let now = categories();
        if now != self.categories {
            // An error ends the loop.
            let _ = self.link.call(Method::UpdateDataSource, &frames::data_source(&now), None);
            self.categories = now;
        }
    }
}

fn categories() -> Vec<&'static str> {
    let mut bytes = 0;
    let mut all = registry::categories();
    all.retain(|category| {
        bytes += category.len() + 8;
        bytes <= CATEGORY_BYTES
    });
    all
}

fn bind(connection: &Connection, inbox: &mut Inbox) -> io::Result<Option<Bound>> {
    let mut frame = Vec::new();
    frames::put_bind(&mut frame, 1);
    connection.send(&frame, None, Instant::now() + PATIENCE)?;
    inbox.wait(connection, |said| match said {
        Said::Bound(bound) => Some(bound),
        _ => None,
    })
}

/// Says why there is no connection, and what to do.
fn unreachable(path: &Path, e: &io::Error) -> String {
    let at = path.display();
    let advice = match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            "start `traced`, or name its socket in PERFETTO_PRODUCER_SOCK_NAME"
        }
        io::ErrorKind::PermissionDenied => "this user may not connect: see the permissions of its socket",
        io::ErrorKind::InvalidInput => "the name is too long for a socket",
        _ => "it cannot be reached",
    };
    format!("no tracing service at {at} ({e}): {advice}; it is looked for again from time to time")
}
