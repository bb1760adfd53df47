//! A program that has more rights than its caller reads nothing of the caller's environment.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::others::{Stage, as_nobody, said};

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
