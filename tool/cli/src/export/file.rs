//! The Parquet files of a trace, one for each table.
//!
//! A file is written in the output folder under a name that engines pass over, and moved when all files are
//! complete. Texts have a dictionary, and so have integers that repeat; others, as times and ids, are
//! delta-encoded. zstd compresses all of them.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

use hairline_tables::{Batch, Data, Kind, MOST_ROWS, TableId, VERSION, Values};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnDescPtr, ColumnPath, Type};
use tempfile::NamedTempFile;
use zstd::bulk::Compressor;

use crate::export::coded::{Coded, Coding};
use crate::incomplete::Removal;
use crate::platform;

/// The number of rows in a row group at most: a batch.
const ROW_GROUP: usize = MOST_ROWS;

/// The unfinished files of a trace.
pub(super) struct Files {
    all: Vec<(TableId, TableFile)>,
    compressor: Compressor<'static>,
}

struct TableFile {
    writer: SerializedFileWriter<BufWriter<File>>,
    written: NamedTempFile,
    removal: Removal,
}

/// A complete file under its temporary name.
pub(super) struct Complete {
    pub(super) table: TableId,
    pub(super) written: NamedTempFile,
    /// Dropped after the file.
    pub(super) removal: Removal,
}

type Group<'g> = SerializedRowGroupWriter<'g, BufWriter<File>>;

impl Files {
    /// Creates the files in a folder, which is created too.
    pub(super) fn create(folder: &Path, tables: &[TableId]) -> io::Result<Self> {
        std::fs::create_dir_all(folder)
            .map_err(|e| if folder.is_file() { io::Error::other("it is a file, not a folder") } else { e })?;
        let all = tables.iter().map(|table| Ok((*table, TableFile::create(folder, *table)?)));
        let compressor = Compressor::new(ZstdLevel::default().compression_level())?;
        Ok(Self { all: all.collect::<io::Result<_>>()?, compressor })
    }

    /// Writes a batch as a row group.
    pub(super) fn write(&mut self, batch: &Batch) -> io::Result<()> {
        let Some((_, file)) = self.all.iter_mut().find(|(table, _)| *table == batch.table) else {
            return Ok(());
        };
        let columns = file.writer.schema_descr().columns().to_vec();
        let mut group = file.writer.next_row_group().map_err(failure)?;
        for (values, column) in batch.columns.iter().flatten().zip(&columns) {
            put(values, column, &mut group, &mut self.compressor).map_err(failure)?;
        }
        group.close().map(drop).map_err(failure)
    }

    /// Ends the files. Returns them and their bytes.
    pub(super) fn finish(self) -> io::Result<(Vec<Complete>, u64)> {
        let (mut complete, mut bytes) = (Vec::new(), 0);
        for (table, file) in self.all {
            let (written, removal) = file.finish()?;
            bytes += written.as_file().metadata()?.len();
            complete.push(Complete { table, written, removal });
        }
        Ok((complete, bytes))
    }
}

impl TableFile {
    fn create(folder: &Path, table: TableId) -> io::Result<Self> {
        let (written, removal) = Removal::of_new(|| {
            tempfile::Builder::new().prefix(".hairline-").make_in(folder, platform::create_private)
        })?;
        let output = BufWriter::with_capacity(1 << 18, written.as_file().try_clone()?);
        let writer = SerializedFileWriter::new(output, schema(table).map_err(failure)?, properties(table));
        Ok(Self { writer: writer.map_err(failure)?, written, removal })
    }

    fn finish(mut self) -> io::Result<(NamedTempFile, Removal)> {
        self.writer.finish().map_err(failure)?;
        io::Write::flush(self.writer.inner_mut())?;
        platform::give_usual_mode(self.written.as_file())?;
        Ok((self.written, self.removal))
    }
}

fn failure(e: ParquetError) -> io::Error {
    match e {
        ParquetError::External(e) => match e.downcast::<io::Error>() {
            Ok(e) => *e,
            Err(e) => io::Error::other(e),
        },
        e => io::Error::other(e),
    }
}

/// The columns of a table as Parquet's types.
fn schema(table: TableId) -> Result<Arc<Type>, ParquetError> {
    let columns = table.table().columns.iter().map(|column| {
        let physical = match column.kind {
            Kind::Int => Physical::INT64,
            Kind::Float => Physical::DOUBLE,
            Kind::Bool => Physical::BOOLEAN,
            Kind::Text => Physical::BYTE_ARRAY,
        };
        let repetition = if column.is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(column.name, physical)
            .with_repetition(repetition)
            .with_logical_type((column.kind == Kind::Text).then_some(LogicalType::String))
            .build()
            .map(Arc::new)
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder(table.table().name).with_fields(columns).build().map(Arc::new)
}

fn properties(table: TableId) -> Arc<WriterProperties> {
    let about = [("hairline.table", table.table().name.to_owned()), ("hairline.schema", VERSION.to_string())];
    let about = about.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec();
    let sorted_by = table.table().sorted_by.and_then(|column| i32::try_from(column).ok());
    let sorted =
        sorted_by.map(|column_idx| vec![SortingColumn { column_idx, descending: false, nulls_first: false }]);
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("hairline version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_key_value_metadata(Some(about))
        .set_dictionary_enabled(false) // that of texts is ours
        .set_sorting_columns(sorted);
    for column in table.table().columns.iter().filter(|column| column.kind == Kind::Int) {
        properties =
            properties.set_column_encoding(ColumnPath::from(column.name), Encoding::DELTA_BINARY_PACKED);
    }
    Arc::new(properties.build())
}

/// Writes a column of a row group.
fn put(
    values: &Values,
    column: &ColumnDescPtr,
    group: &mut Group<'_>,
    compressor: &mut Compressor<'_>,
) -> Result<(), ParquetError> {
    let valid = &values.is_valid;
    let coded = match &values.data {
        Data::Text { codes, texts } => {
            Some(Coded { codes: existing(codes, valid), values: Coding::Texts(texts), is_valid: valid })
        }
        Data::Int(all) => Coded::of_ints(&existing(all, valid), valid),
        _ => None,
    };
    if let Some(coded) = coded {
        let (bytes, about) = coded.chunk(column, compressor)?;
        return group.append_column(&bytes, about);
    }
    // Parquet stores only the values that exist, and for each row whether it has one.
    let levels: Option<Vec<i16>> = (column.max_def_level() > 0).then(|| match valid.is_empty() {
        true => vec![1; values.data.len()],
        false => valid.iter().map(|is_valid| i16::from(*is_valid)).collect(),
    });
    let levels = levels.as_deref();
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General("a column that the schema does not have".to_owned()));
    };
    match &values.data {
        Data::Int(all) => writer.typed::<Int64Type>().write_batch(&existing(all, valid), levels, None)?,
        Data::Float(all) => writer.typed::<DoubleType>().write_batch(&existing(all, valid), levels, None)?,
        Data::Bool(all) => writer.typed::<BoolType>().write_batch(&existing(all, valid), levels, None)?,
        Data::Text { .. } => 0,
    };
    writer.close()
}

/// The values of the rows that have one.
fn existing<'v, T: Copy>(values: &'v [T], is_valid: &[bool]) -> Cow<'v, [T]> {
    if is_valid.is_empty() {
        return values.into();
    }
    let existing = values.iter().zip(is_valid).filter(|(_, is_valid)| **is_valid);
    existing.map(|(value, _)| *value).collect::<Vec<T>>().into()
}
