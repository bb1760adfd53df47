//! Names that another user has taken: Hairline follows none, waits at none, and writes into no file behind
//! one.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hairline::recovery::{self, RecoverOptions, Recovered};
use hairline::{Error, Format, Overflow, Session, trace_scope};
use hairline_tests::mortal::{Orders, Victim, files};
use hairline_tests::recording::{FORMATS, extension, turn};
use hairline_tests::regions::region_of;

use crate::others::{NOBODY, Stage, as_nobody, said};

/// Runs it on a thread of its own.
///
/// # Panics
/// When it takes longer than 20 s: it hangs at a FIFO.
fn soon<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(what()));
    ended.recv_timeout(Duration::from_secs(20)).expect("it hangs")
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
}

/// A directory of `nobody`, and a file of root.
pub(crate) struct Trap {
    pub(crate) directory: PathBuf,
    precious: PathBuf,
    pub(crate) stage: Stage,
}

impl Trap {
    pub(crate) fn new() -> Option<Self> {
        let stage = Stage::new()?;
        let precious = stage.path("precious");
        fs::write(&precious, "precious").expect("written");
        fs::set_permissions(&precious, fs::Permissions::from_mode(0o600)).expect("changed");
        Some(Self { directory: stage.directory_of_nobody("directory"), precious, stage })
    }

    /// A link of `nobody` to the file of root.
    pub(crate) fn plant(&self, name: &str) -> PathBuf {
        let link = self.directory.join(name);
        symlink(&self.precious, &link).expect("a link");
        lchown(&link, Some(NOBODY), Some(NOBODY)).expect("given away");
        link
    }

    pub(crate) fn has_caught_nothing(&self) {
        assert_eq!(fs::read(&self.precious).expect("read"), b"precious");
    }
}

#[test]
fn a_snapshot_follows_no_planted_link() {
    let Some(trap) = Trap::new() else { return };
    let _turn = turn();
    let path = trap.directory.join("t.fxt");
    trap.plant(&format!("t.fxt.{}.unfinished", std::process::id()));
    let session = Session::builder().output(&path).overflow(Overflow::Overwrite).start().expect("a session");
    trap.has_caught_nothing();
    trap.plant(&format!("s.fxt.{}.unfinished", std::process::id()));
    session.snapshot(trap.directory.join("s.fxt")).expect("a snapshot");
    session.stop().expect("stopped");
    trap.has_caught_nothing();
    for trace in [path, trap.directory.join("s.fxt")] {
        assert!(fs::symlink_metadata(&trace).expect("a trace").is_file(), "{}", trace.display());
    }
}

#[test]
fn a_rotated_output_follows_no_planted_link() {
    let Some(trap) = Trap::new() else { return };
    let _turn = turn();
    let path = trap.directory.join("t.fxt");
    trap.plant(&format!(".t.fxt.next-{}", std::process::id()));
    trap.plant("t.1.fxt");
    fifo(&trap.directory.join("t.2.fxt"));
    let session = Session::builder().output(&path).rotate(64 << 10, 0).start().expect("a session");
    for n in 0..40_000_u64 {
        trace_scope!("names", "step", n);
        if n % 1000 == 0 {
            session.flush().expect("no error");
        }
    }
    let summary = session.stop().expect("stopped");
    trap.has_caught_nothing();
    assert_eq!(summary.notes, [""; 0]);
    let files = files(&path);
    assert!(files.len() > 5, "{files:?}");
    let (planted, own) = files.split_at(2);
    let is_file = |file: &PathBuf| fs::symlink_metadata(file).is_ok_and(|m| m.is_file());
    assert!(!planted.iter().any(is_file) && own.iter().all(is_file), "{files:?}");
}

/// A program that was killed, and its files in a directory.
fn dead(format: Format, directory: &Path) -> (Victim, PathBuf) {
    let orders = Orders { chunk: 1 << 20, buffer: 8 << 20, end: "1000".to_owned(), ..Orders::new(format) };
    let mut victim = Victim::start(env!("CARGO_BIN_EXE_mortal"), directory, orders);
    victim.wait_until_committed(1000);
    victim.kill();
    let region = victim.region().expect("a region");
    (victim, region)
}

fn recover(region: &Path, options: RecoverOptions) -> Recovered {
    let region = region.to_owned();
    soon(move || recovery::recover(&region, &options)).expect("recovered")
}

