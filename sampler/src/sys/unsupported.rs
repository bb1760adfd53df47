//! A system without timers of a thread's CPU time.

use std::convert::Infallible;
use std::io;

use crate::ring::{Claimed, Note, Ring};
use crate::sys::found::Found;
use crate::watch::Watch;

/// A timer, which there is none of.
#[derive(Debug)]
pub(crate) struct Timer(Infallible);

/// The handler, which there is none of.
#[derive(Debug)]
pub(crate) struct Handler(Infallible);

impl Timer {
    pub(crate) fn of_thread(_: u32, _: Option<i32>, _: u64) -> io::Result<Found<Self>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Handler {
    pub(crate) fn install(_: Box<Ring>) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn ring(&self) -> &Ring {
        match self.0 {}
    }

    pub(crate) fn is_installed(&self) -> bool {
        match self.0 {}
    }
}

pub(crate) fn install_watch(_: &'static Watch) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn ask(_: u32) -> Option<Timer> {
    None
}

pub(crate) fn is_there(_: u32) -> bool {
    true
}

#[inline(always)]
pub(crate) fn here() -> [u64; 3] {
    [0; 3]
}

#[inline(always)]
pub(crate) fn stay() {}

/// A set of signals, of which none are blocked here.
pub(crate) type SignalMask = ();

pub(crate) fn block_signals() -> SignalMask {}

pub(crate) fn restore_signals((): SignalMask) {}

pub(crate) fn sample_at(_: Claimed<'_>, _: [u64; 3], _: Note) {}

pub(crate) fn threads() -> Option<Vec<u32>> {
    None
}

pub(crate) fn tick() -> u64 {
    1
}

/// The clock of real time.
pub(crate) const CLOCK_MONOTONIC: i32 = 0;

/// The number of registers of a sample.
pub(crate) const REGISTERS: usize = 0;
