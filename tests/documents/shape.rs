//! Compares the output of a command with the one that a page shows.
//!
//! Times, sizes and ids differ from run to run, so every number and its unit is replaced by `#`. A line `...`
//! on the page stands for any lines.

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

/// The output has the shape of the one that the page shows at `place`.
///
/// # Panics
/// If it has not.
#[track_caller]
pub(crate) fn compare(place: &str, shown: &str, printed: &str) {
    let shapes = |text: &str| text.lines().map(shape).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    assert!(
        is_as_shown(&shapes(shown), &shapes(printed)),
        "{place} shows:\n{shown}\nbut this was printed:\n{printed}"
    );
}

#[test]
fn outputs_are_compared_without_their_numbers() {
    assert_eq!(shape("walk   16  21.7 ms  (20189), 1,292 events"), "walk # # (#), # events");
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(is_as_shown(&lines("a\n...\nd"), &lines("a\nb\nc\nd")));
    assert!(!is_as_shown(&lines("a\n...\nd"), &lines("a\nb\nc")));
    assert!(!is_as_shown(&lines("a"), &lines("a\nb")));
}
