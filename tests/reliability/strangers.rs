//! What another user of the machine can do to a session and to what a dead one left, by files and by a
//! `/proc` that hides processes.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use hairline_tests::judge;

use crate::others::{Stage, in_own_shm, said};

/// Makes 200,000 empty files of nobody's in `/dev/shm`, with names of regions.
const FILES: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups sh -c \
    'cd /dev/shm && seq -f \"hairline-1-%016.0f\" 1 200000 | xargs touch'";

#[test]
fn files_of_another_user_in_shared_memory_cost_no_event() {
    let Some(stage) = Stage::new() else { return };
    let trace = stage.path("t.fxt");
    let program = env!("CARGO_BIN_EXE_ending");
    let mut lines = Vec::new();
    // The ring holds a quarter of a second: more would hide that the drain thread is held up. A busy machine
    // holds it up too, now and then; the files would do so each time.
    for _ in 0..5 {
        let Some(mut command) = in_own_shm(FILES, &format!("exec {program} long")) else { return };
        command.env("HAIRLINE", &trace).env("HAIRLINE_LOG", "info").env("HAIRLINE_BUFFER", "1M");
        let output = command.output().expect("it ran");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        lines.push(said(&output));
        if lines.iter().flatten().any(|line| line.contains(" 0 events lost")) {
            return;
        }
    }
    panic!("events are lost each time: {lines:?}");
}

/// Also where the program never lives long, and another user has files there.
#[test]
fn a_program_that_crashes_all_day_leaves_a_quarter_of_shared_memory_at_most() {
    let Some(stage) = Stage::new() else { return };
    let trace = stage.path("%p.fxt");
    let small = "mount -o remount,size=16m,nr_inodes=0 /dev/shm
        setpriv --reuid=65534 --regid=65534 --clear-groups sh -c \
            'cd /dev/shm && seq -f \"hairline-1-%016.0f\" 1 500 | xargs touch'";
    let script = format!(
        "regions() {{ find /dev/shm -size +1; }}
         for n in 1 2 3 4 5 6 7 8; do
             {ending} long >/dev/null 2>&1 & pid=$!
             tries=0
             until [ -s {directory}/$pid.fxt ] && [ $(regions | wc -l) -le 4 ]; do
                 tries=$((tries + 1)); [ $tries -lt 100 ] || break
                 sleep 0.02
             done
             kill -9 $pid; wait $pid
         done
         regions",
        ending = env!("CARGO_BIN_EXE_ending"),
        directory = trace.parent().expect("a directory").display(),
    );
    let Some(mut command) = in_own_shm(small, &script) else { return };
    let output = command.env("HAIRLINE", &trace).env("HAIRLINE_BUFFER", "1M").output().expect("it ran");
    let regions = String::from_utf8_lossy(&output.stdout).matches("/dev/shm/hairline-").count();
    // Three have room in a quarter, beside the one that runs.
    assert!((1..=4).contains(&regions), "{regions}: {output:?}");
}

#[test]
fn a_living_process_that_proc_hides_is_not_taken_for_dead() {
    let Some(stage) = Stage::new() else { return };
    // A process that is not dumpable is hidden from its own user too.
    let mortal = stage.program(env!("CARGO_BIN_EXE_mortal"), "mortal", 0o755);
    let hairline = stage.program(env!("CARGO_BIN_EXE_hairline_command"), "hairline", 0o755);
    let directory = stage.directory_of_nobody("directory");
    std::fs::write(directory.join("counters"), vec![0; hairline_tests::mortal::COUNTERS_LEN]).expect("made");
    crate::others::give_to_nobody(&directory.join("counters"));
    let script = format!(
        "cd {directory}; as='setpriv --reuid=65534 --regid=65534 --clear-groups'
         $as {mortal} output={directory}/t.fxt counters=counters threads=1 pace=moderate buffer=8388608 \
             chunk=16384 compress=0 rotate=0 slow=0 end=never hidden=1 >&2 &
         pid=$!
         while ! [ -s t.fxt ]; do sleep 0.01; done
         sleep 0.2
         $as test -e /proc/$pid/stat && echo seen
         $as {hairline} recover --all; echo all: $?
         $as {hairline} recover $pid; echo one: $?
         $as {hairline} ls
         ls /dev/shm
         kill -9 $pid; wait $pid || true
         $as {hairline} recover --all; echo dead: $?
         ls /dev/shm",
        directory = directory.display(),
        mortal = mortal.display(),
        hairline = hairline.display(),
    );
    let hidden = "mount -t proc -o hidepid=2 proc /proc";
    let Some(mut command) = in_own_shm(hidden, &script) else { return };
    let output = command.stdin(Stdio::null()).output().expect("it ran");
    let text = String::from_utf8_lossy(&output.stdout);
    let all = || format!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    if text.contains("seen") {
        eprintln!("this kernel hides no process of one's own: not tested");
        return;
    }
    let (alive, dead) = text.split_once("all: ").expect("its end");
    assert!(!alive.contains("added"), "a living process's trace is not touched: {}", all());
    let (alive, dead) = dead.split_once("one: 4").unwrap_or_else(|| panic!("refused: {}", all()));
    assert!(!alive.contains("added"), "{}", all());
    let (alive, dead) = dead.split_once("dead: 0").unwrap_or_else(|| panic!("recovered: {}", all()));
    assert!(alive.contains("\nhairline-"), "its region stays: {}", all());
    assert!(!dead.contains("hairline-"), "and goes when it is dead: {}", all());
    judge::load(directory.join("t.fxt"), &[]).require_clean();
}

