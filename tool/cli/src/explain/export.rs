//! Output for programs. The names and units are stable.

use hairline_convert::timeline::Split;
use serde_json::{Value, json};

use crate::explain::explained::Explained;
use crate::explain::functions::{At, Named, StackShare, largest_stacks};
use crate::explain::heap::{Heap, Row};
use crate::explain::held::{Held, Lock, task_name};
use crate::explain::locks::Holder;
use crate::explain::queue;
use crate::explain::separation::Separation;
use crate::explain::shares::{Share, largest};
use crate::explain::survey::Survey;
use crate::explain::target::{Band, Part, Target};
use crate::explain::threads::{Process, Thread, Threads};
use crate::explain::verdict::{inner, meanwhile, verdict};
use crate::json_version::JSON_VERSION;
use crate::thread_times::ThreadTimes;

/// The limit for the rows of each list.
const ROWS: usize = 100;

/// The number of the slowest slices that are shown.
const EXAMPLES: usize = 10;

pub(super) fn json(explained: &Explained) -> String {
    let survey = &explained.survey;
    let Threads { chosen, processes, .. } = &explained.threads;
    let all = json!({
        "version": JSON_VERSION,
        "trace": explained.summary.name,
        "has_scheduling": !survey.timeline.is_empty(),
        "samples": survey.samples.len(),
        "scheduling_left_out": survey.timeline.left_out(),
        "samples_left_out": survey.samples.left_out,
        "notes": survey.left_out(),
        "other_processes": survey.neighbours.all().map(other_processes),
        "threads": chosen.iter().map(|of| thread(survey, of)).collect::<Vec<_>>(),
        "processes": processes.iter().map(process).collect::<Vec<_>>(),
        "heap": explained.heap.as_ref().map(|of| heap(survey, of)),
        "names": explained.shown().map(|of| target(explained, of)).collect::<Vec<_>>(),
    });
    let mut text = serde_json::to_string_pretty(&all).unwrap_or_default();
    text.push('\n');
    text
}

fn thread(survey: &Survey, thread: &Thread) -> Value {
    let ThreadTimes { tid, pid, name, process, split, samples } = &thread.times;
    json!({
        "thread": name,
        "process": process,
        "tid": tid,
        "pid": (*pid != 0).then_some(pid),
        "samples": samples,
        "has_states": split.is_some(),
        "did": band(survey, &thread.band),
    })
}

/// What programs that are not in the trace had of the processors, during the whole recording.
fn other_processes((recorded, all): (i64, &[(String, i64)])) -> Value {
    let one = |(name, time): &(String, i64)| json!({ "name": name, "running_ns": time });
    json!({ "recorded_ns": recorded, "processes": all.iter().map(one).collect::<Vec<_>>() })
}

fn heap(survey: &Survey, heap: &Heap) -> Value {
    let grown = |row: &Row| heap.has_growth().then(|| row.grown());
    let function = |row: &Row| {
        json!({
            "name": row.name,
            "live_bytes": row.live,
            "allocated_bytes": row.allocated,
            "grown_bytes": grown(row),
            "stack": row.stack.map(|(stack, _)| survey.samples.names(stack).join(";")),
        })
    };
    json!({
        "first_dump_ns": heap.dumps.0,
        "last_dump_ns": heap.dumps.1,
        "live_bytes": heap.all.live,
        "allocated_bytes": heap.all.allocated,
        "grown_bytes": grown(&heap.all),
        "functions": heap.functions.iter().take(ROWS).map(function).collect::<Vec<_>>(),
    })
}

fn process(process: &Process) -> Value {
    json!({
        "process": process.name,
        "threads": process.threads,
        "running_ns": process.running,
        "waiting_ns": process.waiting,
        "samples": process.samples,
    })
}

