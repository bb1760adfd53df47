//! Ticks to nanoseconds.

/// The rate of a clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    ticks_per_second: u64,
}

const NS: u64 = 1_000_000_000;

impl Default for Rate {
    fn default() -> Self {
        Self { ticks_per_second: NS }
    }
}

impl Rate {
    /// Returns `None` for a rate of 0.
    pub(super) fn new(ticks_per_second: u64) -> Option<Self> {
        (ticks_per_second != 0).then_some(Self { ticks_per_second })
    }

    /// Rounds down. Returns `None` beyond 63 bits of nanoseconds, which are 292 years.
    #[inline]
    pub(super) fn ns(self, ticks: u64) -> Option<i64> {
        if self.ticks_per_second == NS { i64::try_from(ticks).ok() } else { self.scaled(ticks) }
    }

    fn scaled(self, ticks: u64) -> Option<i64> {
        let (seconds, rest) = (ticks / self.ticks_per_second, ticks % self.ticks_per_second);
        let rest = match rest.checked_mul(NS) {
            Some(scaled) => scaled / self.ticks_per_second,
            // The result is less than a second.
            None => (u128::from(rest) * u128::from(NS) / u128::from(self.ticks_per_second)) as u64,
        };
        i64::try_from(seconds.checked_mul(NS)?.checked_add(rest)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_converted_exactly() {
        let ns = |rate, ticks| Rate::new(rate).unwrap().ns(ticks);
        assert_eq!(ns(NS, 123), Some(123));
        assert_eq!(ns(1000, 1_234), Some(1_234_000_000));
        assert_eq!(ns(3, 10), Some(3_333_333_333));
        assert_eq!(ns(24_000_000, 24_000_001), Some(1_000_000_041));
        assert_eq!(ns(u64::MAX, u64::MAX - 1), Some(999_999_999));
        assert_eq!(
            ns(2_900_000_000, 2_900_000_000 * 86_400 * 365 + 29),
            Some(86_400 * 365 * 1_000_000_000 + 10)
        );
    }

    #[test]
    fn what_cannot_be_said_is_none() {
        assert!(Rate::new(0).is_none());
        assert_eq!(Rate::default().ns(1 << 63), None);
        assert_eq!(Rate::new(1).unwrap().ns(u64::MAX), None);
    }
}
