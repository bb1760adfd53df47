//! Where the files of the SDK that are modelled find `crate::on::base::sync`.

pub(crate) mod base;
