//! What is true of a session in which a slice `work` and two more threads `burn`.

use std::ops::Range;

use hairline::Format;
use hairline_tests::judge;

use crate::programs::line;
use crate::record::{STACKS, numbers};

pub(crate) struct Truth<'t> {
    /// The number of samples.
    pub(crate) samples: Range<i64>,
    /// The names of the two threads besides the one with the slice.
    pub(crate) of_threads: &'t [&'t str],
    /// The distance from the shares of 70 and 30 %, in percentage points.
    pub(crate) points: f64,
    /// The percentage of the stacks that have all lines.
    pub(crate) lines: i64,
}

/// Requires it, and returns the number of samples in the slice.
pub(crate) fn require_truth(trace: &[u8], format: Format, truth: &Truth<'_>) -> i64 {
    let at = |function: &str| line(&format!("line of {function}"));
    let chain = |stir: i64| {
        format!("stack glob '*stir:{stir} *spend:{} *seventy:{} *burn*'", at("spend"), at("seventy"))
    };
    let (body, head) = (chain(at("stir")), chain(line("for _ in 0..20_000")));
    let chain = format!("select count(*) from stacks where {body} or {head}");
    let names = truth.of_threads.join("', '");
    let threads = format!(
        "select count(*), count(distinct upid) from (select utid, t.upid from perf_sample p join thread t using (utid) \
            where t.name in ('{names}') group by 1, 2)"
    );
    let sql = [
        STACKS,
        "select count(*), count(callsite_id), sum(unwind_error is not null), count(distinct utid) from perf_sample",
        "select sum(stack glob '*seventy:*'), sum(stack glob '*thirty:*') from stacks",
        &chain,
        &threads,
        // The slice's thread is the one of its samples.
        "select count(*) from perf_sample p join thread_track t using (utid) join slice s on s.track_id = t.id \
            where s.name = 'work' and p.ts between s.ts and s.ts + s.dur",
    ];
    let verdict = judge::load_bytes(trace, &sql);
    verdict.require_clean();
    let [samples, with_stack, cut, threads] = numbers(&verdict, 1)[..] else { panic!() };
    let [seventy, thirty] = numbers(&verdict, 2)[..] else { panic!() };
    assert!(truth.samples.contains(&samples), "{samples}");
    assert!(with_stack == samples && threads >= 3, "{samples} {with_stack} {threads}");
    assert!(cut * 50 <= samples, "{cut} of {samples} without their root");
    let share = seventy as f64 * 100.0 / (seventy + thirty) as f64;
    assert!((share - 70.0).abs() <= truth.points, "{seventy} : {thirty}");
    let chain = verdict.results[3].single_i64();
    assert!(chain * 100 >= seventy * truth.lines, "{chain} of {seventy} with these lines");
    assert_eq!(numbers(&verdict, 4), [2, 1], "{format:?}: both threads, in one process");
    verdict.results[5].single_i64()
}
