//! Runs of this package's programs, each in a directory of its own.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use hairline_tests::children::{is_over, kill_group};
use hairline_tests::forked::describe;
use hairline_tests::judge;
use hairline_tests::mortal::region_of;
use hairline_tests::seccomp;

/// Longer than any program of these tests takes: the watchdog of `moments` comes first.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that leads a process group, and its end. Nothing of the group outlives the program's end.
pub(crate) struct Run {
    /// Empty before the end.
    pub(crate) output: Output,
    pub(crate) pid: u32,
    child: Child,
    started: SystemTime,
    /// Its stdout and stderr. Not pipes, which a child that hangs would keep open.
    files: [File; 2],
    directory: tempfile::TempDir,
}

impl Run {
    /// Starts it with these arguments and variables.
    pub(crate) fn start(
        program: &str,
        directory: tempfile::TempDir,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        Self::start_with(program, directory, arguments, variables, |_| {})
    }

    /// Like [`start`](Self::start), with a change of the command.
    pub(crate) fn start_with(
        program: &str,
        directory: tempfile::TempDir,
        arguments: &[&str],
        variables: &[(&str, &str)],
        change: impl FnOnce(&mut Command),
    ) -> Self {
        let files = [(); 2].map(|()| tempfile::tempfile().expect("a file"));
        let of_child = |n: usize| Stdio::from(files[n].try_clone().expect("a copy"));
        let mut command = Command::new(program);
        command.current_dir(directory.path()).process_group(0).args(arguments).env_remove("HAIRLINE");
        command.envs(variables.iter().copied()).stdout(of_child(0)).stderr(of_child(1));
        change(&mut command);
        let started = SystemTime::now();
        let child = command.spawn().expect("it starts");
        let output = Output { status: ExitStatus::from_raw(0), stdout: Vec::new(), stderr: Vec::new() };
        Self { output, pid: child.id(), child, started, files, directory }
    }

    /// Waits for its end, and kills what is left of its group.
    ///
    /// # Errors
    /// When it takes longer than `patience`, or has stopped itself: where its threads are.
    pub(crate) fn end(&mut self, patience: Duration) -> Result<(), String> {
        let began = Instant::now();
        while !is_over(self.pid.cast_signed()) && began.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(2));
        }
        let has_stopped = std::fs::read_to_string(format!("/proc/{}/stat", self.pid))
            .is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')));
        let problem = match (has_stopped, is_over(self.pid.cast_signed())) {
            (true, _) => Err(format!("crashed\n{}", describe(self.pid.cast_signed()))),
            (false, false) => Err(format!("hangs\n{}", describe(self.pid.cast_signed()))),
            (false, true) => Ok(()),
        };
        kill_group(self.pid); // itself if it did not end, and children that hang
        self.output.status = self.child.wait().expect("its end");
        let read = |file: &mut File| {
            let mut all = Vec::new();
            file.rewind().and_then(|()| file.read_to_end(&mut all)).expect("read");
            all
        };
        [self.output.stdout, self.output.stderr] = self.files.each_mut().map(read);
        problem
    }

    /// Its directory, for another run.
    pub(crate) fn into_directory(mut self) -> tempfile::TempDir {
        std::mem::replace(&mut self.directory, tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The numbers that it printed, up to the first other word.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let said = String::from_utf8_lossy(&self.output.stdout);
        said.split_whitespace().map_while(|n| n.parse().ok()).collect()
    }

    /// What Hairline said on stderr.
    pub(crate) fn said(&self) -> Vec<String> {
        let all = String::from_utf8_lossy(&self.output.stderr);
        all.lines().filter(|l| l.starts_with("hairline: ")).map(str::to_owned).collect()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// All files that it left.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.directory.path()).expect("a directory").flatten();
        let mut paths: Vec<_> = entries.map(|e| e.path()).collect();
        paths.sort();
        paths
    }

    /// What it left of its region.
    pub(crate) fn region(&self) -> Option<PathBuf> {
        region_of(self.pid, self.started)
    }
}

impl Drop for Run {
    /// Of the program and its children, nothing stays in the machine's memory.
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            kill_group(self.pid);
            let _ = self.child.wait();
        }
        let left = hairline::recovery::find().unwrap_or_default();
        let ours =
            |output: &Option<PathBuf>| output.as_ref().is_some_and(|o| o.starts_with(self.directory.path()));
        for region in left.iter().filter(|region| region.is_dead() && ours(&region.output)) {
            let _ = std::fs::remove_file(&region.path);
        }
    }
}

/// Runs `ending` with these arguments and variables, in its directory.
pub(crate) fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    run_in(tempfile::tempdir().expect("a directory"), arguments, variables)
}

pub(crate) fn run_in(directory: tempfile::TempDir, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    let mut run = Run::start(env!("CARGO_BIN_EXE_ending"), directory, arguments, variables);
    run.end(PATIENCE).unwrap_or_else(|what| panic!("{arguments:?} {what}\n{:?}", run.output));
    run
}

/// Runs `ending` while these system calls fail with `errno`.
pub(crate) fn run_refused(
    calls: &[libc::c_long],
    errno: libc::c_int,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Run {
    let directory = tempfile::tempdir().expect("a directory");
    let refuse = |command: &mut Command| seccomp::refuse(command, calls, errno);
    let mut run = Run::start_with(env!("CARGO_BIN_EXE_ending"), directory, arguments, variables, refuse);
    run.end(PATIENCE).unwrap_or_else(|what| panic!("{arguments:?} {what}\n{:?}", run.output));
    run
}

/// Runs `moments`, which ends well.
pub(crate) fn moments(arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    let directory = tempfile::tempdir().expect("a directory");
    let mut run = Run::start(env!("CARGO_BIN_EXE_moments"), directory, arguments, variables);
    run.end(PATIENCE).unwrap_or_else(|what| panic!("{arguments:?} {what}\n{:?}", run.output));
    assert!(run.output.status.success(), "{arguments:?}: {:?}", run.output);
    run
}

/// The ten scopes of the main thread and the ten of the other are there, whole, and nothing is to be
/// complained of.
pub(crate) fn has_the_work(trace: &Path) {
    let sql = "select t.name, count(*), min(dur) >= 0 from slice s join thread_track tt on s.track_id = tt.id \
        join thread t using (utid) where s.name = 'work' and t.name in ('main', 'other') group by t.name order by t.name";
    let verdict = judge::load(trace, &[sql]);
    verdict.require_clean();
    assert_eq!(verdict.results[0].text(), "main\t10\t1\nother\t10\t1", "{}", trace.display());
}
