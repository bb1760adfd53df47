//! Sums with names, and what part of a whole they are.

use std::collections::HashMap;

/// A name with its share.
pub(super) struct Share {
    pub(super) what: String,
    pub(super) time: i64,
}

/// The largest sums of a map, each with its name. Equal names are one.
pub(super) fn largest<K>(sums: &HashMap<K, i64>, name: impl Fn(&K) -> String, most: usize) -> Vec<Share> {
    let mut by_name: HashMap<String, i64> = HashMap::new();
    for (key, time) in sums {
        let sum = by_name.entry(name(key)).or_default();
        *sum = sum.saturating_add(*time);
    }
    let mut all: Vec<_> = by_name.into_iter().map(|(what, time)| Share { what, time }).collect();
    all.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.what.cmp(&b.what)));
    all.truncate(most);
    all
}

/// A share as text.
#[allow(clippy::cast_precision_loss)] // no digits are shown
pub(super) fn percent(part: i64, whole: i64) -> String {
    if whole <= 0 { "0 %".to_owned() } else { format!("{:.0} %", 100.0 * part as f64 / whole as f64) }
}
