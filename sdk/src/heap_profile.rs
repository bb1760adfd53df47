//! The settings of a heap profile.

#[cfg(feature = "enable")]
use crate::error::Error;
#[cfg(feature = "enable")]
use crate::options::parse_size;

/// The default mean of the bytes between two samples: that of heapprofd and jemalloc is of the same size. A
/// program that allocates 1 GiB in a second has 2,000 samples then.
const EVERY: u64 = 512 << 10;

/// A profile of the program's allocations, for
/// [`SessionBuilder::heap_profile`](crate::SessionBuilder::heap_profile).
///
/// ```
/// let profile = hairline::HeapProfile::new().every(64 << 10).at_peaks(16 << 20);
/// # let _ = profile;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a session records it with `SessionBuilder::heap_profile`"]
pub struct HeapProfile {
    pub(crate) every: u64,
    pub(crate) peak: Option<u64>,
}

impl Default for HeapProfile {
    fn default() -> Self {
        Self::new()
    }
}

impl HeapProfile {
    /// Creates a profile with one sample in 512 KiB, written at the session's end.
    pub const fn new() -> Self {
        Self { every: EVERY, peak: None }
    }

    /// Sets the mean of the bytes between two samples (default: 512 KiB; 0 counts as 1, which samples each
    /// allocation). With `n` samples in a stack, its sums are right to some `1 / sqrt(n)`: 100 samples, 50
    /// MiB by default, give 10 %.
    pub const fn every(mut self, bytes: u64) -> Self {
        self.every = if bytes == 0 { 1 } else { bytes };
        self
    }

    /// Writes the profile also at each new peak of the live bytes that is `bytes` above the one before
    /// (default: only at the session's end). It is in the file at once, and stays there if the process is
    /// killed. A flight recorder keeps the last one for its snapshots. Live bytes are those that were
    /// allocated since the session began, estimated from the samples, some 100 times in a second: a peak that
    /// lasts for less than 10 ms may be missed.
    pub const fn at_peaks(mut self, bytes: u64) -> Self {
        self.peak = Some(if bytes == 0 { 1 } else { bytes });
        self
    }

    /// Reads `on`, `off`, `512K`, `peak:64M` or `512K,peak:64M`. `None` for none.
    ///
    /// # Errors
    /// [`Error::Value`] about `what` if the text is malformed.
    #[cfg(feature = "enable")]
    pub(crate) fn parse(what: &'static str, text: &str) -> Result<Option<Self>, Error> {
        let expected = "use on, off, the mean of the bytes between two samples (512K), peak:64M for a dump at \
                        each new peak, or both with a comma between them";
        let wrong = |()| Error::Value { what, value: text.to_owned(), expected };
        match text.trim() {
            "off" | "0" => return Ok(None),
            "on" | "1" => return Ok(Some(Self::new())),
            _ => {}
        }
        let part = |profile: Self, part: &str| match part.trim().split_once(':') {
            Some(("peak", step)) => parse_size(step).map(|step| profile.at_peaks(step)),
            _ => parse_size(part).map(|every| profile.every(every)),
        };
        let (peaks, means): (Vec<&str>, Vec<&str>) = text.split(',').partition(|part| part.contains(':'));
        if peaks.len() > 1 || means.len() > 1 {
            return Err(wrong(()));
        }
        peaks.into_iter().chain(means).try_fold(Self::new(), part).map(Some).map_err(|_| wrong(()))
    }
}

#[cfg(all(test, feature = "enable"))]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_a_mean_a_step_or_both() {
        let parse = |text| HeapProfile::parse("HAIRLINE_HEAP", text).map_err(|e| e.to_string());
        let new = HeapProfile::new;
        for (text, profile) in [
            ("on", Some(new())),
            ("off", None),
            ("64K", Some(new().every(64 << 10))),
            ("peak:64M", Some(new().at_peaks(64 << 20))),
            ("1M, peak:1G", Some(new().every(1 << 20).at_peaks(1 << 30))),
        ] {
            assert_eq!(parse(text), Ok(profile), "{text}");
        }
        for wrong in ["often", "peak", "peak:", "64K;peak:1M", "low:1M", ",", "64K,512K", "peak:1M,peak:2M"] {
            assert!(parse(wrong).unwrap_err().contains("HAIRLINE_HEAP"), "{wrong}");
        }
    }
}
