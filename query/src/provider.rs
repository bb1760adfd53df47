//! A table of all inputs, for the engine.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{Result, ScalarValue, Statistics};
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::object_store::ObjectMeta;
use datafusion::object_store::path::Path;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::union::UnionExec;
use hairline_tables::TableId;

use crate::batches;
use crate::folders::TableFile;
use crate::inputs::Inputs;
use crate::notes::Notes;
use crate::place;
use crate::readings::Readings;
use crate::trace::{Trace, TraceRows};

/// The bytes of a row in a file of `hairline export`, about.
const BYTES_OF_ROW: usize = 16;

/// A table of all inputs.
#[derive(Debug)]
pub(crate) struct Rows {
    table: TableId,
    schema: SchemaRef,
    traces: Vec<Arc<Trace>>,
    files: Vec<TableFile>,
    lacking: Vec<String>,
    notes: Arc<Notes>,
    readings: Arc<Readings>,
}

impl Rows {
    pub(crate) fn new(table: TableId, inputs: &Inputs, readings: &Arc<Readings>) -> Self {
        Self {
            table,
            schema: batches::schema(table),
            traces: inputs.traces.clone(),
            files: inputs.files.get(&table).cloned().unwrap_or_default(),
            lacking: inputs.lacking.get(&table).cloned().unwrap_or_default(),
            notes: Arc::clone(&inputs.notes),
            readings: Arc::clone(readings),
        }
    }

    /// The traces and files that may have rows for a query with these conditions.
    fn chosen(&self, filters: &[Expr], state: &dyn Session) -> Result<(Vec<Arc<Trace>>, Vec<TableFile>)> {
        let (mut traces, mut files) = (self.traces.clone(), self.files.clone());
        if let Some(conditions) = place::conditions(filters) {
            let origins = traces.iter().map(|trace| trace.origin()).collect::<Result<Vec<_>>>()?;
            let mut is_met = place::met(&conditions, &origins, state)?.into_iter();
            traces.retain(|_| is_met.next().unwrap_or(true));
            let origins: Vec<_> = files.iter().map(|file| file.origin.clone()).collect();
            let mut is_met = place::met(&conditions, &origins, state)?.into_iter();
            files.retain(|_| is_met.next().unwrap_or(true));
        }
        Ok((traces, files))
    }

    /// Reads traces.
    fn of_traces(
        &self,
        traces: Vec<Arc<Trace>>,
        chosen: &[usize],
        at_once: usize,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = Arc::new(self.schema.project(chosen)?);
        let parts = shares(traces, at_once).into_iter().map(|traces| {
            let (chosen, schema, notes) = (chosen.to_vec(), Arc::clone(&schema), Arc::clone(&self.notes));
            let readings = Arc::clone(&self.readings);
            Arc::new(TraceRows { traces, table: self.table, chosen, schema, notes, readings })
                as Arc<dyn PartitionStream>
        });
        let parts = parts.collect();
        Ok(Arc::new(StreamingTableExec::try_new(Arc::clone(&schema), parts, None, None, false, None)?))
    }

    /// Reads files of `hairline export`.
    fn of_files(
        &self,
        files: Vec<TableFile>,
        chosen: &[usize],
        limit: Option<usize>,
        at_once: usize,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let files = files.into_iter().map(partitioned).collect::<Result<Vec<_>>>()?;
        let groups = shares(files, at_once).into_iter().map(FileGroup::new).collect();
        let places = place::fields().map(Arc::new).to_vec();
        let schema =
            TableSchema::builder(batches::own_schema(self.table)).with_table_partition_cols(places).build();
        // Enough for the engine to see which side of a join is the smaller one.
        let rows = Precision::Inexact(bytes as usize / BYTES_OF_ROW);
        let statistics = Statistics { num_rows: rows, ..Statistics::new_unknown(schema.table_schema()) };
        let source = Arc::new(ParquetSource::new(schema));
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source)
            .with_file_groups(groups)
            .with_projection_indices(Some(chosen.to_vec()))?
            .with_limit(limit)
            .with_statistics(statistics)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

/// Deals out items to at most so many shares.
fn shares<T>(items: Vec<T>, at_most: usize) -> Vec<Vec<T>> {
    let count = items.len().min(at_most.max(1));
    let mut shares: Vec<Vec<T>> = (0..count).map(|_| Vec::new()).collect();
    for (index, item) in items.into_iter().enumerate() {
        shares[index % count].push(item);
    }
    shares
}

fn partitioned(file: TableFile) -> Result<PartitionedFile> {
    // As it is: `%2F` in a service's folder is a part of the folder's name.
    let location = Path::parse(&file.path).map_err(datafusion::object_store::Error::from)?;
    let last_modified = Default::default();
    let meta = ObjectMeta { location, last_modified, size: file.bytes, e_tag: None, version: None };
    let values = file.origin.0.map(|value| ScalarValue::Utf8(Some(value))).to_vec();
    Ok(PartitionedFile::new_from_meta(meta).with_partition_values(values))
}

#[async_trait]
impl TableProvider for Rows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let name = self.table.table().name;
        for folder in &self.lacking {
            self.notes
                .incomplete(format!("{folder}: it has no table `{name}`: export with `--table {name}`"));
        }
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let chosen = projection.unwrap_or(&all);
        let (traces, files) = self.chosen(filters, state)?;
        let at_once = state.config().target_partitions();
        let mut parts = Vec::new();
        if !traces.is_empty() {
            parts.push(self.of_traces(traces, chosen, at_once)?);
        }
        if !files.is_empty() {
            parts.push(self.of_files(files, chosen, limit, at_once)?);
        }
        if parts.is_empty() {
            return Ok(Arc::new(EmptyExec::new(Arc::new(self.schema.project(chosen)?))));
        }
        if parts.len() == 1 { Ok(parts.remove(0)) } else { UnionExec::try_new(parts) }
    }

    /// The engine checks each row itself; what is known here only saves work.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}
