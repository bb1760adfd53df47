//! Functions that SQLite as it is built here lacks. Their names and rules are those of its own extension for
//! percentiles, which Perfetto has too, and of other engines.

use std::cmp::Ordering;

use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Error, Result};

const FLAGS: FunctionFlags = FunctionFlags::SQLITE_UTF8.union(FunctionFlags::SQLITE_DETERMINISTIC);

/// Adds the functions to a connection.
pub(crate) fn register(connection: &Connection) -> Result<()> {
    for (name, rank) in [
        ("percentile", Rank::Percent),
        ("percentile_cont", Rank::Continuous),
        ("percentile_disc", Rank::Discrete),
    ] {
        connection.create_aggregate_function(name, 2, FLAGS, Percentile(rank))?;
    }
    connection.create_aggregate_function("median", 1, FLAGS, Percentile(Rank::Median))?;
    for (name, is_better) in [("least", Ordering::Less), ("greatest", Ordering::Greater)] {
        connection.create_scalar_function(name, -1, FLAGS, move |values| best(values, is_better))?;
    }
    for (name, function) in
        [("floor", f64::floor as fn(f64) -> f64), ("ceil", f64::ceil), ("sqrt", f64::sqrt)]
    {
        let of = move |values: &mut Context<'_>| Ok(values.get::<Option<f64>>(0)?.map(function));
        connection.create_scalar_function(name, 1, FLAGS, of)?;
    }
    Ok(())
}

/// The least or the greatest value that is not null.
fn best(values: &Context<'_>, is_better: Ordering) -> Result<Value> {
    let values = (0..values.len()).map(|n| values.get_raw(n)).filter(|value| *value != ValueRef::Null);
    let best = values.reduce(|best, value| if order(value, best) == is_better { value } else { best });
    Value::try_from(best.unwrap_or(ValueRef::Null)).map_err(|e| wrong(e.to_string()))
}

/// The order of SQLite: numbers before texts before bytes.
fn order(one: ValueRef<'_>, other: ValueRef<'_>) -> Ordering {
    #[allow(clippy::cast_precision_loss)] // an integer beside a float is compared as one
    fn number(value: ValueRef<'_>) -> Option<f64> {
        match value {
            ValueRef::Integer(int) => Some(int as f64),
            ValueRef::Real(float) => Some(float),
            _ => None,
        }
    }
    match (one, other) {
        (ValueRef::Integer(one), ValueRef::Integer(other)) => one.cmp(&other),
        (ValueRef::Text(one), ValueRef::Text(other)) | (ValueRef::Blob(one), ValueRef::Blob(other)) => {
            one.cmp(other)
        }
        _ => match (number(one), number(other)) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            (None, None) => matches!(one, ValueRef::Blob(_)).cmp(&matches!(other, ValueRef::Blob(_))),
            (one, other) => other.is_some().cmp(&one.is_some()),
        },
    }
}

/// Which value is the percentile.
#[derive(Clone, Copy)]
enum Rank {
    /// On a line between two values, as `percentile(x, 99)`.
    Percent,
    /// On a line between two values, as `percentile_cont(x, 0.99)`.
    Continuous,
    /// The value at or before that point.
    Discrete,
    Median,
}

struct Percentile(Rank);

/// The values of a group. Nulls are not among them.
#[derive(Default)]
struct Group {
    part: Option<f64>,
    ints: Vec<i64>,
    /// All values, once one is no integer.
    floats: Vec<f64>,
}

impl Aggregate<Group, Value> for Percentile {
    fn init(&self, _: &mut Context<'_>) -> Result<Group> {
        Ok(Group::default())
    }

    fn step(&self, values: &mut Context<'_>, group: &mut Group) -> Result<()> {
        if group.part.is_none() {
            group.part = Some(self.part(values)?);
        }
        match values.get_raw(0) {
            ValueRef::Null => {}
            ValueRef::Integer(int) if group.floats.is_empty() => group.ints.push(int),
            #[allow(clippy::cast_precision_loss)] // a group with a float has floats
            ValueRef::Integer(int) => group.floats.push(int as f64),
            #[allow(clippy::cast_precision_loss)]
            ValueRef::Real(float) => {
                group.floats.extend(group.ints.drain(..).map(|int| int as f64));
                group.floats.push(float);
            }
            other => return Err(wrong(format!("a percentile of {}", other.data_type()))),
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, group: Option<Group>) -> Result<Value> {
        let Some(mut group) = group else { return Ok(Value::Null) };
        let part = group.part.unwrap_or(0.5);
        let is_between = !matches!(self.0, Rank::Discrete);
        if group.floats.is_empty() {
            let found = pick(&mut group.ints, part, Ord::cmp);
            #[allow(clippy::cast_precision_loss)] // the answer is a float
            return Ok(found.map_or(Value::Null, |(below, above, rest)| match is_between {
                true => Value::Real(between(below as f64, above as f64, rest)),
                false => Value::Integer(below),
            }));
        }
        let found = pick(&mut group.floats, part, f64::total_cmp);
        Ok(found.map_or(Value::Null, |(below, above, rest)| {
            Value::Real(if is_between { between(below, above, rest) } else { below })
        }))
    }
}

impl Percentile {
    /// Which part of the values lies below.
    fn part(&self, values: &Context<'_>) -> Result<f64> {
        let most = match self.0 {
            Rank::Median => return Ok(0.5),
            Rank::Percent => 100.0,
            Rank::Continuous | Rank::Discrete => 1.0,
        };
        let given = values.get::<Option<f64>>(1).ok().flatten();
        let part = given.filter(|part| (0.0..=most).contains(part));
        part.map(|part| part / most).ok_or_else(|| wrong(format!("a percentile is from 0 to {most}")))
    }
}

fn wrong(what: String) -> Error {
    Error::UserFunctionError(what.into())
}

/// The values around a part of them, and how far it is from the first to the second.
fn pick<T: Copy>(values: &mut [T], part: f64, order: impl Fn(&T, &T) -> Ordering) -> Option<(T, T, f64)> {
    #[allow(clippy::cast_precision_loss)] // fewer values than 2^52
    let at = part * values.len().checked_sub(1)? as f64;
    let (_, below, above) = values.select_nth_unstable_by(at as usize, &order);
    let next = above.iter().min_by(|one, other| order(one, other)).copied().unwrap_or(*below);
    Some((*below, next, at.fract()))
}

fn between(below: f64, above: f64, rest: f64) -> f64 {
    if rest == 0.0 { below } else { below + (above - below) * rest }
}
