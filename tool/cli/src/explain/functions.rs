//! The function that stands for a stack: the innermost one of the program, with what it called in a library.
//!
//! A stack of a Rust program ends in functions that its author did not write: the parts of a lock, iterators
//! that are inlined. The author knows the function of the program around them, and the function of a library
//! that it called. The latter is named only if the thread is in code of the library: code that is inlined in
//! the program's function is a part of that.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use hairline_convert::sampled::{Function, Samples, StackId};

use crate::explain::callers::{Owner, is_for_callers, is_of, is_of_system, is_wait};
use crate::explain::paths::{has_path, short};
use crate::explain::shares::Share;
use crate::table::plain;

/// The function that stands for a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// The function of a library that it called: `Mutex::lock`.
    pub(super) entered: Option<String>,
    /// The function of the program. If the stack has none, the function in which it waits, or the innermost.
    pub(super) function: String,
    /// The functions of the program that called it, the innermost first.
    callers: Vec<String>,
}

/// Where a stack was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// In any function.
    Any,
    /// In the functions that record an event. They come first.
    Event,
}

/// The folders with the sources of libraries that are no copies of a registry's. Inlined functions often
/// have no path, and so their files say whose they are.
#[derive(Debug, Default)]
pub(super) struct Folders(HashMap<String, Owner>);

impl Folders {
    /// Those of which all functions with a path are of libraries.
    pub(super) fn of(samples: &Samples) -> Self {
        let mut folders = HashMap::new();
        for place in samples.places() {
            for function in place.functions.iter().filter(|of| has_path(of.name)) {
                let Some((folder, _)) = function.file.rsplit_once("/src/") else { continue };
                let owner = Owner::of(function, samples.module_path(place.module));
                let known = folders.entry(folder.to_owned()).or_insert(owner);
                *known = if owner == Owner::Program { owner } else { *known };
            }
        }
        Self(folders)
    }

    /// The owner of a function in a program or library with this path.
    fn owner(&self, function: &Function<'_>, module: &str) -> Owner {
        let owner = Owner::of(function, module);
        if owner != Owner::Program || has_path(function.name) {
            return owner;
        }
        let folder = function.file.rsplit_once("/src/").and_then(|(folder, _)| self.0.get(folder));
        folder.copied().unwrap_or(owner)
    }
}

/// A function of a stack.
struct Step<'s> {
    name: Cow<'s, str>,
    file: &'s str,
    /// The file name of the program or library.
    module: &'s str,
    /// The number of its frame: inlined functions have that of the function around them.
    frame: usize,
    /// Whether the trace has its name. Else the name is an address.
    has_name: bool,
    /// `None`: it has no name, and is of no library of the system.
    owner: Option<Owner>,
}

impl Named {
    pub(super) fn of((samples, folders): (&Samples, &Folders), stack: StackId, at: At) -> Self {
        let steps = steps(samples, folders, stack);
        let found = function_of_program(&steps, at);
        let Some(found) = found else {
            let first = steps.iter().position(|step| !is_wait(&step.name)).unwrap_or(0);
            let function = steps.get(first).map_or_else(String::new, |step| step.name.to_string());
            let is_for_itself =
                |step: &&Step<'_>| !is_for_callers(&Function { name: &step.name, file: step.file, line: 0 });
            let callers = steps.iter().skip(first + 1).filter(is_for_itself);
            let callers = callers.map(|step| step.name.to_string()).collect();
            return Self { entered: None, function, callers };
        };
        let shown = around_closure(&steps, found);
        let is_caller = |step: &&Step<'_>| step.owner == Some(Owner::Program);
        let callers = steps[shown + 1..].iter().filter(is_caller).map(|step| step.name.to_string());
        Self {
            entered: if at == At::Event { None } else { entered(&steps[..found], steps[found].frame) },
            function: name_of_program(&steps[shown]),
            callers: callers.collect(),
        }
    }

    /// The function, with that many of its callers.
    pub(super) fn with_callers(&self, most: usize) -> String {
        let callers = self.callers.iter().take(most).map(|caller| format!(" < {caller}"));
        std::iter::once(self.to_string()).chain(callers).collect()
    }

