//! Files of other people's tools: `NAME.truth` in the folder `field` says what commands make of the file
//! `NAME` beside it.
//!
//! ```text
//! # A comment: what is in the file, and why.
//! [stats]                      a command and its options; the file follows them
//! exit 0                       the exit code; without this line 0
//! says 3 values, repaired      a part of stderr; all spaces count as one
//! silent                       nothing is on stderr
//! shows 5 slices               a part of stdout
//! never lost                   a text that neither has
//! [convert]                    to each of the three formats, judged by trace_processor
//! slice before | 0 | 1000 | 0 | main | server
//!                              all slices: name, time after the first one, duration, depth, thread, process;
//!                              the last cells may be missing, and * is any content
//! ask select count(*) from flow
//! answer 12                    one row; cells are separated by " | "
//! complaints                   trace_processor may complain about the output
//! [convert fxt]                more lines for one format; its slices, exit code and answers come instead
//! [merge other.json]           as convert, of this file and of others in the folder
//! ```

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hairline_tests::judge::{self, Verdict};

const FORMATS: [&str; 3] = ["pftrace", "fxt", "json"];

/// What a command makes of a file.
#[derive(Clone, Debug, Default)]
struct Expected {
    exit: Option<i32>,
    says: Vec<String>,
    shows: Vec<String>,
    never: Vec<String>,
    is_silent: bool,
    may_complain: bool,
    slices: Vec<Vec<String>>,
    /// Questions, and the rows of their answers.
    answers: Vec<(String, Vec<String>)>,
}

/// A section of a truth: the words of the command, and the format of the output if it has one of its own.
struct Section {
    words: Vec<String>,
    format: Option<String>,
    expected: Expected,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conversion/field")
}

fn sections(truth: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in truth.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(words) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let mut words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
            let has_format = has_output(&words[0]) && words.last().is_some_and(|word| is_format(word));
            let format = if has_format { words.pop() } else { None };
            sections.push(Section { words, format, expected: Expected::default() });
            continue;
        }
        let expected = &mut sections.last_mut().expect("a section before its lines").expected;
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = || rest.to_owned();
        match word {
            "exit" => expected.exit = Some(rest().parse().expect("an exit code")),
            "says" => expected.says.push(rest()),
            "shows" => expected.shows.push(rest()),
            "never" => expected.never.push(rest()),
            "silent" => expected.is_silent = true,
            "complaints" => expected.may_complain = true,
            "slice" => expected.slices.push(rest().split(" | ").map(str::to_owned).collect()),
            "ask" => expected.answers.push((rest(), Vec::new())),
            "answer" => expected.answers.last_mut().expect("a question before it").1.push(rest()),
            _ => panic!("no line of a truth: {line}"),
        }
    }
    sections
}

fn is_format(word: &str) -> bool {
    FORMATS.contains(&word)
}

/// Whether a command writes a trace.
fn has_output(command: &str) -> bool {
    matches!(command, "convert" | "merge")
}

impl Expected {
    /// The same with the lines of one format.
    fn with(&self, own: &Self) -> Self {
        let mut both = self.clone();
        both.exit = own.exit.or(both.exit);
        both.says.extend(own.says.iter().cloned());
        both.shows.extend(own.shows.iter().cloned());
        both.never.extend(own.never.iter().cloned());
        both.is_silent |= own.is_silent;
        both.may_complain |= own.may_complain;
        if !own.slices.is_empty() {
            both.slices.clone_from(&own.slices);
        }
        for (question, answer) in &own.answers {
            both.answers.retain(|(other, _)| other != question);
            both.answers.push((question.clone(), answer.clone()));
        }
        both
    }

    /// All that is wrong with what a command said and showed.
    fn of_command(&self, output: &Output) -> Vec<String> {
        let text =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ");
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        let mut wrong = Vec::new();
        if output.status.code() != Some(self.exit.unwrap_or(0)) {
            wrong.push(format!("{}: {err}", output.status));
        }
        if self.is_silent && !err.is_empty() {
            wrong.push(format!("says {err:?}"));
        }
        let missing = |these: &[String], text: &str, what: &str| {
            let these = these.iter().filter(|part| !text.contains(&***part));
            these.map(|part| format!("{what} no {part:?}, but {text:?}")).collect::<Vec<_>>()
        };
        wrong.extend(missing(&self.says, &err, "says"));
        wrong.extend(missing(&self.shows, &out, "shows"));
        let has = self.never.iter().filter(|part| out.contains(&***part) || err.contains(&***part));
        wrong.extend(has.map(|part| format!("has {part:?}: {out:?}, {err:?}")));
        wrong
    }

