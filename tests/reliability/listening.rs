//! A process that listens, and clients that it did not ask for: another user, garbage, ten thousand of them.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use hairline_tests::judge;

use crate::others::{Stage, in_own_shm};

const LISTENS: &str = env!("CARGO_BIN_EXE_listens");
const HAIRLINE: &str = env!("CARGO_BIN_EXE_hairline_command");

/// Connects to the process with the number in `sys.argv[1]`, in `sys.argv[2]` ways one after the other. Each
/// is wrong in a way of its own, and each ends at another place.
const CLIENTS: &str = r#"
import array, glob, os, socket, sys, tempfile
pid, times = sys.argv[1], int(sys.argv[2])
door = glob.glob(f"/dev/shm/hairline-{pid}-*.door")[0]
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "f")
open(path, "w").close()
full = os.path.join(folder.name, "full")
open(full, "w").write("a trace that somebody wants")
record = b"hairline 1 record\nHAIRLINE=/x.fxt\n"
def send(to, data, *files):
    numbers = array.array("i", files)
    to.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)] if files else [])
def opened(name, flags):
    return os.open(name, flags)
open_ones = []
for n in range(times):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.settimeout(10)
    try:
        client.connect(door)
        kind = n % 20
        numbers = []
        def give(name, flags):
            numbers.append(opened(name, flags))
            return numbers[-1]
        if kind == 0: pass
        elif kind == 1: send(client, os.urandom(n % 5000 + 1))
        elif kind == 2: send(client, b"x" * 60000)
        elif kind == 3: send(client, record[: n % len(record)] or b"h")
        elif kind == 4: send(client, record)
        elif kind == 5: send(client, record, give(full, os.O_RDWR))
        elif kind == 6: send(client, record, give(path, os.O_RDONLY))
        elif kind == 7: send(client, record, give(path, os.O_WRONLY | os.O_APPEND))
        elif kind == 8: send(client, record, *os.pipe())
        elif kind == 9: send(client, record, give("/dev/null", os.O_WRONLY))
        elif kind == 10: send(client, record, give(folder.name, os.O_RDONLY))
        elif kind == 11: send(client, record + b"HAIRLINE_TRIGGER=panic\n", give(path, os.O_WRONLY))
        elif kind == 12: send(client, record + b"HAIRLINE_BUFFER=1\n", give(path, os.O_WRONLY))
        elif kind == 13: send(client, b"hairline 1 filter\nHAIRLINE_CATEGORIES=,,\n")
        elif kind == 14: send(client, b"hairline 1 status\n"); client.recv(20000)
        elif kind == 15: send(client, record, *[give(path, os.O_WRONLY) for _ in range(20)])
        elif kind == 16: send(client, b"hairline 1 start\nHAIRLINE=%s.fxt\n" % [b"", b"x", b"../x", b"/no/x", b"/dev/null/x"][n % 5])
        elif kind == 17: send(client, b"hairline 1 start\nHAIRLINE=/x.fxt\nHAIRLINE_TRIGGER=12\n", give(path, os.O_WRONLY))
        elif kind == 18: send(client, b"hairline 1 stop\n")
        elif kind == 19: send(client, b"hairline 1 trigger\nNAME=x\n")
        for number in numbers: os.close(number)
    except (BrokenPipeError, ConnectionResetError): pass
    # Some stay, and say no more.
    if n % 7 == 0: open_ones.append(client)
    else: client.close()
    if len(open_ones) > 100: open_ones.pop(0).close()
assert open(full).read() == "a trace that somebody wants"
assert os.path.getsize(path) == 0
"#;

fn listens() -> Child {
    use std::io::{BufRead, BufReader};
    let mut program = Command::new(LISTENS);
    program.env_remove("HAIRLINE").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = program.spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("a line");
    assert!(line.starts_with("ready"), "{line}");
    child
}

fn record(pid: &str, trace: &Path) -> Output {
    let for_a_moment = ["record", "--for", "100ms", "--overflow", "block", "-p", pid, "-o"];
    Command::new(HAIRLINE).args(for_a_moment).arg(trace).env_remove("HAIRLINE").output().expect("it ran")
}

/// The open files of the thread that listens, and of the program.
fn open_files(pid: &str) -> (usize, usize) {
    let count = |folder: String| std::fs::read_dir(folder).map_or(0, Iterator::count);
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("threads").flatten();
    let listener = threads.map(|thread| thread.path()).find(|thread| {
        std::fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.trim_end() == "hairline-listen")
    });
    let listener = listener.expect("a thread that listens");
    (count(listener.join("fd").display().to_string()), count(format!("/proc/{pid}/fd")))
}

