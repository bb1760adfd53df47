//! Kills a program at random moments; its trace must have everything that it had committed.
//!
//! `TORTURE_KILLS=10000` (`ci/torture.sh`) is the long form.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hairline::recovery::{self, RecoverOptions};
use hairline_tests::judge;
use hairline_tests::mortal::{Orders, Victim, files};
use hairline_tests::recording::FORMATS;

/// SplitMix64.
pub(crate) fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    move |n| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// What came of the kills.
#[derive(Debug, Default)]
struct Tally {
    kills: u64,
    /// Nothing had been recorded yet.
    before_start: u64,
    scopes: u64,
    recovered: u64,
    /// Kills in the middle of a write.
    cut: u64,
    judged: u64,
}

/// One life. Its kill's moment and its orders follow from the number.
fn one(number: u64, judged: bool, tally: &Mutex<Tally>) -> Result<(), String> {
    let mut random = random(number);
    let format = FORMATS[usize::try_from(number % 2).expect("small")];
    let (buffer, chunk) = [(64 << 10, 4096), (256 << 10, 4096), (1 << 20, 16 << 10), (16 << 20, 16 << 10)]
        [usize::try_from(random(4)).expect("small")];
    let orders = Orders {
        threads: [1, 2, 3, 4, 24][usize::try_from(random(5)).expect("small")], // 24: more than there are chunks, now and then
        moderate: random(2) == 0,
        buffer,
        chunk,
        compress: random(4) == 0,
        slow: random(3) == 0,
        rotate: [0, 0, 64 << 10, 512 << 10][usize::try_from(random(4)).expect("small")],
        ..Orders::new(format)
    };
    let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut victim = Victim::start(env!("CARGO_BIN_EXE_mortal"), directory.path(), orders.clone());
    // One in eight is killed while it starts, which takes some 20 ms.
    if random(8) > 0 {
        victim.wait_until_one_records();
    }
    std::thread::sleep(Duration::from_micros(random(25_000)));
    victim.kill();
    let committed: u64 = victim.committed().iter().sum();
    let Some(region) = victim.region() else {
        let mut tally = tally.lock().expect("a tally");
        tally.kills += 1;
        tally.before_start += 1;
        return if committed == 0 { Ok(()) } else { Err(format!("{orders:?}: there is no region")) };
    };
    let failed = |what: String| format!("{orders:?}: {what}");
    // Killed before its region had a header, it left one that does not name its process.
    let options = RecoverOptions::new().assume_dead(committed == 0);
    let recovered = recovery::recover(&region, &options).map_err(|e| failed(e.to_string()))?;
    if region.exists() {
        return Err(failed("the region is still there".to_owned()));
    }
    let Some(trace) = recovered.path else {
        let mut tally = tally.lock().expect("a tally");
        tally.kills += 1;
        tally.before_start += 1;
        return if committed == 0 { Ok(()) } else { Err(failed("there is no trace".to_owned())) };
    };
    if trace != victim.trace || !recovered.notes.is_empty() {
        return Err(failed(format!("{}: {:?}", trace.display(), recovered.notes)));
    }
    let steps = victim.check(&trace).map_err(failed)?;
    let bytes =
        files(&trace).into_iter().filter_map(|file| file.metadata().ok()).map(|of_file| of_file.len());
    let judged = judged && bytes.sum::<u64>() <= MOST_JUDGED;
    if judged {
        let mut slices = 0;
        for file in files(&trace) {
            let verdict =
                judge::load(&file, &["select count(*) from slice where name = 'step' and dur >= 0"]);
            // What the ring had no room for the importer reports, as it should. And a file may end between a
            // step of a flow and its begin, on another thread, which the same pass reads later.
            let is_due = |stat: &hairline_tests::Stat| {
                stat.name == LOSS || orders.rotate > 0 && stat.name == "flow_step_without_start"
            };
            if !verdict.complaints.iter().all(is_due) {
                return Err(failed(format!("{}: {:?}", file.display(), verdict.complaints)));
            }
            slices += verdict.results[0].single_i64().cast_unsigned();
        }
        if slices != steps.ended.values().sum::<u64>() {
            return Err(failed(format!("{slices} slices of {:?}", steps.ended)));
        }
    }
    let mut tally = tally.lock().expect("a tally");
    tally.kills += 1;
    tally.scopes += steps.ended.values().sum::<u64>();
    tally.recovered += recovered.records;
    tally.cut += u64::from(recovered.cut > 0);
    tally.judged += u64::from(judged);
    Ok(())
}

/// The limit for traces that the judge loads, in bytes. The judge is a program of 32 bits, and takes many
/// times as much memory.
const MOST_JUDGED: u64 = 200 << 20;

/// The importer's count of what `TraceStats` says was lost.
const LOSS: &str = "traced_buf_trace_writer_packet_loss";

#[test]
fn whatever_was_committed_before_a_kill_is_in_the_trace_once_and_in_order() {
    let variable = |name| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let kills = variable("TORTURE_KILLS").unwrap_or(30);
    let from = variable("TORTURE_FROM").unwrap_or(0);
    let judge_every = if kills > 100 { 50 } else { 5 };
    let workers = if kills > 100 { 2 } else { 1 };
    let (tally, next, began) = (Mutex::new(Tally::default()), AtomicU64::new(from), Instant::now());
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= from + kills || failure.lock().expect("a failure").is_some() {
                        break;
                    }
                    if let Err(what) = one(number, number % judge_every == 0, &tally) {
                        let again = format!("again: TORTURE_FROM={number} TORTURE_KILLS=1");
                        *failure.lock().expect("a failure") = Some(format!("kill {number}: {what}\n{again}"));
                    }
                    if kills > 100 && (number + 1).is_multiple_of(100) {
                        println!("{} kills, {:.0?}", number + 1 - from, began.elapsed());
                    }
                }
            });
        }
    });
    println!("{:?}, {:.1?}", tally.lock().expect("a tally"), began.elapsed());
    if let Some(what) = failure.into_inner().expect("a failure") {
        panic!("{what}");
    }
    let tally = tally.into_inner().expect("a tally");
    assert!(tally.kills == kills && (tally.scopes > 0 || kills < 10), "{tally:?}");
}
