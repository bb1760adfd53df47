//! One request: a slice with the slices below it.

use crate::plan::Plan;
use crate::random::Random;

/// A slice, relative to the begin of the request.
pub(crate) struct Part {
    pub(crate) category: &'static str,
    pub(crate) name: &'static str,
    pub(crate) begin: i64,
    pub(crate) duration: i64,
    pub(crate) depth: usize,
}

/// What every request does: the depth, the category, the name and the usual nanoseconds of its own work.
const SHAPE: [(usize, &str, &str, i64); 10] = [
    (0, "http", "request", 20_000),
    (1, "http", "parse", 15_000),
    (1, "app", "handle", 10_000),
    (2, "db", "query", 60_000),
    (3, "net", "send", 8_000),
    (3, "net", "receive", 90_000),
    (2, "app", "price", 40_000),
    (2, "app", "check", 12_000),
    (1, "http", "render", 30_000),
    (2, "http", "compress", 25_000),
];

/// The slices of a request in the order of their begins, of which the first is the whole request. `slower` is
/// added to the first `price`.
pub(crate) fn parts(plan: &Plan, random: &mut Random, slower: i64, parts: &mut Vec<Part>) {
    parts.clear();
    let mut open: Vec<usize> = Vec::with_capacity(4);
    let mut now = 0;
    for (depth, category, name, usual) in SHAPE {
        end(&mut open, depth, now, parts);
        open.push(parts.len());
        parts.push(Part { category, name, begin: now, duration: 0, depth });
        now += random.duration(plan.usual(name, usual));
        if name == "price" {
            now += slower;
        }
    }
    end(&mut open, 0, now, parts);
}

/// Ends the slices that are open at a depth and below it.
fn end(open: &mut Vec<usize>, depth: usize, now: i64, parts: &mut [Part]) {
    while open.len() > depth {
        let part = &mut parts[open.pop().expect("it is open")];
        part.duration = now - part.begin;
    }
}
