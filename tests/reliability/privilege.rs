//! A program that has more rights than its caller reads nothing of the caller's environment.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::others::{Stage, as_nobody, in_own_shm, said};

#[test]
fn a_setuid_or_setgid_program_does_not_read_the_environment() {
    let Some(stage) = Stage::new().filter(Stage::heeds_setuid) else { return };
    let closed = stage.path("closed");
    fs::create_dir(&closed).expect("made");
    fs::set_permissions(&closed, Permissions::from_mode(0o770)).expect("changed");
    let (precious, new) = (closed.join("precious.fxt"), closed.join("new.fxt"));
    fs::write(&precious, "precious").expect("written");
    fs::set_permissions(&precious, Permissions::from_mode(0o660)).expect("changed");
    let open = stage.directory_of_nobody("open");
    for (name, mode) in [("plain", 0o755), ("setuid", 0o4755), ("setgid", 0o2755)] {
        let program = stage.program(env!("CARGO_BIN_EXE_ending"), name, mode);
        let run = |output: &std::path::Path| {
            let mut command = as_nobody(&program);
            command.arg("return").env("HAIRLINE", output).env("HAIRLINE_LOG", "info");
            let output = command.output().expect("it ran");
            assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
            said(&output)
        };
        // The caller may write there, so it is not the file system that refuses.
        let own = open.join(format!("{name}.fxt"));
        let lines = run(&own);
        assert_eq!((lines.is_empty(), own.exists()), (name != "plain", name == "plain"), "{name}: {lines:?}");
        run(&precious);
        run(&new);
        assert_eq!(fs::read(&precious).expect("read"), b"precious", "{name}");
        assert!(!new.exists(), "{name}");
    }
}

/// A file of a setgid program's region would belong to the caller, who could read it, and end the program by
/// making it shorter.
#[test]
fn the_ring_of_a_setuid_or_setgid_program_has_no_file() {
    let Some(stage) = Stage::new().filter(Stage::heeds_setuid) else { return };
    let directory = stage.directory_of_nobody("directory");
    for (name, mode) in [("plain", 0o755), ("setuid", 0o4755), ("setgid", 0o2755)] {
        let program = stage.program(env!("CARGO_BIN_EXE_ending"), name, mode);
        let trace = directory.join(format!("{name}.fxt"));
        let script = format!(
            "setpriv --reuid=65534 --regid=65534 --clear-groups {program} long {trace} & pid=$!
             until [ -s {trace} ]; do sleep 0.01; done
             ls /dev/shm
             kill -9 $pid; wait $pid",
            program = program.display(),
            trace = trace.display(),
        );
        let Some(mut command) = in_own_shm(":", &script) else { return };
        let output = command.stdin(Stdio::null()).output().expect("it ran");
        let has_file = String::from_utf8_lossy(&output.stdout).contains("hairline-");
        assert_eq!(has_file, name == "plain", "{name}: {output:?}");
    }
}

#[test]
fn the_summary_of_a_setgid_program_says_that_its_ring_has_no_file() {
    let Some(stage) = Stage::new().filter(Stage::heeds_setuid) else { return };
    let directory = stage.directory_of_nobody("directory");
    for (name, mode) in [("plain", 0o755), ("setgid", 0o2755)] {
        let program = stage.program(env!("CARGO_BIN_EXE_ending"), name, mode);
        let output =
            as_nobody(&program).arg("notes").arg(directory.join(name).with_extension("fxt")).output();
        let output = output.expect("it ran");
        let notes = String::from_utf8_lossy(&output.stdout).matches("more rights than its caller").count();
        assert_eq!((output.status.code(), notes), (Some(0), usize::from(name == "setgid")), "{output:?}");
    }
}
