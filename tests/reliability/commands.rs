//! The commands write nothing through the links of other users.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hairline::{Session, trace_scope};
use hairline_tests::recording::turn;

use crate::names::Trap;
use crate::others::said;

const ENDING: &str = env!("CARGO_BIN_EXE_ending");

/// A trace of root's, which only the commands' outputs are in danger from.
fn trace(trap: &Trap) -> PathBuf {
    let _turn = turn();
    let path = trap.stage.path("in.fxt");
    let session = Session::builder().output(&path).start().expect("a session");
    {
        trace_scope!("commands", "scope");
        std::thread::sleep(std::time::Duration::from_millis(1)); // flame graphs show no slice without time
    }
    session.stop().expect("stopped");
    path
}

fn hairline(arguments: &[&str], input: &Path, output: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline_command"));
    for argument in arguments {
        match *argument {
            "IN" => command.arg(input),
            "OUT" => command.arg(output),
            other => command.arg(other),
        };
    }
    command.env_remove("HAIRLINE").output().expect("it ran")
}

/// Each command that writes to a path, and what it ends with if it cannot.
const COMMANDS: [(&[&str], i32); 4] = [
    (&["convert", "IN", "OUT"], 1),
    (&["merge", "IN", "IN", "-o", "OUT"], 1),
    (&["flame", "IN", "-o", "OUT"], 1),
    (&["record", "-o", "OUT", "--", ENDING, "return"], 125),
];

#[test]
fn a_command_follows_the_links_of_its_own_user_and_of_root_only() {
    let Some(trap) = Trap::new() else { return };
    let input = trace(&trap);
    let theirs = trap.plant("theirs.fxt");
    // A link of root's that leads to such a link.
    let behind = trap.directory.join("behind.fxt");
    symlink("theirs.fxt", &behind).expect("a link");
    for (arguments, code) in COMMANDS {
        for link in [&theirs, &behind] {
            let output = hairline(arguments, &input, link);
            let lines = said(&output);
            assert_eq!((output.status.code(), lines.len()), (Some(code), 1), "{arguments:?}: {output:?}");
            assert!(lines[0].contains("link of user 65534"), "{lines:?}");
            trap.has_caught_nothing();
            assert!(fs::symlink_metadata(link).expect("there").is_symlink());
        }
        let (ours, target) = (trap.directory.join("ours.fxt"), trap.directory.join("target.fxt"));
        symlink("target.fxt", &ours).expect("a link");
        // Once there is nothing behind it, and once a file.
        for _ in 0..2 {
            assert!(hairline(arguments, &input, &ours).status.success(), "{arguments:?}");
            assert!(fs::symlink_metadata(&ours).expect("there").is_symlink(), "{arguments:?}");
            assert!(fs::symlink_metadata(&target).expect("a trace").len() > 0, "{arguments:?}");
        }
        fs::remove_file(&ours).and_then(|()| fs::remove_file(&target)).expect("removed");
    }
}

#[test]
fn the_manual_follows_no_planted_link() {
    let Some(trap) = Trap::new() else { return };
    let link = trap.plant("hairline-view.1");
    let output = hairline(&["man", "OUT"], &link, &trap.directory);
    trap.has_caught_nothing();
    assert_eq!((output.status.code(), said(&output).len()), (Some(1), 1), "{output:?}");
}
