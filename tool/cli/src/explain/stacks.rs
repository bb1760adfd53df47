//! The whole stacks of the functions that the text names, for `--verbose`.

use std::collections::HashSet;
use std::fmt::Write;

use hairline_convert::sampled::{Samples, StackId};

use crate::explain::functions::StackShare;
use crate::table::harmless;

/// The text, and the stacks that it has already.
pub(super) struct Stacks {
    pub(super) out: String,
    is_verbose: bool,
    shown: HashSet<StackId>,
}

impl Stacks {
    pub(super) fn new(is_verbose: bool) -> Self {
        Self { out: String::new(), is_verbose, shown: HashSet::new() }
    }

    pub(super) fn is_verbose(&self) -> bool {
        self.is_verbose
    }

    /// Forgets which stacks the text has: those of one name or thread are shown once.
    pub(super) fn start(&mut self) {
        self.shown.clear();
    }

    /// Writes the most frequent stack of each function that is named, the innermost function first.
    pub(super) fn below(&mut self, samples: &Samples, named: &[StackShare]) {
        for of in named {
            self.stack(samples, of);
        }
    }

    fn stack(&mut self, samples: &Samples, of: &StackShare) {
        let StackShare { share, stack, .. } = of;
        if !self.is_verbose || !self.shown.insert(*stack) {
            return;
        }
        let what: String = share.what.chars().map(harmless).collect();
        let _ = writeln!(self.out, "\nthe most frequent stack of {what}, its innermost function first:");
        for frame in samples.frames(*stack) {
            let place = samples.place(frame);
            if place.functions.is_empty() {
                let _ = writeln!(self.out, "    {}", samples.address_name(&place));
            }
            for (depth, function) in place.functions.iter().enumerate().rev() {
                let name: String = function.name.chars().map(harmless).collect();
                let inlined = if depth > 0 { " (inlined)" } else { "" };
                let _ = writeln!(self.out, "    {name}{inlined}");
            }
        }
    }
}
