//! Each snippet and each command of README.md and of the guide works, and prints what the page shows. Each
//! link and each path of all documents leads somewhere.
//!
//! Times, sizes and ids differ from run to run, so outputs are compared with every number and its unit replaced
//! by `#`. The folder that commands run in is `/home/me` on the page. A line `...` on the page stands for any
//! lines. Rows of queries are compared as they are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hairline_tests::{judge, pages};
use pages::{Block, Page, Query, Snippet};
use tempfile::TempDir;

/// What a number may be followed by.
const UNITS: [&str; 8] = ["ns", "us", "ms", "s", "B", "KiB", "MiB", "GiB"];

/// A line of text with a `#` in place of each number, and each run of blanks as one.
fn shape(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ')']));
        match words.last_mut() {
            Some(number) if is_unit && number.ends_with('#') => {
                number.push_str(word.trim_start_matches(char::is_alphabetic));
            }
            _ => words.push(numbers_replaced(word)),
        }
    }
    words.join(" ")
}

fn numbers_replaced(word: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        out.push_str(&rest[..at]);
        out.push('#');
        rest = rest[at..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ',');
    }
    out + rest
}

/// Whether an output is of the shape that a page shows.
fn is_as_shown(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == "..." => (0..=printed.len()).any(|n| is_as_shown(rest, &printed[n..])),
        Some((line, rest)) => printed.first() == Some(line) && is_as_shown(rest, &printed[1..]),
    }
}

#[track_caller]
fn compare(place: &str, shown: &str, printed: &str) {
    let shapes = |text: &str| text.lines().map(shape).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    assert!(
        is_as_shown(&shapes(shown), &shapes(printed)),
        "{place} shows:\n{shown}\nbut this was printed:\n{printed}"
    );
}

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
        compare(place, shown, &String::from_utf8_lossy(&output.stdout));
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

/// Runs the commands of a block in the page's folder.
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
    fs::copy(env!("CARGO_BIN_EXE_snippets"), folder.path().join("program")).expect("a copy of the program");
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

#[test]
fn outputs_are_compared_without_their_numbers() {
    assert_eq!(shape("walk   16  21.7 ms  (20189), 1,292 events"), "walk # # (#), # events");
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(is_as_shown(&lines("a\n...\nd"), &lines("a\nb\nc\nd")));
    assert!(!is_as_shown(&lines("a\n...\nd"), &lines("a\nb\nc")));
    assert!(!is_as_shown(&lines("a"), &lines("a\nb")));
}

/// The folders at the root of the repository by which a path in backticks is known.
const FOLDERS: [&str; 11] =
    ["shm", "formats", "convert", "sdk", "macros", "cli", "examples", "benches", "tests", "ci", "docs"];

/// All documents: those at the root, and those below docs.
fn documents() -> Vec<PathBuf> {
    let mut folders = vec![pages::root().join("docs")];
    let mut found: Vec<_> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| pages::root().join(name)).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of documents") {
            let path = entry.expect("an entry of it").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                found.push(path);
            }
        }
    }
    found
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).expect("a page that a link leads to");
    let headings =
        text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings
        .map(|text| text.to_lowercase().chars().filter(is_kept).collect::<String>().replace(' ', "-"))
        .collect()
}

/// The texts between two delimiters, on one line each.
fn between<'a>(text: &'a str, open: &'a str, close: char) -> impl Iterator<Item = &'a str> {
    text.lines().flat_map(move |line| {
        line.split(open).skip(1).filter_map(move |rest| Some(rest.split_once(close)?.0))
    })
}

/// What is wrong with a link of a document.
fn wrong_link(document: &Path, link: &str) -> Option<String> {
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let target = if path.is_empty() { document.to_owned() } else { document.with_file_name(path) };
    if !target.exists() {
        return Some(format!("{}: {link} is not there", document.display()));
    }
    let is_heading = anchor.is_none_or(|anchor| anchors(&target).iter().any(|a| a == anchor));
    (!is_heading).then(|| format!("{}: {link} has no such heading", document.display()))
}

#[test]
fn every_link_and_every_path_of_the_documents_leads_somewhere() {
    let mut wrong = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).expect("a document");
        let links = between(&text, "](", ')').filter(|link| !link.contains("://"));
        wrong.extend(links.filter_map(|link| wrong_link(&document, link)));
        for path in text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
            let path = path.split([' ', ':']).next().unwrap_or_default();
            let folder = path.split_once('/').map(|(folder, _)| folder);
            if folder.is_some_and(|folder| FOLDERS.contains(&folder)) && !pages::root().join(path).exists() {
                wrong.push(format!("{}: {path} is not there", document.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