/// Killed between making the region's file and writing its header, or alive there: only the file's name has
/// its pid, and nothing says in which pid namespace.
#[test]
fn a_region_without_a_header_is_removed_only_where_its_process_is_assumed_to_be_dead() {
    let Some(stage) = Stage::new() else { return };
    let hairline = stage.program(env!("CARGO_BIN_EXE_hairline_command"), "hairline", 0o755);
    let script = format!(
        "as='setpriv --reuid=65534 --regid=65534 --clear-groups'
         sleep 100 & alive=$!
         $as touch /dev/shm/hairline-$alive-0123456789abcdef /dev/shm/hairline-4194305-0123456789abcdef
         $as {hairline} recover --all
         ls /dev/shm
         echo assumed
         $as {hairline} recover --all --assume-dead
         ls /dev/shm
         kill $alive",
        hairline = hairline.display(),
    );
    let Some(mut command) = in_own_shm(":", &script) else { return };
    let output = command.stdin(Stdio::null()).output().expect("it ran");
    let text = String::from_utf8_lossy(&output.stdout);
    let regions = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("hairline-")).map(str::to_owned).collect()
    };
    let (before, after) = text.split_once("assumed").unwrap_or_else(|| panic!("{output:?}"));
    assert_eq!(regions(before).len(), 2, "none is known to be dead: {output:?}");
    let said = said(&output);
    assert!(said.len() == 1 && said[0].contains("4194305 is alive cannot be told from here"), "{said:?}");
    let left = regions(after);
    assert!(left.len() == 1 && !left[0].contains("4194305"), "the one that lives stays: {output:?}");
}

/// Also root's commands do not open it.
#[test]
fn a_command_says_whose_a_region_of_another_user_is() {
    let hairline = env!("CARGO_BIN_EXE_hairline_command");
    let plant =
        "setpriv --reuid=65534 --regid=65534 --clear-groups touch /dev/shm/hairline-4711-0123456789abcdef";
    for (command, without) in [
        ("recover", "process 12 has left nothing"),
        ("snapshot", "process 12 is not being traced"),
        ("top", "process 12 is not being traced"),
    ] {
        let script = format!("{hairline} {command} 12; {hairline} {command} 4711; echo $?");
        let Some(mut command) = in_own_shm(plant, &script) else { return };
        let output = command.stdin(Stdio::null()).output().expect("it ran");
        let said = said(&output);
        assert!(said[0].contains(without), "{output:?}");
        assert!(
            said[1].contains("process 4711: its region belongs to another user, with the number 65534"),
            "{said:?}"
        );
    }
}

/// Root looks for regions among a stranger's files: a FIFO there keeps nobody waiting.
#[test]
fn a_strangers_fifo_or_link_with_the_name_of_a_region_is_passed_by() {
    let Some(stage) = Stage::new() else { return };
    let precious = stage.path("precious");
    std::fs::write(&precious, "precious").expect("written");
    let plant = format!(
        "setpriv --reuid=65534 --regid=65534 --clear-groups sh -c 'cd /dev/shm; \
         mkfifo hairline-4194305-0123456789abcde1; ln -s {} hairline-4194305-0123456789abcde2'",
        precious.display()
    );
    let hairline = env!("CARGO_BIN_EXE_hairline_command");
    let Some(mut command) = in_own_shm(&plant, &format!("{hairline} recover --all; {hairline} ls")) else {
        return;
    };
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output().expect("it ran");
    assert!(output.status.success() && began.elapsed() < Duration::from_secs(20), "{output:?}");
    assert_eq!(std::fs::read(Path::new(&precious)).expect("read"), b"precious");
}
