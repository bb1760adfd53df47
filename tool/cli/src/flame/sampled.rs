//! The stacks of samples, all or those inside slices of a name.

use std::collections::HashMap;
use std::io;

use hairline_convert::sampled::{Samples, StackId};
use hairline_convert::slices::{Defect, Frame, Key, Slice, SliceSink, Slices};
use hairline_convert::{Event, EventKind, Item, TrackId};

use crate::flame::lowest::Lowest;
use crate::flame::stacked::{Stacked, Weights};
use crate::folded::{NO_SAMPLES, step, without_symbols};
use crate::paired::{PairingVisitor, show_paired};
use crate::pattern::Pattern;
use crate::remark::{NO_SAMPLES_BY, not_recorded};
use crate::stretches::merged;
use crate::text::{complain, grouped_count};
use crate::trace::{ItemVisitor, TraceArguments};
use crate::track_names::TrackNames;

/// Reads the stacks of a trace, with `at` only those of samples inside slices of this name. `is_whole`: not
/// only of a part of the trace.
pub(super) fn read(
    trace: &TraceArguments,
    lowest: Lowest,
    at: Option<&Pattern>,
    is_whole: bool,
) -> Result<Stacked, String> {
    let (summary, mut sampled) = show_paired(trace, |slices| Sampled::new(at, slices))?;
    let name = &summary.name;
    let outcome = summary.outcome();
    sampled.samples.finish();
    let samples = &sampled.samples;
    if samples.left_out > 0 {
        let left_out = grouped_count(samples.left_out, "sample");
        complain(format_args!("{name}: not shown: {left_out}, because there are too many"));
    }
    without_symbols(samples).iter().for_each(complain);
    let weights = match &sampled.inside {
        None => {
            let mut all = Weights::new();
            let add = &mut |thread, _, stack| sampled.add(lowest, thread, stack, &mut all);
            samples.each(samples.of_time(), add);
            all
        }
        Some(inside) => sampled.weights_inside(inside, lowest, name)?,
    };
    if weights.is_empty() {
        let inside = at.map(|at| format!(" inside slices {at}"));
        return Err(match inside.filter(|_| !samples.is_empty()) {
            Some(inside) => format!("{name}: it has no stack samples{inside}"),
            // What is not chosen may have some.
            None if !is_whole => {
                format!("{name}: the chosen part of it (--thread, --time-range) has no stack samples")
            }
            None => match &sampled.refused {
                Some(why) => format!("{name}: it has no stack samples: {why}"),
                None => format!("{name}: {NO_SAMPLES}"),
            },
        });
    }
    Ok(Stacked { weights, outcome, name: summary.name })
}

/// Collects stack samples.
struct Sampled<'p> {
    samples: Samples,
    track_names: TrackNames,
    inside: Option<Inside<'p>>,
    /// Why the trace has no samples, as it says itself.
    refused: Option<String>,
}

/// Finds the slices of a name.
struct Inside<'p> {
    pattern: &'p Pattern,
    slices: Slices,
    stretches: Stretches,
}

/// The tag of the slices that are looked for.
const WANTED: u32 = 1;

/// The limit for stretches of time, 16 bytes each.
const MOST_STRETCHES: usize = 1 << 22;

/// The time in which a slice of the name was open, by track.
#[derive(Default)]
struct Stretches {
    /// Begins and ends.
    by_track: HashMap<TrackId, Vec<(i64, i64)>>,
    count: usize,
    /// The number of slices beyond the limit.
    left_out: u64,
    /// Whether an event came too late to be put in order.
    is_late: bool,
}

impl<'p> Sampled<'p> {
    fn new(at: Option<&'p Pattern>, slices: Slices) -> Self {
        let inside = at.map(|pattern| Inside { pattern, slices, stretches: Stretches::default() });
        Self { samples: Samples::default(), track_names: TrackNames::default(), inside, refused: None }
    }

