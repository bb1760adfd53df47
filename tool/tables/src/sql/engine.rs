//! The statements that differ from engine to engine.

use crate::schema::{Kind, TableId};

/// The levels of the folders below a table, which are columns too.
pub const PARTITION: [&str; 3] = ["date", "service", "trace"];

/// An engine that can ask the folders of `hairline export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Apache DataFusion.
    DataFusion,
    /// DuckDB.
    DuckDb,
    /// ClickHouse.
    ClickHouse,
    /// Apache Spark.
    Spark,
}

impl Engine {
    /// All engines.
    pub const ALL: [Self; 4] = [Self::DuckDb, Self::ClickHouse, Self::DataFusion, Self::Spark];

    /// The name in commands.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DataFusion => "datafusion",
            Self::DuckDb => "duckdb",
            Self::ClickHouse => "clickhouse",
            Self::Spark => "spark",
        }
    }

    /// The expression for an exact percentile, with a line between the two values around it, as an integer.
    pub(crate) fn percentile(self, column: &str, part: &str) -> String {
        let exact = match self {
            Self::DataFusion => format!("percentile_cont({part}) within group (order by {column})"),
            Self::DuckDb => format!("quantile_cont({column}, {part})"),
            Self::ClickHouse => format!("quantileExactInclusive({part})({column})"),
            Self::Spark => format!("percentile({column}, {part})"),
        };
        format!("cast(round({exact}) as bigint)")
    }

    fn data_type(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Self::ClickHouse, Kind::Int) => "Nullable(Int64)",
            (Self::ClickHouse, Kind::Float) => "Nullable(Float64)",
            (Self::ClickHouse, Kind::Bool) => "Nullable(Bool)",
            (Self::ClickHouse, Kind::Text) => "Nullable(String)",
            (_, Kind::Int) => "bigint",
            (_, Kind::Float) => "double",
            (_, Kind::Bool) => "boolean",
            (Self::Spark, Kind::Text) => "string",
            (_, Kind::Text) => "varchar",
        }
    }

    /// A name of a column, which may be a word of SQL: `end`.
    fn name_of(self, column: &str) -> String {
        if self == Self::Spark { format!("`{column}`") } else { format!("\"{column}\"") }
    }

    /// A text constant.
    fn text(self, text: &str) -> String {
        let slashed = matches!(self, Self::ClickHouse | Self::Spark).then(|| text.replace('\\', "\\\\"));
        let text = slashed.as_deref().unwrap_or(text);
        if self == Self::Spark {
            format!("'{}'", text.replace('\'', "\\'"))
        } else {
            format!("'{}'", text.replace('\'', "''"))
        }
    }

    /// What comes before all views.
    pub(crate) fn settings(self) -> &'static str {
        match self {
            // Else a trace whose id has digits only were a number.
            Self::Spark => "set spark.sql.sources.partitionColumnTypeInference.enabled = false;\n",
            // Joins as in the SQL standard.
            Self::ClickHouse => "set join_use_nulls = 1;\n",
            Self::DataFusion | Self::DuckDb => "",
        }
    }

    /// A query for the rows of a table in one folder.
    fn rows(self, folder: &str, table: TableId) -> String {
        let place = format!("{}/{}", folder.trim_end_matches('/'), table.table().name);
        let files = self.text(&format!("{place}/*/*/*/*.parquet"));
        match self {
            Self::DuckDb => {
                let options = "hive_partitioning = true, hive_types_autocast = false";
                format!("select * from read_parquet({files}, {options})")
            }
            Self::ClickHouse => {
                let columns = table.table().columns.iter();
                let columns = columns.map(|c| (c.name, self.data_type(c.kind)));
                let levels = PARTITION.map(|name| (name, "String"));
                let columns =
                    columns.chain(levels).map(|(name, kind)| format!("{} {kind}", self.name_of(name)));
                let columns = self.text(&columns.collect::<Vec<_>>().join(", "));
                let source = if place.contains("://") { "s3" } else { "file" };
                format!("select * from {source}({files}, 'Parquet', {columns})")
            }
            Self::Spark => format!("select * from parquet.`{}`", place.replace('`', "``")),
            Self::DataFusion => String::new(),
        }
    }

    /// A query without rows, with the columns of a table.
    fn no_rows(self, table: TableId) -> String {
        let columns = table.table().columns.iter().map(|c| (c.name, c.kind));
        let columns = columns.chain(PARTITION.map(|name| (name, Kind::Text)));
        let null = |(name, kind)| format!("cast(null as {}) as {}", self.data_type(kind), self.name_of(name));
        format!("select {} where 1 = 0", columns.map(null).collect::<Vec<_>>().join(", "))
    }

    pub(crate) fn view(self, name: &str, query: &str) -> String {
        let create = match self {
            Self::Spark => "create or replace temporary view",
            Self::DataFusion | Self::DuckDb | Self::ClickHouse => "create or replace view",
        };
        format!("{create} {name} as\n{query};\n")
    }

    /// The statements that make one table of several folders.
    pub(crate) fn table(self, folders: &[&str], table: TableId) -> String {
        let name = table.table().name;
        if folders.is_empty() {
            return self.view(name, &self.no_rows(table));
        }
        if self != Self::DataFusion {
            let all = folders.iter().map(|folder| self.rows(folder, table)).collect::<Vec<_>>();
            return self.view(name, &all.join("\nunion all\n"));
        }
        let levels = PARTITION.join(", ");
        let create = |(n, folder): (usize, &&str)| {
            let place = self.text(&format!("{}/{name}/", folder.trim_end_matches('/')));
            let own = if folders.len() == 1 { name.to_owned() } else { format!("{name}_{n}") };
            format!(
                "create external table {own} stored as parquet partitioned by ({levels}) location {place};\n"
            )
        };
        let mut text: String = folders.iter().enumerate().map(create).collect();
        if folders.len() > 1 {
            let all = (0..folders.len()).map(|n| format!("select * from {name}_{n}")).collect::<Vec<_>>();
            text += &self.view(name, &all.join("\nunion all\n"));
        }
        text
    }
}
