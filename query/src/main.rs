//! Answers questions in SQL about traces, and about folders that `hairline export` wrote.
//!
//! ```text
//! arguments ── inputs ── session ── provider ──┬── trace ── batches     a trace, read by hairline-tables
//!                 │         │                  └── folders              Parquet files, read by DataFusion
//!                 │         └── output                                  a table, CSV, JSON
//!                 └── memory, notes, place, readings, spill, text
//! ```
//!
//! `hairline query` starts this program. It is a workspace of its own because of the engine's weight.

mod arguments;
mod batches;
mod folders;
mod inputs;
mod memory;
mod notes;
mod output;
mod pipe;
mod place;
mod provider;
mod readings;
mod session;
mod spill;
mod text;
mod trace;

use std::process::ExitCode;

use crate::arguments::{Arguments, Question};
use crate::text::complain;

/// Deeply nested SQL takes much stack.
const STACK: usize = 64 << 20;

fn main() -> ExitCode {
    let arguments = Arguments::of_command();
    let question = match arguments.question() {
        Ok(question) => question,
        Err(why) => {
            complain(why);
            return ExitCode::from(2);
        }
    };
    let answering =
        std::thread::Builder::new().stack_size(STACK).spawn(move || answer(&arguments, &question));
    let answered = answering.map_err(|e| e.to_string()).and_then(|thread| {
        thread
            .join()
            .unwrap_or_else(|_| Err("this is a fault of hairline-query: please report it".to_owned()))
    });
    match answered {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            complain(why);
            ExitCode::FAILURE
        }
    }
}

/// Prints the answer. Returns whether all that was asked for could be read.
fn answer(arguments: &Arguments, question: &Question) -> Result<bool, String> {
    let inputs = inputs::open(&question.inputs, arguments.from.map(Into::into))?;
    let spill = spill::Spill::new().map_err(|e| format!("a temporary folder: {e}"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK / 4)
        .build()
        .map_err(|e| e.to_string())?;
    let answered = runtime.block_on(session::answer(arguments, &question.sql, &inputs, spill.path()));
    runtime.shutdown_background(); // a reader may be in the middle of a trace
    inputs.notes.show();
    answered.map(|()| inputs.notes.is_complete())
}
