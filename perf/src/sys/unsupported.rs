//! A system without perf events.

use std::convert::Infallible;
use std::fs::File;
use std::io;

use crate::abi::EventAttr;

/// What tells an open file from another one with its number: device and inode, where the system has them.
pub(crate) type Identity = (u64, u64);

#[cfg(unix)]
pub(crate) fn identity(file: &File) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    file.metadata().ok().map(|about| (about.dev(), about.ino()))
}

#[cfg(not(unix))]
pub(crate) fn identity(_: &File) -> Option<Identity> {
    None
}

/// Returns 0: no thread has a table of open files of its own.
pub(crate) fn tid() -> u32 {
    0
}

pub(crate) fn open(_: &EventAttr, _: Option<u32>, _: Option<u32>) -> io::Result<File> {
    unsupported()
}

fn unsupported<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no perf events"))
}

pub(crate) fn enable(_: &File) -> io::Result<()> {
    unsupported()
}

pub(crate) fn disable(_: &File) -> io::Result<()> {
    unsupported()
}

pub(crate) fn set_output(_: &File, _: &File) -> io::Result<()> {
    unsupported()
}

pub(crate) fn set_filter(_: &File, _: &std::ffi::CStr) -> io::Result<()> {
    unsupported()
}

pub(crate) fn read_words(_: &File, _: &mut [u64]) -> io::Result<usize> {
    unsupported()
}

/// Returns 0.
pub(crate) fn namespace_offset(_: &str) -> u64 {
    0
}

pub(crate) fn suspended() -> u64 {
    0
}

#[cfg(test)]
pub(crate) fn process_time() -> u64 {
    0
}

pub(crate) fn raw(_: &File) -> i32 {
    -1
}

/// Never exists.
#[derive(Debug)]
pub(crate) struct Memory(Infallible);

impl Memory {
    pub(crate) fn map(_: &File, _: usize) -> io::Result<Self> {
        unsupported()
    }

    pub(crate) fn size(&self) -> usize {
        match self.0 {}
    }

    pub(crate) fn head(&self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn tail(&self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn set_tail(&self, _: u64) {
        match self.0 {}
    }

    pub(crate) fn copy(&self, _: u64, _: &mut [u8]) {
        match self.0 {}
    }
}
