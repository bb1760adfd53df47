//! What tasks waited for beside the thing that let them go on: the branches of a `select!` that lose, and
//! futures whose time ran out.

use std::collections::HashMap;

use hairline_convert::slices::Key;

use crate::explain::shares::percent;
use crate::explain::survey::Survey;
use crate::explain::target::{Band, Inner, Source, Target};
use crate::explain::wakes;
use crate::table::plain;
use crate::text::grouped;

/// The interval that was open for most of the time of the slowest, and without which they went on.
fn most(band: &Band) -> Option<(Key, &Inner)> {
    let all = band.inside.dropped.iter().map(|(name, inner)| (*name, inner));
    all.max_by_key(|(name, inner)| (inner.total, name.0)).filter(|(_, most)| most.total > band.duration / 2)
}

/// How many times each of the slowest gave that up, if it tried again until it was ready: then it is what
/// they wait for.
fn tries(band: &Band) -> Option<u64> {
    let (name, inner) = most(band)?;
    let ready = band.inside.names.get(&name).map_or(0, |inner| inner.count);
    Some(inner.count / band.count.max(1)).filter(|tries| *tries >= 3 && ready >= band.count)
}

/// What let them go on, as a part of a sentence, if one thing did most times.
pub(super) fn cause(survey: &Survey, target: &Target) -> Option<String> {
    let (name, _) = most(&target.slow)?;
    if let Some(tries) = tries(&target.slow) {
        let (name, tries) = (plain(survey.keys().text(name)), grouped(tries));
        return Some(format!("`{name}`, which was given up {tries} times in each and tried again"));
    }
    before(survey, target, name)
}

/// The same, if they begin intervals of this name again and again, like a tick, and drop the last one.
pub(super) fn before_last(survey: &Survey, target: &Target, name: Key) -> Option<String> {
    let Band { inside, count, .. } = &target.slow;
    let of = |counts: &HashMap<Key, Inner>| counts.get(&name).map_or(0, |inner| inner.count);
    let is_begun_again = of(&inside.names) >= count.saturating_mul(3) && of(&inside.dropped) >= *count;
    is_begun_again.then(|| {
        before(survey, target, name).unwrap_or_else(|| {
            let name = plain(survey.keys().text(name));
            format!("what was ready before the last `{name}`, which they begin again and again")
        })
    })
}

/// What woke them before an interval of this name was ready.
fn before(survey: &Survey, target: &Target, before: Key) -> Option<String> {
    let text = |name: Key| plain(survey.keys().text(name));
    match wakes::most(&target.left_wakers)? {
        Source::Runtime => Some(format!("a timer or a socket, which was ready before `{}`", text(before))),
        Source::Inside(inside) => {
            Some(format!("what woke them inside `{}`, before `{}` was ready", text(inside), text(before)))
        }
        Source::On(_) => None,
    }
}

/// Says that it is not the cause.
pub(super) fn sentence(survey: &Survey, target: &Target) -> Option<String> {
    let (name, inner) = most(&target.slow)?;
    let what = if tries(&target.slow).is_some() {
        "was not ready each time"
    } else {
        "was not ready as they went on"
    };
    let duration = target.slow.duration;
    Some(format!(
        "`{}` was open for {} of the time of the slowest, and {what}: another branch of a `select!` or a timeout \
         came first.",
        plain(survey.keys().text(name)),
        percent(inner.total.min(duration), duration)
    ))
}
