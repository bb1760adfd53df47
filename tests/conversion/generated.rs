//! Generated traces: each pair of record kinds of each format, in each relation of their times, in several
//! orders and places, and many triples, before and after each conversion. The rows are equal, or the report
//! says something. The importer complains about no conversion of which the report says nothing, unless it
//! complains about the original too.
//!
//! A trace of trace_processor has many cases, each in a window of time and with threads and ids of its own,
//! because loading a trace takes longer than all else. `HAIRLINE_GENERATED` is the number of cases for each
//! format, or `all` (see ci/generated.sh); without it, a sample runs. `HAIRLINE_GENERATED_SEED` chooses
//! another sample.

mod cases;
mod encode;
mod limits;

use hairline_convert::Report;
use hairline_convert::TraceFormat::{self, Fxt, Json, TrackEvent};
use hairline_tests::equal::Shown;
use hairline_tests::judge::{self, Stat};

use crate::convert;
use crate::differences::TABLES;
use crate::matrix::same;

use cases::{CASES, Case, case};
use encode::{WINDOW, encode};

/// The cases of a trace.
const TOGETHER: usize = 250;
/// The cases for each format without `HAIRLINE_GENERATED`.
const SAMPLE: usize = 250;

/// The rows of each case. A row begins with its time.
fn by_case(rows: Vec<String>, count: usize) -> Vec<Vec<String>> {
    let mut cases = vec![Vec::new(); count];
    for row in rows {
        let time: u64 = row.split('\t').next().and_then(|time| time.parse().ok()).expect("a time");
        let number = usize::try_from(time / WINDOW).expect("small");
        cases[number.min(count - 1)].push(row);
    }
    cases
}

/// What became of the cases of a format.
#[derive(Debug, Default)]
struct Outcome {
    /// The conversions of one case to one format: in total, and those with other rows that the report says.
    conversions: usize,
    said: usize,
    /// Differences and complaints about which nothing is said.
    wrong: Vec<String>,
}

fn outcome(from: TraceFormat, numbers: &[usize]) -> Outcome {
    let mut outcome = Outcome::default();
    for numbers in numbers.chunks(TOGETHER) {
        let cases: Vec<_> = (0..).zip(numbers).map(|(place, number)| (place, case(*number))).collect();
        let trace = encode(&cases, from);
        let (before, complaints) = judged(&trace);
        for to in [TrackEvent, Fxt, Json] {
            outcome.conversions += cases.len();
            let (converted, report) = convert(&trace, to);
            let (after, new_complaints) = judged(&converted);
            let mut together = None;
            let mut differences = vec![String::new(); cases.len()];
            for table in TABLES {
                let rows = |shown| by_case(same(shown, table), cases.len());
                for (n, (before, after)) in rows(&before).into_iter().zip(rows(&after)).enumerate() {
                    differences[n] += &difference(table, &before, &after);
                }
            }
            for (difference, (_, case)) in differences.iter().zip(&cases).filter(|(d, _)| !d.is_empty()) {
                // The cases of a trace share limits and the order of time: what comes of that, the trace's
                // own report says, beyond those of its cases.
                let more = together.get_or_insert_with(|| more_together(&report, &cases, from, to));
                if is_said(case, from, to) {
                    outcome.said += 1;
                } else if *more > 0 && is_equal_alone(case, from, to) {
                    *more -= 1;
                    outcome.said += 1;
                } else {
                    let (from, to) = (from.name(), to.name());
                    outcome.wrong.push(format!("{from} to {to}, {}\n{difference}", case.name));
                }
            }
            if new_complaints > complaints {
                let unsaid = numbers.iter().copied().filter(|number| !is_said(&case(*number), from, to));
                complained(from, to, &unsaid.collect::<Vec<_>>(), &mut outcome.wrong);
            }
        }
    }
    outcome
}

/// What trace_processor shows of a trace, and the number of its complaints.
fn judged(trace: &[u8]) -> (Shown, i64) {
    let (shown, complaints) = Shown::with_complaints(trace);
    (shown, complaints.iter().map(|stat| stat.value.max(1)).sum())
}

/// The complaints about a trace.
fn complaints(trace: &[u8]) -> Vec<Stat> {
    judge::load_bytes(trace, &[]).complaints
}