#[test]
fn a_recovery_follows_no_planted_link() {
    let Some(trap) = Trap::new() else { return };
    for format in FORMATS {
        let (victim, region) = dead(format, &trap.directory);
        let name = victim.trace.file_name().expect("a name").to_string_lossy().into_owned();
        fs::remove_file(&victim.trace).expect("removed");
        let beside = format!("{name}.recovered-{}", victim.pid());
        trap.plant(&format!("{beside}.{}.part", std::process::id()));
        trap.plant(&format!("elsewhere.{}.part", std::process::id()));
        let to = RecoverOptions::new().keep_region(true).to(trap.directory.join("elsewhere"));
        for options in [to, RecoverOptions::new()] {
            let trace = recover(&region, options).path.expect("a trace");
            trap.has_caught_nothing();
            assert!(fs::symlink_metadata(&trace).expect("a trace").is_file());
            victim.check(&trace).expect("all steps");
        }
        fs::remove_dir_all(&trap.directory).expect("removed");
        fs::create_dir(&trap.directory).expect("made");
    }
}

/// At the trace's own name too, where it leads to a copy of the trace.
#[test]
fn a_recovery_follows_no_link_that_was_planted_at_the_traces_own_name() {
    let Some(trap) = Trap::new() else { return };
    for format in FORMATS {
        let (victim, region) = dead(format, &trap.directory);
        let copy = trap.stage.path("copy");
        fs::rename(&victim.trace, &copy).expect("moved");
        let before = fs::read(&copy).expect("read");
        symlink(&copy, &victim.trace).expect("a link");
        lchown(&victim.trace, Some(NOBODY), Some(NOBODY)).expect("given away");
        let to = RecoverOptions::new().keep_region(true).to(trap.directory.join("elsewhere"));
        for options in [to, RecoverOptions::new()] {
            let recovered = recover(&region, options);
            assert!(
                recovered.notes.iter().any(|note| note.contains("link of another user")),
                "{recovered:?}"
            );
            assert!(recovered.path.as_ref().is_some_and(|path| *path != victim.trace), "{recovered:?}");
            victim.check(&recovered.path.expect("a trace")).expect("all steps");
            assert!(before == fs::read(&copy).expect("read"), "the copy is as it was");
            assert!(fs::symlink_metadata(&victim.trace).expect("there").is_symlink());
        }
        fs::remove_dir_all(&trap.directory).expect("removed");
        fs::create_dir(&trap.directory).expect("made");
    }
}

/// A link of one's own or of root's is followed, as at the start of a session.
#[test]
fn a_recovery_completes_a_trace_behind_a_link_of_ones_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let (victim, region) = dead(Format::Fxt, directory.path());
    let moved = directory.path().join("moved.fxt");
    fs::rename(&victim.trace, &moved).expect("moved");
    symlink("moved.fxt", &victim.trace).expect("a link");
    let recovered = recover(&region, RecoverOptions::new());
    assert_eq!(recovered.path.as_deref(), Some(&*victim.trace), "{recovered:?}");
    assert!(fs::symlink_metadata(&victim.trace).expect("there").is_symlink());
    victim.check(&moved).expect("all steps");
}

/// An open for writing would let the reader of a FIFO begin, and the close would end it.
#[test]
fn a_recovery_does_not_open_what_is_no_file_at_the_traces_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let (victim, region) = dead(Format::Fxt, directory.path());
    fs::remove_file(&victim.trace).expect("removed");
    fifo(&victim.trace);
    let path = victim.trace.clone();
    let (ended, reader) = std::sync::mpsc::channel();
    std::thread::spawn(move || ended.send(fs::read(path).map(|bytes| bytes.len())));
    std::thread::sleep(Duration::from_millis(200)); // it waits in its open
    let recovered = recover(&region, RecoverOptions::new());
    victim.check(&recovered.path.expect("a trace")).expect("all steps");
    assert!(reader.recv_timeout(Duration::from_millis(200)).is_err(), "the reader still waits");
    fs::write(&victim.trace, "a line").expect("written");
    assert_eq!(reader.recv().expect("an end").expect("read"), 6);
}

