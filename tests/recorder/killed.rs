//! A flight recorder whose process was killed: recovery shows what the ring held.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hairline::recovery::{self, RecoverOptions};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};
use hairline_tests::regions::region_of;

/// What each of the two threads shows: its life, open, with its argument, and in it steps without a gap.
const WHOLE: [&str; 4] = [
    "select count(*), sum(dur = -1), count(distinct track_id) from slice where name = 'life'",
    "select count(*) from slice s left join slice p on s.parent_id = p.id where s.name = 'step' and ifnull(p.name, '') != 'life'",
    "select count(*) from (select n - lag(n) over (partition by track_id order by ts) as step from ( \
       select s.ts, s.track_id, a.int_value as n from slice s join args a using (arg_set_id) \
       where s.name = 'step' and a.key in ('n', 'debug.n'))) where step != 1",
    "select count(*) from slice s join args a using (arg_set_id) where s.name = 'life' and a.string_value = 'of the life'",
];

const LAST: &str = "select max(a.int_value) from slice s join args a using (arg_set_id) \
    where s.name = 'step' and a.key in ('n', 'debug.n') and s.track_id = (select track_id from slice s join thread_track t \
    on s.track_id = t.id join thread using (utid) where is_main_thread limit 1)";

/// Kills the victim some time after it has gone round the ring. What it had said last: a step of its main
/// thread, and a time when that was open.
fn kill(victim: &mut Child, after: Duration) -> (i64, i64) {
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut steps = lines.filter_map(|line| {
        let (step, time) = line.split_once(' ')?;
        Some((step.parse().ok()?, time.parse().ok()?))
    });
    let end = Instant::now() + after;
    let mut said = (0, 0);
    while Instant::now() < end || said.0 < 50_000 {
        said = steps.next().unwrap_or(said);
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
    steps.last().unwrap_or(said)
}

#[test]
fn a_killed_flight_recorder_shows_its_last_window() {
    for format in FORMATS {
        for round in 0..10 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(format!("last.{}", extension(format)));
            let mut victim = Command::new(env!("CARGO_BIN_EXE_victim"))
                .arg("for-ever")
                .env("HAIRLINE", &path)
                .env("HAIRLINE_OVERFLOW", "overwrite")
                .env("HAIRLINE_BUFFER", if round % 2 == 0 { "64K" } else { "1M" })
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let (said, when) = kill(&mut victim, Duration::from_millis(50 + 7 * round));
            assert!(!path.exists(), "no output before somebody asks");
            let region = region_of(&path);
            let recovered = recovery::recover(&region, &RecoverOptions::new()).unwrap();
            assert_eq!(recovered.path.as_deref(), Some(&*path), "{:?}", recovered.notes);
            assert!(!region.exists());
            let later = format!("select sum(ts > {when}), count(*) from slice where name = 'step'");
            let verdict = judge::load(&path, &[&WHOLE[..], &[LAST, &later]].concat());
            verdict.require_clean();
            let texts: Vec<String> = verdict.results.iter().map(|r| r.text()).collect();
            assert_eq!(texts[..4], ["2\t2\t2", "0", "0", "2"], "{format:?}, round {round}");
            // The other thread may have gone round the ring while the main thread had no processor.
            let has_gone_round = texts[5]
                .split_once('\t')
                .and_then(|(later, all)| Some(4 * later.parse::<i64>().ok()? > 3 * all.parse::<i64>().ok()?));
            assert!(
                texts[4].parse::<i64>().is_ok_and(|last| last >= said) || has_gone_round == Some(true),
                "{format:?}, round {round}: {} of {said}; {} steps after it",
                texts[4],
                texts[5]
            );
        }
    }
}

#[test]
fn a_snapshot_that_is_there_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last.pftrace");
    let mut victim = Command::new(env!("CARGO_BIN_EXE_victim"))
        .arg("for-ever")
        .env("HAIRLINE", &path)
        .env("HAIRLINE_OVERFLOW", "overwrite")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    kill(&mut victim, Duration::from_millis(50));
    std::fs::write(&path, "an earlier snapshot").unwrap();
    let recovered = recovery::recover(&region_of(&path), &RecoverOptions::new()).unwrap();
    let beside = folder.path().join(format!("last.pftrace.recovered-{}", victim.id()));
    assert_eq!(recovered.path.as_deref(), Some(&*beside));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "an earlier snapshot");
    let verdict = judge::load(&beside, &WHOLE);
    verdict.require_clean();
}
