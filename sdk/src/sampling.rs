//! Which samples of call stacks a session takes.

use crate::error::Error;
use crate::filter::Filter;

/// The most samples in a second of CPU time. Each takes some 20 us: these take a fifth of a thread's time.
const MOST: u32 = 10_000;
/// The most in a second of real time: a thread that sleeps is woken for each.
const MOST_BY_CLOCK: u32 = 1_000;

/// What threads are sampled by, and how often.
#[derive(Clone, Debug)]
#[cfg_attr(not(all(feature = "enable", feature = "sampling")), allow(dead_code))]
pub(crate) enum Sampling {
    /// So many times in a second of CPU time: by the kernel's events, or by signals where it refuses
    /// them, and in a flight recorder.
    CpuTime(u32),
    /// So many times in a second of CPU time: by the kernel's events, or by signals where it refuses them.
    Kernel(u32),
    /// So many times in a second of CPU time, by signals.
    Signals(u32),
    /// So many times in a second, of threads whose names this filter includes.
    WallTime(u32, Filter),
}

/// What the samples have that threads take of themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(all(feature = "enable", feature = "sampling")), allow(dead_code))]
pub(crate) enum OwnStacks {
    /// The top of the stack, which is unwound.
    #[default]
    Copied,
    /// The addresses of the chain of frame pointers.
    ByFramePointers,
}

impl Sampling {
    /// Reads `HAIRLINE_SAMPLE`: `997`, `signals:99`, `kernel:99`, `wall:99` or `wall:99:PATTERNS`.
    /// `None`: no samples.
    ///
    /// # Errors
    /// [`Error::Value`] for another text, and those of [`Filter::parse`].
    #[cfg(feature = "enable")]
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, Error> {
        let expected = "use the number of samples in a second, 1 to 10000, or 0 for none; signals:99 for samples \
                        without perf events, kernel:99 for those by perf events in a flight recorder too; or wall:99, 1 to 1000, for samples by the clock, or wall:99:worker* for \
                        those of some threads";
        let wrong = || Error::Value { what: "HAIRLINE_SAMPLE", value: text.to_owned(), expected };
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let sampling = match text.trim().split_once(':') {
            None => Self::CpuTime(number(text)?),
            Some(("signals", frequency)) => Self::Signals(number(frequency)?),
            Some(("kernel", frequency)) => Self::Kernel(number(frequency)?),
            Some(("wall", rest)) => {
                let (frequency, threads) = rest.split_once(':').unwrap_or((rest, ""));
                Self::WallTime(number(frequency)?, Filter::parse(threads)?)
            }
            Some(_) => return Err(wrong()),
        };
        if sampling.is_too_often() {
            return Err(wrong());
        }
        Ok(Some(sampling).filter(|sampling| sampling.frequency() > 0))
    }

    /// Checks the number of samples.
    ///
    /// # Errors
    /// [`Error::Value`] if it is too large.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let (what, expected) = match self {
            Self::CpuTime(_) => ("sampling", "use the number of samples in a second, 0 to 10000"),
            Self::Kernel(_) => ("kernel_sampling", "use the number of samples in a second, 0 to 10000"),
            Self::Signals(_) => ("signal_sampling", "use the number of samples in a second, 0 to 10000"),
            Self::WallTime(..) => ("wall_sampling", "use the number of samples in a second, 0 to 1000"),
        };
        let wrong = Error::Value { what, value: self.frequency().to_string(), expected };
        if self.is_too_often() { Err(wrong) } else { Ok(()) }
    }

    /// The number of samples in a second.
    pub(crate) fn frequency(&self) -> u32 {
        let (Self::CpuTime(frequency)
        | Self::Kernel(frequency)
        | Self::Signals(frequency)
        | Self::WallTime(frequency, _)) = self;
        *frequency
    }

    fn is_too_often(&self) -> bool {
        self.frequency() > if matches!(self, Self::WallTime(..)) { MOST_BY_CLOCK } else { MOST }
    }
}