/// The region names the path of a trace. A damaged or a planted one may name any.
#[test]
fn a_recovery_makes_a_file_only_at_the_path_of_a_trace() {
    let _turn = turn();
    let directory = tempfile::tempdir().expect("a directory");
    for format in FORMATS {
        let other = FORMATS.into_iter().find(|other| *other != format).expect("another");
        let trace = directory.path().join(format!("trace-of-a-session.{}", extension(format)));
        let at = |name: &str| directory.path().join(name);
        let builder = Session::builder().output(&trace).overflow(Overflow::Overwrite);
        let session = builder.start().expect("a session");
        trace_scope!("names", "step");
        let mut bytes = fs::read(region_of(&trace)).expect("read");
        drop(session);
        let _ = fs::remove_file(&trace);
        bytes[48..52].fill(0xff); // the pid: nobody's
        let path = trace.as_os_str().as_encoded_bytes();
        let place = bytes.windows(path.len()).position(|part| part == path).expect("the path");
        let rename = |to: &Path| {
            let (mut bytes, to) = (bytes.clone(), to.as_os_str().as_encoded_bytes());
            // As long as the session's path: the root may have any number of slashes.
            let slashes = path.len() - to.len();
            bytes[place..place + slashes].fill(b'/');
            bytes[place + slashes..place + path.len()].copy_from_slice(to);
            let region = at("region");
            fs::write(&region, bytes).expect("written");
            region
        };
        let names = [at("t.sh"), at("t"), at(&format!("t.{}", extension(other)))];
        for name in names {
            let region = rename(&name);
            let error = recovery::recover(&region, &RecoverOptions::new().assume_dead(true));
            let error = error.expect_err("not the path of a trace").to_string();
            assert!(error.contains("-o"), "{error}");
            assert!(!name.exists() && region.exists(), "{error}");
            let to = at("to");
            let options = RecoverOptions::new().assume_dead(true).to(&to);
            recovery::recover(&region, &options).expect("recovered");
            fs::remove_file(to).expect("removed");
        }
        let relative = at("region");
        let mut of_relative = bytes.clone();
        of_relative[place] = b'.';
        fs::write(&relative, of_relative).expect("written");
        let error = recovery::recover(&relative, &RecoverOptions::new().assume_dead(true));
        assert!(error.expect_err("a relative path").to_string().contains("-o"));
        let recovered = recovery::recover(&rename(&trace), &RecoverOptions::new().assume_dead(true));
        assert_eq!(recovered.expect("recovered").path.as_deref(), Some(&*trace));
        fs::remove_dir_all(directory.path())
            .and_then(|()| fs::create_dir(directory.path()))
            .expect("emptied");
    }
}

#[test]
fn what_is_no_file_of_this_user_at_a_recovered_traces_name_is_passed_by() {
    let directory = tempfile::tempdir().expect("a directory");
    let (victim, region) = dead(Format::Fxt, directory.path());
    // Not even the trace itself, by another name.
    let whole = directory.path().join("whole");
    fs::rename(&victim.trace, &whole).expect("moved");
    let name = |n: u32| {
        directory.path().join(format!(
            "trace.fxt.recovered-{}{}",
            victim.pid(),
            match n {
                1 => String::new(),
                n => format!("-{n}"),
            }
        ))
    };
    fifo(&name(1));
    fs::create_dir(name(2)).expect("made");
    symlink(&whole, name(3)).expect("a link");
    symlink("nowhere", name(4)).expect("a link");
    let before = fs::read(&whole).expect("read");
    let recovered = recover(&region, RecoverOptions::new());
    assert_eq!(recovered.path, Some(name(5)));
    assert!(before == fs::read(&whole).expect("read"));
    victim.check(&name(5)).expect("all steps");
}

/// The next file of an output has a random name until it takes the path. A recovery finds it by its head.
#[test]
fn a_rotation_that_was_cut_short_leaves_no_file() {
    for format in FORMATS {
        let directory = tempfile::tempdir().expect("a directory");
        let orders = Orders { rotate: 64 << 10, moderate: false, slow: true, ..Orders::new(format) };
        let mut victim = Victim::start(env!("CARGO_BIN_EXE_mortal"), directory.path(), orders);
        let unfinished = || {
            let entries = fs::read_dir(directory.path()).expect("a directory").flatten();
            entries.map(|e| e.path()).find(|path| path.to_string_lossy().contains(".unfinished-"))
        };
        // Before it has its head nobody knows whose it is.
        let has_its_head = || unfinished().is_some_and(|file| fs::metadata(file).is_ok_and(|m| m.len() > 0));
        victim.wait_until_committed(1000);
        let began = Instant::now();
        loop {
            victim.stop();
            if has_its_head() {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "never between two files: {format:?}");
            victim.go_on();
            std::thread::sleep(Duration::from_micros(200));
        }
        victim.kill();
        let recovered = recover(&victim.region().expect("a region"), RecoverOptions::new());
        assert_eq!(recovered.path.as_deref(), Some(&*victim.trace), "{recovered:?}");
        victim.check(&victim.trace).expect("all steps");
        assert_eq!(unfinished(), None, "left over");
    }
}

