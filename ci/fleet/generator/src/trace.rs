//! Writes one trace.

use std::io::{self, Write};

use hairline_convert::{
    Categories, Clock, Context, CounterTrack, Event, EventDetails, EventKind, Item, Loss, RunState,
    Scheduling, StateChange, Text, Trace, TraceFormat, TraceWriter, Track, TrackId, TrackKind, create,
};
use hairline_formats::Value;
use hairline_formats::track_event::CounterValue;

use crate::plan::{HELPERS, Plan, WORKERS};
use crate::random::Random;
use crate::request::{Part, parts};
use crate::truth::Truth;

/// Perfetto's numbers of the clocks: that of all times, and the wall clock.
const BOOTTIME: u32 = 6;
const REALTIME: u32 = 1;
/// By how much the slow request is slower.
const STALL: i64 = 40_000_000;
const ROUTES: [&str; 4] = ["/", "/cart", "/item", "/search"];
const PROCESS: TrackId = TrackId(0);
const QUEUE: TrackId = TrackId(1);

/// A trace that is being written.
struct Tracer<'a> {
    plan: &'a Plan,
    writer: Box<dyn TraceWriter + 'a>,
    strings: Context,
    random: Random,
}

/// A worker: a thread that serves one request after the other.
struct Worker {
    track: TrackId,
    tid: u64,
    now: i64,
    /// Its threads in the helper processes.
    helpers: [TrackId; HELPERS.len()],
}

pub(crate) fn write(
    plan: &Plan,
    format: TraceFormat,
    out: &mut impl Write,
    truth: &mut Truth,
) -> io::Result<()> {
    truth.add(plan);
    let (writer, random) = (create(format, out), Random::new(plan.number()));
    let mut tracer = Tracer { plan, writer, strings: Context::new(), random };
    let mut workers = tracer.begin()?;
    let (mut all, mut served) = (Vec::new(), 0);
    while served < plan.requests {
        let worker = workers.iter_mut().min_by_key(|worker| worker.now).expect("there are some");
        let failed = tracer.request(worker, served, &mut all)?;
        truth.slices += (all.len() + plan.helpers(served).unwrap_or(0)) as u64;
        let counts = truth.requests.entry((plan.service(), plan.version())).or_default();
        *counts = (counts.0 + 1, counts.1 + u64::from(failed));
        served += 1;
    }
    for worker in &workers {
        tracer.state(worker, worker.now, RunState::Sleeping)?;
    }
    tracer.writer.finish()
}

