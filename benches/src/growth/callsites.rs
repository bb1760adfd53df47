//! Scopes at many callsites, one after the other.

use std::hint::black_box;
use std::io;
use std::sync::OnceLock;

use hairline::__private::Callsite;
use hairline::{Error, Format, Session};

use super::sites;
use crate::cost::{Budgets, RICH};
use crate::machine::{clock_read, pin_to_last_core};
use crate::made;
use crate::row::{Budget, Row, label};
use crate::timing::{Effort, beside, started};

/// Scopes in a batch.
const BATCH: usize = 30_000;

/// Up to a thousand callsites in the code, or many that are created at run time.
pub(super) fn rows(format: Format, few: bool, batches: usize) -> Result<Vec<Row>, Error> {
    let session = started(Session::builder().output_writer(io::sink()).format(format).buffer_size(64 << 20))?;
    pin_to_last_core(); // not the drain thread, which is there already
    let rows = if few { in_places(format, batches) } else { made(format, batches) };
    session.stop()?;
    Ok(rows)
}

/// The number of passes in a batch.
fn row(
    name: &str,
    per_pass: usize,
    batches: usize,
    budget: f64,
    mut floor: impl FnMut(),
    mut subject: impl FnMut(),
) -> Row {
    let operations = u32::try_from(BATCH / per_pass).unwrap_or(1);
    let (floors, subjects) = beside(Effort { batches, operations }, |_| floor(), |_| subject());
    let each = 1.0 / per_pass as f64;
    Row::sampled(name, "ns", &subjects.scaled(each), Budget::Ratio, budget).beside(&floors.scaled(each))
}

fn in_places(format: Format, batches: usize) -> Vec<Row> {
    let functions = sites::functions();
    let measure = |count: usize| {
        let functions = &functions[..count / sites::PER_FUNCTION];
        let name = format!("{}: scope, {count} callsites", label(format));
        let call = |traced| functions.iter().for_each(|function| function(traced));
        call(true); // the first hits
        row(&name, count, batches, Budgets::of(format).scope, || call(false), || call(true))
    };
    [10, 100, 1000].map(measure).into()
}

fn made(format: Format, batches: usize) -> Vec<Row> {
    const BEYOND: usize = 32_767; // the last string with a number of its own in FXT
    const SOME: usize = 100;
    static ALL: OnceLock<&[Callsite]> = OnceLock::new();
    let all: &'static [Callsite] = ALL.get_or_init(|| made::callsites("callsite", BEYOND + SOME));
    let measure = |what: &str, callsites: &'static [Callsite], budget: f64| {
        let name = format!("{}: scope, {what}", label(format));
        let reads = || {
            callsites.iter().for_each(|_| {
                clock_read();
                clock_read();
            });
        };
        let scopes = || callsites.iter().for_each(|callsite| made::scope(black_box(callsite)));
        scopes(); // the first hits
        row(&name, callsites.len(), batches, budget, reads, scopes)
    };
    let mut rows = vec![
        measure("10,000 callsites", &all[..10_000], Budgets::of(format).scope),
        measure("30,000 callsites", &all[..30_000], Budgets::of(format).scope),
    ];
    all[30_000..BEYOND].iter().for_each(made::scope);
    rows.push(measure("names beyond the 32,767th", &all[BEYOND..], RICH));
    rows
}