    /// All that is wrong with the trace that it wrote.
    fn of_trace(&self, trace: &Path) -> Vec<String> {
        if self.slices.is_empty() && self.answers.is_empty() {
            return Vec::new();
        }
        let asked = self.answers.iter().map(|(question, _)| question.as_str());
        let verdict = judge::load(trace, &[SLICES].into_iter().chain(asked).collect::<Vec<_>>());
        let mut wrong = self.of_slices(&verdict);
        for ((question, rows), answer) in self.answers.iter().zip(&verdict.results[1..]) {
            let answer = answer.text();
            let answer: Vec<_> = answer.lines().map(|row| row.replace('\t', " | ")).collect();
            if answer != *rows {
                wrong.push(format!("{question}: {answer:?}"));
            }
        }
        if !self.may_complain && !verdict.complaints.is_empty() {
            wrong.push(format!("trace_processor complains: {:?}", verdict.complaints));
        }
        wrong
    }

    fn of_slices(&self, verdict: &Verdict) -> Vec<String> {
        if self.slices.is_empty() {
            return Vec::new();
        }
        let text = verdict.results[0].text();
        let mut rows: Vec<Vec<_>> = text.lines().map(|row| row.split('\t').collect()).collect();
        let mut wrong = Vec::new();
        for slice in &self.slices {
            let is_this = |row: &Vec<&str>| slice.iter().zip(row).all(|(cell, is)| cell == "*" || cell == is);
            match rows.iter().position(is_this) {
                Some(place) => drop(rows.remove(place)),
                None => wrong.push(format!("no slice {}", slice.join(" | "))),
            }
        }
        wrong.extend(rows.iter().map(|row| format!("also a slice {}", row.join(" | "))));
        wrong
    }
}

const SLICES: &str = "select ifnull(s.name, ''), s.ts - (select min(ts) from slice), s.dur, s.depth, ifnull(t.name, ''), ifnull(p.name, '') \
     from slice s left join thread_track tt on tt.id = s.track_id left join thread t using (utid) \
     left join process_track pt on pt.id = s.track_id left join process p on p.upid = ifnull(t.upid, pt.upid) \
     order by s.ts, s.depth, s.dur desc, s.name";

fn run(words: &[String], file: &Path, output: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline_command"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HAIRLINE")) {
        command.env_remove(name);
    }
    let (options, others): (Vec<_>, Vec<_>) = words[1..].iter().partition(|word| !is_file(word));
    command.current_dir(folder()).stdin(Stdio::null()).arg(&words[0]).args(options).arg(file).args(others);
    match (output, &*words[0]) {
        (None, _) => {}
        (Some(output), "merge") => drop(command.arg("-o").arg(output)),
        (Some(output), _) => drop(command.arg(output)),
    }
    command.output().expect("the command runs")
}

fn is_file(word: &str) -> bool {
    folder().join(word).is_file()
}

/// All that is wrong with what commands make of a file.
fn wrong(name: &str, truth: &str, scratch: &Path) -> Vec<String> {
    let file = PathBuf::from(name);
    let sections = sections(truth);
    let mut all = Vec::new();
    let mut add = |what: String, wrong: Vec<String>| {
        all.extend(wrong.into_iter().map(|wrong| format!("{name}: {what}: {wrong}")));
    };
    for (at, section) in sections.iter().enumerate() {
        let words = section.words.join(" ");
        if !has_output(&section.words[0]) {
            add(words, section.expected.of_command(&run(&section.words, &file, None)));
            continue;
        }
        // Sections of one format belong to the one of all formats before them.
        let is_same = |other: &&Section| other.words == section.words;
        let own: Vec<_> = sections.iter().filter(is_same).collect();
        if own.first().is_some_and(|first| !std::ptr::eq(*first, &raw const sections[at])) {
            continue;
        }
        for format in FORMATS {
            let of_all = own.iter().filter(|section| section.format.is_none());
            let of_it = own.iter().filter(|section| section.format.as_deref() == Some(format));
            let parts: Vec<_> = of_all.chain(of_it).map(|section| &section.expected).collect();
            if parts.is_empty() {
                continue;
            }
            let expected = parts.iter().fold(Expected::default(), |all, part| all.with(part));
            let output = scratch.join(format!("output.{format}"));
            let _ = std::fs::remove_file(&output);
            let mut wrong = expected.of_command(&run(&section.words, &file, Some(&output)));
            if output.exists() {
                wrong.extend(expected.of_trace(&output));
            } else if expected.exit.unwrap_or(0) == 0 {
                wrong.push("no output".to_owned());
            }
            add(format!("{words} to {format}"), wrong);
        }
    }
    all
}

#[test]
fn files_of_the_field_give_their_truth() {
    let scratch = tempfile::tempdir().expect("a folder");
    let mut names: Vec<_> = std::fs::read_dir(folder())
        .expect("the folder")
        .map(|file| file.expect("a file").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    let mut all = Vec::new();
    for name in names.iter().filter(|name| !name.ends_with(".truth")) {
        let truth = folder().join(format!("{name}.truth"));
        let truth = std::fs::read_to_string(truth).unwrap_or_else(|e| panic!("{name}.truth: {e}"));
        all.extend(wrong(name, &truth, scratch.path()));
    }
    assert!(all.is_empty(), "{} faults\n{}", all.len(), all.join("\n"));
}
