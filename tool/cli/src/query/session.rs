//! The engine: SQLite with the tables of the inputs, three views and a few functions.
//!
//! A question is prepared twice. The first time SQLite asks the tables for plans, and names the columns and
//! the places that it needs; these are read. The second time it knows how many rows there are, and plans with
//! that.
//!
//! A question can only read: the database is in memory, and SQLite asks before each step of the preparation
//! whether it may.

use hairline_tables::TableId;
use hairline_tables::sql::views;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, Error, Result, Statement};

use crate::query::functions;
use crate::query::load::Loader;
use crate::query::scan;

/// A question is prepared at most so often. A further time only reads more places.
const ATTEMPTS: u32 = 8;

/// The pages of a sort or a group, in KiB, that SQLite has in memory.
const CACHE: u32 = 64 << 10;

/// A connection to the tables of the inputs.
pub(crate) struct Session(Connection);

impl Session {
    pub(crate) fn new(loader: &Loader) -> Result<Self> {
        let mut connection = Connection::open_in_memory()?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        connection.pragma_update(None, "cache_size", -i64::from(CACHE))?;
        functions::register(&connection)?;
        for (id, scanned) in TableId::ALL.into_iter().zip(&loader.tables) {
            scan::register(&connection, id.table().name, scanned)?;
        }
        for view in views::ALL {
            connection.execute_batch(&format!("create temp view {} as {}", view.name, view.sqlite()))?;
        }
        connection.authorizer(Some(|asked: AuthContext<'_>| may(&asked)))?;
        Ok(Self(connection))
    }

    /// Prepares a question, and reads what it needs.
    ///
    /// # Errors
    /// Fails if the question is wrong or does more than read, or if an input cannot be read.
    pub(crate) fn prepare(
        &self,
        sql: &str,
        loader: &mut Loader,
    ) -> std::result::Result<Statement<'_>, String> {
        for _ in 0..ATTEMPTS {
            loader.tables.iter().for_each(|table| table.forget_plans());
            let statement = self.0.prepare(sql).map_err(|e| shown(&e))?;
            if !loader.load()? {
                return Ok(statement);
            }
        }
        Err("the places that it asks for are not certain: ask without conditions on them".to_owned())
    }

    /// How SQLite would answer a question. Reads no input.
    pub(crate) fn explain(&self, sql: &str) -> std::result::Result<Statement<'_>, String> {
        self.0.prepare(&format!("explain query plan {sql}")).map_err(|e| shown(&e))
    }
}

/// Whether a question may do something.
fn may(asked: &AuthContext<'_>) -> Authorization {
    match asked.action {
        AuthAction::Select | AuthAction::Recursive | AuthAction::Read { .. } => Authorization::Allow,
        AuthAction::Function { function_name } if !function_name.eq_ignore_ascii_case("load_extension") => {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }
}

/// The message for a user.
pub(crate) fn shown(e: &Error) -> String {
    match e {
        Error::SqlInputError { msg, sql, offset, .. } => {
            let place = match usize::try_from(*offset) {
                Ok(at) if at < sql.len() => {
                    let before = sql.get(..at).unwrap_or_default();
                    format!(", in line {} of the question", before.lines().count().max(1))
                }
                _ => String::new(),
            };
            format!("{msg}{place}{}", hint(msg))
        }
        Error::SqliteFailure(e, _) if e.code == rusqlite::ErrorCode::AuthorizationForStatementDenied => {
            "a question can only read: one `select` of tables, views and functions".to_owned()
        }
        Error::MultipleStatement => "there is a second statement: ask one question at a time".to_owned(),
        Error::SqliteFailure(_, Some(message)) => format!("{message}{}", hint(message)),
        e => e.to_string(),
    }
}

/// What there is instead of a table or column that a question names. Many have learned the names of Perfetto.
fn hint(message: &str) -> String {
    if message.starts_with("no such table: ") {
        let all = TableId::ALL.map(|id| id.table().name).join(", ");
        let ready = views::ALL.map(|view| view.name).join(", ");
        return format!("; there are {all}, and the views {ready}");
    }
    let column = message.strip_prefix("no such column: ").and_then(|name| name.rsplit('.').next());
    match column.map(str::to_ascii_lowercase).as_deref() {
        Some("dur") => "; it is `duration` here".to_owned(),
        Some("ts") => "; it is `start` of slices and `time` of other events here".to_owned(),
        Some("utid") => "; it is `thread` here".to_owned(),
        Some("upid") => "; it is `process` here".to_owned(),
        Some("arg_set_id") => "; a row of `arg` has the `owner` that it belongs to".to_owned(),
        Some(_) => "; `select * from TABLE limit 1` shows the columns of a table".to_owned(),
        None => String::new(),
    }
}
