//! What commands print with `--json` is what `docs/guide/json.md` says. The other tests hand in what they
//! read.

use std::path::Path;
use std::sync::OnceLock;

use hairline_tests::recording::{FORMATS, record};
use serde_json::{Map, Value};

use crate::looks::program;
use crate::{hairline, run, stderr};

/// The objects of the page, by name.
fn objects() -> &'static Map<String, Value> {
    static OBJECTS: OnceLock<Map<String, Value>> = OnceLock::new();
    OBJECTS.get_or_init(|| {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/json.md");
        let page = std::fs::read_to_string(page).expect("the page");
        let blocks = page.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
        let objects = blocks.map(|block| serde_json::from_str(block).expect("JSON"));
        objects.flat_map(|object: Map<String, Value>| object).collect()
    })
}

/// Asserts that a command's output has the keys and types of the page, and no others.
#[track_caller]
pub(crate) fn conforms(command: &str, output: &Value) {
    let shape = objects().get(command).unwrap_or_else(|| panic!("{command} is not on the page"));
    if let Err(fault) = check(shape, output, command) {
        panic!("{fault}: {output:#}");
    }
}

/// Parses and checks a command's output.
#[track_caller]
pub(crate) fn parse(command: &str, output: &[u8]) -> Value {
    let value = serde_json::from_slice(output).expect("JSON");
    conforms(command, &value);
    value
}

fn check(shape: &Value, value: &Value, at: &str) -> Result<(), String> {
    match (shape, value) {
        (Value::String(types), _) => {
            let is_one = |one: &str| match (one, value) {
                (name, Value::Object(_)) if name.starts_with('@') => {
                    check(&objects()[name], value, at).map(|()| true)
                }
                ("int", Value::Number(number)) => Ok(number.is_i64() || number.is_u64()),
                ("float", Value::Number(_))
                | ("text", Value::String(_))
                | ("bool", Value::Bool(_))
                | ("null", Value::Null) => Ok(true),
                _ => Ok(false),
            };
            for one in types.split('|') {
                if is_one(one)? {
                    return Ok(());
                }
            }
            Err(format!("{at}: {value} is not {types}"))
        }
        (Value::Array(shapes), Value::Array(values)) => values
            .iter()
            .enumerate()
            .try_for_each(|(n, value)| check(&shapes[0], value, &format!("{at}[{n}]"))),
        (Value::Object(shape), Value::Object(value)) => {
            let mut keys = Map::new();
            for (key, of) in shape {
                match key.as_str() {
                    "@" => keys.extend(
                        objects()[of.as_str().expect("a name")].as_object().expect("an object").clone(),
                    ),
                    _ => drop(keys.insert(key.clone(), of.clone())),
                }
            }
            for (key, value) in value {
                let of = keys.get(key).or_else(|| keys.get(&format!("{key}?"))).or_else(|| keys.get("*"));
                check(
                    of.ok_or_else(|| format!("{at}.{key} is not on the page"))?,
                    value,
                    &format!("{at}.{key}"),
                )?;
            }
            let missing =
                keys.keys().find(|key| !key.ends_with('?') && *key != "*" && !value.contains_key(*key));
            missing.map_or(Ok(()), |key| Err(format!("{at}.{key} is missing")))
        }
        _ => Err(format!("{at}: {value} is not {shape}")),
    }
}

#[test]
fn the_query_of_explain_shows_its_examples() {
    for format in FORMATS {
        let trace = record(format, |_| program());
        let folder = trace.path().parent().expect("a folder");
        let said = |arguments: &[&str]| {
            let output = run(hairline(folder).args(arguments).arg(trace.path()).arg("--json"));
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            output.stdout
        };
        let explained = parse("explain", &said(&["explain"]));
        let names = explained["names"].as_array().expect("names");
        assert!(names.iter().any(|of| of["is_on_thread"] == true) && !names.is_empty());
        for of in names {
            let rows: Value =
                serde_json::from_slice(&said(&["query", of["query"].as_str().expect("text")])).expect("rows");
            let durations = |rows: &Value, key: &str| -> Vec<i64> {
                rows.as_array().expect("rows").iter().filter_map(|row| row[key].as_i64()).collect()
            };
            let (mut shown, examples) =
                (durations(&rows, "duration"), durations(&of["examples"], "duration_ns"));
            shown.truncate(examples.len()); // of few slices not all are slow
            assert!(!examples.is_empty() && shown == examples, "{of:#} {rows:#}");
        }
    }
}

#[test]
fn the_page_has_each_key_once_and_each_name_that_it_uses() {
    let shape = serde_json::json!({"a?": "int", "b": ["text|null"], "*": "bool"});
    let faults = |value: Value| check(&shape, &value, "x").err();
    assert_eq!(faults(serde_json::json!({"b": [null, "t"], "other": true})), None);
    assert_eq!(faults(serde_json::json!({"a": 1})), Some("x.b is missing".to_owned()));
    assert_eq!(faults(serde_json::json!({"a": 1.5, "b": []})), Some("x.a: 1.5 is not int".to_owned()));
    let text = serde_json::to_string(objects()).expect("JSON");
    let used = text.split('"').filter(|word| word.starts_with('@') && word.len() > 1);
    for name in used.flat_map(|word| word.split('|')).filter(|name| name.starts_with('@')) {
        assert!(objects().contains_key(name), "{name}");
    }
}