fn target(explained: &Explained, target: &Target) -> Value {
    let survey = &explained.survey;
    let [p50, p90, p99, max] = target.chosen.quantiles;
    let verdict = verdict(survey, target, &explained.targets);
    let meanwhile = meanwhile(survey, target).into_iter().take(ROWS);
    let meanwhile = meanwhile.map(|(name, slow, typical)| {
        json!({ "name": name, "slowest_per_mille": slow, "typical_per_mille": typical })
    });
    let example = |part: &Part| {
        let arguments = target.arguments.get(&(part.track, part.start)).map_or(&[][..], Vec::as_slice);
        let arguments = arguments.iter().map(|of| (of.name.clone(), of.value.clone().into()));
        json!({
            "start_ns": part.start,
            "duration_ns": part.duration(),
            "thread": survey.track_names.name(part.track),
            "arguments": arguments.collect::<serde_json::Map<_, _>>(),
        })
    };
    let argument = |of: &Separation| {
        json!({
            "name": of.name,
            "is": of.is,
            "value": of.value,
            "slowest": { "with": of.slow.0, "of": of.slow.1 },
            "typical": { "with": of.typical.0, "of": of.typical.1 },
        })
    };
    json!({
        "name": survey.keys().text(target.chosen.name.name),
        "category": survey.keys().text(target.chosen.name.category),
        "is_on_thread": target.chosen.name.is_on_thread,
        "is_poll": target.chosen.is_poll,
        "count": target.chosen.count,
        "total_ns": target.chosen.total,
        "p50_ns": p50,
        "p90_ns": p90,
        "p99_ns": p99,
        "max_ns": max,
        "cause": {
            "state": verdict.cause.name(),
            "extra_ns": verdict.extra,
            "in_state_ns": verdict.share,
            "is_compared": verdict.is_compared,
            "inside": verdict.inside.map(|name| survey.keys().text(name)),
            "text": verdict.lines,
            "locks": verdict.locks.iter().map(|of| lock(survey, of)).collect::<Vec<_>>(),
            "queue": queue(survey, target),
        },
        "all": band(survey, &target.all),
        "typical": band(survey, &target.typical),
        "slowest": band(survey, &target.slow),
        "meanwhile": meanwhile.collect::<Vec<_>>(),
        "examples": target.slow_examples.all().iter().take(EXAMPLES).map(example).collect::<Vec<_>>(),
        "query": slowest(survey, target),
        "argument": verdict.argument.as_ref().map(argument),
    })
}

/// The question to `hairline query` that shows the slowest slices.
fn slowest(survey: &Survey, target: &Target) -> String {
    let text = |key| survey.keys().text(key).replace('\'', "''");
    let (name, category) = (text(target.chosen.name.name), text(target.chosen.name.category));
    let track = if target.chosen.name.is_on_thread { "is not null" } else { "is null" };
    format!(
        "select id, start, duration, thread_name from slice where name = '{name}' and ifnull(category, '') = '{category}' \
         and thread {track} and duration is not null order by duration desc limit {EXAMPLES}"
    )
}

/// The waits for one lock in the slices that the cause is about.
fn lock(survey: &Survey, lock: &Lock) -> Value {
    let holder = |held: &Held| {
        let tid = held.holder.thread();
        let task = match held.holder {
            Holder::Task(task) | Holder::Given(_, task) => Some(task),
            _ => None,
        };
        let how = match held.holder {
            Holder::Unknown => None,
            Holder::Thread(_) | Holder::Task(_) => Some("held"),
            Holder::Releaser(_) | Holder::Passed(..) | Holder::Given(..) => Some("released"),
            Holder::Notifier(_) => Some("notified"),
            Holder::Free => Some("free"),
            Holder::Relocks => Some("relocks"),
        };
        let before = if let Holder::Passed(first, _) = held.holder { Some(first) } else { None };
        json!({
            "before_tid": before,
            "thread": tid.map(|tid| survey.thread_name(tid)),
            "tid": tid,
            "how": how,
            "task": task.map(|(_, number)| number),
            "task_name": task.and_then(|task| task_name(survey, task)),
            "tasks": held.tasks,
            "at": held.place,
            "inside": held.inside.map(|name| survey.keys().text(name)),
            "woken": held.woken.map(|place| place.text(survey)),
            "ns": held.time,
        })
    };
    let place = |place: &Share| json!({ "at": place.what, "ns": place.time });
    json!({
        "name": lock.name,
        "kind": lock.kind(),
        "total_ns": lock.time,
        "extra_ns": lock.extra,
        "holders": lock.holders.iter().take(ROWS).map(holder).collect::<Vec<_>>(),
        "waiters": lock.places.iter().map(place).collect::<Vec<_>>(),
    })
}

