//! What is asked: traces, and folders of `hairline export`.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hairline_convert::TraceFormat;
use hairline_tables::TableId;

use crate::folders::{self, TableFile};
use crate::notes::Notes;
use crate::trace::{Content, Trace, identity};

/// All inputs of a question.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    pub(crate) traces: Vec<Arc<Trace>>,
    /// The files of each table in the folders.
    pub(crate) files: HashMap<TableId, Vec<TableFile>>,
    /// The folders that lack a table.
    pub(crate) lacking: HashMap<TableId, Vec<String>>,
    pub(crate) notes: Arc<Notes>,
}

/// Opens the inputs. What is given twice counts once.
///
/// # Errors
/// Fails if an input does not exist, or is a folder without tables.
pub(crate) fn open(paths: &[PathBuf], format: Option<TraceFormat>) -> Result<Inputs, String> {
    let mut inputs = Inputs::default();
    let mut seen = HashMap::new();
    for path in paths {
        let name = if is_standard(path) { "stdin".to_owned() } else { path.display().to_string() };
        let failed = |e: io::Error| format!("{name}: {e}");
        let place = if is_standard(path) { path.clone() } else { path.canonicalize().map_err(failed)? };
        if let Some(first) = seen.insert(place.clone(), name.clone()) {
            inputs.notes.note(format!("{name}: it is the same as {first}, and is read once"));
            continue;
        }
        if !is_standard(path) && fs::metadata(&place).map_err(failed)?.is_dir() {
            inputs.add_folder(&place, &name).map_err(|e| format!("{name}: {e}"))?;
        } else {
            let content = content(path, &place).map_err(failed)?;
            inputs.traces.push(Arc::new(Trace::new(name, content, format)));
        }
    }
    inputs.keep_each_once();
    Ok(inputs)
}

fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

fn content(path: &Path, place: &Path) -> io::Result<Content> {
    if is_standard(path) {
        return spooled(&mut io::stdin().lock());
    }
    let mut file = File::open(place)?;
    if file.metadata()?.is_file() {
        return Ok(Content::File(place.to_owned(), identity(&file)?));
    }
    spooled(&mut file)
}

/// Keeps what comes through a pipe: a question may read it several times.
fn spooled(input: &mut dyn io::Read) -> io::Result<Content> {
    let mut file = tempfile::tempfile()?;
    io::copy(input, &mut file)?;
    Ok(Content::Spooled(Arc::new(file)))
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
                let (trace, folder) = (&file.origin.0[2], &file.folder);
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
                seen.entry(file.origin.0[2].clone()).or_insert_with(|| file.folder.to_string());
            }
        }
        if self.traces.len() + seen.len() < 2 {
            return;
        }
        self.traces.retain(|trace| {
            let Some(uuid) = trace.uuid() else { return true };
            let facts = hairline_tables::Facts { uuid: Some(uuid), ..Default::default() };
            let Some(uuid) = facts.uuid_text() else { return true };
            let Some(first) = seen.get(&uuid) else {
                seen.insert(uuid, trace.name.clone());
                return true;
            };
            self.notes.note(format!("{}: it is the same trace as in {first}, and counts once", trace.name));
            false
        });
    }
}

/// Whether the name of a trace is a UUID, not a hash.
fn is_uuid(trace: &str) -> bool {
    trace.len() == 36
}
