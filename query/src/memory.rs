//! The memory of a question: a limit for all steps together.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};

/// Memory that steps which can spill share evenly. A quarter is kept for the others: the engine's own pools
/// let sorts take all, and a join of two sorted sides then has nothing for its rows.
#[derive(Debug)]
pub(crate) struct Shared {
    bytes: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    /// The number of steps that can spill.
    spilling: usize,
    /// The bytes of steps that can spill, and of the others.
    by_spilling: usize,
    by_others: usize,
}

impl Shared {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { bytes, used: Mutex::default() }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Used {
    fn of(&mut self, consumer: &MemoryConsumer) -> &mut usize {
        if consumer.can_spill() { &mut self.by_spilling } else { &mut self.by_others }
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB", self.bytes >> 20)
    }
}

impl MemoryPool for Shared {
    fn name(&self) -> &str {
        "shared"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.used().spilling += usize::from(consumer.can_spill());
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.used().spilling -= usize::from(consumer.can_spill());
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        *self.used().of(reservation.consumer()) += additional;
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        *self.used().of(reservation.consumer()) -= shrink;
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let (mut used, consumer) = (self.used(), reservation.consumer());
        let is_enough = if consumer.can_spill() {
            let all = self.bytes.saturating_sub(used.by_others.max(self.bytes / 4));
            reservation.size() + additional <= all / used.spilling.max(1)
        } else {
            used.by_spilling + used.by_others + additional <= self.bytes
        };
        if !is_enough {
            let (name, has) = (consumer.name(), reservation.size());
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{name} has {has} bytes and needs {additional} more, of {self} for all"
            )));
        }
        *used.of(consumer) += additional;
        Ok(())
    }

    fn reserved(&self) -> usize {
        let used = self.used();
        used.by_spilling + used.by_others
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.bytes)
    }
}
