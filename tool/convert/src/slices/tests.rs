//! Slices of events in every order that tracers write them in.

use proptest::prelude::*;

use super::*;
use crate::{Event, Track};

/// What was emitted, in words: `a/b 10+5 self 5`, sorted.
#[derive(Default)]
struct Emitted {
    slices: Vec<(i64, i64, i64, String)>,
    busy: i64,
    open: Vec<(Key, i64)>,
    wrong: Vec<Defect>,
}

impl SliceSink for Emitted {
    fn slice(&mut self, slice: &Slice, above: &mut [Frame]) {
        let path: Vec<String> = above.iter().map(|frame| frame.name.0.to_string()).collect();
        let path = format!("{}>{}", path.join("/"), slice.name.0);
        self.slices.push((slice.start, slice.duration, slice.self_time, path));
        self.busy += slice.busy;
    }

    fn open_slice(&mut self, slice: &Slice, _: &mut [Frame]) {
        self.open.push((slice.name, slice.duration));
    }

    fn defect(&mut self, what: Defect, _: TrackId, _: i64, _: Key) {
        self.wrong.push(what);
    }
}

impl Emitted {
    fn sorted(mut self) -> Self {
        self.slices.sort();
        self
    }
}

type Simple = (i64, EventKind, &'static str);

fn slices_of(kind: TrackKind, events: &[Simple]) -> Emitted {
    let (mut slices, mut emitted) = (Slices::new(), Emitted::default());
    for name in ["a", "b", "c"] {
        slices.keys_mut().key(name.into()); // a is 2, b is 3, c is 4
    }
    slices.item(&Item::Track(Track::new(TrackId(0), kind)), &mut emitted);
    for &(time, kind, name) in events {
        let event = Event { name: name.into(), ..Event::new(time, TrackId(0), kind) };
        slices.item(&Item::Event(event), &mut emitted);
    }
    slices.finish(&mut emitted).expect("no file");
    emitted.sorted()
}

const THREAD: TrackKind = TrackKind::Thread { pid: 1, tid: 1 };
const BEGIN: EventKind = EventKind::Begin;
const END: EventKind = EventKind::End;

fn complete(duration: i64) -> EventKind {
    EventKind::Complete { duration }
}

fn rows(emitted: &Emitted) -> Vec<(i64, i64, i64, &str)> {
    emitted
        .slices
        .iter()
        .map(|(start, duration, own, path)| (*start, *duration, *own, path.as_str()))
        .collect()
}

#[test]
fn self_time_is_what_no_slice_inside_took() {
    let emitted = slices_of(
        THREAD,
        &[(0, BEGIN, "a"), (10, BEGIN, "b"), (30, END, ""), (40, BEGIN, "b"), (50, END, "b"), (60, END, "a")],
    );
    assert_eq!(rows(&emitted), [(0, 60, 30, ">2"), (10, 20, 20, "2>3"), (40, 10, 10, "2>3")]);
    assert_eq!((emitted.busy, emitted.wrong.len()), (60, 0));
}

#[test]
fn an_end_closes_what_is_open_inside() {
    let emitted = slices_of(THREAD, &[(0, BEGIN, "a"), (5, BEGIN, "b"), (9, END, "a"), (10, END, "b")]);
    assert_eq!(rows(&emitted), [(0, 9, 5, ">2"), (5, 4, 4, "2>3")]);
    assert_eq!(emitted.wrong, [Defect::EndsWithAnother, Defect::EndWithoutBegin]);
}

#[test]
fn an_end_looks_for_its_begin_below_thousands_of_others_and_no_further() {
    for (others, found) in [(10_000, true), (20_000, false)] {
        let mut events = vec![(0, BEGIN, "a")];
        events.extend((0..others).map(|n| (n, BEGIN, "b")));
        events.push((others, END, "a"));
        let (mut slices, mut emitted) = (Slices::new(), Ends::default());
        for (time, kind, name) in events {
            let event = Event { name: name.into(), ..Event::new(time, TrackId(0), kind) };
            slices.item(&Item::Event(event), &mut emitted);
        }
        assert_eq!((emitted.slices > 0, emitted.without_begin), (found, usize::from(!found)), "{others}");
    }
}

/// How many slices, and how many ends of none.
#[derive(Default)]
struct Ends {
    slices: usize,
    without_begin: usize,
}

impl SliceSink for Ends {
    fn slice(&mut self, _: &Slice, _: &mut [Frame]) {
        self.slices += 1;
    }

    fn defect(&mut self, what: Defect, _: TrackId, _: i64, _: Key) {
        self.without_begin += usize::from(what == Defect::EndWithoutBegin);
    }
}

#[test]
fn what_never_ends_is_open_up_to_the_end_of_the_trace() {
    let emitted = slices_of(THREAD, &[(0, BEGIN, "a"), (5, BEGIN, "b"), (9, END, "b")]);
    assert_eq!((emitted.open, emitted.wrong), (vec![(Key(2), 9)], vec![Defect::NoEnd]));
}

#[test]
fn events_of_a_shared_track_may_come_out_of_order() {
    let events = [(10, BEGIN, "b"), (20, END, "b"), (0, BEGIN, "a"), (30, END, "a")];
    let emitted = slices_of(TrackKind::Slices, &events);
    assert_eq!((rows(&emitted), emitted.wrong.len()), (vec![(0, 30, 20, ">2"), (10, 10, 10, "2>3")], 0));
    let emitted = slices_of(THREAD, &[(10, BEGIN, "b"), (20, END, "b"), (0, BEGIN, "a")]);
    assert_eq!(emitted.wrong, [Defect::OutOfOrder, Defect::Late, Defect::NoEnd]);
}

#[test]
fn complete_slices_nest_in_begun_ones_and_around_them() {
    let emitted = slices_of(THREAD, &[(0, BEGIN, "a"), (5, complete(10), "c"), (20, END, "a")]);
    assert_eq!(rows(&emitted), [(0, 20, 10, ">2"), (5, 10, 10, "2>4")]);
    let emitted = slices_of(THREAD, &[(5, BEGIN, "a"), (10, END, "a"), (0, complete(20), "c")]);
    assert_eq!(rows(&emitted), [(0, 20, 15, ">4"), (5, 5, 5, ">2")]);
    assert_eq!(emitted.busy, 20, "not twice");
}

#[test]
fn overlapping_slices_lie_side_by_side() {
    let emitted = slices_of(THREAD, &[(0, complete(10), "a"), (5, complete(10), "b")]);
    assert_eq!(
        (rows(&emitted), emitted.wrong.clone()),
        (vec![(0, 10, 10, ">2"), (5, 10, 10, ">3")], vec![Defect::Overlaps])
    );
}

#[test]
fn a_thread_is_busy_once_where_slices_overlap() {
    let busy = |events: &[Simple]| slices_of(THREAD, events).busy;
    assert_eq!(busy(&[(0, complete(10), "a"), (5, complete(10), "b")]), 15);
    assert_eq!(busy(&[(5, complete(10), "b"), (0, complete(10), "a")]), 15);
    let chain = (0..100).map(|n| (10 * n, complete(15), "a"));
    assert_eq!(busy(&chain.clone().collect::<Vec<_>>()), 1005);
    assert_eq!(busy(&chain.rev().collect::<Vec<_>>()), 1005);
    // Others inside both, and a part of the time with neither.
    let inner =
        [(1, complete(2), "c"), (0, complete(10), "a"), (7, complete(2), "c"), (5, complete(10), "b")];
    assert_eq!(busy(&inner), 15);
    assert_eq!(busy(&[(0, complete(10), "a"), (5, complete(10), "b"), (20, complete(5), "a")]), 20);
    // More than are kept: the older ones are emitted before.
    let many = 3 * MOST_HELD as i64;
    let chain: Vec<Simple> = (0..many).map(|n| (10 * n, complete(15), "a")).collect();
    assert_eq!(busy(&chain), 10 * many + 5);
    // One that has a begin and an end, and one that has none.
    let crossed = [(0, complete(10), "a"), (5, BEGIN, "b"), (15, END, "b")];
    assert_eq!(busy(&crossed), 15);
    let events = [(0, complete(10), "a"), (5, BEGIN, "b"), (15, complete(1), "c")];
    let (mut slices, mut emitted) = (Slices::new(), Open::default());
    slices.item(&Item::Track(Track::new(TrackId(0), THREAD)), &mut emitted);
    for (time, kind, name) in events {
        let event = Event { name: name.into(), ..Event::new(time, TrackId(0), kind) };
        slices.item(&Item::Event(event), &mut emitted);
    }
    slices.finish(&mut emitted).expect("no file");
    assert_eq!((emitted.busy, emitted.open), (10, 6));
}

/// The busy time of slices, and of slices without an end.
#[derive(Default)]
struct Open {
    busy: i64,
    open: i64,
}

impl SliceSink for Open {
    fn slice(&mut self, slice: &Slice, _: &mut [Frame]) {
        self.busy += slice.busy;
    }

    fn open_slice(&mut self, slice: &Slice, _: &mut [Frame]) {
        self.open += slice.busy;
    }
}

#[test]
fn a_parent_that_comes_after_more_children_than_are_kept_still_has_its_own_time() {
    let children = 3 * MOST_HELD as i64;
    let mut events: Vec<Simple> = (0..children).map(|n| (10 * n, complete(4), "b")).collect();
    events.push((0, complete(10 * children), "a"));
    for is_parent_first in [false, true] {
        let emitted = slices_of(THREAD, &events);
        let parent = emitted.slices.iter().find(|(_, duration, ..)| *duration > 4).expect("the parent");
        assert_eq!(
            (emitted.slices.len() as i64, parent.2),
            (children + 1, 6 * children),
            "{is_parent_first}"
        );
        // Those that were emitted are told of: a reader that needs their places reads again, in order.
        let told = if is_parent_first { vec![] } else { vec![Defect::AfterInner] };
        assert_eq!((emitted.busy, emitted.wrong), (10 * children, told));
        events.rotate_right(1);
    }
}

#[test]
fn slices_that_must_go_early_are_below_open_ones_only_if_they_began_later() {
    let before = MOST_HELD as i64 - 5;
    let mut events: Vec<Simple> = (0..before).map(|n| (10 * n, complete(4), "b")).collect();
    let begin = 10 * before;
    events.push((begin, BEGIN, "a"));
    events.extend((1..=10).map(|n| (begin + 10 * n, complete(4), "c")));
    events.push((begin + 200, END, "a"));
    let emitted = slices_of(THREAD, &events);
    let places = |path: &str| emitted.slices.iter().filter(|(.., place)| place == path).count() as i64;
    assert_eq!((places(">3"), places("2>4"), emitted.slices.len() as i64), (before, 10, before + 11));
    let outer = emitted.slices.iter().find(|(.., place)| place == ">2").expect("the outer one");
    assert_eq!((outer.1, outer.2, emitted.busy), (200, 160, 4 * before + 200));
    assert_eq!(emitted.wrong, []);
}

#[test]
fn slices_of_the_same_times_are_in_each_other_as_they_began() {
    let two_ends = [(5, BEGIN, "a"), (5, BEGIN, "b"), (7, END, ""), (7, END, "")];
    let complete_inside = [(5, BEGIN, "a"), (5, complete(2), "b"), (7, END, "")];
    let at_the_end =
        [(5, BEGIN, "a"), (7, BEGIN, "b"), (7, BEGIN, "c"), (7, END, ""), (7, END, ""), (7, END, "")];
    let after_the_end = [(5, BEGIN, "a"), (7, END, ""), (7, BEGIN, "b"), (7, END, "")];
    let of = |events: &[Simple]| {
        let (mut slices, mut emitted) = (Slices::new(), Emitted::default());
        ["a", "b", "c"].into_iter().for_each(|name| _ = slices.keys_mut().key(name.into()));
        slices.expect_intervals(TrackId(0));
        for (&(time, kind, name), tag) in events.iter().zip(1..) {
            let event = Event { name: name.into(), ..Event::new(time, TrackId(0), kind) };
            slices.tagged(&event, tag, &mut emitted);
        }
        slices.finish(&mut emitted).expect("no file");
        let emitted = emitted.sorted();
        rows(&emitted).into_iter().map(|(.., path)| path.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of(&two_ends), [">2", "2>3"]);
    assert_eq!(of(&complete_inside), [">2", "2>3"]);
    assert_eq!(of(&at_the_end), [">2", "2/3>4", "2>3"]);
    assert_eq!(of(&after_the_end), [">2", ">3"]);
}

#[test]
fn slices_in_descending_order_are_as_good_as_any() {
    const MANY: i64 = 200_000;
    let events: Vec<Simple> = (0..MANY).rev().map(|n| (n * 10, complete(5), "a")).collect();
    let emitted = slices_of(THREAD, &events);
    assert_eq!(emitted.slices.len() as i64, MANY);
    assert!(emitted.slices.iter().all(|(_, duration, own, _)| (*duration, *own) == (5, 5)));
}

#[test]
fn memory_is_bounded_and_no_depth_is_too_much() {
    let begins = 2 * (1 << 19);
    let emitted = slices_of(THREAD, &vec![(0, BEGIN, "a"); begins]);
    let too_many = emitted.wrong.iter().filter(|wrong| **wrong == Defect::TooManyOpen).count();
    assert_eq!((emitted.open.len(), too_many), (begins / 2, begins / 2));
    /// The number of slices around the innermost one, and all self times.
    #[derive(Default)]
    struct Deep(usize, Vec<i64>);
    impl SliceSink for Deep {
        fn slice(&mut self, slice: &Slice, above: &mut [Frame]) {
            self.0 = self.0.max(above.len());
            self.1.push(slice.self_time);
        }

        fn defect(&mut self, what: Defect, _: TrackId, time: i64, _: Key) {
            panic!("{what:?} at {time}");
        }
    }
    let depth = 100_000;
    for inwards in [true, false] {
        let (mut slices, mut deep) = (Slices::new(), Deep::default());
        slices.item(&Item::Track(Track::new(TrackId(0), THREAD)), &mut deep);
        for n in 0..depth {
            let (time, half) = if inwards { (n, depth - n) } else { (depth - n, n) };
            slices.item(&Item::Event(Event::new(time, TrackId(0), complete(2 * half))), &mut deep);
        }
        slices.finish(&mut deep).expect("no file");
        assert_eq!((deep.0 as i64, deep.1.len() as i64), (depth - 1, depth));
        assert!(deep.1[1..].iter().all(|time| *time == 2), "{inwards}");
    }
}

/// A tree of slices: its events as begins and ends.
fn tree() -> impl Strategy<Value = Vec<Simple>> {
    proptest::collection::vec((any::<bool>(), 1..20_i64, 0..3_usize), 0..60).prop_map(|steps| {
        let (mut time, mut open, mut events) = (0, Vec::new(), Vec::new());
        for (is_begin, gap, name) in steps {
            time += gap;
            if is_begin {
                let name = ["a", "b", "c"][name];
                open.push(name);
                events.push((time, BEGIN, name));
            } else if let Some(name) = open.pop() {
                events.push((time, END, name));
            }
        }
        while let Some(name) = open.pop() {
            time += 1;
            events.push((time, END, name));
        }
        events
    })
}

/// The same slices with begin and duration, as tracers write them when they end.
fn at_their_ends(events: &[Simple]) -> Vec<Simple> {
    let (mut open, mut slices) = (Vec::new(), Vec::new());
    for &(time, kind, name) in events {
        if kind == BEGIN {
            open.push(time);
        } else {
            let start = open.pop().expect("a begin");
            slices.push((start, complete(time - start), name));
        }
    }
    slices
}

proptest! {
    #[test]
    fn however_slices_are_written_they_are_the_same(events in tree(), seed in any::<u64>()) {
        let expected = slices_of(THREAD, &events);
        prop_assert!(expected.wrong.is_empty());
        let mut others = at_their_ends(&events);
        let children_first = slices_of(THREAD, &others);
        others.sort_by_key(|(start, ..)| *start);
        let parents_first = slices_of(THREAD, &others);
        others.sort_by_key(|(start, ..)| (*start as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let any_order = slices_of(THREAD, &others);
        let mut shuffled = events.clone();
        shuffled.sort_by_key(|(time, ..)| (*time as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let in_a_window = slices_of(TrackKind::Slices, &shuffled);
        for emitted in [children_first, parents_first, any_order, in_a_window] {
            prop_assert_eq!((&emitted.slices, emitted.busy, emitted.wrong.len()), (&expected.slices, expected.busy, 0));
        }
    }
}

/// The complete slice is not inside the other one, whose own time is what the two do not share.
#[test]
fn a_complete_slice_that_outlasts_the_begin_and_end_around_it_overlaps_it() {
    let events = [(0, BEGIN, "a"), (10, complete(100), "b"), (50, END, "")];
    let emitted = slices_of(THREAD, &events);
    assert_eq!(rows(&emitted), [(0, 50, 10, ">2"), (10, 100, 100, ">3")]);
    assert_eq!((emitted.busy, emitted.wrong), (110, vec![Defect::Overlaps]));
    let around = [(-5, BEGIN, "c"), events[0], events[1], events[2], (120, END, "c")];
    let emitted = slices_of(THREAD, &around);
    assert_eq!(rows(&emitted), [(-5, 125, 15, ">4"), (0, 50, 10, "4>2"), (10, 100, 100, "4>3")]);
    assert_eq!((emitted.busy, emitted.wrong), (125, vec![Defect::Overlaps]));
}
