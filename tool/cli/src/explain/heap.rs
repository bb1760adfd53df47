//! The program's memory: large allocations of slices, and the functions that allocated what is live.

use std::collections::HashMap;
use std::fmt::Write;

use hairline_convert::sampled::{Samples, StackId};
use hairline_formats::track_event::ALLOCATION;

use crate::explain::callers::is_for_callers;
use crate::explain::functions::StackShare;
use crate::explain::memory::Allocations;
use crate::explain::shares::{Share, percent};
use crate::explain::stacks::Stacks;
use crate::explain::target::{Band, Target};
use crate::heap_sums::HeapProfile;
use crate::table::{Table, in_colour};
use crate::text::{duration, size};

/// The limit for the functions that are shown.
const ROWS: usize = 10;

/// Says how many large allocations one of the slowest makes, beside a typical one.
pub(super) fn sentence(target: &Target) -> Option<String> {
    let of = |band: &Band| {
        let slices = band.count.max(1);
        let Allocations { count, bytes } = band.large;
        #[allow(clippy::cast_precision_loss)] // one digit is shown
        let mean = count as f64 / slices as f64;
        format!("{mean:.1} large allocations of {} together", size(bytes / slices))
    };
    (target.slow.large.count > 0).then(|| {
        let slow = of(&target.slow);
        let typical = match &target.typical {
            Band { count: 0, .. } => String::new(), // nothing to compare with
            Band { large: Allocations { count: 0, .. }, .. } => ", typical ones make none".to_owned(),
            typical => format!(", a typical one makes {}", of(typical)),
        };
        format!("Memory: one of the slowest makes {slow} on average{typical}.")
    })
}

/// What the functions of a heap profile have allocated.
pub(super) struct Heap {
    /// The times of the first dump and of the last one.
    pub(super) dumps: (i64, i64),
    pub(super) all: Row,
    /// The functions, by what is live: the most first.
    pub(super) functions: Vec<Row>,
}

/// The bytes of a function.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) live: u64,
    pub(super) allocated: u64,
    /// What was live at the first dump.
    first: u64,
    /// The stack with the most bytes that are live, and these bytes.
    pub(super) stack: Option<(StackId, u64)>,
}

impl Row {
    fn add(&mut self, live: u64, allocated: u64, first: u64) {
        self.live = self.live.saturating_add(live);
        self.allocated = self.allocated.saturating_add(allocated);
        self.first = self.first.saturating_add(first);
    }

    /// What is live now and was not at the first dump, less what was live then and is not now.
    pub(super) fn grown(&self) -> i64 {
        let of = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
        of(self.live).saturating_sub(of(self.first))
    }
}

impl Heap {
    /// Sums up a heap profile by function. `None` if the trace has none.
    pub(super) fn of(profile: &HeapProfile, samples: &Samples) -> Option<Self> {
        let dumps = profile.dumps()?;
        let mut all = Row::default();
        let mut by_name: HashMap<String, Row> = HashMap::new();
        let mut names: HashMap<StackId, String> = HashMap::new();
        for (_, sums) in profile.sums() {
            let (live, allocated, first) = (sums.live(), sums.allocated, sums.first);
            all.add(live, allocated, first);
            let name = sums.stack.map_or_else(
                || "(no stack)".to_owned(),
                |stack| names.entry(stack).or_insert_with(|| allocator_of(samples, stack)).clone(),
            );
            let row = by_name.entry(name).or_default();
            row.add(live, allocated, first);
            if let Some(stack) = sums.stack.filter(|_| row.stack.is_none_or(|(_, most)| live > most)) {
                row.stack = Some((stack, live));
            }
        }
        let named = |(name, row): (String, Row)| Row { name, ..row };
        let mut functions: Vec<Row> = by_name.into_iter().map(named).collect();
        functions.sort_by(|a, b| {
            (b.live, b.allocated).cmp(&(a.live, a.allocated)).then_with(|| a.name.cmp(&b.name))
        });
        Some(Self { dumps, all, functions })
    }

    /// Whether the profile has several dumps, so that growth between them is known.
    pub(super) fn has_growth(&self) -> bool {
        self.dumps.0 != self.dumps.1
    }

    /// The profile for people.
    pub(super) fn text(&self, stacks: &mut Stacks, samples: &Samples) {
        let has_growth = self.has_growth();
        let out = &mut stacks.out;
        let _ = write!(
            out,
            "Heap profile, an estimate: {} live at its last dump, of {} allocated since it began",
            size(self.all.live),
            size(self.all.allocated)
        );
        if has_growth {
            let (first, last) = self.dumps;
            let before = duration(last.saturating_sub(first));
            let _ = write!(out, "; {} since its first dump, {before} before", signed(self.all.grown()));
        }
        out.push_str(". `hairline flame --heap` draws the call stacks.\n");
        let rows: Vec<&Row> = self.functions.iter().filter(|row| row.live > 0).take(ROWS).collect();
        if rows.is_empty() {
            return;
        }
        let mut titles = vec!["who allocated what is live", "", "share"];
        titles.extend(has_growth.then_some("since the first dump"));
        titles.push("allocated in all");
        let mut table = Table::new(1, &titles);
        let of = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
        for row in &rows {
            let share = percent(of(row.live), of(self.all.live));
            let mut cells = vec![row.name.clone(), size(row.live), share];
            cells.extend(has_growth.then(|| signed(row.grown())));
            cells.push(size(row.allocated));
            table.add(cells);
        }
        let _ = write!(out, "\n{}", table.lines(in_colour()));
        let named = |row: &&Row| {
            let (stack, of_stack) = row.stack?;
            let share = Share { what: row.name.clone(), time: of(row.live) };
            Some(StackShare { share, stack, of_stack: of(of_stack) })
        };
        stacks.below(samples, &rows.iter().filter_map(named).collect::<Vec<_>>());
    }
}

fn signed(bytes: i64) -> String {
    format!("{}{}", if bytes < 0 { "-" } else { "+" }, size(bytes.unsigned_abs()))
}

/// Returns the innermost function of a stack that is none of the allocator, of the standard library and of
/// the runtime. If all are, returns the innermost one.
fn allocator_of(samples: &Samples, stack: StackId) -> String {
    let places: Vec<_> = samples.frames(stack).map(|frame| samples.place(frame)).collect();
    let functions = || {
        let all = places.iter().flat_map(|place| place.functions.iter().rev());
        all.filter(|of| of.name != ALLOCATION)
    };
    // Of inlined functions, the debug information may have names without their paths: the allocator's own ones
    // are all inside of its call.
    let calls = functions().position(|of| of.name.contains("__rust_") && of.name.contains("alloc"));
    let callers = functions().skip(calls.map_or(0, |call| call + 1));
    callers
        .clone()
        .find(|of| !is_for_callers(of))
        .or_else(|| functions().next())
        .map_or_else(|| samples.leaf(stack), |of| of.name.to_owned())
}