/// The number of things that the report of a trace says beyond those of its cases.
fn more_together(report: &Report, cases: &[(u64, Case)], from: TraceFormat, to: TraceFormat) -> u64 {
    let mut alone = Report::default();
    for (_, case) in cases {
        alone.add_all(&convert(&encode(&[(0, self::case(case.number()))], from), to).1);
    }
    let of_cases = |what| alone.iter().find(|(other, _)| *other == what).map_or(0, |(_, count)| count);
    report.iter().map(|(what, count)| count.saturating_sub(of_cases(what))).sum()
}

fn is_equal_alone(case: &Case, from: TraceFormat, to: TraceFormat) -> bool {
    let alone = encode(&[(0, self::case(case.number()))], from);
    let (before, after) = (judged(&alone).0, judged(&convert(&alone, to).0).0);
    TABLES.iter().all(|table| same(&before, table) == same(&after, table))
}

/// Whether the report of a case's conversion, alone, is not empty.
fn is_said(case: &Case, from: TraceFormat, to: TraceFormat) -> bool {
    let alone = encode(&[(0, self::case(case.number()))], from);
    !convert(&alone, to).1.is_empty()
}

/// Finds the cases whose conversions have more complaints than the originals.
fn complained(from: TraceFormat, to: TraceFormat, numbers: &[usize], wrong: &mut Vec<String>) {
    let cases: Vec<_> = (0..).zip(numbers).map(|(place, number)| (place, case(*number))).collect();
    if cases.is_empty() {
        return;
    }
    let trace = encode(&cases, from);
    let converted = convert(&trace, to).0;
    let said = complaints(&converted);
    let count = |complaints: &[Stat]| complaints.iter().map(|stat| stat.value.max(1)).sum::<i64>();
    if count(&said) <= count(&complaints(&trace)) {
        return;
    }
    if let [(_, case)] = &cases[..] {
        let said: Vec<_> = said.iter().map(ToString::to_string).collect();
        wrong.push(format!("{} to {}, {}\n   {}\n", from.name(), to.name(), case.name, said.join(", ")));
        return;
    }
    let (left, right) = numbers.split_at(numbers.len() / 2);
    complained(from, to, left, wrong);
    complained(from, to, right, wrong);
}

fn difference(table: &str, before: &[String], after: &[String]) -> String {
    if before == after {
        return String::new();
    }
    let count = |rows: &[String], row: &String| rows.iter().filter(|other| *other == row).count();
    let rows = |sign, these: &[String], those: &[String]| {
        let only = these.iter().filter(|row| count(these, row) > count(those, row));
        only.map(|row| format!("   {table} {sign} {row}\n")).collect::<String>()
    };
    rows('-', before, after) + &rows('+', after, before)
}

/// The numbers of the cases to run: all, or a sample that is the same each time.
fn numbers() -> Vec<usize> {
    let count = match std::env::var("HAIRLINE_GENERATED").as_deref() {
        Ok("all") => CASES,
        Ok(count) => count.parse().expect("a number of cases"),
        Err(_) => SAMPLE,
    };
    let seed = std::env::var("HAIRLINE_GENERATED_SEED");
    let seed: usize = seed.map_or(0, |seed| seed.parse().expect("a number"));
    let step = (0..).map(|n| CASES / count.max(1) + n).find(|step| gcd(*step, CASES) == 1).expect("a step");
    (0..count.min(CASES)).map(|n| (seed + n * step) % CASES).collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[track_caller]
fn nothing_silent(from: TraceFormat) {
    let numbers = numbers();
    let Outcome { conversions, said, wrong } = outcome(from, &numbers);
    let (name, count) = (from.name(), numbers.len());
    println!("{name}: {count} cases, {conversions} conversions, {said} with other rows, as the report says");
    assert!(
        wrong.is_empty(),
        "{} silent differences\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
}

#[test]
fn json_in_all_formats() {
    nothing_silent(Json);
}

#[test]
fn fxt_in_all_formats() {
    nothing_silent(Fxt);
}

#[test]
fn packets_in_all_formats() {
    nothing_silent(TrackEvent);
}
