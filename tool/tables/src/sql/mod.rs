//! The folders of `hairline export` in SQL: views that everybody wants, and the statements with which an
//! engine sees the folders as tables.

mod engine;
mod statements;
pub mod views;

pub use engine::{Engine, PARTITION};
pub use statements::statements;