    /// The function as a part of a sentence.
    pub(super) fn quoted(&self) -> String {
        let function = plain(&self.function);
        match &self.entered {
            Some(entered) => format!("`{}` in `{function}`", plain(entered)),
            None => format!("`{function}`"),
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.entered {
            Some(entered) => write!(f, "{entered} in {}", self.function),
            None => f.write_str(&self.function),
        }
    }
}

/// A share with the stack that has most of it.
pub(super) struct StackShare {
    pub(super) share: Share,
    pub(super) stack: StackId,
    /// How much of the share the stack has.
    pub(super) of_stack: i64,
}

/// The largest sums of stacks, each with its name. Stacks with equal names are one.
pub(super) fn largest_stacks(
    sums: &HashMap<StackId, i64>,
    name: impl Fn(StackId) -> String,
    most: usize,
) -> Vec<StackShare> {
    let mut by_name: HashMap<String, StackShare> = HashMap::new();
    for (&stack, &time) in sums {
        let what = name(stack);
        let none = || StackShare { share: Share { what: what.clone(), time: 0 }, stack, of_stack: time };
        let sum = by_name.entry(what.clone()).or_insert_with(none);
        sum.share.time = sum.share.time.saturating_add(time);
        if (time, std::cmp::Reverse(stack)) > (sum.of_stack, std::cmp::Reverse(sum.stack)) {
            (sum.stack, sum.of_stack) = (stack, time);
        }
    }
    let mut all: Vec<_> = by_name.into_values().collect();
    all.sort_by(|a, b| b.share.time.cmp(&a.share.time).then_with(|| a.share.what.cmp(&b.share.what)));
    all.truncate(most);
    all
}

/// The functions of a stack, the innermost first.
fn steps<'s>(samples: &'s Samples, folders: &Folders, stack: StackId) -> Vec<Step<'s>> {
    let mut steps = Vec::new();
    for (number, frame) in samples.frames(stack).enumerate() {
        let place = samples.place(frame);
        let path = samples.module_path(place.module);
        let module = path.rsplit(['/', '\\']).next().unwrap_or(path);
        if place.functions.is_empty() {
            let owner = is_of_system(path).then_some(Owner::Library);
            let name = samples.address_name(&place).into();
            steps.push(Step { name, file: "", module, frame: number, has_name: false, owner });
        }
        for function in place.functions.iter().rev() {
            let Function { name, file, .. } = *function;
            let owner = Some(folders.owner(function, path));
            steps.push(Step { name: name.into(), file, module, frame: number, has_name: true, owner });
        }
    }
    steps
}

