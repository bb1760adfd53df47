//! Whose a function is: the program's own, or one of those that work for their callers.

use std::borrow::Cow;

use hairline_convert::sampled::Function;

/// Crates that allocate, wait, record and run tasks for their callers.
const FOR_CALLERS: [&str; 28] = [
    "std",
    "core",
    "alloc",
    "hashbrown",
    "__rustc",
    "hairline",
    "hairline_formats",
    "hairline_perf",
    "hairline_sampler",
    "hairline_shm",
    "hairline_stacks",
    "hairline_tokio",
    "tracing",
    "tracing_core",
    "tracing_subscriber",
    "log",
    "parking_lot",
    "parking_lot_core",
    "lock_api",
    "tokio",
    "futures_core",
    "futures_executor",
    "futures_util",
    "async_executor",
    "async_std",
    "smol",
    "rayon",
    "rayon_core",
];

/// The crates of these whose functions only pass on what they are given: containers, iterators, drops, and
/// the way to the allocator.
const PASS_ON: [&str; 4] = ["core", "alloc", "hashbrown", "__rustc"];

/// The libraries of the C language, by the begins of their names.
const OF_C: [&str; 12] = [
    "ld-",
    "ld.so",
    "libc.",
    "libc-",
    "libm.",
    "libm-",
    "libpthread",
    "libdl.",
    "librt.",
    "libgcc_s",
    "libsystem_",
    "ntdll",
];

/// The function of the C library that is linked into each program, and calls its `main`.
const START: &str = "_start";

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

/// Whose a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Of the program, or of a crate that it uses.
    Program,
    /// Of the C library, the standard library, a runtime or the kernel.
    Library,
    /// Of a library whose functions only pass on what they are given.
    PassingOn,
}

impl Owner {
    /// The owner of a function in a program or library with this path.
    pub(super) fn of(function: &Function<'_>, module: &str) -> Self {
        let krate = crate_of(function.name).map(Cow::from).or_else(|| crate_of_file(function.file));
        match krate {
            _ if is_of_system(module) || function.name == START => Self::Library,
            Some(krate) if PASS_ON.contains(&&*krate) => Self::PassingOn,
            _ if is_for_callers(function) => Self::Library,
            _ => Self::Program,
        }
    }
}

/// Whether a program or library with this path is the kernel, or a part of the C library.
pub(super) fn is_of_system(module: &str) -> bool {
    let file = module.rsplit(['/', '\\']).next().unwrap_or(module);
    // What is no file: `[vdso]`.
    file.starts_with('[') || OF_C.iter().any(|of| file.starts_with(of))
}

/// The crate of a function, if its name has a path. Of a type without a path counts the trait:
/// `<T as alloc::slice::hack::ConvertVec>::to_vec`.
fn crate_of(name: &str) -> Option<&str> {
    fn first(mut path: &str) -> Option<&str> {
        while let Some(rest) = ["<", "&", "*", "[", "(", "mut ", "const ", "dyn ", "impl "]
            .iter()
            .find_map(|prefix| path.strip_prefix(prefix))
        {
            path = rest;
        }
        let end = path.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
        (end > 0 && path[end..].starts_with("::")).then(|| &path[..end])
    }
    if name.starts_with("__rust_") || name.starts_with("__rdl_") || name.starts_with("__rg_") {
        return Some("__rustc");
    }
    let of_trait = || name.strip_prefix('<')?.split_once(" as ").map(|(_, of_trait)| of_trait);
    first(name).or_else(|| of_trait().and_then(first))
}

/// The crate of a source file of the standard library, of a registry or of a folder with copies of crates.
fn crate_of_file(file: &str) -> Option<Cow<'_, str>> {
    // Without the version.
    let of_folder = |name: &str| {
        let has_version = |(_, version): &(&str, &str)| version.starts_with(|c: char| c.is_ascii_digit());
        let name = name.rsplit_once('-').filter(has_version).map_or(name, |(name, _)| name);
        Some(name.replace('-', "_").into())
    };
    if let Some((_, path)) = file.split_once("/registry/src/") {
        return of_folder(path.split('/').nth(1)?);
    }
    if let Some((_, path)) = file.split_once("/vendor/") {
        return of_folder(path.split('/').next()?);
    }
    if let Some((_, path)) = file.split_once("/library/") {
        let (krate, rest) = path.split_once('/')?;
        let is_standard = rest.starts_with("src/") || rest.starts_with("crates/");
        return (is_standard && ["core", "alloc", "std", "stdarch"].contains(&krate))
            .then(|| if krate == "stdarch" { "core" } else { krate }.into());
    }
    // The crates that the standard library contains.
    of_folder(file.strip_prefix("/rust/deps/")?.split('/').next()?)
}

