//! dial9, started by the variable `DIAL9` as a user would in `main`.

#[cfg(feature = "dial9")]
pub(crate) fn dial9() -> Option<impl Sized> {
    use dial9_core::buffer::DiskBuffer;
    use dial9_core::recorder::recorder;
    use dial9_perf_self_profile::memory_profiling::MemoryProfilingConfig;
    use dial9_perf_self_profile::{CpuProfilingConfig, RecorderPerfExt};

    let [file, what] = ["DIAL9", "DIAL9_RECORDS"].map(|name| std::env::var(name).ok());
    let recorder = recorder(DiskBuffer::single_file(file?).expect("a file"));
    Some(match what.as_deref() {
        Some("heap") => {
            let config = MemoryProfilingConfig::builder().track_liveset(true).build();
            recorder.with_memory_profiling(config).build()
        }
        Some("signals") => {
            recorder.with_cpu_profiling(CpuProfilingConfig::with_ctimer_backend().frequency_hz(99)).build()
        }
        _ => recorder.with_cpu_profiling(CpuProfilingConfig::with_perf_backend().frequency_hz(99)).build(),
    })
}

#[cfg(not(feature = "dial9"))]
pub(crate) fn dial9() {}
