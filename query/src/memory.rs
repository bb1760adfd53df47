//! The memory of a question: a limit for all steps together.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};

/// The least memory that a question has if its user sets none, in MiB.
const LEAST: u64 = 1024;

/// Returns the memory of a question whose user sets none, in MiB: a quarter of the machine's or, in a
/// container with less, of the container's.
pub(crate) fn usual() -> u32 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let container = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let container = container.and_then(|bytes| bytes.trim().parse::<u64>().ok()).map(|bytes| bytes >> 20);
    a_quarter(machine.into_iter().chain(container).min())
}

/// The total memory in the text of `/proc/meminfo`, in MiB.
fn total(text: &str) -> Option<u64> {
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix(" kB")?;
    Some(kib.parse::<u64>().ok()? >> 10)
}

fn a_quarter(mib: Option<u64>) -> u32 {
    u32::try_from((mib.unwrap_or(0) / 4).max(LEAST)).unwrap_or(u32::MAX)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_has_a_quarter_of_the_memory_and_never_less_than_before() {
        let text = "MemTotal:       24567890 kB\nMemFree:         1234567 kB\n";
        assert_eq!(total(text), Some(23_992));
        assert_eq!((total("MemTotal: many"), total("")), (None, None));
        assert_eq!([Some(23_992), Some(2000), None].map(a_quarter), [5998, 1024, 1024]);
    }
}
