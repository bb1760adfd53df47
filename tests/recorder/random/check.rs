//! Compares the snapshots with what the threads remember.

use std::collections::{BTreeMap, HashMap, HashSet};

use hairline_tests::judge::{self, Rows};
use serde_json::Value;

use super::worker::{ON_TRACK, OnTrack, Op, THREAD, What, World, text};
use super::{Plan, Taken};

const SLICES: &str = "select s.id as slice, s.parent_id as parent, s.name, s.ts, s.dur, t.name as thread, \
     coalesce(extract_arg(s.arg_set_id, 'debug.id'), extract_arg(s.arg_set_id, 'id')) as id, \
     coalesce(extract_arg(s.arg_set_id, 'debug.ended'), extract_arg(s.arg_set_id, 'ended')) as ended, \
     coalesce(extract_arg(s.arg_set_id, 'debug.text'), extract_arg(s.arg_set_id, 'text')) as text \
     from slice s left join thread_track tt on s.track_id = tt.id left join thread t using (utid) \
     where ifnull(s.category, '') != 'hairline'";
const COUNTERS: &str =
    "select c.ts, c.value from counter c join track t on c.track_id = t.id where t.name != 'thread_time'";
const FLOWS: &str = "select \
     coalesce(extract_arg(a.arg_set_id, 'debug.id'), extract_arg(a.arg_set_id, 'id')) as begin_id, \
     coalesce(extract_arg(b.arg_set_id, 'debug.id'), extract_arg(b.arg_set_id, 'id')) as end_id \
     from flow f left join slice a on f.slice_out = a.id left join slice b on f.slice_in = b.id";
/// What a text that was cut ends with.
const MARK: char = '…';

/// A slice or a counter's value of a snapshot.
#[derive(Clone, Debug, Default)]
struct Found {
    name: String,
    begin: i64,
    end: Option<i64>,
    /// The next slice around it that has a number.
    around: Option<i64>,
    ended: Option<i64>,
    text: Option<String>,
}

struct Snapshot<'a> {
    plan: &'a Plan,
    taken: &'a Taken,
    found: HashMap<i64, Found>,
    /// Slices without a number, by thread.
    bare: HashMap<String, usize>,
    problems: Vec<String>,
}

fn number(value: &Value) -> Option<i64> {
    #[allow(clippy::cast_possible_truncation)] // numbers of events
    value.as_i64().or_else(|| value.as_f64().map(|f| f as i64))
}

pub(super) fn check(plan: &Plan, world: &World, taken: &[Taken]) {
    let threads = world.threads.lock().expect("no panic");
    let on_tracks = world.on_tracks.lock().expect("no panic");
    let mut times: HashMap<i64, (usize, Found)> = HashMap::new();
    let mut problems = Vec::new();
    for (n, taken) in taken.iter().enumerate() {
        let mut snapshot =
            Snapshot { plan, taken, found: HashMap::new(), bare: HashMap::new(), problems: Vec::new() };
        snapshot.read(&threads, &on_tracks);
        for (id, found) in snapshot.found {
            let (first, before) = times.entry(id).or_insert_with(|| (n, found.clone()));
            let ends_differ = before.end.is_some() && found.end.is_some() && before.end != found.end;
            if before.begin != found.begin || ends_differ {
                snapshot.problems.push(format!("{id} differs from snapshot {first}: {before:?}, {found:?}"));
            }
        }
        let more = snapshot.problems.len().saturating_sub(5);
        snapshot.problems.truncate(5);
        if !snapshot.problems.is_empty() {
            problems.push(format!(
                "snapshot {n} of {:?}:\n{}\n... {more} more",
                taken.summary.lost,
                snapshot.problems.join("\n")
            ));
            if let Some(folder) = std::env::var_os("TORTURE_KEEP") {
                let file = format!("{}-{}-{:?}-{n}.trace", plan.name, plan.seed, plan.format);
                std::fs::write(std::path::Path::new(&folder).join(file), &taken.bytes).expect("a trace kept");
            }
        }
    }
    assert!(problems.is_empty(), "{plan:?}\n{}", problems.join("\n"));
}