#[test]
fn a_snapshot_replaces_nothing_but_files() {
    let _turn = turn();
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    fifo(&at("fifo.pftrace"));
    fs::create_dir(at("folder.pftrace")).expect("made");
    let session = Session::builder().overflow(Overflow::Overwrite).start().expect("a session");
    for name in ["fifo.pftrace", "folder.pftrace"] {
        let error = session.snapshot(at(name)).expect_err("no file");
        assert!(matches!(error, Error::Create { .. }), "{error:?}");
        assert!(!fs::symlink_metadata(at(name)).expect("there").is_file(), "{name}");
    }
    session.stop().expect("stopped");
    assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 2, "nothing is left over");
}

/// The output's own name may be a link: its user's, or root's. That of anybody else is not followed.
#[test]
fn an_output_follows_the_links_of_its_own_user_and_of_root_only() {
    let Some(trap) = Trap::new() else { return };
    let _turn = turn();
    let theirs = trap.plant("theirs.fxt");
    let error = Session::builder().output(&theirs).start().expect_err("a planted link");
    assert!(error.to_string().contains("link"), "{error}");
    trap.has_caught_nothing();
    // A link of root's that leads to such a link.
    let ours = trap.directory.join("ours.fxt");
    symlink("theirs.fxt", &ours).expect("a link");
    Session::builder().output(&ours).start().expect_err("a planted link behind one of one's own");
    trap.has_caught_nothing();
    fs::remove_file(&ours).expect("removed");
    symlink("target.fxt", &ours).expect("a link");
    let session = Session::builder().output(&ours).start().expect("a session");
    session.stop().expect("stopped");
    assert!(fs::symlink_metadata(&ours).expect("there").is_symlink());
    assert!(fs::metadata(trap.directory.join("target.fxt")).expect("a trace").len() > 0);
    // Every user follows the links of root.
    let program = trap.stage.program(env!("CARGO_BIN_EXE_ending"), "program", 0o755);
    let of_root = trap.stage.path("of_root.fxt");
    let target = trap.directory.join("of_nobody.fxt");
    symlink(&target, &of_root).expect("a link");
    let mut command = as_nobody(&program);
    let output = command.arg("return").env("HAIRLINE", &of_root).output().expect("it ran");
    assert_eq!((output.status.code(), said(&output).len()), (Some(0), 0), "{output:?}");
    assert!(fs::metadata(&target).expect("a trace").len() > 0);
    // Those of /proc have no text to follow.
    let stdout = trap.stage.path("stdout.fxt");
    symlink("/proc/self/fd/1", &stdout).expect("a link");
    let mut command = Command::new(program);
    let output = command.arg("return").env("HAIRLINE", &stdout).output().expect("it ran");
    assert_eq!((output.status.code(), said(&output).len()), (Some(0), 0), "{output:?}");
    assert!(output.stdout.len() > 500, "the trace is there");
}

#[test]
fn a_finished_trace_has_the_mode_that_the_umask_gives() {
    for (umask, mode) in [("022", 0o644), ("077", 0o600), ("002", 0o664)] {
        for variables in [&[][..], &[("HAIRLINE_OVERFLOW", "overwrite")], &[("HAIRLINE_ROTATE", "64K")]] {
            let directory = tempfile::tempdir().expect("a directory");
            let script = format!("umask {umask} && exec {} much", env!("CARGO_BIN_EXE_ending"));
            let mut command = Command::new("sh");
            command.args(["-c", &script]).current_dir(directory.path()).env("HAIRLINE", "t.fxt");
            let output = command.envs(variables.iter().copied()).output().expect("it ran");
            assert!(output.status.success(), "{output:?}");
            let files = files(&directory.path().join("t.fxt"));
            assert_eq!(files.len() > 1, variables == [("HAIRLINE_ROTATE", "64K")], "{files:?}");
            for file in files {
                let found = File::open(&file).and_then(|f| f.metadata()).expect("a file").mode() & 0o777;
                assert_eq!(found, mode, "{umask} {variables:?} {}: {found:o}", file.display());
            }
        }
    }
    for format in FORMATS {
        let directory = tempfile::tempdir().expect("a directory");
        let (victim, region) = dead(format, directory.path());
        let to = directory.path().join(format!("to.{}", extension(format)));
        recover(&region, RecoverOptions::new().to(&to));
        // What this process's umask gives.
        let plain = directory.path().join("plain");
        File::create(&plain).expect("made");
        let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
        assert_eq!(mode(&to), mode(&plain));
        drop(victim);
    }
}
