//! A trace as an input: it is read from its first byte, as often as a question needs it.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::streaming::PartitionStream;
use hairline_convert::{TraceFormat, TraceReader, Unpacked, open_twice};
use hairline_tables::{Batch, Error, Place, Sink, Source, Summary, TableId, Wanted, read, read_at_once};
use tokio::task::spawn_blocking;

use crate::notes::Notes;
use crate::pipe::{Sender, pipe};
use crate::place::Origin;
use crate::readings::Readings;

/// A trace.
#[derive(Debug)]
pub(crate) struct Trace {
    /// The name in messages.
    pub(crate) name: String,
    pub(crate) content: Content,
    pub(crate) format: Option<TraceFormat>,
    /// Where its rows come from, once a question asked for it.
    origin: Mutex<Option<Origin>>,
}

/// Where the bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// A file, with what identifies it: another one may have taken its name when it is opened again.
    File(PathBuf, Identity),
    /// What came through a pipe, in a file without a name.
    Spooled(Arc<File>),
}

/// The device and the number of a file.
pub(crate) type Identity = (u64, u64);

#[cfg(unix)]
pub(crate) fn identity(file: &File) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt;
    file.metadata().map(|about| (about.dev(), about.ino()))
}

#[cfg(not(unix))]
pub(crate) fn identity(_: &File) -> io::Result<Identity> {
    Ok((0, 0))
}

/// Reads a file from its first byte, whoever else reads it.
struct FromStart {
    file: Arc<File>,
    at: u64,
}

impl Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_at(&*self.file, buffer, self.at)?;
        #[cfg(windows)]
        let read = std::os::windows::fs::FileExt::seek_read(&*self.file, buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Content {
    fn unpacked(&self, name: &str) -> io::Result<Unpacked> {
        let (input, file): (Box<dyn Read>, _) = match self {
            Self::File(path, known) => {
                let file = File::open(path)?;
                if identity(&file)? != *known {
                    return Err(io::Error::other("another file has its name now"));
                }
                (Box::new(file.try_clone()?), Some(file))
            }
            Self::Spooled(file) => (Box::new(FromStart { file: Arc::clone(file), at: 0 }), None),
        };
        Ok(Unpacked::new(name.to_owned(), input, file))
    }
}

impl Source for &Trace {
    fn open(&mut self) -> Result<Box<dyn TraceReader + '_>, hairline_convert::Error> {
        let (content, name) = (self.content.clone(), self.name.clone());
        let again = move || Ok(Box::new(content.unpacked(&name)?) as Box<dyn Read>);
        let input = self.content.unpacked(&self.name).map_err(hairline_convert::Error::Input)?;
        open_twice(input, self.format, again)
    }
}

/// A trace that is read once: where its rows come from needs no more.
struct Once<'t>(&'t Trace);

impl Source for Once<'_> {
    fn open(&mut self) -> Result<Box<dyn TraceReader + '_>, hairline_convert::Error> {
        self.0.open()
    }

    fn is_repeatable(&self) -> bool {
        false
    }
}

struct Nothing;

impl Sink for Nothing {
    fn batch(&mut self, _: &mut Batch) -> io::Result<()> {
        Ok(())
    }
}

impl Trace {
    pub(crate) fn new(name: String, content: Content, format: Option<TraceFormat>) -> Self {
        Self { name, content, format, origin: Mutex::default() }
    }

