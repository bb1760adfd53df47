//! The samples and the heap profile of a dead process, which its session has kept on the region's tapes.
//!
//! Of a flight recorder and of a rotated output these are the samples themselves, for the others the
//! functions of those that are in the output.

/// Returns the samples of a tape, with the functions of their frames. A thread that `is_traced` has a name in
/// what is left of the trace, or in all of it if it `is_whole`.
///
/// # Errors
/// A sentence that says why there are none.
#[cfg(feature = "sampling")]
pub(super) fn part(
    tape: &[u8],
    is_traced: &dyn Fn(u32) -> bool,
    is_whole: bool,
) -> Result<Vec<u8>, &'static str> {
    let entries: Vec<&[u8]> = hairline_shm::tape_entries(tape).collect();
    let Some(window) = hairline_stacks::Window::read(&entries) else { return Ok(Vec::new()) };
    let named = if is_whole { window.named() } else { Default::default() };
    Ok(window.write(&|task| task.tid == task.pid || is_traced(task.tid) || named.contains(&task.tid)))
}

/// Finds that nobody here can read the samples.
#[cfg(not(feature = "sampling"))]
pub(super) fn part(tape: &[u8], _: &dyn Fn(u32) -> bool, _: bool) -> Result<Vec<u8>, &'static str> {
    const WITHOUT: &str = "the samples are left out: this program was built without hairline's feature `sampling`; \
                           `hairline recover` has it";
    if tape.is_empty() { Ok(Vec::new()) } else { Err(WITHOUT) }
}

/// Returns the heap profile of a tape, with the functions of its frames. `has_original`: it is added to
/// what the session has written.
///
/// # Errors
/// A sentence that says why there is none.
#[cfg(feature = "sampling")]
pub(super) fn heap_profile(tape: &[u8], has_original: bool) -> Result<Vec<u8>, &'static str> {
    let entries: Vec<&[u8]> = hairline_shm::tape_entries(tape).collect();
    Ok(hairline_stacks::HeapWindow::read(&entries, has_original)?
        .map(hairline_stacks::HeapWindow::write)
        .unwrap_or_default())
}

/// Finds that nobody here can read the profile.
#[cfg(not(feature = "sampling"))]
pub(super) fn heap_profile(tape: &[u8], _: bool) -> Result<Vec<u8>, &'static str> {
    const WITHOUT: &str = "the heap profile is left out: this program was built without hairline's feature \
                           `sampling`; `hairline recover` has it";
    if tape.is_empty() { Ok(Vec::new()) } else { Err(WITHOUT) }
}
