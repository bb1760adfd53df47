//! Compares the traces with what the threads remember.

use std::collections::{BTreeMap, HashMap, HashSet};

use hairline_tests::judge::{self, Rows, Verdict};
use serde_json::Value;

use super::outside::HANDLED;
use super::world::{Entry, What, running, without_session};
use super::{Plan, Recorded};

/// Slices and instants, those of the library itself left out.
const SLICES: &str = "select s.name, s.dur, s.depth, s.ts, s.track_id, \
     coalesce(extract_arg(s.arg_set_id, 'debug.id'), extract_arg(s.arg_set_id, 'id')) as id, \
     coalesce(extract_arg(s.arg_set_id, 'debug.ended'), extract_arg(s.arg_set_id, 'ended')) as ended, \
     coalesce(extract_arg(s.arg_set_id, 'track_event.log_message'), extract_arg(s.arg_set_id, 'message')) as message \
     from slice s where ifnull(s.category, '') != 'hairline' order by s.ts, s.id";
const COUNTERS: &str = "select c.track_id, t.name, c.ts, c.value from counter c join track t on c.track_id = t.id \
     where t.name != 'thread_time' order by c.track_id, c.ts, c.id";
const FLOWS: &str = "select \
     coalesce(extract_arg(a.arg_set_id, 'debug.id'), extract_arg(a.arg_set_id, 'id')) as begin_id, \
     coalesce(extract_arg(b.arg_set_id, 'debug.id'), extract_arg(b.arg_set_id, 'id')) as end_id \
     from flow f left join slice a on f.slice_out = a.id left join slice b on f.slice_in = b.id";

/// The limit for the error of a time in ns. Threads that count under one lock may have times in another order
/// within it: the processor's counter is read without a barrier, and threads load its newest parameters one
/// after the other.
const CLOCK_ERROR: i64 = 1000;

/// What a trace has of one event.
#[derive(Clone, Debug)]
#[allow(dead_code)] // for messages
struct Found {
    name: String,
    session: u64,
    depth: i64,
    open: bool,
    ended: Option<i64>,
}

fn number(value: &Value) -> Option<i64> {
    #[allow(clippy::cast_possible_truncation)] // numbers of events
    value.as_i64().or_else(|| value.as_f64().map(|f| f as i64))
}

struct Checker<'a> {
    plan: &'a Plan,
    found: HashMap<i64, Found>,
    bare: u64,
    problems: Vec<String>,
}

pub(super) fn check(plan: &Plan, log: &[Entry], recorded: &[Recorded]) {
    let mut checker = Checker { plan, found: HashMap::new(), bare: 0, problems: Vec::new() };
    let ids: HashSet<i64> = log.iter().map(|e| e.id).collect();
    assert_eq!(ids.len(), log.len(), "the model's own numbers");
    let mut arrows = Vec::new();
    for (session, trace) in recorded.iter().enumerate() {
        let verdict = judge::load_bytes(&trace.bytes, &[SLICES, COUNTERS, FLOWS]);
        checker.complaints(trace, &verdict);
        checker.rows(session as u64, trace, &verdict);
        arrows.extend(verdict.results[2].rows.iter().map(|row| (number(&row[0]), number(&row[1]))));
    }
    // Nothing is left out but what does not fit, and that only from handlers if there is room.
    let lost = |f: fn(&hairline::Summary) -> u64| recorded.iter().map(|r| f(&r.summary)).sum::<u64>();
    let exact = plan.sessions == 1 && !plan.filters && lost(|s| s.lost.buffer_full + s.lost.too_large) == 0;
    log.iter().for_each(|entry| checker.entry(entry, exact));
    let unknown: Vec<_> = checker.found.iter().filter(|(id, _)| !ids.contains(id)).take(3).collect();
    if !unknown.is_empty() {
        let text = format!("in the trace and not in the model: {unknown:?}");
        checker.problems.push(text);
    }
    checker.bare(log);
    checker.flows(log, &arrows);
    if plan.sessions == 1 && !plan.filters {
        checker.sum(log, lost(|s| s.lost.total()));
    }
    if let (false, Some(directory)) = (checker.problems.is_empty(), std::env::var_os("TORTURE_KEEP")) {
        for (session, trace) in recorded.iter().enumerate() {
            let file = format!("{}-{}-{:?}-{session}.trace", plan.name, plan.seed, plan.format);
            std::fs::write(std::path::Path::new(&directory).join(file), &trace.bytes).expect("a trace kept");
        }
    }
    let problems = &checker.problems;
    let more = problems.len().saturating_sub(8);
    assert!(
        problems.is_empty(),
        "{plan:?}\n{}\n... {more} more; lost: {:?}",
        problems[..problems.len() - more].join("\n"),
        recorded.iter().map(|r| r.summary.lost).collect::<Vec<_>>()
    );
}

