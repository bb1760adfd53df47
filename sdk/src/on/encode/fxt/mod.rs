//! Events as FXT records.

mod blob_part;
pub(crate) mod record;
pub(crate) mod repeat;
pub(crate) mod scheduling;
pub(crate) mod sequence;
pub(crate) mod stream;
pub(crate) mod strings;
