//! Rows of a trace's table as Arrow's arrays.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatchOptions, StringArray,
};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;
use hairline_tables::{Batch, Data, Dictionary, Kind, TableId, Values};

use crate::place::{self, Origin, TEXT};

/// The columns of a table. Those that say where a row comes from are the last ones.
pub(crate) fn schema(table: TableId) -> SchemaRef {
    let own = own_fields(table);
    Arc::new(Schema::new(own.into_iter().chain(place::fields()).collect::<Vec<_>>()))
}

/// The columns that a file of the table has.
pub(crate) fn own_schema(table: TableId) -> SchemaRef {
    Arc::new(Schema::new(own_fields(table)))
}

fn own_fields(table: TableId) -> Vec<Field> {
    let columns = table.table().columns.iter();
    columns.map(|column| Field::new(column.name, data_type(column.kind), true)).collect()
}

fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Int => DataType::Int64,
        Kind::Float => DataType::Float64,
        Kind::Bool => DataType::Boolean,
        Kind::Text => TEXT,
    }
}

/// The chosen columns of some rows of a batch. `origin` has the values of the columns after those of
/// the table.
///
/// The arrays are copies of these rows alone: the engine counts all that an array refers to as its memory.
pub(crate) fn record_batch(
    batch: &Batch,
    rows: Range<usize>,
    chosen: &[usize],
    schema: &SchemaRef,
    origin: Option<&Origin>,
) -> Result<RecordBatch, ArrowError> {
    let own = batch.table.table().columns.len();
    let columns = chosen.iter().map(|column| match batch.columns.get(*column) {
        Some(Some(values)) => array(values, rows.clone()),
        Some(None) => Err(ArrowError::ComputeError("a column was not read".to_owned())),
        None => Ok(repeated(origin.map_or("", |origin| &origin.0[*column - own]), rows.len())),
    });
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns.collect::<Result<_, _>>()?, &options)
}

fn array(values: &Values, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
    let nulls = (!values.is_valid.is_empty()).then(|| NullBuffer::from(&values.is_valid[rows.clone()]));
    Ok(match &values.data {
        Data::Int(ints) => Arc::new(Int64Array::new(ints[rows].to_vec().into(), nulls)),
        Data::Float(floats) => Arc::new(Float64Array::new(floats[rows].to_vec().into(), nulls)),
        Data::Bool(bools) => Arc::new(BooleanArray::new(BooleanBuffer::from(&bools[rows]), nulls)),
        Data::Text { codes, texts } => Arc::new(text_array(&codes[rows], texts, nulls)?),
    })
}

/// Texts are copied in blocks of this many bytes. Nearly all are shorter than one, and a copy whose length is
/// known takes no call.
const BLOCK: usize = 32;

/// The texts with these codes, one after the other.
fn text_array(
    codes: &[u32],
    texts: &Dictionary,
    nulls: Option<NullBuffer>,
) -> Result<StringArray, ArrowError> {
    let place = |code: u32| {
        let at = code as usize;
        texts.offsets[at] as usize..texts.offsets[at + 1] as usize
    };
    let is_valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    let (mut offsets, mut end) = (Vec::with_capacity(codes.len() + 1), 0);
    offsets.push(0);
    for (row, code) in codes.iter().enumerate() {
        end += if is_valid(row) { place(*code).len() } else { 0 };
        offsets.push(i32::try_from(end).map_err(|_| ArrowError::OffsetOverflowError(end))?);
    }
    let from = texts.bytes.as_bytes();
    let mut all = vec![0; end + BLOCK];
    let mut at = 0;
    for (row, code) in codes.iter().enumerate().filter(|(row, _)| is_valid(*row)) {
        let place = place(*code);
        let block = from.get(place.start..place.start + BLOCK).filter(|_| place.len() <= BLOCK);
        match (block, all.get_mut(at..at + BLOCK)) {
            // The next text overwrites what is too much.
            (Some(block), Some(to)) => to.copy_from_slice(block),
            _ => all[at..at + place.len()].copy_from_slice(&from[place.clone()]),
        }
        at = offsets[row + 1] as usize;
    }
    all.truncate(end);
    StringArray::try_new(OffsetBuffer::new(offsets.into()), all.into(), nulls)
}

fn repeated(text: &str, rows: usize) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, rows)))
}
