//! `hairline ls`

use hairline::recovery::{self, FoundRegion, ProcessState};
use unicode_width::UnicodeWidthStr;

use crate::listener::Listener;
use crate::outcome::Outcome;
use crate::platform::listening_processes;
use crate::table::plain;
use crate::text::{failed, one_line, say_all, shown, size};

/// Lists traced processes, those that listen for `hairline record -p`, and killed ones with a recoverable
/// trace.
///
/// Each line below the titles is a region: pid, state, size, executable, output. A `dead` process can be
/// recovered with `hairline recover`. A `listening` process has no region until it records. Empty output
/// means that there are none.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline ls
  hairline ls | awk '$2 == \"dead\"'")]
pub(crate) struct Arguments {}

pub(crate) fn run(Arguments {}: &Arguments) -> Outcome {
    let found = match recovery::find() {
        Ok(found) => found,
        Err(e) => return failed(e),
    };
    let recorded: Vec<u32> = found.iter().map(|region| region.pid).collect();
    let listening: Vec<u32> =
        listening_processes().into_iter().filter(|pid| !recorded.contains(pid)).collect();
    if !found.is_empty() || !listening.is_empty() {
        let titles = ["PID", "STATE", "SIZE", "PROCESS", "OUTPUT"].map(str::to_owned);
        let rows: Vec<_> = std::iter::once(titles)
            .chain(found.iter().map(cells))
            .chain(listening.into_iter().filter_map(cells_of_listening))
            .collect();
        let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
        let widths = [0, 1, 2, 3].map(width);
        return say_all(rows.iter().map(|row| line(row, widths)));
    }
    Outcome::Done
}

fn line([pid, state, size, name, output]: &[String; 5], widths: [usize; 4]) -> String {
    let [before_pid, after_state, before_size, after_name] = widths;
    // The width on a terminal differs from the number of characters, which padding counts.
    let pad = |cell: &str, width: usize| " ".repeat(width.saturating_sub(cell.width()));
    format!(
        "{}{pid} {state}{} {}{size}  {name}{} {output}",
        pad(pid, before_pid),
        pad(state, after_state),
        pad(size, before_size),
        pad(name, after_name),
    )
}

/// A process that listens and records nothing.
fn cells_of_listening(pid: u32) -> Option<[String; 5]> {
    let listener = Listener::connect(pid).ok()?;
    let nothing = || "-".to_owned();
    Some([pid.to_string(), "listening".to_owned(), nothing(), plain(&listener.name), nothing()])
}

fn cells(region: &FoundRegion) -> [String; 5] {
    let state = match region.process {
        _ if region.unreadable.is_some() => "unreadable",
        ProcessState::Alive => "alive",
        ProcessState::Dead => "dead",
        _ => "unknown",
    };
    let name = if region.process_name.is_empty() { "-".to_owned() } else { plain(&region.process_name) };
    let output = region.output.as_ref().map_or_else(|| "-".to_owned(), |path| shown(path));
    let output = region.unreadable.as_deref().map_or(output, one_line);
    [region.pid.to_string(), state.to_owned(), size(region.len), name, output]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_does_not_move_the_columns_of_others() {
        let row = |name: &str| ["7", "dead", "4.0 MiB", name, "x.fxt"].map(str::to_owned);
        let rows = [row("a"), row("a-very-long-name-of-a-program")];
        let widths = [5, 10, 10, rows[1][3].width()];
        let at = rows.map(|row| line(&row, widths).find("x.fxt"));
        assert_eq!(at[0], at[1]);
    }
}