impl Tracer<'_> {
    fn text<'t>(&mut self, text: &'t str) -> Text<'t> {
        Text { text, id: self.strings.strings.number(text) }
    }

    fn put(&mut self, item: &Item<'_>) -> io::Result<()> {
        self.writer.write(item)
    }

    /// Writes what comes before the requests.
    fn begin(&mut self) -> io::Result<Vec<Worker>> {
        let (plan, boot) = (self.plan, self.plan.boot());
        let clocks = [(BOOTTIME, boot), (REALTIME, plan.wall())];
        let clocks = clocks.map(|(id, time)| Clock { id, time: time.cast_unsigned() });
        let system = Some(["Linux", "6.1.0", "#1", "x86_64"]);
        let facts = Trace { uuid: Some(plan.uuid()), writer: Some("hairline"), system, clocks: &clocks };
        self.put(&Item::Trace(facts))?;
        let pid = 1000 + plan.number();
        let process = Track { name: plan.service().into(), ..Track::new(PROCESS, TrackKind::process(pid)) };
        self.put(&Item::Track(process))?;
        let kind = TrackKind::Counter(Box::new(CounterTrack::default()));
        let queue = Track { parent: Some(PROCESS), name: "queue".into(), ..Track::new(QUEUE, kind) };
        self.put(&Item::Track(queue))?;
        let mut next = QUEUE.0;
        let mut new = || {
            next += 1;
            TrackId(next)
        };
        let helpers = HELPERS.map(|name| (name, new()));
        for (n, (name, track)) in (1..).zip(helpers) {
            let kind = TrackKind::process(pid + 100_000 * n);
            self.put(&Item::Track(Track { name: name.into(), ..Track::new(track, kind) }))?;
        }
        let mut workers = Vec::new();
        for n in 0..WORKERS {
            let (track, tid) = (new(), 1_000_000 + plan.number() * 10 + u64::from(n));
            self.thread(track, PROCESS, pid, tid, &format!("worker-{n}"))?;
            let own = helpers.map(|(_, process)| (process, new()));
            for (h, (process, track)) in (1..).zip(own) {
                self.thread(track, process, pid + 100_000 * h, tid + 1_000_000 * h, "helper")?;
            }
            let worker =
                Worker { track, tid, now: boot + i64::from(n) * 1000, helpers: own.map(|(_, track)| track) };
            self.state(&worker, worker.now, RunState::Running)?;
            workers.push(worker);
        }
        let args = [("service".into(), plan.service()), ("version".into(), plan.version())];
        let args = &args.map(|(name, text)| (name, Value::Str(text)))[..];
        let started = Event::new(workers[0].now, workers[0].track, EventKind::Instant);
        let (name, categories) = (self.text("started"), Categories::One(self.text("build")));
        self.put(&Item::Event(Event { name, categories, args: &args, ..started }))?;
        if plan.lost() > 0 {
            let (track, time) = (Some(workers[0].track), Some(workers[0].now));
            self.put(&Item::Loss(Loss { track, time, events: plan.lost() }))?;
        }
        Ok(workers)
    }

    fn thread(&mut self, id: TrackId, process: TrackId, pid: u64, tid: u64, name: &str) -> io::Result<()> {
        let kind = TrackKind::Thread { pid, tid };
        self.put(&Item::Track(Track { parent: Some(process), name: name.into(), ..Track::new(id, kind) }))
    }

    /// Writes a request. Returns whether it failed.
    fn request(&mut self, worker: &mut Worker, number: u32, all: &mut Vec<Part>) -> io::Result<bool> {
        let plan = self.plan;
        let stall = plan.slow_request().filter(|(request, _)| *request == number);
        parts(plan, &mut self.random, stall.map_or(0, |_| STALL), all);
        let begin = worker.now;
        if let Some((_, true)) = stall {
            let price = all.iter().find(|part| part.name == "price").expect("every request has one");
            self.state(worker, begin + price.begin, RunState::Runnable)?;
            self.state(worker, begin + price.begin + STALL, RunState::Running)?;
        }
        let failed = self.random.below(plan.one_failure_in()) == 0;
        let status = if failed { 500 } else { 200 };
        let route = ROUTES[self.random.below(4) as usize];
        let args = &[("route".into(), Value::Str(route)), ("status".into(), Value::U64(status))][..];
        self.slices(worker, number, all, &args)?;
        worker.now += all[0].duration + 100 * (1 + i64::from(number % 7));
        if number.is_multiple_of(50) {
            let value = CounterValue::Int(i64::from(number / 50 % 32));
            self.put(&Item::Event(Event::new(begin, QUEUE, EventKind::Counter(value))))?;
            self.state(worker, begin + all[0].duration, RunState::Sleeping)?;
            worker.now += 100_000;
            self.state(worker, worker.now, RunState::Running)?;
        }
        Ok(failed)
    }

    /// Writes the begins and ends of a request's slices, in order.
    fn slices(
        &mut self,
        worker: &Worker,
        number: u32,
        all: &[Part],
        args: &&[(Text<'_>, Value<'_>)],
    ) -> io::Result<()> {
        let flows = [self.plan.flow(number)];
        let helpers = self.plan.helpers(number);
        let details = EventDetails { flows: &flows, ..EventDetails::default() };
        let mut open: Vec<i64> = Vec::with_capacity(4);
        for part in all {
            while open.len() > part.depth {
                let end = open.pop().expect("a slice is open");
                self.put(&Item::Event(Event::new(end, worker.track, EventKind::End)))?;
            }
            let begin = worker.now + part.begin;
            open.push(begin + part.duration);
            let (name, categories) = (self.text(part.name), Categories::One(self.text(part.category)));
            let event = Event { name, categories, ..Event::new(begin, worker.track, EventKind::Begin) };
            let event = match part.depth {
                0 if helpers.is_some() => Event { args, details: Some(&details), ..event },
                0 => Event { args, ..event },
                _ => event,
            };
            self.put(&Item::Event(event))?;
        }
        while let Some(end) = open.pop() {
            self.put(&Item::Event(Event::new(end, worker.track, EventKind::End)))?;
        }
        for helper in &worker.helpers[..helpers.unwrap_or(0)] {
            let (name, categories) = (self.text("note"), Categories::One(self.text("app")));
            let begin = Event::new(worker.now + all[1].begin + 100, *helper, EventKind::Begin);
            self.put(&Item::Event(Event { name, categories, details: Some(&details), ..begin }))?;
            let end = worker.now + all[0].duration - 100;
            self.put(&Item::Event(Event::new(end, *helper, EventKind::End)))?;
        }
        Ok(())
    }

    fn state(&mut self, worker: &Worker, time: i64, state: RunState) -> io::Result<()> {
        let cpu = (state == RunState::Running).then_some((worker.tid % 4) as u32);
        let changes = [StateChange { cpu, ..StateChange::new(time, worker.tid, state) }];
        self.put(&Item::Scheduling(Scheduling { changes: &changes, copy: None, others: 0 }))
    }
}
