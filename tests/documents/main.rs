//! Each snippet and each command of README.md and of the guide works, and prints what the page shows. Each
//! link and each path of all documents leads somewhere.

mod links;
mod shape;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use hairline_tests::{judge, pages, programs};
use pages::{Block, Page, Query, Snippet};
use tempfile::TempDir;

use shape::compare;

/// The judge has nothing against the traces in a folder.
fn judge_traces(place: &str, folder: &Path) {
    for entry in fs::read_dir(folder).expect("the page's folder") {
        let path = entry.expect("an entry of the page's folder").path();
        if path.extension().is_some_and(|e| e == "pftrace" || e == "fxt") {
            let verdict = judge::load(&path, &[]);
            assert!(verdict.complaints.is_empty(), "{place}: {}: {:?}", path.display(), verdict.complaints);
        }
    }
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs a snippet; returns the folder with the traces that it has left.
fn run_snippet(place: &str, number: usize, snippet: &Snippet) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_snippets"));
    command.env("SNIPPET", number.to_string()).current_dir(&folder);
    if !snippet.source.contains("Session::") {
        command.env("HAIRLINE", "trace.pftrace");
    }
    let output = command.output().expect("the snippet starts");
    assert!(output.status.success(), "{place} failed:\n{}", printed(&output));
    if let Some(shown) = &snippet.prints {
        assert_eq!(shown.trim(), String::from_utf8_lossy(&output.stdout).trim(), "{place}");
    }
    judge_traces(place, folder.path());
    folder
}

/// Asks the judge about the trace that the last snippet has left.
fn run_query(place: &str, folder: &Path, query: &Query) {
    let verdict = judge::load(folder.join("trace.pftrace"), &[&query.sql]);
    let rows = verdict.results[0].text().replace('\t', " | ");
    assert_eq!(query.returns.as_deref().unwrap_or_default().trim(), rows.trim(), "{place}");
}

/// Runs the commands of a block in the page's folder, which the page calls `/home/me`.
fn run_console(place: &str, program: Option<usize>, folder: &Path, text: &str) {
    let mut rest =
        text.trim_start().strip_prefix("$ ").unwrap_or_else(|| panic!("{place} begins without `$ `"));
    loop {
        let (one, more) = rest.split_once("\n$ ").map_or((rest, None), |(one, more)| (one, Some(more)));
        let (line, shown) = one.split_once('\n').unwrap_or((one, ""));
        let mut command = Command::new("bash");
        command.args(["-c", &format!("exec 2>&1; {line}")]).current_dir(folder);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", folder.join("bin").display()));
        if let Some(number) = program {
            command.env("SNIPPET", number.to_string());
        }
        let output = command.output().expect("bash starts");
        assert!(output.status.success(), "{place}: `{line}` failed:\n{}", printed(&output));
        let printed = printed(&output).replace(&*folder.to_string_lossy(), "/home/me");
        compare(&format!("{place}: `{line}`"), shown, &printed);
        let Some(more) = more else { break };
        rest = more;
    }
    judge_traces(place, folder);
}

/// A folder in which a page's commands find their programs.
fn folder_with_programs() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).expect("a folder for programs");
    programs::copy(env!("CARGO_BIN_EXE_snippets"), folder.path().join("program"));
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_hairline_command"), bin.join("hairline")).expect("a link");
    folder
}

/// Runs a page whose first snippet has this number. Returns the number of the next page's first one.
fn run(page: &Page, first: usize) -> usize {
    let (mut number, mut program, mut traces) = (first, None, None);
    let folder = folder_with_programs();
    for block in &page.blocks {
        match block {
            Block::Snippet(snippet) => {
                let place = format!("{}:{}", page.name, snippet.line);
                traces = Some(run_snippet(&place, number, snippet));
                program = if snippet.is_program() { Some(number) } else { program };
                number += 1;
            }
            Block::Query(query) => {
                let traces = traces.as_ref().unwrap_or(&folder);
                run_query(&format!("{}:{}", page.name, query.line), traces.path(), query);
            }
            Block::Console { line, text } => {
                run_console(&format!("{}:{line}", page.name), program, folder.path(), text);
            }
        }
    }
    number
}

#[test]
fn the_snippets_and_commands_of_the_readme_and_the_guide_work_and_print_what_the_pages_show() {
    let mut number = 0;
    for page in pages::all() {
        number = run(&page, number);
    }
    assert!(number > 0, "no page has a snippet");
}

/// What the page shows of the slowest requests of the example `web`, up to the rest that it leaves out.
fn of_the_web_example(page: &str) -> Vec<String> {
    let text = fs::read_to_string(pages::root().join(page)).expect("a page");
    let (_, shown) = text.split_once("$ hairline explain web.pftrace web/request\n").expect("the command");
    let is_shown = |line: &&str| *line != "..." && !line.starts_with("```");
    shown.lines().take_while(is_shown).map(str::to_owned).collect()
}

#[test]
fn the_readme_and_the_guide_tell_one_story_of_the_web_example() {
    let shown = of_the_web_example("README.md");
    assert!(shown[0].starts_with("web/request: 1,000 intervals, "), "the first block is of the requests");
    assert_eq!(shown, of_the_web_example("docs/guide/async.md"));
}
