//! `hairline-tokio` and `traced_task`: tasks, their wakes, and what they wait for.

mod spans;
mod tasks;
#[cfg(tokio_unstable)]
mod unstable;
mod waits;

use tokio::runtime::{Builder, Runtime};

/// Makes a runtime: of this thread alone, or with so many workers.
fn runtime(workers: usize) -> Runtime {
    let builder = if workers == 0 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    let mut builder = builder;
    if workers > 0 {
        builder.worker_threads(workers).thread_name("worker");
    }
    builder.enable_time().build().expect("a runtime")
}

/// Replaces each place of `source`, a file with this name, by the comment at the end of its line.
fn with_marks(rows: &str, file: &str, source: &str) -> String {
    let lines: Vec<_> = source.lines().collect();
    let mut out = String::new();
    let mut rest = rows;
    while let Some(at) = rest.find(file) {
        let from = rest[..at].rfind(['=', ' ', '\t', '\n']).map_or(0, |n| n + 1);
        let digits = &rest[at + file.len() + 1..];
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let line: usize = digits[..end].parse().expect("a line");
        let Some((_, mark)) = lines[line - 1].rsplit_once("// ") else { panic!("{rows}: no mark") };
        out.push_str(&rest[..from]);
        out.push_str(mark);
        rest = &digits[end..];
    }
    out.push_str(rest);
    out
}
