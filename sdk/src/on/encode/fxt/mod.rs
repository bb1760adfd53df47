//! Events as FXT records.

pub(crate) mod record;
