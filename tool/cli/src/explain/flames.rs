//! The flame graph of one name.

use std::io;
use std::path::Path;

use crate::explain::explained::Explained;
use crate::explain::target::total;
use crate::folded::{Weighed, draw, step};
use crate::input::input_identity;
use crate::outcome::Outcome;
use crate::output::Output;
use crate::text::complain;

/// Draws the stacks inside the slices of the first name, or those of the first thread.
pub(super) fn write(explained: &Explained, path: &Path, trace: &Path) -> Outcome {
    let Some((title, all)) = explained.first() else { return Outcome::Failed };
    let samples = &explained.survey.samples;
    let mut lines = Vec::new();
    // Both are times: a sample on the CPU stands for its share of the time that the slices ran. Without
    // scheduling, there are only samples.
    let on_cpu = total(all.on_cpu.values().copied());
    let (unit, whole) = if all.split.running > 0 { ("ns", all.split.running) } else { ("samples", on_cpu) };
    let stacks = all.on_cpu.iter().map(|(stack, count)| {
        let time = i128::from(*count) * i128::from(whole) / i128::from(on_cpu.max(1));
        ("on the CPU", *stack, time)
    });
    let asleep = all.off_cpu.iter().map(|(stack, time)| ("asleep", *stack, i128::from(*time)));
    for (state, stack, time) in stacks.chain(asleep) {
        let names = samples.names(stack).iter().map(|name| step(name)).collect::<Vec<_>>().join(";");
        lines.push(format!("{state};{names} {time}"));
    }
    lines.sort_unstable();
    let drawn = if lines.is_empty() {
        Err(io::Error::other("the trace has no stack samples there"))
    } else {
        Output::create(path, &[input_identity(trace)]).and_then(|output| {
            let mut output = output.or_nothing()?;
            draw((&lines.join("\n"), Weighed::Once), (title, unit, "Function:"), &mut output)?;
            output.keep()
        })
    };
    match drawn {
        Ok(()) => Outcome::Done,
        Err(e) => {
            complain(format_args!("{}: {e}", path.display()));
            Outcome::Failed
        }
    }
}