/// What the workers did while the slowest were queued: the longest such times are looked at.
fn queue(survey: &Survey, target: &Target) -> Value {
    let polls = queue::polls(target).into_iter().take(ROWS).map(|((category, name), polls)| {
        json!({
            "category": survey.keys().text(category),
            "name": survey.keys().text(name),
            "count": polls.count,
            "ns": polls.time,
            "longest_ns": polls.longest,
        })
    });
    json!({
        "looked_at_ns": target.queues.total(),
        "parked_ns": target.parked,
        "polls": polls.collect::<Vec<_>>(),
    })
}

fn split(survey: &Survey, split: &Split) -> Value {
    let is_known = survey.timeline.has_uninterruptible();
    json!({
        "running_ns": split.running,
        "waiting_ns": split.waiting,
        "asleep_ns": split.asleep,
        "uninterruptible_ns": is_known.then_some(split.uninterruptible),
        "off_cpu_ns": split.off_cpu,
        "unknown_ns": split.unknown,
    })
}

/// Sums of all slices of a band.
fn band(survey: &Survey, band: &Band) -> Value {
    let inner = inner(band).into_iter().take(ROWS).map(|(name, inner)| {
        json!({
            "name": survey.keys().text(name),
            "count": inner.count,
            "total_ns": inner.total,
            "own": split(survey, &inner.own),
        })
    });
    let shares = |shares: Vec<Share>, unit: &str| {
        let one = |share: Share| json!({ "name": share.what, unit: share.time });
        shares.into_iter().map(one).collect::<Vec<_>>()
    };
    let thread = |tid: &u64| survey.thread_name(*tid);
    let whole = |stack| survey.samples.names(stack).join(";");
    let on_cpu = largest_stacks(&band.on_cpu, |stack| survey.function(stack, At::Any).to_string(), ROWS);
    let on_cpu = on_cpu.into_iter().map(|StackShare { share, stack, .. }| {
        let Named { entered, function, .. } = survey.function(stack, At::Any);
        json!({
            "name": share.what,
            "function": function,
            "entered": entered,
            "stack": whole(stack),
            "samples": share.time,
        })
    });
    let stacks = |sums, at, unit: &str| {
        let one = |StackShare { share, stack, .. }: StackShare| {
            let Named { entered, function, .. } = survey.function(stack, at);
            json!({ "name": share.what, "function": function, "entered": entered, unit: share.time })
        };
        largest_stacks(sums, whole, ROWS).into_iter().map(one).collect::<Vec<_>>()
    };
    json!({
        "count": band.count,
        "total_ns": band.duration,
        "split": split(survey, &band.split),
        "inner": inner.collect::<Vec<_>>(),
        "polls": band.polls,
        "polled_ns": band.polled,
        "functions_on_cpu": on_cpu.collect::<Vec<_>>(),
        "stacks_asleep": stacks(&band.off_cpu, At::Any, "ns"),
        "stacks_by_clock": stacks(&band.by_clock, At::Any, "samples"),
        "stacks_of_events": stacks(&band.events, At::Event, "stacks"),
        "threads_on_core": shares(largest(&band.holders, thread, ROWS), "ns"),
        "large_allocations": band.large.count,
        "large_allocated_bytes": band.large.bytes,
        "wakers": shares(largest(&band.wakers, thread, ROWS), "ns"),
    })
}
