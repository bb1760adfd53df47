//! Stretches of time, from a begin to an end.

/// Stretches in order, those that touch each other as one.
pub(crate) fn merged(stretches: impl IntoIterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
    let mut all: Vec<_> = stretches.into_iter().collect();
    all.sort_unstable();
    all.dedup_by(|next, before| {
        let touches = next.0 <= before.1;
        if touches {
            before.1 = before.1.max(next.1);
        }
        touches
    });
    all
}

/// What two stretches have in common.
pub(crate) fn common(a: (i64, i64), b: (i64, i64)) -> Option<(i64, i64)> {
    let (start, end) = (a.0.max(b.0), a.1.min(b.1));
    (start < end).then_some((start, end))
}

/// What a stretch has in common with others, which are merged.
pub(crate) fn in_common(one: (i64, i64), merged: &[(i64, i64)]) -> impl Iterator<Item = (i64, i64)> {
    let first = merged.partition_point(|other| other.1 <= one.0);
    let overlap = merged[first..].iter().take_while(move |other| other.0 < one.1);
    overlap.filter_map(move |other| common(*other, one))
}

/// What a stretch has apart from others, which are merged.
pub(crate) fn apart(one: (i64, i64), merged: &[(i64, i64)]) -> impl Iterator<Item = (i64, i64)> {
    let ends = in_common(one, merged).chain([(one.1, one.1)]);
    let rest = ends.scan(one.0, |since, (from, to)| Some((std::mem::replace(since, to), from)));
    rest.filter(|(start, end)| start < end)
}

/// Their time.
pub(crate) fn sum(stretches: impl IntoIterator<Item = (i64, i64)>) -> i64 {
    stretches.into_iter().fold(0, |sum, (start, end)| sum.saturating_add(end.saturating_sub(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_what_it_has_in_common_with_others_and_what_it_has_apart() {
        let others = merged([(30, 40), (0, 12), (50, 60), (40, 45), (31, 33)]);
        assert_eq!(others, [(0, 12), (30, 45), (50, 60)]);
        for (one, common, rest) in [
            ((10, 55), vec![(10, 12), (30, 45), (50, 55)], vec![(12, 30), (45, 50)]),
            ((12, 30), vec![], vec![(12, 30)]),
            ((31, 44), vec![(31, 44)], vec![]),
            ((70, 80), vec![], vec![(70, 80)]),
        ] {
            assert_eq!(in_common(one, &others).collect::<Vec<_>>(), common);
            assert_eq!(apart(one, &others).collect::<Vec<_>>(), rest);
            assert_eq!(sum(common) + sum(rest), one.1 - one.0);
        }
    }
}
