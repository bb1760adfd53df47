//! What tasks waited for beside the thing that let them go on: the branches of a `select!` that lose, and
//! futures whose time ran out.

use hairline_convert::slices::Key;

use crate::explain::shares::percent;
use crate::explain::survey::Survey;
use crate::explain::target::{Band, Inner, Target, Waker, total};
use crate::table::plain;

/// The interval that was open for most of the time of the slowest, and without which they went on.
fn most(band: &Band) -> Option<(Key, &Inner)> {
    let all = band.inside.dropped.iter().map(|(name, inner)| (*name, inner));
    all.max_by_key(|(name, inner)| (inner.total, name.0)).filter(|(_, most)| most.total > band.duration / 2)
}

/// What let them go on before that, as a part of a sentence, if one thing did most times.
pub(super) fn cause(survey: &Survey, target: &Target) -> Option<String> {
    let (before, _) = most(&target.slow)?;
    let (inside, is_parked) = woken(target)?;
    let [before, inside] = [before, inside].map(|name| plain(survey.keys().text(name)));
    Some(if is_parked {
        format!("a timer or a socket, which was ready before `{before}`")
    } else {
        format!("what woke them inside `{inside}`, before `{before}` was ready")
    })
}

/// The slice in which most of the time ended, and whether a worker had nothing to do there.
fn woken(target: &Target) -> Option<(Key, bool)> {
    let place = |waker: &Waker| Some((waker.inside?, waker.is_parked));
    let of = |of: (Key, bool)| {
        let these = target.wakers.iter().filter(|(waker, _)| waker.as_ref().and_then(place) == Some(of));
        total(these.map(|(_, time)| *time))
    };
    let whole = total(target.wakers.values().copied());
    let places = target.wakers.keys().flatten().filter_map(place);
    places.max_by_key(|of_place| (of(*of_place), of_place.0.0)).filter(|place| of(*place) > whole / 2)
}

/// Says that it is not the cause.
pub(super) fn sentence(survey: &Survey, target: &Target) -> Option<String> {
    let (name, inner) = most(&target.slow)?;
    let duration = target.slow.duration;
    Some(format!(
        "`{}` was open for {} of the time of the slowest, and was not ready as they went on: another branch of a \
         `select!` or a timeout came first.",
        plain(survey.keys().text(name)),
        percent(inner.total.min(duration), duration)
    ))
}
