//! From the thread that reads a trace to the engine: the reader goes on while the engine makes arrays.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream::try_unfold;
use hairline_tables::{Batch, Values};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::batches::record_batch;
use crate::place::Origin;

type Columns = Vec<Option<Values>>;

/// The memory of columns whose rows the engine has. The reader fills it again.
type Spare = Arc<Mutex<Vec<Columns>>>;

/// Rows on their way, and where they come from, if that is wanted.
struct Rows {
    batch: Batch,
    origin: Option<Arc<Origin>>,
}

/// The reader's side.
pub(crate) struct Sender {
    rows: mpsc::Sender<Rows>,
    spare: Spare,
}

/// The engine's side.
pub(crate) struct Receiver {
    rows: mpsc::Receiver<Rows>,
    spare: Spare,
}

pub(crate) fn pipe() -> (Sender, Receiver) {
    // Batches of up to 2^17 rows: with fewer of them on their way, the one side often waits for the other.
    let (sender, receiver) = mpsc::channel(3);
    let spare = Spare::default();
    (Sender { rows: sender, spare: Arc::clone(&spare) }, Receiver { rows: receiver, spare })
}

impl Sender {
    /// Sends the rows, of which it takes the columns. Returns whether more are wanted.
    pub(crate) fn send(&self, batch: &mut Batch, origin: Option<&Arc<Origin>>) -> bool {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let columns = std::mem::replace(&mut batch.columns, spare.unwrap_or_default());
        let rows = Rows { batch: Batch { columns, ..*batch }, origin: origin.cloned() };
        self.rows.blocking_send(rows).is_ok()
    }
}

impl Receiver {
    /// The rows of the chosen columns, at most so many at a time. Ends with the error of `reading`, if that has
    /// one.
    pub(crate) fn stream(
        self,
        reading: JoinHandle<Result<()>>,
        chosen: Vec<usize>,
        schema: SchemaRef,
        most: usize,
    ) -> SendableRecordBatchStream {
        let arrays = Arrays {
            receiver: self,
            reading: Some(reading),
            chosen,
            schema: Arc::clone(&schema),
            most,
            rest: None,
        };
        let next = |mut arrays: Arrays| async move { Ok(arrays.next().await?.map(|batch| (batch, arrays))) };
        Box::pin(RecordBatchStreamAdapter::new(schema, try_unfold(arrays, next)))
    }
}

struct Arrays {
    receiver: Receiver,
    /// `None` once its result is known.
    reading: Option<JoinHandle<Result<()>>>,
    chosen: Vec<usize>,
    schema: SchemaRef,
    most: usize,
    /// The rows that came last, and the first of them that the engine does not have.
    rest: Option<(Rows, usize)>,
}

impl Arrays {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some((rows, first)) = &mut self.rest {
                let (batch, begin) = (&rows.batch, *first);
                if begin < batch.rows {
                    *first = batch.rows.min(begin + self.most);
                    let origin = rows.origin.as_deref();
                    return Ok(Some(record_batch(batch, begin..*first, &self.chosen, &self.schema, origin)?));
                }
            }
            if let Some((rows, _)) = self.rest.take() {
                self.receiver.spare.lock().unwrap_or_else(PoisonError::into_inner).push(rows.batch.columns);
            }
            match self.receiver.rows.recv().await {
                Some(rows) => self.rest = Some((rows, 0)),
                None => {
                    if let Some(reading) = self.reading.take() {
                        reading.await.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))??;
                    }
                    return Ok(None);
                }
            }
        }
    }
}
