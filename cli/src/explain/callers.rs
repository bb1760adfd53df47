//! The functions that a list of functions passes over, because they work for their callers.

use hairline_convert::sampled::Function;

/// Crates that allocate and wait for their callers.
const FOR_CALLERS: [&str; 8] =
    ["std", "core", "alloc", "hashbrown", "tokio", "hairline", "hairline_sampler", "__rustc"];

/// The functions in which waits of the C library and of the standard library end, whatever they wait for,
/// without the underscores before them.
const WAITS: [&str; 10] = [
    "futex_abstimed_wait64",
    "futex_abstimed_wait_cancelable64",
    "futex_abstimed_wait_common",
    "futex_abstimed_wait_common64",
    "futex_wait",
    "internal_syscall_cancel",
    "lock_contended",
    "syscall",
    "syscall_cancel",
    "syscall_cancel_arch",
];

/// Whether a function is of one of these crates. The drop of a type is of the type's crate.
pub(super) fn is_of(name: &str, crates: &[&str]) -> bool {
    let name = name.strip_prefix("core::ptr::drop_in_place").unwrap_or(name);
    let name = name.trim_start_matches([':', '<', '&']);
    crates.iter().any(|of| name.strip_prefix(of).is_some_and(|rest| rest.starts_with("::")))
}

/// Whether a function works for its caller: it is of such a crate, or all waits end in it.
pub(super) fn is_for_callers(of: &Function<'_>) -> bool {
    // `<T as alloc::slice::hack::ConvertVec>::to_vec`: of a type without a path counts the trait.
    let of_trait = of.name.strip_prefix('<').and_then(|name| name.split_once(" as "));
    let is_by_name = is_of(of.name, &FOR_CALLERS)
        || of_trait.is_some_and(|(of, of_trait)| !of.contains("::") && is_of(of_trait, &FOR_CALLERS));
    is_by_name || is_wait(of.name) || is_in_source_of(of.file)
}

/// Whether all waits end in a function, so that it does not say what a thread waits for.
pub(super) fn is_wait(name: &str) -> bool {
    let name = name.rsplit("::").next().unwrap_or(name).trim_start_matches('_');
    WAITS.contains(&name.strip_prefix("GI_").unwrap_or(name).trim_start_matches('_'))
}

/// Whether a file is of the standard library, or of such a crate from a registry.
fn is_in_source_of(file: &str) -> bool {
    let in_registry = || {
        let krate = file.split_once("/registry/src/")?.1.split('/').nth(1)?;
        let name = krate.rsplit_once('-')?.0.replace('-', "_");
        FOR_CALLERS.contains(&&*name).then_some(())
    };
    file.starts_with("/rustc/")
        || file.contains("/library/alloc/src/")
        || file.contains("/library/core/src/")
        || file.contains("/library/std/src/")
        || in_registry().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_allocate_for_their_callers_are_known_by_name_or_by_file() {
        fn is(name: &str, file: &str) -> bool {
            is_for_callers(&Function { name, file, line: 0 })
        }
        assert!(is("alloc::raw_vec::RawVec<T,A>::grow_one", ""));
        assert!(is("<T as alloc::slice::hack::ConvertVec>::to_vec", ""));
        assert!(is("<alloc::vec::Vec<T> as core::clone::Clone>::clone", ""));
        assert!(is("with_capacity", "/rustc/0123/library/alloc/src/vec/mod.rs"));
        let in_registry =
            |name, path: &str| is(name, &format!("/home/me/.cargo/registry/src/index.crates.io-6f17/{path}"));
        assert!(in_registry("reserve_rehash", "hashbrown-0.15.2/src/raw/mod.rs"));
        assert!(!in_registry("decode", "prost-0.13.1/src/lib.rs"));
        assert!(!is("<app::Cache as core::clone::Clone>::clone", "src/cache.rs"));
        assert!(!is("allocator::run", "") && !is("push", "src/list.rs"));
    }

    #[test]
    fn functions_in_which_all_waits_end_are_known() {
        let waits = [
            "__futex_abstimed_wait_common64",
            "__GI___futex_abstimed_wait_cancelable64",
            "__syscall_cancel_arch",
            "syscall",
            "std::sys::pal::unix::futex::futex_wait",
            "<std::sys::sync::mutex::futex::Mutex>::lock_contended",
        ];
        assert!(waits.iter().all(|name| is_wait(name)));
        let others = ["__pthread_clockjoin_ex", "pthread_cond_wait", "clock_nanosleep", "app::syscalls", ""];
        assert!(!others.iter().any(|name| is_wait(name)));
    }
}
