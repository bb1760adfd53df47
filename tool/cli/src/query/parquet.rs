//! Reads files of `hairline export`. Other programs may have written them anew, with other encodings and
//! larger row groups, but with the same columns.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use hairline_tables::{Batch, Data, Dictionary, Kind, MOST_ROWS, Sink, TableId, Values};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

/// Passes the rows of a file to `sink`, with these columns of its table.
///
/// # Errors
/// Fails if the file cannot be read, is damaged, or has columns of other types.
pub(crate) fn read(
    path: &Path,
    table: TableId,
    columns: &BTreeSet<usize>,
    sink: &mut dyn Sink,
) -> io::Result<()> {
    // The decoder of a damaged file must not end the command without its name.
    let read = catch_unwind(AssertUnwindSafe(|| groups(path, table, columns, sink)));
    read.unwrap_or_else(|_| Err(io::Error::other("it is damaged")))
}

fn groups(path: &Path, table: TableId, columns: &BTreeSet<usize>, sink: &mut dyn Sink) -> io::Result<()> {
    let file = SerializedFileReader::new(File::open(path)?).map_err(failure)?;
    let schema = file.metadata().file_metadata().schema_descr();
    let places: HashMap<&str, usize> =
        schema.columns().iter().enumerate().map(|(at, column)| (column.name(), at)).collect();
    for group in 0..file.num_row_groups() {
        let group = file.get_row_group(group).map_err(failure)?;
        let all = table.table().columns;
        let mut readers = Vec::new();
        for column in columns.iter().filter(|column| **column < all.len()) {
            // A file of an earlier version may lack a column.
            let Some(place) = places.get(all[*column].name) else { continue };
            readers.push((*column, all[*column].kind, reader(&*group, *place)?));
        }
        let mut rest = usize::try_from(group.metadata().num_rows()).map_err(io::Error::other)?;
        while rest > 0 {
            let rows = rest.min(MOST_ROWS);
            let mut batch = Batch { table, rows, columns: vec![None; all.len()] };
            for (column, kind, reader) in &mut readers {
                batch.columns[*column] = Some(values(reader, *kind, rows)?);
            }
            sink.batch(&mut batch)?;
            rest -= rows;
        }
    }
    Ok(())
}

fn failure(e: ParquetError) -> io::Error {
    io::Error::other(e)
}

fn reader(group: &dyn RowGroupReader, column: usize) -> io::Result<ColumnReader> {
    let about = group.metadata().column(column).column_descr();
    if about.max_rep_level() > 0 || about.max_def_level() > 1 {
        return Err(io::Error::other(format!("its column {} is nested", about.name())));
    }
    group.get_column_reader(column).map_err(failure)
}

fn values(reader: &mut ColumnReader, kind: Kind, rows: usize) -> io::Result<Values> {
    let (data, is_valid) = match (reader, kind) {
        (ColumnReader::Int64ColumnReader(reader), Kind::Int) => {
            let (ints, is_valid) = spread(reader, rows, 0)?;
            (Data::Int(ints), is_valid)
        }
        (ColumnReader::DoubleColumnReader(reader), Kind::Float) => {
            let (floats, is_valid) = spread(reader, rows, 0.0)?;
            (Data::Float(floats), is_valid)
        }
        (ColumnReader::BoolColumnReader(reader), Kind::Bool) => {
            let (bools, is_valid) = spread(reader, rows, false)?;
            (Data::Bool(bools), is_valid)
        }
        (ColumnReader::ByteArrayColumnReader(reader), Kind::Text) => {
            let (bytes, is_valid) = spread(reader, rows, ByteArray::from(Vec::new()))?;
            (texts(&bytes)?, is_valid)
        }
        _ => return Err(io::Error::other("a column has another type than in a file of `hairline export`")),
    };
    Ok(Values { data, is_valid })
}

/// The next rows: a value for each, `none` where there is none, and which have one; empty if all have.
fn spread<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    none: T::T,
) -> io::Result<(Vec<T::T>, Vec<bool>)> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let (more, _, _) =
            reader.read_records(rows - read, Some(&mut levels), None, &mut values).map_err(failure)?;
        if more == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        read += more;
    }
    if values.len() == rows {
        return Ok((values, Vec::new()));
    }
    let is_valid: Vec<bool> = levels.iter().map(|level| *level == 1).collect();
    if is_valid.len() != rows || is_valid.iter().filter(|valid| **valid).count() != values.len() {
        return Err(io::Error::other("it has more or fewer values than rows"));
    }
    let mut values = values.into_iter();
    let value = |valid: &bool| if *valid { values.next() } else { None }.unwrap_or_else(|| none.clone());
    Ok((is_valid.iter().map(value).collect(), is_valid))
}

fn texts(all: &[ByteArray]) -> io::Result<Data> {
    let mut texts = Dictionary::default();
    let mut by_text: HashMap<&[u8], u32> = HashMap::new();
    let mut codes = Vec::with_capacity(all.len());
    for bytes in all {
        let bytes = bytes.data();
        let code = match by_text.get(bytes) {
            Some(code) => *code,
            None => {
                texts.bytes.push_str(std::str::from_utf8(bytes).map_err(io::Error::other)?);
                texts.offsets.push(u32::try_from(texts.bytes.len()).map_err(io::Error::other)?);
                let code = by_text.len() as u32; // as many as rows at most
                by_text.insert(bytes, code);
                code
            }
        };
        codes.push(code);
    }
    Ok(Data::Text { codes, texts })
}