/// Whether a function is of one of these crates.
pub(super) fn is_of(name: &str, crates: &[&str]) -> bool {
    crate_of(name).is_some_and(|krate| crates.contains(&krate))
}

/// Whether a function works for its caller: it is of such a crate, or all waits end in it. Its file counts
/// only if its name has no path: it may be the file of a function that is inlined there.
pub(super) fn is_for_callers(of: &Function<'_>) -> bool {
    let is_of_one = match crate_of(of.name) {
        Some(krate) => FOR_CALLERS.contains(&krate),
        None => {
            of.file.starts_with("/rustc/")
                || of.file.starts_with("/rust/deps/")
                || crate_of_file(of.file).is_some_and(|krate| FOR_CALLERS.contains(&&*krate))
        }
    };
    is_of_one || is_wait(of.name)
}

/// Whether all waits end in a function, so that it does not say what a thread waits for.
pub(super) fn is_wait(name: &str) -> bool {
    let name = name.rsplit("::").next().unwrap_or(name).trim_start_matches('_');
    WAITS.contains(&name.strip_prefix("GI_").unwrap_or(name).trim_start_matches('_'))
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
        assert!(is("<&dyn core::ops::function::Fn<()> as core::ops::function::FnOnce<()>>::call_once", ""));
        let in_registry =
            |name, path: &str| is(name, &format!("/home/me/.cargo/registry/src/index.crates.io-6f17/{path}"));
        assert!(in_registry("reserve_rehash", "hashbrown-0.15.2/src/raw/mod.rs"));
        assert!(!in_registry("decode", "prost-0.13.1/src/lib.rs"));
        assert!(
            is("park", "/src/app/vendor/tokio/src/park.rs")
                && is("push", "/src/app/vendor/log-0.4.1/src/lib.rs")
        );
        assert!(!is("<app::Cache as core::clone::Clone>::clone", "src/cache.rs"));
        assert!(!is("allocator::run", "") && !is("push", "src/list.rs"));
        // The first line of a function may be one that is inlined there.
        assert!(!is("app::Trie::insert", "/rustc/0123/library/core/src/slice/index.rs"));
    }

    #[test]
    fn the_owner_of_a_function_is_known_by_the_library_too() {
        let of = |name, file, module| Owner::of(&Function { name, file, line: 0 }, module);
        assert_eq!(of("__GI___libc_malloc", "./malloc/malloc.c", "/usr/lib/libc.so.6"), Owner::Library);
        assert_eq!(of("clock_gettime", "", "[vdso]"), Owner::Library);
        assert_eq!(of("_start", "", "/opt/app/server"), Owner::Library);
        assert_eq!(of("malloc", "src/arena.c", "/opt/app/server"), Owner::Program);
        assert_eq!(of("crunch", "src/main.c", "/opt/app/libcrunch.so"), Owner::Program);
        assert_eq!(of("lock<u64>", "/rustc/1/library/std/src/sync/poison/mutex.rs", "app"), Owner::Library);
        assert_eq!(of("next<u64>", "/rustc/1/library/core/src/slice/iter.rs", "app"), Owner::PassingOn);
        assert_eq!(
            of("_mm_add", "/rustc/1/library/core/src/../../stdarch/crates/x.rs", "app"),
            Owner::PassingOn
        );
        assert_eq!(
            of("drop_in_place<app::Cache>", "/rustc/1/library/core/src/ptr/mod.rs", "app"),
            Owner::PassingOn
        );
        assert_eq!(of("__rdl_alloc", "", "app"), Owner::PassingOn);
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
