//! Who is recorded when, with which build, and what is wrong there.

/// The services.
pub(crate) const SERVICES: [&str; 5] = ["web", "auth", "orders", "search", "storage"];
/// Processes beside the service in each trace, which a flow may reach.
pub(crate) const HELPERS: [&str; 3] = ["cache", "mail", "log"];
/// The builds.
pub(crate) const VERSIONS: [&str; 2] = ["1.4.0", "1.5.0"];
/// The service and the slice that take half as long again with the new build.
pub(crate) const SLOWER: (&str, &str) = ("orders", "price");
/// The service whose requests fail more often with the new build.
pub(crate) const FAILING: &str = "search";
/// A request takes about so many slices.
pub(crate) const SLICES_OF_REQUEST: u32 = 10;
/// The workers of a service.
pub(crate) const WORKERS: u32 = 4;

/// 2026-11-20 00:00:00 UTC in nanoseconds.
const FIRST_DAY: i64 = 1_795_132_800_000_000_000;
const HOUR: i64 = 3_600_000_000_000;

/// One trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) run: u32,
    pub(crate) service: usize,
    pub(crate) requests: u32,
}

impl Plan {
    pub(crate) fn new(run: u32, service: usize, slices: u32) -> Self {
        Self { run, service, requests: slices.div_ceil(SLICES_OF_REQUEST).next_multiple_of(WORKERS) }
    }

    pub(crate) fn service(&self) -> &'static str {
        SERVICES[self.service]
    }

    pub(crate) fn version(&self) -> &'static str {
        VERSIONS[(self.run % 2) as usize]
    }

    /// The number of the trace in the fleet.
    pub(crate) fn number(&self) -> u64 {
        u64::from(self.run) * SERVICES.len() as u64 + self.service as u64
    }

    /// The trace's id. Ids of hostile or plain digits must not become numbers, so some have digits only.
    pub(crate) fn uuid(&self) -> u128 {
        (u128::from(self.number()) << 64) | 0x1000_0000_0000_0000
    }

    /// The wall clock at the begin, in nanoseconds since 1970. The runs of an hour are on one day.
    pub(crate) fn wall(&self) -> i64 {
        FIRST_DAY + i64::from(self.run) * HOUR
    }

    /// The trace's clock at its begin.
    pub(crate) fn boot(&self) -> i64 {
        1_000_000_000_000 + i64::from(self.run) * HOUR
    }

    /// The request that lasts 40 ms more, if there is one, and whether it could not run in that time.
    pub(crate) fn slow_request(&self) -> Option<(u32, bool)> {
        match self.number() % 17 {
            3 => Some((self.requests / 2, true)),
            5 => Some((self.requests / 3, false)), // it computes: not what the question is about
            _ => None,
        }
    }

    /// The number of events that the trace has lost.
    pub(crate) fn lost(&self) -> u64 {
        if self.number() % 19 == 7 { 100 + self.number() } else { 0 }
    }

    /// One request of so many fails.
    pub(crate) fn one_failure_in(&self) -> u64 {
        if self.service() == FAILING && self.version() == VERSIONS[1] { 100 } else { 1000 }
    }

    /// The usual duration of a slice of this trace.
    pub(crate) fn usual(&self, name: &str, ns: i64) -> i64 {
        let is_slower = (self.service(), name) == SLOWER && self.version() == VERSIONS[1];
        if is_slower { ns * 3 / 2 } else { ns }
    }

    /// The number of helper processes that a request reaches by its flow. `None` if it has no flow.
    pub(crate) fn helpers(&self, request: u32) -> Option<usize> {
        request.is_multiple_of(10).then_some((request / 10) as usize % (HELPERS.len() + 1))
    }

    /// The flow of a request: its id is unique in the fleet.
    pub(crate) fn flow(&self, request: u32) -> u64 {
        (self.number() + 1) << 32 | (u64::from(request) + 1)
    }
}