    /// Where its rows come from. Reads the whole trace at the first call.
    pub(crate) fn origin(&self) -> Result<Origin, DataFusionError> {
        let mut known = self.origin.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            let summary = read(&mut Once(self), &Wanted::nothing(), tempfile::tempfile, &mut Nothing);
            let summary = summary.map_err(|e| self.failed(&e))?;
            *known = Some((&Place::of(&summary.facts, None)).into());
        }
        known.clone().ok_or_else(|| DataFusionError::Internal("no origin".to_owned()))
    }

    /// The trace's UUID, if its first bytes say it.
    pub(crate) fn uuid(&self) -> Option<u128> {
        use hairline_convert::{Context, Item};

        let (mut source, mut context) = (self, Context::new());
        let mut reader = source.open().ok()?;
        for _ in 0..1000 {
            if let Item::Trace(trace) = reader.next(&mut context).ok()??
                && trace.uuid.is_some()
            {
                return trace.uuid;
            }
        }
        None
    }

    fn failed(&self, e: &Error) -> DataFusionError {
        DataFusionError::Execution(format!("{}: {e}", self.name))
    }
}

/// The rows of one table of several traces, one after the other.
#[derive(Debug)]
pub(crate) struct TraceRows {
    pub(crate) traces: Vec<Arc<Trace>>,
    pub(crate) table: TableId,
    /// The columns, by their number in the table.
    pub(crate) chosen: Vec<usize>,
    /// The schema of these columns.
    pub(crate) schema: SchemaRef,
    pub(crate) notes: Arc<Notes>,
    pub(crate) readings: Arc<Readings>,
}

impl PartitionStream for TraceRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, task: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (reader, receiver) = pipe();
        let rows = self.parts();
        let reading = spawn_blocking(move || {
            for trace in &rows.traces {
                if !rows.send(trace, &reader)? {
                    break;
                }
            }
            Ok(())
        });
        let (chosen, schema) = (self.chosen.clone(), Arc::clone(&self.schema));
        receiver.stream(reading, chosen, schema, task.session_config().batch_size())
    }
}

impl TraceRows {
    fn parts(&self) -> Self {
        Self {
            traces: self.traces.clone(),
            table: self.table,
            chosen: self.chosen.clone(),
            schema: Arc::clone(&self.schema),
            notes: Arc::clone(&self.notes),
            readings: Arc::clone(&self.readings),
        }
    }

    /// Sends the rows of a trace. Returns whether more are wanted.
    fn send(&self, trace: &Trace, to: &Sender) -> Result<bool, DataFusionError> {
        let columns = self.table.table().columns;
        let origin =
            self.chosen.iter().any(|column| *column >= columns.len()).then(|| trace.origin()).transpose()?;
        let names: Vec<&str> =
            self.chosen.iter().filter_map(|column| Some(columns.get(*column)?.name)).collect();
        let wanted = Wanted::nothing().columns(self.table, &names);
        let mut sending = Sending { to, origin: origin.map(Arc::new), has_sent: false, is_wanted: true };
        match self.read(trace, &wanted, &mut sending) {
            Ok(summary) => self.notes.summary(&trace.name, &summary),
            Err(Error::Sink(_)) if !sending.is_wanted => return Ok(false),
            Err(e) => return Err(trace.failed(&e)),
        }
        Ok(true)
    }

    /// Reads a trace, at once if that is possible.
    fn read(&self, mut trace: &Trace, wanted: &Wanted, sending: &mut Sending<'_>) -> Result<Summary, Error> {
        if self.readings.begin() {
            match read_at_once(&mut trace, wanted, sending) {
                Err(Error::NotAtOnce) if !sending.has_sent => self.readings.end(),
                result => {
                    match &result {
                        Ok(_) => self.readings.end(),
                        Err(Error::NotAtOnce) => self.readings.fail(),
                        Err(_) => {}
                    }
                    return result;
                }
            }
        }
        read(&mut trace, wanted, tempfile::tempfile, sending)
    }
}

struct Sending<'s> {
    to: &'s Sender,
    origin: Option<Arc<Origin>>,
    has_sent: bool,
    is_wanted: bool,
}

impl Sink for Sending<'_> {
    fn batch(&mut self, batch: &mut Batch) -> io::Result<()> {
        self.has_sent = true;
        self.is_wanted = self.to.send(batch, self.origin.as_ref());
        if self.is_wanted { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }
}
