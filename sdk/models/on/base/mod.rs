//! Stands for `sdk/src/on/base/`.

pub(crate) mod sync;
