//! Where the files of the SDK that are modelled find `crate::on::sync`.

pub(crate) mod sync;
