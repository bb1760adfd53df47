//! The engine: its tables and views, its memory, and how a question is answered.

use std::path::Path;
use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use hairline_tables::TableId;
use hairline_tables::sql::{Engine, views};

use crate::arguments::Arguments;
use crate::inputs::Inputs;
use crate::memory::{Shared, usual};
use crate::output;
use crate::provider::Rows;
use crate::readings::Readings;

/// How rows of two tables find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joins {
    /// In a table in memory: fast, but one of the two sides must fit.
    Hashed,
    /// Both sides sorted, in temporary files if they do not fit.
    Sorted,
}

/// Prints the answer to a question.
pub(crate) async fn answer(
    arguments: &Arguments,
    sql: &str,
    inputs: &Inputs,
    spill: &Path,
) -> Result<(), String> {
    let (mut joins, mut at_once) = (Joins::Hashed, true);
    loop {
        let readings = Arc::new(Readings::new(at_once));
        let context = context(arguments.memory.unwrap_or_else(usual), inputs, spill, joins, &readings)
            .await
            .map_err(shown)?;
        // Nothing is printed before the first rows are there, so that the question can be asked again.
        let begun = begin(&context, sql, arguments.explain).await;
        match begun {
            Err(_) if readings.has_failed() => at_once = false,
            Ok(_) if !readings.close() => at_once = false,
            Err(e) if is_memory(&e) && joins == Joins::Hashed => joins = Joins::Sorted,
            Err(e) => return Err(shown(e)),
            Ok(stream) => return output::print(stream, arguments.form()).await.map_err(shown),
        }
    }
}

fn is_memory(e: &DataFusionError) -> bool {
    matches!(e.find_root(), DataFusionError::ResourcesExhausted(_))
}

/// The message for a user, in one line. The engine's own says where in its code it failed, too.
fn shown(e: DataFusionError) -> String {
    let text = match e.find_root() {
        DataFusionError::ResourcesExhausted(what) => {
            format!("there is not enough memory: {what}; give it more with --memory MIB")
        }
        _ => e.strip_backtrace(),
    };
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

async fn context(
    memory: u32,
    inputs: &Inputs,
    spill: &Path,
    joins: Joins,
    readings: &Arc<Readings>,
) -> Result<SessionContext, DataFusionError> {
    let memory = memory as usize * (1 << 20);
    // Each partition needs memory of its own for each step.
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let partitions = cores.min(memory / (32 << 20)).max(2);
    // Each step keeps a few batches.
    let rows = (memory / (32 << 10)).clamp(1024, 8192);
    let mut config = SessionConfig::new()
        .with_batch_size(rows)
        .with_target_partitions(partitions)
        .with_sort_spill_reservation_bytes(memory / partitions / 16)
        .with_information_schema(true);
    let optimizer = &mut config.options_mut().optimizer;
    optimizer.prefer_hash_join = joins == Joins::Hashed;
    // The rows of one trace come from one thread, which takes as long as grouping them does: partitions of the
    // groups would only be copied, as often as there are steps.
    if inputs.traces.len() == 1 && inputs.files.is_empty() {
        optimizer.enable_round_robin_repartition = false;
        optimizer.repartition_aggregations = false;
    }
    let folders = DiskManagerMode::Directories(vec![spill.to_owned()]);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(Shared::new(memory)))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(folders))
        .build_arc()?;
    let context = SessionContext::new_with_config_rt(config, runtime);
    for table in TableId::ALL {
        context.register_table(table.table().name, Arc::new(Rows::new(table, inputs, readings)))?;
    }
    for view in views::ALL {
        context.sql(&format!("create view {} as {}", view.name, view.query(Engine::DataFusion))).await?;
    }
    Ok(context)
}

/// The rows of the answer. The first ones are there already.
async fn begin(
    context: &SessionContext,
    sql: &str,
    explain: bool,
) -> Result<SendableRecordBatchStream, DataFusionError> {
    let only_read =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    let mut question = context.sql_with_options(sql, only_read).await?;
    if explain {
        question = question.explain(false, false)?;
    }
    let mut rows = question.execute_stream().await?;
    let schema = rows.schema();
    let first = rows.next().await.transpose()?;
    let all = futures::stream::iter(first.map(Ok)).chain(rows);
    Ok(Box::pin(datafusion::physical_plan::stream::RecordBatchStreamAdapter::new(schema, all)))
}