#[test]
fn ten_thousand_clients_that_send_anything_harm_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = listens();
    let pid = program.id().to_string();
    // It serves once it has looked for stale sockets, which opens files too.
    assert!(record(&pid, &folder.path().join("first.fxt")).status.success());
    let before = open_files(&pid);
    let times = if cfg!(debug_assertions) { "2000" } else { "10000" };
    let clients = Command::new("python3").args(["-c", CLIENTS, &pid, times]).output().expect("python runs");
    assert!(clients.status.success(), "{}", String::from_utf8_lossy(&clients.stderr));
    std::thread::sleep(std::time::Duration::from_millis(2_500)); // those that said nothing are sent away
    assert_eq!(open_files(&pid), before);
    let trace = folder.path().join("t.pftrace");
    let output = record(&pid, &trace);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    judge::load(&trace, &["select 1"]).require_clean();
    assert_eq!(open_files(&pid), before);
    drop(program.stdin.take());
    assert!(program.wait().expect("its end").success());
}

#[test]
fn another_user_cannot_connect_and_neither_answers_for_a_process() {
    let Some(stage) = Stage::new() else { return };
    let hairline = stage.program(HAIRLINE, "hairline", 0o755);
    let stranger = stage.program(LISTENS, "stranger", 0o755);
    // One connects, and one makes a socket with the name of a process of root's.
    let script = format!(
        "as='setpriv --reuid=65534 --regid=65534 --clear-groups'
         mkfifo {directory}/input
         {LISTENS} quiet < {directory}/input & pid=$!
         exec 3> {directory}/input
         until ls /dev/shm/hairline-$pid-*.door >/dev/null 2>&1; do sleep 0.05; done
         stat -c %a /dev/shm/hairline-$pid-*.door
         cd {directory}/own
         $as {stranger} connect $(ls /dev/shm/hairline-$pid-*.door)
         $as {hairline} record -p $pid --for 1s 2>&1
         $as {stranger} squat /dev/shm/hairline-$$-0123456789abcdef.door < {directory}/input 3>&- & squatter=$!
         until [ -S /dev/shm/hairline-$$-0123456789abcdef.door ]; do sleep 0.05; done
         for n in 1 2 3; do timeout 20 {hairline} ls >/dev/null || echo waits; done
         {hairline} record -p $$ --for 1s 2>&1
         ls {directory}/own
         exec 3>&-; wait $squatter; wait $pid",
        directory = stage.path("").display(),
        hairline = hairline.display(),
        stranger = stranger.display(),
    );
    let own = stage.directory_of_nobody("own");
    assert!(own.is_dir());
    let Some(mut command) = in_own_shm("true", &script) else { return };
    let output = command.env_remove("HAIRLINE").output().expect("it ran");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> =
        said.lines().filter(|line| !line.starts_with("ready") && *line != "done").collect();
    assert_eq!(lines.len(), 4, "{output:?}");
    assert_eq!(lines[0], "600");
    assert!(lines[1].contains("Permission denied"), "{said}");
    assert!(lines[2].contains("only its user, and root, can do that"), "{said}");
    assert!(lines[3].contains("does not listen"), "{said}");
}

/// The command opens the file, so a process with another file system is recorded too.
#[test]
fn a_process_in_a_container_without_a_writable_root_is_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!(
        "mount -o remount,ro,bind / 2>/dev/null || mount --bind / /mnt 2>/dev/null
         mount -t tmpfs none /dev/shm
         exec {LISTENS}"
    );
    let mut program = Command::new("unshare");
    program.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", &script]);
    program.env_remove("HAIRLINE").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().expect("it starts");
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.as_mut().expect("piped")),
        &mut line,
    )
    .expect("a line");
    if !line.starts_with("ready") {
        let _ = child.wait();
        eprintln!("no mount namespaces here: not tested");
        return;
    }
    // `unshare` waits for the program: its child.
    let of_unshare = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id()));
    let pid = of_unshare.expect("its children").trim().to_owned();
    for file in ["t.pftrace", "t.fxt"] {
        let trace = folder.path().join(file);
        let output = record(&pid, &trace);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.contains("1 process, 4 threads"), "{said}");
        judge::load(&trace, &["select 1"]).require_clean();
    }
    let _ = child.kill();
    let _ = child.wait();
}
