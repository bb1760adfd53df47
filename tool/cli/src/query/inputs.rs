//! What is asked: traces, and folders of `hairline export`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hairline_convert::{Context, Item};
use hairline_tables::{Facts, Source, TableId};

use crate::input::{Input, is_standard, stream_identity};
use crate::opening::Opening;
use crate::query::folders::{self, TableFile};
use crate::query::notes::Notes;
use crate::text::shown;
use crate::trace::RowSource;

/// All inputs of a question.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    pub(crate) traces: Vec<PathBuf>,
    pub(crate) opening: Opening,
    /// The files of each table in the folders.
    pub(crate) files: HashMap<TableId, Vec<TableFile>>,
    /// The folders that lack a table.
    pub(crate) lacking: HashMap<TableId, Vec<String>>,
    pub(crate) notes: Notes,
}

/// The name of an input in messages.
pub(crate) fn name(path: &Path) -> String {
    if is_standard(path) { "stdin".to_owned() } else { shown(path) }
}

/// Looks at the inputs. What is given twice counts once.
///
/// # Errors
/// Fails if an input cannot be opened, or is a folder without tables.
pub(crate) fn open(paths: &[PathBuf], opening: Opening) -> Result<Inputs, String> {
    let mut inputs = Inputs { opening, ..Inputs::default() };
    let mut seen = HashMap::new();
    for path in paths {
        let named = name(path);
        let place = if is_standard(path) { Ok(path.clone()) } else { path.canonicalize() };
        let place = place.map_err(|e| format!("{named}: {e}"))?;
        if let Some(first) = seen.insert(place.clone(), named.clone()) {
            inputs.notes.note(format!("{named}: it is the same as {first}, and is read once"));
        } else if !is_standard(path) && place.is_dir() {
            inputs.add_folder(&place, &named).map_err(|e| format!("{named}: {e}"))?;
        } else {
            if stream_identity(path).is_none() {
                Input::open(path, opening).map_err(|e| format!("{named}: {e}"))?;
            }
            inputs.traces.push(path.clone());
        }
    }
    inputs.keep_each_once();
    Ok(inputs)
}

impl Inputs {
    fn add_folder(&mut self, folder: &Path, name: &str) -> Result<(), String> {
        let mut has_any = false;
        for table in TableId::ALL {
            match folders::files(folder, name, table).map_err(|e| e.to_string())? {
                Some(files) => {
                    has_any = true;
                    self.files.entry(table).or_default().extend(files);
                }
                None => self.lacking.entry(table).or_default().push(name.to_owned()),
            }
        }
        if has_any {
            return Ok(());
        }
        Err("it has no tables of `hairline export`; name traces themselves".to_owned())
    }

    /// Drops traces that are among the inputs before: in another file, or in a folder. Only a UUID proves
    /// that two traces are the same.
    fn keep_each_once(&mut self) {
        let mut seen: HashMap<String, String> = HashMap::new();
        for files in self.files.values_mut() {
            let mut places: HashMap<String, Arc<str>> = HashMap::new();
            files.retain(|file| {
                // Two folders may have the same trace; one folder has several files of it, if it is large.
                let ([_, _, trace], folder) = (&file.origin, &file.folder);
                let is_other = places.entry(trace.clone()).or_insert_with(|| Arc::clone(folder)) != folder
                    && is_uuid(trace);
                if is_other {
                    self.notes.note(format!(
                        "{folder}: its trace {trace} is in another input, too, and counts once"
                    ));
                }
                !is_other
            });
            for file in files.iter() {
                seen.entry(file.origin[2].clone()).or_insert_with(|| file.folder.to_string());
            }
        }
        if self.traces.len() + seen.len() < 2 {
            return;
        }
        let (opening, notes) = (self.opening, &mut self.notes);
        self.traces.retain(|trace| {
            let Some(uuid) = uuid(trace, opening) else { return true };
            if let Some(first) = seen.get(&uuid) {
                notes.note(format!("{}: it is the same trace as in {first}, and counts once", name(trace)));
                return false;
            }
            seen.insert(uuid, name(trace));
            true
        });
    }
}

/// The UUID of a trace, if it is a file whose first items say it.
fn uuid(path: &PathBuf, opening: Opening) -> Option<String> {
    let (mut source, mut context) = (RowSource::new(path, opening), Context::new());
    if !source.is_repeatable() {
        return None;
    }
    let mut reader = source.open().ok()?;
    for _ in 0..1000 {
        if let Item::Trace(trace) = reader.next(&mut context).ok()??
            && trace.uuid.is_some()
        {
            return Facts { uuid: trace.uuid, ..Facts::default() }.uuid_text();
        }
    }
    None
}

/// Whether the name of a trace is a UUID, not a hash.
fn is_uuid(trace: &str) -> bool {
    trace.len() == 36
}
