//! A system without perf events.

use std::convert::Infallible;
use std::io;

use crate::abi::EventAttr;

/// Never exists.
pub(crate) type Fd = Infallible;

pub(crate) fn open(_: &EventAttr, _: u32, _: Option<u32>) -> io::Result<Fd> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no perf events"))
}

pub(crate) fn enable(fd: &Fd) -> io::Result<()> {
    match *fd {}
}

pub(crate) fn disable(fd: &Fd) -> io::Result<()> {
    match *fd {}
}

pub(crate) fn set_output(fd: &Fd, _: &Fd) -> io::Result<()> {
    match *fd {}
}

pub(crate) fn read_words(fd: &Fd, _: &mut [u64]) -> io::Result<usize> {
    match *fd {}
}

pub(crate) fn suspended() -> u64 {
    0
}

#[cfg(test)]
pub(crate) fn process_time() -> u64 {
    0
}

pub(crate) fn raw(fd: &Fd) -> i32 {
    match *fd {}
}

/// Never exists.
#[derive(Debug)]
pub(crate) struct Memory(Infallible);

impl Memory {
    pub(crate) fn map(fd: &Fd, _: usize) -> io::Result<Self> {
        match *fd {}
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