impl Checker<'_> {
    fn problem(&mut self, text: String) {
        self.problems.push(text);
    }

    fn complaints(&mut self, trace: &Recorded, verdict: &Verdict) {
        let lossy = trace.summary.lost.total() > 0;
        let told = "traced_buf_trace_writer_packet_loss";
        let listed: Vec<_> = verdict.complaints.iter().filter(|c| !lossy || c.name != told).collect();
        if !listed.is_empty() {
            self.problem(format!("complaints: {listed:?}"));
        }
    }

    /// Takes in a trace's rows.
    fn rows(&mut self, session: u64, trace: &Recorded, verdict: &Verdict) {
        let mut records = self.slices(session, &verdict.results[0]);
        records += self.counters(session, &verdict.results[1]);
        if records != trace.summary.records {
            self.problem(format!(
                "session {session}: {records} records in the trace, {} in the summary",
                trace.summary.records
            ));
        }
    }

    fn slices(&mut self, session: u64, slices: &Rows) -> u64 {
        let mut records = 0;
        for row in slices.iter() {
            let name = row.get("name").as_str().unwrap_or("(no name)").to_owned();
            let open = row.i64("dur") < 0;
            let instant = name.contains("instant") || name.starts_with("message");
            records += if instant || open { 1 } else { 2 };
            let message = row.get("message").as_str().and_then(|m| m.strip_prefix("message ")?.parse().ok());
            if name == "bare" {
                self.bare += 1;
            }
            if name == "in the child" {
                self.problem("a forked child's events are in the trace".to_owned());
            }
            let Some(id) = number(row.get("id")).or(message) else { continue };
            let ended = number(row.get("ended"));
            let found = Found { name, session, depth: row.i64("depth"), open, ended };
            if let Some(twice) = self.found.insert(id, found) {
                self.problem(format!("{id} is there twice: {twice:?}, {:?}", self.found[&id]));
            }
        }
        records
    }

    fn counters(&mut self, session: u64, counters: &Rows) -> u64 {
        let mut latest: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for row in counters.iter() {
            let (track, name) = (row.i64("track_id"), row.str("name").to_owned());
            let Some(id) = number(row.get("value")) else { continue };
            if name.starts_with("handler") {
                continue;
            }
            let time = row.i64("ts");
            let (before, then) = *latest.get(&track).unwrap_or(&(-1, time));
            let earlier = time - then;
            if before >= id && !(name.starts_with("common") && earlier < CLOCK_ERROR) {
                self.problem(format!(
                    "counter {name:?}, session {session}: {before} {earlier} ns before {id}"
                ));
            }
            if before < id {
                latest.insert(track, (id, time));
            }
            let found = Found { name, session, depth: 0, open: false, ended: None };
            if let Some(twice) = self.found.insert(id, found) {
                self.problem(format!("counter {id} is there twice: {twice:?}"));
            }
        }
        counters.len() as u64
    }

    /// One event of the model.
    fn entry(&mut self, entry: &Entry, exact: bool) {
        let found = self.found.get(&entry.id).cloned();
        if entry.what == What::Bare && found.is_none() {
            return; // counted
        }
        let begun = running(entry.begin);
        let must = entry.recorded == Some(true) && begun.is_some()
            || entry.recorded.is_none() && exact && begun.is_some();
        let Some(found) = found else {
            if must {
                self.problem(format!("not in the trace: {entry:?}"));
            }
            return;
        };
        if entry.recorded == Some(false) || without_session(entry.begin) {
            self.problem(format!("in the trace, though not recorded: {entry:?}, {found:?}"));
        }
        let is_slice = entry.what.is_slice();
        if is_slice && found.open && entry.end.is_some_and(|end| running(end) == Some(found.session)) {
            self.problem(format!("open, though it was ended: {entry:?}, {found:?}"));
        }
        let Some(session) = begun else { return };
        if session != found.session {
            self.problem(format!("in the wrong trace: {entry:?}, {found:?}"));
        }
        if let Some(ended) = found.ended.filter(|ended| *ended != entry.id) {
            self.problem(format!("ended by the end of {ended}: {entry:?}, {found:?}"));
        }
        if let Some(depth) = entry.depth.filter(|_| !entry.assumes || exact)
            && i64::from(depth) != found.depth
            && entry.what != What::Counter
        {
            self.problem(format!("depth {depth} expected: {entry:?}, {found:?}"));
        }
        if is_slice && !found.open && entry.end.is_some_and(|end| end.0 >= 4 * session + 4) {
            self.problem(format!("closed, though its session was over: {entry:?}, {found:?}"));
        }
    }

    fn bare(&mut self, log: &[Entry]) {
        let bare = || log.iter().filter(|e| e.what == What::Bare && e.recorded == Some(true));
        let (all, certain) = (bare().count(), bare().filter(|e| running(e.begin).is_some()).count());
        if !(certain as u64..=all as u64).contains(&self.bare) {
            self.problem(format!("{} bare scopes, {certain}..={all} expected", self.bare));
        }
    }

    /// Arrows connect events of one flow, each recorded one with the next.
    fn flows(&mut self, log: &[Entry], arrows: &[(Option<i64>, Option<i64>)]) {
        let mut chains: BTreeMap<i64, Vec<&Entry>> = BTreeMap::new();
        for entry in log.iter().filter(|e| e.flow.is_some() && self.found.contains_key(&e.id)) {
            chains.entry(entry.flow.unwrap_or_default().0).or_default().push(entry);
        }
        let mut expected = HashSet::new();
        for chain in chains.values_mut() {
            chain.sort_by_key(|e| e.flow);
            expected.extend(chain.windows(2).map(|pair| (pair[0].id, pair[1].id)));
        }
        for (from, to) in arrows {
            match (from, to) {
                (Some(from), Some(to)) if expected.remove(&(*from, *to)) => {}
                _ => self.problem(format!("an arrow from {from:?} to {to:?}")),
            }
        }
        if self.plan.sessions == 1 {
            for (from, to) in expected.into_iter().take(3) {
                self.problem(format!("no arrow from {from} to {to}"));
            }
        }
    }

    /// What was attempted is in the trace or lost.
    fn sum(&mut self, log: &[Entry], lost: u64) {
        let handled =
            if self.plan.signals { HANDLED[0].load(std::sync::atomic::Ordering::SeqCst) } else { 0 };
        let there = self.found.len() as u64;
        let with_numbers = log.iter().filter(|e| e.what != What::Bare).count() as u64;
        let numbered =
            log.iter().filter(|e| e.what != What::Bare && self.found.contains_key(&e.id)).count() as u64;
        let bare = log.iter().filter(|e| e.what == What::Bare).count() as u64;
        let missing = with_numbers - numbered + (bare - self.bare);
        if self.plan.signals {
            if missing > lost || lost > missing + handled {
                self.problem(format!("{missing} missing, {lost} lost, {handled} by handlers"));
            }
        } else if missing != lost {
            self.problem(format!("{missing} missing, {lost} lost; {there} found"));
        }
    }
}
