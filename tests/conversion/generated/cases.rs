//! The cases: records of each kind, in each relation of their times.

use std::fmt::Write as _;

/// A record at a time, in nanoseconds from the begin of the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) time: u64,
    pub(super) what: What,
    /// Which of the case's members it belongs to; the place depends on it.
    pub(super) of: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Begin,
    End,
    /// An end without a name.
    BareEnd,
    Complete(u64),
    Instant,
    AsyncBegin,
    AsyncEnd,
    /// The same with the id that all members of the case share.
    SharedBegin,
    SharedEnd,
    Count(i64),
    Flow(Step),
    /// A complete slice that a flow is bound to.
    Bound(u64, Step),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    Begin,
    Through,
    End,
}

/// The kinds of records, each with an interval.
pub(super) const KINDS: [&str; 12] = [
    "begin and end",
    "begin and bare end",
    "complete",
    "complete of odd nanoseconds",
    "instant",
    "async",
    "counter",
    "flow",
    "flow with a step",
    "bound flow",
    "flow of two ends",
    "async with a shared id",
];

pub(super) fn records(kind: usize, (from, to): (u64, u64), of: u64) -> Vec<Record> {
    let at = |time, what| Record { time, what, of };
    let (odd, half) = (if kind == 3 { 1 } else { 0 }, from + (to - from) / 2);
    match kind {
        0 => vec![at(from, What::Begin), at(to, What::End)],
        1 => vec![at(from, What::Begin), at(to, What::BareEnd)],
        2 | 3 => vec![at(from + odd, What::Complete(to - from))],
        4 => vec![at(from, What::Instant)],
        5 => vec![at(from, What::AsyncBegin), at(to, What::AsyncEnd)],
        11 => vec![at(from, What::SharedBegin), at(to, What::SharedEnd)],
        6 => vec![at(from, What::Count(3)), at(to, What::Count(5))],
        7 | 8 | 10 => {
            let mut all = vec![at(from, What::Complete(1_000)), at(from, What::Flow(Step::Begin))];
            if kind != 7 {
                let step = if kind == 8 { Step::Through } else { Step::End };
                all.extend([at(half, What::Complete(1_000)), at(half, What::Flow(step))]);
            }
            all.extend([at(to, What::Complete(1_000)), at(to, What::Flow(Step::End))]);
            all
        }
        _ => vec![at(from, What::Bound(1_000, Step::Begin)), at(to, What::Bound(1_000, Step::End))],
    }
}

/// The times of the second of a pair; those of the first are 20 and 40 microseconds.
pub(super) const TIMES: [(u64, u64); 10] =
    [(20, 40), (20, 30), (20, 60), (30, 40), (10, 40), (40, 60), (25, 35), (30, 60), (10, 60), (40, 40)];

/// In order of time; the second first; reversed.
pub(super) const ORDERS: usize = 3;
/// On one thread, two threads, two processes.
pub(super) const PLACES: usize = 3;

/// The number of pairs, and of all cases: pairs and triples.
pub(super) const PAIRS: usize = KINDS.len() * KINDS.len() * TIMES.len() * ORDERS * PLACES;
pub(super) const CASES: usize = PAIRS + 12_000;

#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) records: Vec<Record>,
    pub(super) place: usize,
    pub(super) twist: Twist,
}

/// What is odd about all records of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Twist {
    None,
    /// Their names have bytes that are not UTF-8.
    NotUtf8,
    /// In JSON, times and durations have parts of a nanosecond, each rounded on its own.
    Rounded,
    /// Processes have one process id: in packets, which have ids of their own for them.
    OneId,
}

pub(super) const TWISTS: [Twist; 4] = [Twist::None, Twist::NotUtf8, Twist::Rounded, Twist::OneId];

/// The digits of a number, each to a base of its own.
pub(super) struct Digits(usize);

impl Digits {
    fn next(&mut self, base: usize) -> usize {
        let digit = self.0 % base;
        self.0 /= base;
        digit
    }
}

pub(super) fn case(number: usize) -> Case {
    // Pairs are counted; triples are too many for that, so each number is spread over all of them.
    let spread = |number: usize| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 5) ^ number;
    let mut digits = Digits(if number < PAIRS { number } else { spread(number) });
    let members = if number < PAIRS { 2 } else { 3 };
    let (mut all, mut name) = (Vec::new(), format!("{number}:"));
    for of in 0..members {
        let kind = digits.next(KINDS.len());
        let (from, to) = if of == 0 { TIMES[0] } else { TIMES[digits.next(TIMES.len())] };
        all.extend(records(kind, (from * 1000, to * 1000), of));
        write!(name, " {} at {from}..{to},", KINDS[kind]).expect("memory");
    }
    let (order, place) = (digits.next(ORDERS), digits.next(PLACES));
    let twist = if number < PAIRS { Twist::None } else { TWISTS[digits.next(TWISTS.len())] };
    match order {
        0 => all.sort_by_key(|record| record.time),
        1 => all.sort_by_key(|record| members - record.of),
        _ => all.reverse(),
    }
    let order = ["by time", "the last first", "reversed"][order];
    let place_name = ["one thread", "several threads", "several processes"][place];
    write!(name, " {order}, {place_name}, {twist:?}").expect("memory");
    Case { name, records: all, place, twist }
}

impl Case {
    pub(super) fn number(&self) -> usize {
        self.name.split(':').next().and_then(|number| number.parse().ok()).expect("a number")
    }
}