    fn add(&self, lowest: Lowest, thread: (u64, u64), stack: StackId, weights: &mut Weights) {
        let names = &self.track_names;
        let (process, track) = names.sampled(thread);
        let name = track.map_or_else(|| lowest.unknown_thread(thread.1), |track| lowest.name(names, track));
        let mut steps = lowest.steps(names, process, Some(name));
        steps.extend(self.samples.names(stack).iter().map(|name| step(name)));
        *weights.entry(steps.join(";")).or_default() += 1;
    }

    fn weights_inside(&self, inside: &Inside<'_>, lowest: Lowest, name: &str) -> Result<Weights, String> {
        let names = &self.track_names;
        if inside.stretches.left_out > 0 {
            let left_out = grouped_count(inside.stretches.left_out, "slice");
            complain(format_args!(
                "{name}: not searched for samples: {left_out}, because there are too many"
            ));
        }
        let (mut weights, mut is_any) = (Weights::new(), false);
        for (track, stretches) in &inside.stretches.by_track {
            let Some(tid) = names.tid(*track) else { continue };
            is_any = true;
            let thread = (names.pid(*track), tid);
            // A sample inside two slices of the name counts once.
            for (start, end) in merged(stretches.iter().copied()) {
                for (_, stack) in self.samples.of(self.samples.of_time(), thread, start, end) {
                    self.add(lowest, thread, *stack, &mut weights);
                }
            }
        }
        if is_any || self.samples.is_empty() {
            return Ok(weights);
        }
        Err(format!("{name}: it has no slice {} on a thread", inside.pattern))
    }
}

impl Inside<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let is_begin = matches!(event.kind, EventKind::Begin | EventKind::Complete { .. });
        if is_begin && self.is_wanted(event) {
            self.slices.tagged(event, WANTED, &mut self.stretches);
        } else {
            self.slices.item(&Item::Event(*event), &mut self.stretches);
        }
    }

    fn is_wanted(&self, event: &Event<'_>) -> bool {
        let name = event.name.text;
        let mut is_wanted = self.pattern.matches("", name);
        event.categories.each(&mut |category| is_wanted |= self.pattern.matches(category.text, name));
        is_wanted
    }
}

impl Stretches {
    fn add(&mut self, slice: &Slice) {
        if slice.tag != WANTED {
            return;
        }
        let stretch = (slice.start, slice.start.saturating_add(slice.duration));
        let all = self.by_track.entry(slice.track).or_default();
        // Slices of the name that are inside this one came before it.
        while all.pop_if(|inner| stretch.0 <= inner.0 && inner.1 <= stretch.1).is_some() {
            self.count -= 1;
        }
        if self.count >= MOST_STRETCHES {
            self.left_out += 1;
            return;
        }
        self.count += 1;
        all.push(stretch);
    }
}

impl SliceSink for Stretches {
    fn defect(&mut self, what: Defect, _: TrackId, _: i64, _: Key) {
        self.is_late |= matches!(what, Defect::Late | Defect::AfterInner);
    }

    fn slice(&mut self, slice: &Slice, _: &mut [Frame]) {
        self.add(slice);
    }

    fn open_slice(&mut self, slice: &Slice, _: &mut [Frame]) {
        self.add(slice);
    }
}

impl ItemVisitor for Sampled<'_> {
    fn item(&mut self, item: &Item<'_>) {
        if let Item::Track(track) = item {
            self.track_names.set(track);
        }
        if let Item::Event(event) = item {
            not_recorded(event, |what, why| {
                if NO_SAMPLES_BY.contains(&what) {
                    self.refused = Some(why);
                }
            });
        }
        match (item, &mut self.inside) {
            (Item::Event(event), Some(inside)) => inside.event(event),
            (Item::Track(_), Some(inside)) => inside.slices.item(item, &mut inside.stretches),
            _ => self.samples.item(item),
        }
    }

    fn spans(&mut self, _: i64, last: i64) {
        if let Some(inside) = &mut self.inside {
            inside.slices.lasts_to(last);
        }
    }
}

impl PairingVisitor for Sampled<'_> {
    fn finish(&mut self) -> io::Result<bool> {
        let Some(inside) = &mut self.inside else { return Ok(false) };
        inside.slices.finish(&mut inside.stretches)?;
        Ok(inside.stretches.is_late)
    }
}
