//! The cost of an event, beside the clock reads that it needs.

use std::hint::black_box;
use std::io;

use std::future::Future;

use hairline::{
    Flow, Format, Overflow, Session, SessionBuilder, TraceFuture, Track, Unit, trace_async, trace_begin,
    trace_counter, trace_end, trace_instant, trace_scope,
};

use crate::floors::{nothing, one_read, row, two_reads};
use crate::machine::{self, pin_to_last_core, thread_cpu_ns};
use crate::row::{Budget, Row, label};
use crate::service::{self, Service};
use crate::timing::{Effort, beside_with, started};
use crate::{Outcome, rich};

/// Measures scopes that are not recorded.
///
/// # Errors
/// If the session cannot be started or stopped.
pub fn disabled(effort: Effort) -> Result<Vec<Row>, hairline::Error> {
    let more = Effort { operations: effort.operations * 8, ..effort };
    let off = |_| {
        trace_scope!("off", "disabled");
    };
    let no_session = row("scope, no session", more, 0.4, Budget::Over, nothing, off);
    let session = started(Session::builder().output_writer(io::sink()).categories("-off"))?;
    let filtered = row("scope, category off", more, 0.4, Budget::Over, nothing, off);
    session.stop()?;
    Ok(vec![no_session, filtered])
}

/// The budget of events, in units of the clock reads that they need.
pub(crate) struct Budgets {
    pub(crate) scope: f64,
    arguments: f64,
    single: f64,
}

impl Budgets {
    pub(crate) fn of(format: Format) -> Self {
        match format {
            Format::Fxt => Self { scope: 1.2, arguments: 1.6, single: 1.6 },
            _ => Self { scope: 1.4, arguments: 2.0, single: 2.2 },
        }
    }
}

/// Measures events that are recorded while the drain thread drains them.
///
/// # Errors
/// If a session cannot be started or stopped.
pub fn enabled(effort: Effort, format: Format) -> Result<Vec<Row>, hairline::Error> {
    let (label, budgets) = (label(format), Budgets::of(format));
    let session = started(Session::builder().output_writer(io::sink()).format(format).buffer_size(64 << 20))?;
    pin_to_last_core(); // not the drain thread, which is there already
    let name = |what: &str| format!("{label}: {what}");
    let text = black_box("sixteen bytes ..");
    let rows = vec![
        row(&name("scope"), effort, budgets.scope, Budget::Ratio, two_reads, |_| {
            trace_scope!("bench", "scope");
        }),
        row(&name("scope + i64 + &str of 16"), effort, budgets.arguments, Budget::Ratio, two_reads, |i| {
            trace_scope!("bench", "scope with arguments", number = i64::from(i), text);
        }),
        row(&name("instant"), effort, budgets.single, Budget::Ratio, one_read, |_| {
            trace_instant!("bench", "instant");
        }),
        row(&name("counter"), effort, budgets.single, Budget::Ratio, one_read, |i| {
            trace_counter!("bench", "counter", i64::from(i));
        }),
    ];
    let rows = rows.into_iter().chain(rich::rows(effort, &name)).chain(with_options(effort, &name)).collect();
    let summary = session.stop()?;
    if summary.lost.total() > 0 {
        eprintln!("{label}: {} events lost while measuring", summary.lost.total());
    }
    Ok(rows)
}

/// Measures scopes in a session that overwrites its ring, inside of two open scopes that each chunk repeats.
/// The budget is 1.15 times that of a streaming session.
///
/// # Errors
/// If the session cannot be started or stopped.
pub fn flight_recorder(effort: Effort, format: Format) -> Result<Row, hairline::Error> {
    let budget = (115.0 * Budgets::of(format).scope).round() / 100.0;
    let builder = Session::builder().overflow(Overflow::Overwrite).format(format).buffer_size(8 << 20);
    let session = started(builder)?;
    pin_to_last_core();
    let name = format!("{}: scope, flight recorder", label(format));
    let row = {
        trace_scope!("bench", "outer", text = "of the outer scope");
        trace_scope!("bench", "inner", number = 1);
        row(&name, effort, budget, Budget::Ratio, two_reads, scope)
    };
    session.stop()?;
    Ok(row)
}