impl Snapshot<'_> {
    fn problem(&mut self, text: String) {
        self.problems.push(text);
    }

    /// Whether something may be missing for want of room.
    fn is_strict(&self) -> bool {
        self.plan.is_roomy()
    }

    fn read(&mut self, threads: &[Vec<Op>], on_tracks: &[OnTrack]) {
        let verdict = judge::load_bytes(&self.taken.bytes, &[SLICES, COUNTERS, FLOWS]);
        let lost = self.taken.summary.lost.total();
        if lost > 0 && self.is_strict() {
            self.problem(format!("{lost} lost"));
        }
        let told = "traced_buf_trace_writer_packet_loss";
        let listed: Vec<_> = verdict.complaints.iter().filter(|c| lost == 0 || c.name != told).collect();
        if !listed.is_empty() {
            self.problem(format!("complaints: {listed:?}"));
        }
        self.slices(&verdict.results[0]);
        for row in verdict.results[1].iter() {
            if let Some(id) = number(row.get("value")) {
                let begin = row.i64("ts");
                self.add(id, Found { begin, ..Found::default() });
            }
        }
        for (n, ops) in threads.iter().enumerate() {
            self.thread(n, ops);
        }
        for (id, slice) in (ON_TRACK..).zip(on_tracks) {
            self.on_track(id, slice);
        }
        let known = |id: i64| match usize::try_from(id - ON_TRACK) {
            Ok(n) => n < on_tracks.len(),
            _ => threads.get((id / THREAD) as usize).is_some_and(|ops| ((id % THREAD) as usize) < ops.len()),
        };
        let unknown: Vec<_> = self.found.keys().filter(|id| !known(**id)).take(3).collect();
        if !unknown.is_empty() {
            let text = format!("never recorded: {unknown:?}");
            self.problem(text);
        }
        let arrows = &verdict.results[2].rows;
        self.flows(threads, arrows.iter().map(|row| (number(&row[0]), number(&row[1]))).collect());
    }

    fn add(&mut self, id: i64, found: Found) {
        if let Some(twice) = self.found.insert(id, found) {
            let text = format!("{id} is there twice: {twice:?}, {:?}", self.found[&id]);
            self.problem(text);
        }
    }

    fn slices(&mut self, rows: &Rows) {
        let by_slice: HashMap<i64, (Option<i64>, Option<i64>)> =
            rows.iter().map(|r| (r.i64("slice"), (number(r.get("parent")), number(r.get("id"))))).collect();
        for row in rows.iter() {
            let mut around = number(row.get("parent"));
            let mut around_id = None;
            while let Some(&(parent, id)) = around.as_ref().and_then(|slice| by_slice.get(slice)) {
                (around, around_id) = (parent, id);
                if id.is_some() {
                    break;
                }
            }
            let (begin, dur) = (row.i64("ts"), row.i64("dur"));
            let name = row.get("name").as_str().unwrap_or("(no name)").to_owned();
            let Some(id) = number(row.get("id")) else {
                if name == "bare" {
                    let thread = row.get("thread").as_str().unwrap_or_default().to_owned();
                    *self.bare.entry(thread).or_default() += 1;
                } else {
                    self.problem(format!("no number: {name} at {begin}, {dur}"));
                }
                continue;
            };
            let end = (dur >= 0).then_some(begin + dur);
            let text = row.get("text").as_str().map(str::to_owned);
            let found = Found { name, begin, end, around: around_id, ended: number(row.get("ended")), text };
            self.add(id, found);
        }
    }

    /// One thread's window: from some point on all that it did, and before that what was open then.
    fn thread(&mut self, n: usize, ops: &[Op]) {
        let first = n as i64 * THREAD;
        let end_of: HashMap<usize, usize> = ops
            .iter()
            .enumerate()
            .filter_map(|(at, op)| if let What::End(begin) = op.what { Some((begin, at)) } else { None })
            .collect();
        // None: nobody can tell.
        let time = |found: &HashMap<i64, Found>, at: usize| match ops[at].what {
            What::Bare => None,
            What::Begin | What::Instant | What::Counter => {
                Some(found.get(&(first + at as i64)).map(|f| f.begin))
            }
            What::End(begin) if ops[begin].what == What::Bare => None,
            What::End(begin) => {
                // Where the begin is left out, so is the end.
                let begin = found.get(&(first + begin as i64));
                begin.map_or(if self.plan.is_roomy() { Some(None) } else { None }, |f| Some(f.end))
            }
            What::TrackEnd(id) => Some(found.get(&id).and_then(|f| f.end)),
        };
        let exists = |at: usize| match ops[at].what {
            What::Instant | What::Counter | What::TrackEnd(_) => self.plan.is_roomy(),
            _ => ops[at].is_recorded,
        };
        let times: Vec<Option<Option<i64>>> = (0..ops.len()).map(|at| time(&self.found, at)).collect();
        let Some(last) = times.iter().rposition(|time| matches!(time, Some(Some(_)))) else {
            return;
        };
        let (before, after) = (self.taken.before[n], self.taken.after[n]);
        if last as i64 > after {
            self.problem(format!("thread {n}: shows {last}, but had done {after}"));
        }
        // What a thread did before it slept may be overwritten, and nothing be left of it but what is open.
        let is_open = |at: usize| end_of.get(&at).is_none_or(|end| *end as i64 >= before);
        let slept = (0..=last)
            .all(|at| !matches!(times[at], Some(Some(_))) || is_open(at) && ops[at].what == What::Begin);
        let over = after as usize == ops.len() && before as usize == ops.len();
        if !over && !slept && self.is_strict() {
            let must = (0..before as usize).rev().find(|at| exists(*at) && times[*at].is_some());
            if must.is_some_and(|must| must > last) {
                self.problem(format!("thread {n}: shows up to {last}, but had done {before}"));
            }
        }
        // The first of the gap-free suffix.
        let start =
            (0..=last).rev().find(|at| times[*at] == Some(None) && exists(*at)).map_or(0, |at| at + 1);
        let mut latest = 0;
        for at in 0..=last {
            let op = &ops[at];
            let id = first + at as i64;
            let is_begin = matches!(op.what, What::Begin | What::Bare);
            let ends_at = end_of.get(&at).copied().unwrap_or(usize::MAX);
            if let Some(Some(time)) = times[at] {
                if at < start && !(is_begin && ends_at >= start) {
                    self.problem(format!(
                        "thread {n}: {at} is there, {} is not, {last} is: {op:?}",
                        start - 1
                    ));
                }
                if !op.is_recorded {
                    self.problem(format!("thread {n}: {at} was not recorded: {op:?}"));
                }
                if time < latest {
                    self.problem(format!("thread {n}: {at} at {time}, after {latest}: {op:?}"));
                }
                latest = latest.max(time);
            } else if at < start
                && op.what == What::Begin
                && ends_at >= start
                && op.is_recorded
                && self.is_strict()
            {
                self.problem(format!(
                    "thread {n}: open, but not there: {at} ({start} to {last}), ended {ends_at}: {op:?}"
                ));
            }
            if let Some(found) = self.found.get(&id).cloned() {
                self.event(ops, at, id, &found, ends_at <= last);
            }
        }
        let bare = (0..=last).filter(|at| {
            ops[*at].what == What::Bare
                && ops[*at].is_recorded
                && end_of.get(at).is_none_or(|end| *end >= start)
        });
        let (expected, there) = (bare.count(), self.bare.get(&format!("worker {n}")).copied().unwrap_or(0));
        // What was done after the last event with a number, or just before the first one, is not told apart.
        let doubt = 14;
        if self.is_strict() && there.abs_diff(expected) > doubt {
            self.problem(format!("thread {n}: {there} bare scopes, {expected} expected"));
        }
    }

    fn event(&mut self, ops: &[Op], at: usize, id: i64, found: &Found, has_ended: bool) {
        let op = &ops[at];
        if op.what == What::Counter {
            return;
        }
        if found.name != op.name {
            self.problem(format!("{id}: {:?} is not its name: {op:?}", found.name));
        }
        self.text(id, op.text, found);
        if op.what == What::Begin {
            if has_ended && found.end.is_none() {
                self.problem(format!("{id}: open, though it has ended: {found:?}, {op:?}"));
            }
            if found.ended.is_some_and(|ended| ended != id) {
                self.problem(format!("{id}: ended by another: {found:?}"));
            }
        }
        // The next one around it that has a number and is in the snapshot.
        let thread = id / THREAD * THREAD;
        let mut around = op.around;
        while let Some(at) = around {
            let is_there = ops[at].is_recorded && ops[at].what != What::Bare;
            if is_there && (self.is_strict() || self.found.contains_key(&(thread + at as i64))) {
                break;
            }
            around = ops[at].around;
        }
        let around = around.map(|at| thread + at as i64);
        if found.around != around {
            self.problem(format!("{id}: lies in {:?}, not in {around:?}: {found:?}, {op:?}", found.around));
        }
    }

    fn text(&mut self, id: i64, length: u64, found: &Found) {
        let expected = (length != u64::MAX).then(|| text(id, length));
        let is_right = match (&expected, &found.text) {
            (Some(all), Some(cut)) if !self.is_strict() && cut.ends_with(MARK) => {
                all.starts_with(cut.trim_end_matches(MARK))
            }
            (expected, text) => expected == text,
        };
        if !is_right {
            self.problem(format!("{id}: text {:?}, not {expected:?}", found.text));
        }
    }

    fn on_track(&mut self, id: i64, slice: &OnTrack) {
        let (start, end) = self.taken.times;
        let Some(found) = self.found.get(&id).cloned() else {
            if slice.is_recorded && slice.begun < start && slice.ends.is_none_or(|ends| ends > end) {
                self.problem(format!("open on its track, but not there: {id}, {slice:?}"));
            }
            return;
        };
        if !slice.is_recorded {
            self.problem(format!("{id} was not recorded: {found:?}, {slice:?}"));
        }
        if found.name != slice.name {
            self.problem(format!("{id}: {:?} is not its name: {slice:?}", found.name));
        }
        self.text(id, slice.text, &found);
        if found.end.is_some() && slice.ends.is_none_or(|ends| ends > end) {
            self.problem(format!("{id} has not ended: {found:?}, {slice:?}"));
        }
        if found.end.is_some() && found.ended.unwrap_or(id) != id {
            self.problem(format!("{id}: ended by another: {found:?}"));
        }
        let around = slice.around.iter().rev().find(|id| self.found.contains_key(id)).copied();
        if found.around != around {
            self.problem(format!(
                "{id}: lies in {:?}, not in {around:?}: {found:?}, {slice:?}",
                found.around
            ));
        }
    }

    /// Arrows connect the events of a flow that are there, each with the next.
    fn flows(&mut self, threads: &[Vec<Op>], arrows: Vec<(Option<i64>, Option<i64>)>) {
        let mut chains: BTreeMap<i64, Vec<(u32, i64)>> = BTreeMap::new();
        for (n, ops) in threads.iter().enumerate() {
            for (at, op) in ops.iter().enumerate() {
                let id = n as i64 * THREAD + at as i64;
                if let Some((flow, step)) = op.flow.filter(|_| self.found.contains_key(&id)) {
                    chains.entry(flow).or_default().push((step, id));
                }
            }
        }
        let mut expected = HashSet::new();
        for chain in chains.values_mut() {
            chain.sort_unstable();
            expected.extend(chain.windows(2).map(|pair| (pair[0].1, pair[1].1)));
        }
        let mut wrong = Vec::new();
        for (from, to) in arrows {
            match (from, to) {
                (Some(from), Some(to)) if expected.remove(&(from, to)) => {}
                _ => wrong.push((from, to)),
            }
        }
        if !wrong.is_empty() || !expected.is_empty() {
            wrong.truncate(3);
            let missing = expected.iter().take(3).collect::<Vec<_>>();
            self.problem(format!("arrows: wrong {wrong:?}, {} missing {missing:?}", expected.len()));
        }
    }
}
