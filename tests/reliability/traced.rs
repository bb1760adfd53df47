//! A process that Perfetto's own tracing service records, and what a service could do to it.
//!
//! `tests/oracle/traced.sh` unpacks the service. Without it these tests say that they check nothing.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use hairline_tests::judge;
use tempfile::TempDir;

const PRODUCER: &str = env!("CARGO_BIN_EXE_producer");
const RUN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/oracle/traced/run");

const PATIENCE: Duration = Duration::from_secs(30);

/// A tracing service of its own.
struct Service {
    folder: TempDir,
    traced: Child,
}

impl Service {
    /// `None` where there is none to start.
    fn start() -> Option<Self> {
        if !Path::new(RUN).exists() {
            eprintln!("tests/oracle/traced.sh has unpacked no tracing service: not checked");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let traced = spawn_traced(folder.path());
        Some(Self { folder, traced })
    }

    fn kill(&mut self) {
        self.traced.kill().expect("it runs");
        self.traced.wait().expect("it ended");
    }

    fn start_again(&mut self) {
        self.traced = spawn_traced(self.folder.path());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, program: &str) -> Command {
        in_folder(Command::new(program), self.folder.path())
    }

    /// Starts a consumer with a config. Its trace is complete when it ends.
    fn consumer(&self, config: &str, trace: &Path, options: &[&str]) -> Child {
        let file = trace.with_extension("txt");
        std::fs::write(&file, config).expect("a config");
        let mut command = self.command(RUN);
        command.args(["perfetto", "--txt", "-c"]).arg(file).arg("-o").arg(trace).args(options);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a consumer")
    }

    /// Records for a time, with these fields of the `track_event_config`.
    fn record(&self, name: &str, milliseconds: u32, events: &str) -> PathBuf {
        let trace = self.path(name);
        let mut consumer = self.consumer(&config(milliseconds, events, ""), &trace, &[]);
        assert!(ended(&mut consumer).success(), "{trace:?}");
        trace
    }

    fn producer(&self, arguments: &[&str]) -> Producer {
        Producer::start(self.command(PRODUCER).args(arguments))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.traced.kill();
        let _ = self.traced.wait();
    }
}

fn in_folder(mut command: Command, folder: &Path) -> Command {
    command.env("PERFETTO_PRODUCER_SOCK_NAME", folder.join("p.sock"));
    command.env("PERFETTO_CONSUMER_SOCK_NAME", folder.join("c.sock"));
    command.env_remove("HAIRLINE");
    command
}

fn spawn_traced(folder: &Path) -> Child {
    for socket in ["p.sock", "c.sock"] {
        let _ = std::fs::remove_file(folder.join(socket));
    }
    let mut command = in_folder(Command::new(RUN), folder);
    let traced = command.arg("traced").stderr(Stdio::null()).spawn().expect("the service");
    wait_until(|| folder.join("c.sock").exists());
    traced
}

/// A config with a duration, the fields of the `track_event_config`, and more of the config.
fn config(milliseconds: u32, events: &str, more: &str) -> String {
    format!(
        "buffers {{ size_kb: 65536 }}
         data_sources {{ config {{ name: \"track_event\" track_event_config {{ {events} }} }} }}
         duration_ms: {milliseconds}
         {more}"
    )
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn ended(child: &mut Child) -> std::process::ExitStatus {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    panic!("it does not end");
}

/// The program that is recorded.
struct Producer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Producer {
    fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.env("HAIRLINE_LOG", "info").spawn().expect("a producer");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("piped"));
        let mut producer = Self { child, input, output: BufReader::new(output) };
        assert_eq!(producer.line(), "ready");
        producer
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    fn ask(&mut self, line: &str) -> String {
        writeln!(self.input.as_mut().expect("open"), "{line}").expect("it reads");
        self.line()
    }

    /// Ends its input, and returns what it said on stderr.
    fn end(mut self) -> String {
        drop(self.input.take());
        let output = self.child.wait_with_output().expect("its end");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{:?}: {said}", output.status);
        said
    }
}

/// Each thread's rounds: the first, the last, how many, and how many of them have all of their
/// events, and how many have not and are between two that have.
const ROUNDS: &str = "
    with q as (select parent_id, count(*) as n from slice where name = 'query' and dur >= 0 group by parent_id),
      i as (select q.parent_id, count(*) as n from slice i join slice q on i.parent_id = q.id group by q.parent_id),
      r as (select t.name as thread, extract_arg(s.arg_set_id, 'debug.round') as round,
        s.dur >= 0 and ifnull(q.n, 0) and ifnull(i.n, 0) as is_whole
      from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid)
        left join q on q.parent_id = s.id left join i on i.parent_id = s.id where s.name = 'request'),
      w as (select thread as of, min(round) as first, max(round) as last from r where is_whole group by of)
    select thread, min(round), max(round), count(distinct round), count(*), sum(is_whole),
      sum(not is_whole and round > first and round < last)
    from r left join w on of = thread group by thread order by thread";

/// What the service and the importer count as lost or wrong.
const WRONG: &str = "select name, value from stats where severity in ('error', 'data_loss') and value > 0";

/// Asserts that the trace has rounds of so many threads without a gap. Returns their number.
fn assert_no_gap(trace: &Path, threads: usize) -> i64 {
    let verdict = judge::load(trace, &[ROUNDS, WRONG]);
    // A session that waits for a trigger has this one without any producer too.
    let wrong = verdict.results[1].text().replace("invalid_clock_snapshots\t1", "");
    assert_eq!(wrong, "", "{trace:?}");
    let rows = &verdict.results[0];
    assert_eq!(rows.len(), threads, "{}", rows.text());
    let mut all = 0;
    for row in rows.iter() {
        let (first, last) = (row.i64("min(round)"), row.i64("max(round)"));
        let count = row.i64("count(*)");
        assert_eq!((row.i64("count(distinct round)"), count), (count, last - first + 1), "{}", rows.text());
        // At both ends rounds may be cut, while the callsites are switched on and off one after the other: in
        // between none.
        assert!(row.i64("sum(is_whole)") > count / 2, "{}", rows.text());
        assert_eq!(row.i64("sum(not is_whole and round > first and round < last)"), 0, "{}", rows.text());
        all += count;
    }
    all
}

#[test]
fn a_session_of_the_service_has_the_rows_of_a_file() {
    const ROWS: [&str; 5] = [
        "select s.depth, s.name, s.category, t.name, s.dur >= 0, p.name from slice s join track t
         on s.track_id = t.id left join track p on t.parent_id = p.id
         where s.name not in ('begin', 'lost in all') order by s.name, s.ts",
        "select s.name, t.name from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid)
         where s.name != 'begin' and t.name != 'producer' order by s.name, s.ts",
        "select s.name, a.flat_key, a.display_value from slice s join args a using (arg_set_id)
         where s.name != 'begin' and a.flat_key like 'debug%' order by s.name, s.ts, a.flat_key",
        "select ct.name, ct.unit, c.value from counter c join counter_track ct on c.track_id = ct.id order by 1, c.ts",
        "select a.name, b.name from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id",
    ];
    let Some(service) = Service::start() else { return };
    let file = service.path("file.pftrace");
    let made = service.command(PRODUCER).arg("file").arg(&file).status().expect("it ran");
    assert!(made.success());
    let mut producer = service.producer(&["0"]);
    let trace = service.path("t.pftrace");
    let mut consumer = service.consumer(&config(1500, "", ""), &trace, &[]);
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(producer.ask("vocabulary"), "done");
    assert!(ended(&mut consumer).success());
    assert!(producer.end().contains("0 events lost"));
    let (of_file, of_service) = (judge::load(&file, &ROWS), judge::load(&trace, &ROWS));
    for (n, rows) in of_file.results.iter().enumerate() {
        assert!(!rows.is_empty(), "{}", ROWS[n]);
        assert_eq!(of_service.results[n].text(), rows.text(), "{}", ROWS[n]);
    }
    assert_eq!(judge::load(&trace, &[WRONG]).results[0].text(), "");
}

#[test]
fn sessions_one_after_the_other_have_all_events() {
    let Some(service) = Service::start() else { return };
    let mut producer = service.producer(&["4", "calm"]);
    for n in 0..3 {
        let trace = service.record(&format!("{n}.pftrace"), 500, "");
        assert!(assert_no_gap(&trace, 4) > 100);
    }
    assert_eq!(producer.ask("session"), "true");
    let said = producer.end();
    assert_eq!(said.matches(", 0 events lost").count(), 3, "{said}");
}

/// Threads that never pause lose events, in the ring. The rest of each session is whole.
#[test]
fn sessions_at_full_load_end_and_say_what_they_lost() {
    let Some(service) = Service::start() else { return };
    let producer = service.producer(&["4"]);
    let traces: Vec<_> =
        (0..2).map(|n| service.record(&format!("{n}.pftrace"), 300, "disabled_categories: \"db\"")).collect();
    let said = producer.end();
    for trace in traces {
        let queries = [
            "select count(*) from slice where dur < 0",
            "select count(*) from slice where name = 'request'",
            "select ifnull(max(a.int_value), 0) from slice s join args a using (arg_set_id)
             where s.name = 'lost in all' and a.flat_key like 'debug%'",
            "select count(*) from slice where name = 'query'",
            "select count(*) from stats where severity = 'error' and value > 0",
        ];
        let verdict = judge::load(&trace, &queries);
        let [open, requests, lost, queries, wrong] =
            [0, 1, 2, 3, 4].map(|n: usize| verdict.results[n].single_i64());
        assert!(requests > 1000 && (queries, wrong) == (0, 0), "{trace:?}: {requests} {queries} {wrong}");
        assert!(open <= 8, "{open}");
        if lost > 0 {
            let digits: String = said.chars().filter(|c| *c != ',').collect();
            assert!(digits.contains(&format!(" {lost} events lost")), "{lost}: {said}");
        }
    }
}

/// What the service's buffer has no room for is in the service's statistics, and all that is left can be
/// read. A ring overwrites what later events rely on too, unless the config asks for that again and again.
#[test]
fn a_buffer_of_the_service_that_is_full_is_counted_by_the_service() {
    let Some(service) = Service::start() else { return };
    for (policy, statistic, load, more) in [
        ("DISCARD", "traced_buf_chunks_discarded", "full", ""),
        (
            "RING_BUFFER",
            "traced_buf_chunks_overwritten",
            "calm",
            "incremental_state_config { clear_period_ms: 50 }",
        ),
    ] {
        let producer = service.producer(&["2", load]);
        let trace = service.path(&format!("{policy}.pftrace"));
        let small = config(1500, "", more).replace("65536", &format!("64 fill_policy: {policy}"));
        assert!(ended(&mut service.consumer(&small, &trace, &[])).success());
        let counted = format!("select ifnull(sum(value), 0) from stats where name = '{statistic}'");
        let wrong = "select count(*) from stats where severity = 'error' and value > 0";
        let slices = "select count(*) from slice where name = 'request' and dur >= 0";
        let verdict = judge::load(&trace, &[&counted, wrong, slices]);
        let [counted, wrong, slices] = [0, 1, 2].map(|n: usize| verdict.results[n].single_i64());
        assert!(counted > 0 && wrong == 0 && slices > 50, "{policy}: {counted} {wrong} {slices}");
        assert_eq!(producer.end().matches(" events lost").count(), 1);
    }
}

#[test]
fn two_sessions_at_a_time_have_each_its_own_categories() {
    let Some(service) = Service::start() else { return };
    let producer = service.producer(&["2", "calm"]);
    let first = service.path("first.pftrace");
    let mut consumer = service.consumer(&config(2500, "", ""), &first, &[]);
    std::thread::sleep(Duration::from_millis(500));
    let only_net = "enabled_categories: \"net\" disabled_categories: \"*\"";
    let only_db = "enabled_categories: \"d*\" disabled_categories: \"*\"";
    let (net, db) = std::thread::scope(|scope| {
        let net = scope.spawn(|| service.record("net.pftrace", 800, only_net));
        let db = scope.spawn(|| service.record("db.pftrace", 800, only_db));
        (net.join().expect("recorded"), db.join().expect("recorded"))
    });
    assert!(ended(&mut consumer).success());
    assert!(assert_no_gap(&first, 2) > 200);
    let names = "select distinct name from slice where category != 'hairline' order by name";
    let wrong_depth = "select count(*) from slice where dur < 0 or depth != (name = 'retry')";
    let counters = "select count(*) from counter";
    let verdict = judge::load(&net, &[names, wrong_depth, counters, WRONG, ROUNDS]);
    assert_eq!(verdict.results[0].text(), "request\nretry");
    // The first and the last round may be cut.
    assert!(verdict.results[1].single_i64() <= 4, "{}", verdict.results[1].text());
    assert_eq!((verdict.results[2].single_i64(), verdict.results[3].text()), (0, String::new()));
    for row in verdict.results[4].iter() {
        assert_eq!(row.i64("count(*)"), row.i64("max(round)") - row.i64("min(round)") + 1);
        assert!(row.i64("count(*)") > 100);
    }
    let verdict = judge::load(&db, &[names, WRONG]);
    assert_eq!((verdict.results[0].text(), verdict.results[1].text()), ("query".to_owned(), String::new()));
    // The one that wants less stays longer: it gets nothing of what only the other one wanted.
    let less = service.path("less.pftrace");
    let mut consumer = service.consumer(&config(1500, only_net, ""), &less, &[]);
    std::thread::sleep(Duration::from_millis(300));
    assert!(assert_no_gap(&service.record("more.pftrace", 400, ""), 2) > 50);
    assert!(ended(&mut consumer).success());
    let verdict = judge::load(&less, &[names, wrong_depth, counters, WRONG]);
    assert_eq!(verdict.results[0].text(), "request\nretry");
    assert!(verdict.results[1].single_i64() <= 4, "{}", verdict.results[1].text());
    assert_eq!((verdict.results[2].single_i64(), verdict.results[3].text()), (0, String::new()));
    producer.end();
}

#[test]
fn a_session_that_wants_less_gets_nothing_that_only_later_ones_want() {
    let Some(service) = Service::start() else { return };
    let producer = service.producer(&["2", "calm"]);
    let less = service.path("less.pftrace");
    let only = |category| format!("enabled_categories: \"{category}\" disabled_categories: \"*\"");
    let mut consumer = service.consumer(&config(2500, &only("rare"), ""), &less, &[]);
    std::thread::sleep(Duration::from_millis(300));
    for n in 0..10 {
        service.record(&format!("{n}.pftrace"), 30, &only("db"));
    }
    assert!(ended(&mut consumer).success());
    let names = judge::load(&less, &["select distinct name from slice where category != 'hairline'"]);
    assert_eq!(names.results[0].text(), "");
    producer.end();
}

#[test]
fn a_killed_process_leaves_what_the_service_finds_in_its_memory() {
    let Some(service) = Service::start() else { return };
    let mut producer = service.producer(&["2", "calm"]);
    let trace = service.path("t.pftrace");
    let mut consumer = service.consumer(&config(2500, "", ""), &trace, &[]);
    std::thread::sleep(Duration::from_millis(1500));
    let rounds = producer.ask("rounds");
    std::thread::sleep(Duration::from_millis(300)); // the session's thread writes every 50 ms
    producer.child.kill().expect("it runs");
    assert!(ended(&mut consumer).success());
    assert!(assert_no_gap(&trace, 2) > 500);
    let last = judge::load(&trace, &[ROUNDS]).results[0].iter().map(|row| row.i64("max(round)")).min();
    let asked = rounds.split(' ').filter_map(|number| number.parse().ok()).max();
    assert!(last >= asked.map(|asked: i64| asked - 20), "{last:?} {rounds}");
}

#[test]
fn a_service_that_dies_is_found_again() {
    let Some(mut service) = Service::start() else { return };
    let producer = service.producer(&["2", "calm"]);
    for n in 0..3 {
        let mut consumer = service.consumer(&config(60_000, "", ""), &service.path("cut.pftrace"), &[]);
        std::thread::sleep(Duration::from_millis(600));
        service.kill();
        ended(&mut consumer);
        service.start_again();
        std::thread::sleep(Duration::from_millis(600));
        let trace = service.record(&format!("{n}.pftrace"), 300, "");
        assert!(assert_no_gap(&trace, 2) > 50);
    }
    let said = producer.end();
    assert_eq!(said.matches("registered with the tracing service").count(), 4, "{said}");
}

#[test]
fn a_clone_a_trigger_and_a_flush_have_the_events_so_far() {
    let Some(service) = Service::start() else { return };
    let producer = service.producer(&["1", "calm"]);
    let named = config(4000, "", "unique_session_name: \"ring\" flush_period_ms: 200");
    let mut consumer = service.consumer(&named, &service.path("whole.pftrace"), &[]);
    // Starts when the trigger comes.
    let on_trigger = config(
        0,
        "",
        "trigger_config { trigger_mode: START_TRACING trigger_timeout_ms: 20000
           triggers { name: \"now\" stop_delay_ms: 500 } }",
    );
    let triggered = service.path("triggered.pftrace");
    let on_trigger = on_trigger.replace("duration_ms: 0", "");
    let mut waiting = service.consumer(&on_trigger, &triggered, &[]);
    std::thread::sleep(Duration::from_millis(1500));
    let clone = service.path("clone.pftrace");
    let mut command = service.command(RUN);
    command.args(["perfetto", "--clone-by-name", "ring", "-o"]).arg(&clone);
    let cloned = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it ran");
    assert!(cloned.success());
    let activates = service.path("activates.txt");
    std::fs::write(&activates, "activate_triggers: \"now\"").expect("a config");
    let mut command = service.command(RUN);
    command.args(["perfetto", "--txt", "-c"]).arg(activates);
    let activated = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it ran");
    assert!(activated.success());
    assert!(ended(&mut waiting).success());
    assert!(assert_no_gap(&clone, 1) > 500);
    assert!(assert_no_gap(&triggered, 1) > 100);
    assert!(ended(&mut consumer).success());
    assert!(assert_no_gap(&service.path("whole.pftrace"), 1) > 1500);
    producer.end();
}

/// Whoever is first has the session: it is the other's too, and nobody gets an error.
#[test]
fn a_program_whose_sessions_meet_those_of_the_service_gets_no_error() {
    let Some(service) = Service::start() else { return };
    let mut producer = service.producer(&["1", "calm"]);
    let outcomes = std::thread::scope(|scope| {
        let own = scope.spawn(|| producer.ask("sessions"));
        let mut n = 0;
        while !own.is_finished() {
            service.record(&format!("{n}.pftrace"), 20, "");
            n += 1;
        }
        own.join().expect("its answer")
    });
    assert_eq!(outcomes, "true");
    producer.end();
}

#[test]
fn a_forked_child_registers_itself() {
    let Some(service) = Service::start() else { return };
    for variable in [None, Some("traced"), Some("listen,traced")] {
        let mut command = service.command(PRODUCER);
        command.arg("forks");
        variable.map(|value| command.env("HAIRLINE", value));
        let producer = Producer::start(&mut command);
        std::thread::sleep(Duration::from_millis(700));
        let trace = service.record("t.pftrace", 500, "");
        let requests = "select p.pid, count(*) from slice s join thread_track tt on s.track_id = tt.id
            join thread t using (utid) join process p using (upid) where s.name = 'request' group by p.pid";
        let verdict = judge::load(&trace, &[requests, WRONG]);
        assert_eq!(verdict.results[1].text(), "");
        let rows = &verdict.results[0];
        assert_eq!(rows.len(), 1, "{variable:?}: {}", rows.text());
        assert!(rows.iter().all(|row| row.i64("count(*)") > 50), "{}", rows.text());
        producer.end();
    }
}

#[test]
fn a_service_that_is_not_there_is_told_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = in_folder(Command::new(PRODUCER), folder.path());
    let producer = Producer::start(command.args(["1", "calm"]));
    std::thread::sleep(Duration::from_millis(1500));
    let said = producer.end();
    assert_eq!(said.matches("no tracing service at ").count(), 1, "{said}");
    assert!(said.contains("start `traced`, or name its socket in PERFETTO_PRODUCER_SOCK_NAME"), "{said}");
}

/// A service that is wrong in a way of its own at each connection. It serves many at a time.
const HOSTILE: &str = include_str!("traced/hostile.py");

/// Connections of the hostile service, which a variable raises: of several programs then.
fn connections() -> usize {
    std::env::var("HAIRLINE_CONNECTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(20)
}

#[test]
fn a_hostile_service_harms_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let door = folder.path().join("p.sock");
    let mut hostile = Command::new("python3");
    hostile.args(["-c", HOSTILE]).arg(&door).arg(connections().to_string()).stderr(Stdio::piped());
    let hostile = hostile.spawn().expect("python runs");
    wait_until(|| door.with_extension("sock.ready").exists());
    let start = |_| Producer::start(in_folder(Command::new(PRODUCER), folder.path()).args(["2", "calm"]));
    let producers: Vec<_> = (0..connections().div_ceil(250)).map(start).collect();
    let open = |producer: &Producer| {
        let proc = PathBuf::from(format!("/proc/{}", producer.child.id()));
        let maps = std::fs::read_to_string(proc.join("maps")).map_or(0, |maps| maps.lines().count());
        (std::fs::read_dir(proc.join("fd")).map_or(0, Iterator::count), maps)
    };
    let before: Vec<_> = producers.iter().map(open).collect();
    let output = hostile.wait_with_output().expect("its end");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (mut producer, (files, maps)) in producers.into_iter().zip(before) {
        let after = open(&producer);
        // A session has mappings of its own, which a later one uses again.
        assert!(after.0 == files && after.1 < maps + 30, "{files} {maps} {after:?}");
        let rounds = producer.ask("rounds");
        std::thread::sleep(Duration::from_millis(200));
        assert_ne!(producer.ask("rounds"), rounds, "it goes on");
        let said = producer.end();
        assert!(!said.contains("panicked"), "{said}");
    }
}

/// Between a process and the service: damages what either sends, on each of so many connections once they
/// have lasted some time. It passes the rest on.
const DAMAGES: &str = include_str!("traced/between.py");

/// A service that does not wait long for what was damaged on its way.
const IMPATIENT: &str = "flush_period_ms: 20 flush_timeout_ms: 500 data_source_stop_timeout_ms: 500";

#[test]
fn frames_that_are_damaged_on_either_way_harm_nothing() {
    let Some(mut service) = Service::start() else { return };
    let door = service.path("between.sock");
    let mut between = Command::new("python3");
    between
        .args(["-c", DAMAGES])
        .arg(&door)
        .arg(service.path("p.sock"))
        .arg((connections() / 3).min(200).to_string());
    let mut between = between.stdin(Stdio::piped()).spawn().expect("python runs");
    wait_until(|| door.with_extension("sock.ready").exists());
    let mut command = service.command(PRODUCER);
    let producer = Producer::start(command.args(["2", "calm"]).env("PERFETTO_PRODUCER_SOCK_NAME", &door));
    let until = Instant::now() + PATIENCE + Duration::from_secs(connections().min(600) as u64);
    while !door.with_extension("sock.over").exists() {
        assert!(Instant::now() < until, "the process connects again");
        let mut consumer =
            service.consumer(&config(200, "", IMPATIENT), &service.path("damaged.pftrace"), &[]);
        wait_until(|| consumer.try_wait().expect("a child").is_some() || Instant::now() > until);
        if service.traced.try_wait().expect("a child").is_some() {
            service.start_again(); // it did not survive the damage
        }
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(assert_no_gap(&service.record("whole.pftrace", 500, ""), 2) > 100);
    let said = producer.end();
    assert!(!said.contains("panicked"), "{said}");
    drop(between.stdin.take());
    between.wait().expect("it ended");
}

/// Where no variable names a socket and the system has no folder for it, anybody can make the one in `/tmp`.
#[test]
fn a_socket_that_another_user_made_in_tmp_is_not_used() {
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == 0);
    if !is_root || Path::new("/run/perfetto").exists() || Path::new("/tmp/perfetto-producer").exists() {
        eprintln!("needs root, and a system without a tracing service: not checked");
        return;
    }
    let mut squat = String::new();
    write!(squat, "import os,socket,time\nos.setgid(65534); os.setuid(65534)\n").expect("text");
    squat.push_str("s=socket.socket(socket.AF_UNIX); s.bind('/tmp/perfetto-producer'); s.listen(9)\n");
    squat.push_str(
        "p,_=s.accept(); p.settimeout(2)\ntry: print(p.recv(9))\nexcept TimeoutError: print('nothing')\n",
    );
    squat.push_str("os.remove('/tmp/perfetto-producer')");
    let squatter =
        Command::new("python3").args(["-c", &squat]).stdout(Stdio::piped()).spawn().expect("python runs");
    wait_until(|| Path::new("/tmp/perfetto-producer").exists());
    let mut command = Command::new(PRODUCER);
    let producer = Producer::start(command.arg("0").env("HAIRLINE", "traced"));
    let heard = squatter.wait_with_output().expect("its end");
    assert_eq!(String::from_utf8_lossy(&heard.stdout), "b''\n");
    let said = producer.end();
    assert!(said.contains("is another user's"), "{said}");
}