/// Measures scopes while Perfetto's tracing service records them. The floor is a session of the program with
/// the same pauses. No row where there is no service.
///
/// # Errors
/// If the service or a session cannot be started or stopped.
pub fn traced(effort: Effort) -> Outcome<Vec<Row>> {
    if !service::is_there() {
        return Ok(Vec::new());
    }
    let scopes = || {
        machine::aside(|| {
            pin_to_last_core(); // not the session's thread, which is there already
            let text = black_box("sixteen bytes ..");
            let (plain, arguments) = beside_with(effort, service::pause, scope, |i| {
                trace_scope!("bench", "scope with arguments", number = i64::from(i), text);
            });
            [plain, arguments]
        })
    };
    let builder = || Session::builder().format(Format::TrackEvent).buffer_size(64 << 20);
    let session = started(builder().output_writer(io::sink()))?;
    let own = scopes();
    session.stop()?;
    let service = Service::start()?;
    let registered = builder().output_traced()?;
    service::wait_until(|| {
        let mut is_recorded = false;
        trace_instant!("bench", "ready", recorded = std::mem::replace(&mut is_recorded, true));
        is_recorded
    })?;
    let session = Session::builder().start()?; // a handle of the service's
    let of_service = scopes();
    let summary = session.stop()?;
    if summary.lost.total() > 0 {
        eprintln!("tracing service: {} events lost while measuring", summary.lost.total());
    }
    drop((registered, service));
    let names = ["scope", "scope + i64 + &str of 16"];
    let rows = names.into_iter().zip(own.iter().zip(&of_service)).map(|(what, (own, of_service))| {
        let name = format!("TrackEvent, tracing service: {what}");
        Row::sampled(&name, "ns", of_service, Budget::Ratio, 1.1).beside(own)
    });
    Ok(rows.collect())
}

/// A session that records more of each event. The calling thread is pinned, and its drain thread is not.
fn detailed(
    format: Format,
    detail: fn(SessionBuilder) -> SessionBuilder,
) -> Result<Session, hairline::Error> {
    let builder = Session::builder().output_writer(io::sink()).format(format).buffer_size(64 << 20);
    let session = started(detail(builder))?;
    pin_to_last_core();
    Ok(session)
}

/// Measures scopes with their place in the source. The budget is that of a plain scope and a twentieth more.
///
/// # Errors
/// If the session cannot be started or stopped.
pub fn with_locations(effort: Effort, format: Format) -> Result<Row, hairline::Error> {
    let session = detailed(format, |builder| builder.source_locations(true))?;
    let budget = (105.0 * Budgets::of(format).scope).round() / 100.0;
    let name = format!("{}: scope, source locations", label(format));
    let row = row(&name, effort, budget, Budget::Ratio, two_reads, scope);
    session.stop()?;
    Ok(row)
}

/// Measures scopes with the CPU time of their thread. The floor reads that clock twice too.
///
/// # Errors
/// If the session cannot be started or stopped.
pub fn with_cpu_time(effort: Effort, format: Format) -> Result<Row, hairline::Error> {
    let session = detailed(format, |builder| builder.thread_time(true))?;
    let floor = |n| {
        two_reads(n);
        black_box((thread_cpu_ns(), thread_cpu_ns()));
    };
    let effort = Effort { operations: effort.operations / 4, ..effort };
    let name = format!("{}: scope, thread CPU time", label(format));
    let row = row(&name, effort, 1.1, Budget::Ratio, floor, scope);
    session.stop()?;
    Ok(row)
}

/// Measures events with options.
fn with_options(effort: Effort, name: &impl Fn(&str) -> String) -> Vec<Row> {
    let effort = Effort { operations: effort.operations / 4, ..effort };
    let (flow, track) = (Flow::new(), Track::new("track"));
    let within = |budget: f64, what: &str, subject: &mut dyn FnMut(u32)| {
        row(&name(what), effort, budget, Budget::Ratio, two_reads, subject)
    };
    let single = |what: &str, subject: &mut dyn FnMut(u32)| {
        row(&name(what), effort, 1.3, Budget::Ratio, one_read, subject)
    };
    vec![
        within(3.0, "scope + flow", &mut |_| {
            trace_scope!("bench", "scope with a flow", flow: &flow);
        }),
        within(1.5, "slice on a track, begin and end", &mut |_| {
            trace_begin!("bench", "on a track", track: &track);
            trace_end!(&track);
        }),
        within(1.5, "async begin and end", &mut |_| {
            drop(trace_async!("bench", "async"));
        }),
        single("instant on a track", &mut |_| {
            trace_instant!("bench", "on a track", track: &track);
        }),
        single("counter with a unit", &mut |i| {
            trace_counter!("bench", "bytes", i64::from(i), unit: Unit::Bytes);
        }),
        single("counter on a track, with a unit", &mut |i| {
            trace_counter!("bench", "bytes there", i64::from(i), unit: Unit::Bytes, track: &track);
        }),
        poll(effort, name),
    ]
}

/// Measures a poll of a wrapped future. Its budget is that of three plain scopes.
fn poll(effort: Effort, name: &impl Fn(&str) -> String) -> Row {
    let mut future = std::pin::pin!(std::future::pending::<()>().traced("bench", "future"));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    row(&name("poll of a traced future"), effort, 3.0, Budget::Ratio, scope, |_| {
        let _pending = black_box(future.as_mut().poll(&mut context));
    })
}

fn scope(_: u32) {
    trace_scope!("bench", "scope");
}

/// The budget of events on the cold path, in clock reads.
pub(crate) const RICH: f64 = 20.0;
