//! Runs of the program `ending`, each in a directory of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hairline_tests::judge;

pub(crate) struct Run {
    pub(crate) output: Output,
    pub(crate) pid: u32,
    directory: tempfile::TempDir,
}

impl Run {
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
        let prefix = format!("hairline-{}-", self.pid);
        let entries = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        entries.map(|e| e.path()).find(|p| p.to_string_lossy().contains(&prefix))
    }
}

impl Drop for Run {
    /// Of those that died, and their children, nothing stays in the machine's memory.
    fn drop(&mut self) {
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
    let mut command = Command::new(env!("CARGO_BIN_EXE_ending"));
    command.current_dir(directory.path()).args(arguments).env_remove("HAIRLINE");
    command.envs(variables.iter().copied());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("it starts");
    let pid = child.id();
    Run { output: child.wait_with_output().expect("it ran"), pid, directory }
}

/// The ten scopes of the main thread and the ten of the other are there, whole, and nothing is to be complained of.
pub(crate) fn has_the_work(trace: &Path) {
    let sql = "select t.name, count(*), min(dur) >= 0 from slice s join thread_track tt on s.track_id = tt.id \
        join thread t using (utid) where s.name = 'work' and t.name in ('main', 'other') group by t.name order by t.name";
    let verdict = judge::load(trace, &[sql]);
    verdict.require_clean();
    assert_eq!(verdict.results[0].text(), "main\t10\t1\nother\t10\t1", "{}", trace.display());
}
