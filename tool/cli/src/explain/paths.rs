//! The paths in the names of functions.

/// A short name of a function: the last part of its path, with its type or module. `inside` are the names of
/// the functions inside of it, the outermost first.
pub(super) fn short<'a>(name: &str, file: &str, inside: impl Iterator<Item = &'a str>) -> String {
    let path = without_arguments(name);
    if let Some(short) = last_two(&path) {
        return short;
    }
    let Some(module) = module_of(file) else {
        let name = path.trim_start_matches('_');
        let name = name.strip_prefix("GI_").unwrap_or(name).trim_start_matches('_');
        return name.strip_prefix("libc_").unwrap_or(name).to_owned();
    };
    // `lock` of `mutex.rs`, which calls `Mutex::lock_contended`, is `Mutex::lock`.
    let types = inside.filter_map(|name| last_two(&without_arguments(name)));
    let mut types = types.filter_map(|short| short.split_once("::").map(|(of, _)| of.to_owned()));
    let of =
        types.find(|of| of.to_lowercase() == module.replace('_', "")).unwrap_or_else(|| module.to_owned());
    format!("{of}::{path}")
}

/// Whether the name of a function has its path. Those of inlined functions often have none.
pub(super) fn has_path(name: &str) -> bool {
    without_arguments(name).contains("::")
}

/// The modules that say nothing.
const NO_MODULES: [&str; 5] = ["mod", "lib", "src", "functions", "impls"];

/// The last two parts of a path, if it has as many.
fn last_two(path: &str) -> Option<String> {
    let mut parts = path.rsplit("::").filter(|part| !part.is_empty() && !NO_MODULES.contains(part));
    let (last, before) = (parts.next()?, parts.next()?);
    Some(format!("{before}::{last}"))
}

/// The module of a source file of Rust: that of `library/std/src/sync/mutex.rs` is `mutex`.
fn module_of(file: &str) -> Option<&str> {
    let file = file.strip_suffix(".rs")?;
    let mut parts = file.rsplit('/').filter(|part| !NO_MODULES.contains(part));
    parts.next()
}

/// The path of a function without the arguments of generics. That of `<app::T as Trait>::f` is `app::T::f`.
/// A type without a path is replaced by the trait.
fn without_arguments(name: &str) -> String {
    let Some(end) = name.strip_prefix('<').and_then(closing) else { return outside_of_angles(name) };
    let (of, rest) = (&name[1..=end], &name[end + 2..]);
    let of = outside_of_angles(of);
    let (of, of_trait) = of.split_once(" as ").unwrap_or((&of, ""));
    let of = of.trim_start_matches(['&', '*', '[', '(']);
    let of = ["mut ", "const ", "dyn "].iter().find_map(|prefix| of.strip_prefix(prefix)).unwrap_or(of);
    let is_path = of.contains("::");
    let of = if is_path || of_trait.is_empty() { of } else { of_trait };
    format!("{of}{}", outside_of_angles(rest))
}

/// The index before the `>` that closes an angle which is open at the begin.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    let mut last = ' ';
    for (index, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if last != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
        last = c;
    }
    None
}

fn outside_of_angles(text: &str) -> String {
    let (mut out, mut depth, mut last) = (String::new(), 0_usize, ' ');
    for c in text.chars() {
        match c {
            '<' => depth += 1,
            '>' if last != '-' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(c),
            _ => {}
        }
        last = c;
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_short() {
        let short = |name, file| super::short(name, file, std::iter::empty());
        assert_eq!(short("<alloc::vec::Vec<T, A> as core::clone::Clone>::clone", ""), "Vec::clone");
        assert_eq!(short("<&mut R as std::io::Read>::read_exact", ""), "Read::read_exact");
        assert_eq!(short("core::slice::<impl [T]>::sort", ""), "slice::sort");
        assert_eq!(short("std::panicking::catch_unwind::<fn(u8) -> u8, F>", ""), "panicking::catch_unwind");
        assert_eq!(short("<std::fs::File>::sync_all", ""), "File::sync_all");
        assert_eq!(short("__GI___clock_nanosleep", "./time/clock_nanosleep.c"), "clock_nanosleep");
        assert_eq!(short("create<&str>", "/rustc/0123/library/std/src/fs.rs"), "fs::create");
        assert_eq!(short("read", "/rustc/0123/library/std/src/io/impls.rs"), "io::read");
        let inner = ["lock", "<std::sys::sync::mutex::futex::Mutex>::lock_contended"];
        let mutex = "/rustc/0123/library/std/src/sync/poison/mutex.rs";
        assert_eq!(super::short("lock<u64>", mutex, inner.into_iter()), "Mutex::lock");
        assert_eq!(short("lock<u64>", mutex), "mutex::lock");
    }
}