/// The index of the innermost function of the program.
fn function_of_program(steps: &[Step<'_>], at: At) -> Option<usize> {
    // Functions of Hairline that are inlined have no path. All others that an event has are inside of one with a
    // path, so the search begins after it.
    let is_own = |step: &Step<'_>| is_of(&step.name, &["hairline", "hairline_sampler"]);
    let inside = steps.iter().take_while(|step| step.owner != Some(Owner::Program) || !has_path(&step.name));
    let own = if at == At::Event { inside.enumerate().filter(|(_, step)| is_own(step)).last() } else { None };
    let start = own.map_or(0, |(last, _)| last + 1);
    let found =
        start + steps[start..].iter().position(|step| step.owner.is_none_or(|of| of == Owner::Program))?;
    // A function without a name hides the program's function, unless the thread is in it.
    (steps[found].owner.is_some() || found == 0).then_some(found)
}

/// The index of the function that a closure without a path is a part of, or that of the closure: the function
/// around it, if both are in one file.
fn around_closure(steps: &[Step<'_>], found: usize) -> usize {
    let is_closure = |step: &Step<'_>| step.name.starts_with('{');
    if !is_closure(&steps[found]) {
        return found;
    }
    let outer = steps.iter().enumerate().skip(found + 1);
    let mut outer = outer.filter(|(_, step)| step.owner == Some(Owner::Program) && !is_closure(step));
    outer.next().filter(|(_, step)| step.file == steps[found].file).map_or(found, |(index, _)| index)
}

/// The name of a function of the program. A closure without a path has its file beside it.
fn name_of_program(step: &Step<'_>) -> String {
    let file = step.file.rsplit(['/', '\\']).next().filter(|file| !file.is_empty());
    match file {
        Some(file) if step.name.starts_with('{') => format!("{} of {file}", step.name),
        _ => step.name.to_string(),
    }
}

/// The function of a library that the program's function called, if the thread is in code of the library.
/// `inside` are the functions inside of the program's, whose frame has the number `frame`.
fn entered(inside: &[Step<'_>], frame: usize) -> Option<String> {
    if frame == 0 {
        return None;
    }
    // A container allocates and a drop frees: then the allocation is named.
    let called = inside.iter().rposition(|step| step.owner == Some(Owner::Library));
    let called = called.unwrap_or(inside.len().checked_sub(1)?);
    let Step { name, file, module, has_name, .. } = &inside[called];
    let name = if *has_name {
        short(name, file, inside[..called].iter().rev().map(|step| &*step.name))
    } else {
        (*module).to_owned()
    };
    let is_of_c = !name.contains("::");
    (!(is_of_c && is_wait(&name))).then_some(name)
}

/// A list of functions as a part of a sentence.
pub(super) fn function_list(functions: &[StackShare], share: impl Fn(i64) -> String) -> String {
    let one = |of: &StackShare| format!("{} {}", of.share.what, share(of.share.time));
    functions.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use hairline_convert::{Item, StackFrame, SymbolLine, Symbols};

    use super::*;

    const STD: &str = "/rustc/0123/library/std/src";
    const CORE: &str = "/rustc/0123/library/core/src";
    const ALLOC: &str = "/rustc/0123/library/alloc/src";
    const LIBC: &str = "/usr/lib/x86_64-linux-gnu/libc.so.6";
    const APP: &str = "/opt/app";

    /// A frame: its module, and its functions, each with its file, the innermost first.
    type Planted<'a> = (&'a str, &'a [(&'a str, &'a str)]);

    /// Reads these frames, the innermost first.
    fn read(samples: &mut Samples, frames: &[Planted<'_>]) -> StackId {
        let mut stack = Vec::new();
        for (index, (module, functions)) in frames.iter().enumerate().rev() {
            let address = (samples.stacks() as usize + index + 1) as u64 * 16;
            let line = |(name, file): &(&str, &str)| SymbolLine {
                function: (*name).to_owned(),
                file: (*file).to_owned(),
                line: 1,
            };
            let lines: Vec<_> = functions.iter().map(line).collect();
            let symbols = Symbols { module, build_id: &[], address, lines: &lines };
            samples.item(&Item::Symbols(symbols));
            stack.push(StackFrame { module, address, ..StackFrame::default() });
        }
        samples.stack(&stack.as_slice()).expect("room")
    }

    /// The name of a stack of these frames, the innermost first.
    fn named_at(frames: &[Planted<'_>], at: At) -> Named {
        let mut samples = Samples::default();
        let stack = read(&mut samples, frames);
        Named::of((&samples, &Folders::of(&samples)), stack, at)
    }

    fn named(frames: &[Planted<'_>]) -> String {
        named_at(frames, At::Any).to_string()
    }

    /// A file of the standard library.
    fn of(folder: &str, file: &str) -> String {
        format!("{folder}/{file}")
    }

    const MAIN: Planted<'_> = (APP, &[("app::main", "/src/app/src/main.rs")]);
    const START: Planted<'_> = (LIBC, &[("__libc_start_call_main", "./csu/libc-start.c")]);

    #[test]
    fn functions_that_are_inlined_in_one_of_the_program_are_a_part_of_it() {
        let (add, next) = (of(CORE, "ptr/non_null.rs"), of(CORE, "slice/iter/macros.rs"));
        let checksum =
            [("add<u64>", &*add), ("next<u64>", &*next), ("app::checksum", "/src/app/src/main.rs")];
        assert_eq!(named(&[(APP, &checksum), MAIN, START]), "app::checksum");
        // Also what the first line of the function is in.
        assert_eq!(named(&[(APP, &[("app::checksum", &*add)]), MAIN, START]), "app::checksum");
        // A function of the program that is inlined in another one is named.
        let inlined = [("next<u64>", &*next), ("sum", "/src/app/src/main.rs"), MAIN.1[0]];
        assert_eq!(named(&[(APP, &inlined), START]), "sum");
    }

    #[test]
    fn a_lock_is_named_with_the_function_that_takes_it() {
        let (futex, lock) = (of(STD, "sys/sync/mutex/futex.rs"), of(STD, "sync/poison/mutex.rs"));
        let contended = [("<std::sys::sync::mutex::futex::Mutex>::lock_contended", &*futex)];
        let (syscall, wait) = ((LIBC, &[("syscall", "")][..]), (APP, &contended[..]));
        // In a release build, `lock` is inlined and has no path.
        let journal = [("lock", &*futex), ("lock<u64>", &*lock), ("fault::journal", "/src/app/src/fault.rs")];
        let release = [syscall, wait, (APP, &journal), MAIN, START];
        assert_eq!(named(&release), "Mutex::lock in fault::journal");
        assert_eq!(named_at(&release, At::Any).quoted(), "`Mutex::lock` in `fault::journal`");
        let with_callers = named_at(&release, At::Any).with_callers(3);
        assert_eq!(with_callers, "Mutex::lock in fault::journal < app::main");
        let lock = [("<std::sync::poison::mutex::Mutex<u64>>::lock", &*lock)];
        let debug = [syscall, wait, (APP, &lock), (APP, &journal[2..]), MAIN, START];
        assert_eq!(named(&debug), "Mutex::lock in fault::journal");
    }

    #[test]
    fn a_container_that_allocates_is_named_by_the_allocator_and_any_other_by_itself() {
        let (vec, raw) = (of(ALLOC, "vec/mod.rs"), of(ALLOC, "raw_vec/mod.rs"));
        let build = [
            ("with_capacity<u8>", &*raw),
            ("from_elem<u8>", &*vec),
            ("plain::build", "/src/app/src/main.rs"),
        ];
        let malloc = (LIBC, &[("_int_malloc", "./malloc/malloc.c")][..]);
        let entered = (LIBC, &[("__GI___libc_malloc", "./malloc/malloc.c")][..]);
        let shim = (APP, &[("__rustc::__rust_alloc", "")][..]);
        assert_eq!(named(&[malloc, entered, shim, (APP, &build), START]), "malloc in plain::build");
        // A library without symbols.
        assert_eq!(named(&[(LIBC, &[]), shim, (APP, &build), START]), "libc.so.6 in plain::build");
        let sort = [("core::slice::sort::stable::quicksort::<u64, F>", "")];
        let slice = of(ALLOC, "slice.rs");
        let around = [("sort_by<u64, F>", &*slice), ("app::order", "/src/app/src/main.rs")];
        assert_eq!(named(&[(APP, &sort), (APP, &around), MAIN]), "slice::sort_by in app::order");
    }

    #[test]
    fn a_closure_without_a_path_is_a_part_of_the_function_around_it() {
        let (sort, file) = (of(CORE, "slice/sort.rs"), "/src/app/src/main.rs");
        let closure = [("{closure#0}", file), ("core::slice::sort::merge", &*sort)];
        let order = [("app::order", file)];
        assert_eq!(named(&[(APP, &closure), (APP, &order), MAIN]), "app::order");
        // That of a thread has none.
        let spawned = [("{closure#0}", file), ("std::sys::backtrace::__rust_begin_short_backtrace", "")];
        let sleep = [("clock_nanosleep", "")];
        let start = (LIBC, &[("start_thread", "")][..]);
        let called = [("std::thread::functions::sleep", "")];
        let frames = [(LIBC, &sleep[..]), (APP, &called), (APP, &spawned), start];
        assert_eq!(named(&frames), "thread::sleep in {closure#0} of main.rs");
    }

    #[test]
    fn a_stack_without_a_function_of_the_program_has_its_innermost_one_that_is_no_wait() {
        let park = [("<std::sys::sync::condvar::futex::Condvar>::wait", "")];
        let worker = [("tokio::runtime::scheduler::multi_thread::worker::run", "")];
        let start = (LIBC, &[("start_thread", "")][..]);
        let frames = [(LIBC, &[("syscall", "")][..]), (APP, &park), (APP, &worker), start];
        assert_eq!(named(&frames), park[0].0);
        // Also behind code without symbols: it may be the program's.
        let hidden = [(LIBC, &[("memcmp", "")][..]), ("/opt/stripped", &[]), MAIN];
        assert_eq!(named(&hidden), "memcmp");
        assert!(named(&hidden[1..]).starts_with("stripped+0x"), "{}", named(&hidden[1..]));
    }

    #[test]
    fn functions_that_record_an_event_are_not_where_it_is() {
        let sdk = "/src/hairline/sdk/src/scope.rs";
        let record = [("chunk", sdk), ("hairline::scope::begin", sdk)];
        let inlined = [("scope_with", sdk), ("app::checkout", "/src/app/src/main.rs")];
        let frames = [(APP, &record[..]), (APP, &inlined), MAIN];
        assert_eq!(named_at(&frames, At::Event).to_string(), "app::checkout");
        // Where a thread computes, what it called is named: it has the time.
        assert_eq!(named_at(&frames, At::Any).to_string(), "scope::scope_with in app::checkout");
        // A future with a recorded life is polled by Hairline.
        let polled = (APP, &[("<hairline::Traced<F> as core::future::Future>::poll", sdk)][..]);
        let frames = [(APP, &record[..]), (APP, &inlined), polled, MAIN];
        assert_eq!(named_at(&frames, At::Event).to_string(), "app::checkout");
    }

    #[test]
    fn stacks_of_one_name_are_one_row_with_the_most_frequent_of_them() {
        let sums = HashMap::from([(StackId(1), 2), (StackId(2), 5), (StackId(3), 5), (StackId(4), 9)]);
        let name = |stack| if stack == StackId(4) { "other" } else { "same" }.to_owned();
        let all = largest_stacks(&sums, name, 10);
        let all: Vec<_> =
            all.iter().map(|of| (&*of.share.what, of.share.time, of.stack, of.of_stack)).collect();
        assert_eq!(all, [("same", 12, StackId(2), 5), ("other", 9, StackId(4), 9)]);
    }
}
