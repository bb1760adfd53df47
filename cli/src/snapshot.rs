//! `hairline snapshot`
use crate::Outcome;
/// x
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}
pub(crate) fn run(_: &Arguments) -> Outcome { Outcome::Done }
