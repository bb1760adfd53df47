use hairline_perf::Mapping as Mapped;

use super::*;
use crate::window::Window;

fn mapping(pid: u32, path: &str, inode: u64) -> Record<'_> {
    Record::Mmap(Mapped {
        task: Task { pid, tid: pid },
        address: 0x1000,
        size: 0x1000,
        offset: 0,
        device: (8, 1),
        inode,
        build_id: &[],
        protection: 5,
        path: path.as_bytes(),
    })
}

fn add(profile: &mut Profile, pid: u32, record: &Record<'_>) {
    let stamp = Stamp { pid, tid: pid, time: 1, ..Stamp::default() };
    profile.add(record, stamp, SampledAt::CpuTime);
}

fn sample(pid: u32) -> (Record<'static>, Stamp) {
    let words = Words::default();
    let (stack, raw) = (&[][..], &[][..]);
    let (call_chain, registers) = (words, words);
    let record = Record::Sample { is_user: true, address: 0x1010, call_chain, registers, stack, raw };
    (record, Stamp { pid, tid: pid, time: 1, ..Stamp::default() })
}

#[test]
fn another_file_at_a_path_is_another_file() {
    let mut profile = Profile::packets(SequenceId(1));
    for (pid, inode) in [(7, 30), (8, 30), (9, 31)] {
        add(&mut profile, pid, &mapping(pid, "/no/such/program", inode));
    }
    profile.settle(u64::MAX);
    profile.finish(&|_| true);
    assert_eq!(profile.files.len(), 3, "two and the unknown one");
}

#[test]
fn processes_that_have_ended_take_no_memory() {
    let mut profile = Profile::fxt();
    let first = Task { pid: 1, tid: 1 };
    for pid in 2..1000 {
        let (main, worker) = (Task { pid, tid: pid }, Task { pid, tid: pid + 10_000 });
        add(&mut profile, 1, &Record::Fork { child: main, parent: first, time: 1 });
        add(&mut profile, pid, &Record::Comm { task: main, name: b"cc", is_exec: true });
        add(&mut profile, pid, &mapping(pid, "/no/such/program", 30));
        add(&mut profile, pid, &Record::Fork { child: worker, parent: main, time: 1 });
        let (record, stamp) = sample(pid);
        profile.add(&record, stamp, SampledAt::CpuTime);
        add(&mut profile, pid, &Record::Exit { task: main, time: 1 });
        if pid % 2 == 0 {
            add(&mut profile, pid, &Record::Exit { task: worker, time: 1 });
        }
    }
    profile.order.rest().into_iter().for_each(|(stamp, happening)| profile.take(stamp, happening));
    assert_eq!(profile.processes.len(), 499, "those with a thread");
    assert_eq!(profile.totals.strange, 0, "each was known when it was sampled");
}

#[test]
fn a_flight_recorder_forgets_threads_and_has_the_names_of_those_on_its_tape() {
    let mut profile = Profile::packets(SequenceId(1)).on_tape();
    let main = Task { pid: 1, tid: 1 };
    for tid in 2..10_000 {
        let task = Task { pid: 1, tid };
        add(&mut profile, 1, &Record::Fork { child: task, parent: main, time: 1 });
        let name = format!("worker {tid}");
        add(&mut profile, 1, &Record::Comm { task, name: name.as_bytes(), is_exec: false });
        let (record, stamp) = sample(1);
        profile.add(&record, Stamp { tid, ..stamp }, SampledAt::CpuTime);
        add(&mut profile, 1, &Record::Exit { task, time: 1 });
    }
    profile.order.rest().into_iter().for_each(|(stamp, happening)| profile.take(stamp, happening));
    assert!((2..10_000).all(|tid| !profile.names.has(tid)), "none lives");
    let mut entries = Vec::new();
    profile.repeat();
    profile.take_entries(|entry| entries.push(entry.to_vec()));
    let entries: Vec<&[u8]> = entries.iter().map(Vec::as_slice).collect();
    let window = profile.functions().window(&entries).expect("a recorder");
    assert_eq!(window.count(), 9998);
    // Without the oldest ones. The last entries are what is repeated.
    let last = entries.iter().position(|entry| entry.ends_with(b"worker 9998")).expect("its name");
    let written = profile.functions().window(&entries[last..]).expect("a recorder").write(&|_| false);
    let has = |name: &str| written.windows(name.len()).any(|part| part == name.as_bytes());
    assert!(has("worker 9998") && has("worker 9999") && !has("worker 9997"));
}

/// Entries come from the memory of a process that was killed, which any process of its user can write.
#[test]
fn entries_of_any_bytes_are_read_without_harm() {
    let mut profile = Profile::packets(SequenceId(1)).on_tape();
    add(&mut profile, 1, &mapping(1, "/no/such/program", 30));
    let (record, stamp) = sample(1);
    profile.add(&record, stamp, SampledAt::CpuTime);
    profile.order.rest().into_iter().for_each(|(stamp, happening)| profile.take(stamp, happening));
    let mut entries = Vec::new();
    profile.take_entries(|entry| entries.push(entry.to_vec()));
    let window = |entries: &[Vec<u8>]| {
        let entries: Vec<&[u8]> = entries.iter().map(Vec::as_slice).collect();
        Window::read(&entries).map(|window| (window.count(), window.write(&|_| false).len()))
    };
    assert!(window(&entries).is_some_and(|(samples, bytes)| samples == 1 && bytes > 100));
    assert_eq!(window(&[]), None);
    change_all(&entries, |entries| _ = window(entries));
    const REGISTERS: usize = crate::REGISTERS.count_ones() as usize;
    let mut heap = HeapProfile::packets(SequenceId(9), 1, 100, "heap.rs");
    let sampled = Allocated {
        call_chain: Words::default(),
        slot: 1,
        bytes: 150,
        count: 1 << 16,
        registers: &[0x10; 4][..REGISTERS],
        stack: &[7; 64],
    };
    heap.allocated(&sampled);
    heap.keep_again();
    heap.keep(KeptAt::default());
    let mut entries = Vec::new();
    heap.take_entries(|entry| entries.push(entry.to_vec()));
    let window = |entries: &[Vec<u8>]| {
        let entries: Vec<&[u8]> = entries.iter().map(Vec::as_slice).collect();
        HeapWindow::read(&entries, false).ok().flatten().map_or(0, |window| window.write().len())
    };
    assert!(window(&entries) > 100);
    change_all(&entries, |entries| _ = window(entries));
}

/// Calls `f` with the entries, of which one is missing, cut, or has a byte that is another one.
fn change_all(entries: &[Vec<u8>], f: impl Fn(&[Vec<u8>])) {
    for number in 0..entries.len() {
        let others = entries.iter().enumerate().filter(|(n, _)| *n != number);
        f(&others.map(|(_, entry)| entry.clone()).collect::<Vec<_>>());
        for place in 0..entries[number].len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = entries.to_vec();
                changed[number][place] = byte;
                f(&changed);
                changed[number].truncate(place);
                f(&changed);
            }
        }
    }
}

#[test]
fn each_process_has_its_own_ids_of_modules() {
    let mut profile = Profile::fxt();
    for pid in 1..=70_000 {
        add(&mut profile, pid, &mapping(pid, "/no/such/program", 30));
        let (record, stamp) = sample(pid);
        profile.add(&record, stamp, SampledAt::CpuTime);
    }
    profile.order.rest().into_iter().for_each(|(stamp, happening)| profile.take(stamp, happening));
    let records = profile.records.unwrap();
    assert_eq!(records.modules().count(), 70_000);
    assert!(records.modules().all(|id| id == 0), "the first one of its process");
}

/// A function without a frame pointer, as rustc makes it by default.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[inline(never)]
fn has_none(word: u64) -> u64 {
    std::hint::black_box((0..std::hint::black_box(word)).map(u64::swap_bytes).sum())
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn a_chain_through_a_function_without_a_frame_pointer_lacks_callers() {
    let mut profile = Profile::packets(SequenceId(1));
    let pid = std::process::id();
    profile.add_present(pid);
    // Rust's standard library has frame pointers. Both places are behind the first instructions.
    let with = (std::env::current_dir as fn() -> _ as *const ()).addr() as u64 + 48;
    let without = (has_none as fn(u64) -> u64 as *const ()).addr() as u64 + 24;
    let mut unwound = |caller: u64| {
        let chain = [with, with, caller, with].map(u64::to_ne_bytes);
        let call_chain = Words::of_bytes(chain.as_flattened());
        let registers = &[0, 0x1000, with]; // a frame pointer of 0 is the root's
        let error = profile.unwind(pid, &Sampled { address: 0, call_chain, registers, stack: &[] });
        (profile.places.len(), error)
    };
    assert_eq!(unwound(with), (5, UnwindError::None));
    assert_eq!(unwound(without), (5, UnwindError::UnwindInfo));
    assert_eq!(unwound(16).1, UnwindError::InvalidMap, "a number");
    assert!(has_none(3) > 0);
}

/// The instructions of this function's callers, the innermost first, by the chain of frame pointers.
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)] // reads this thread's stack
#[inline(never)]
fn callers() -> Vec<u64> {
    let mut record: *const [u64; 2];
    // SAFETY: reads a register.
    unsafe { std::arch::asm!("mov {}, x29", out(reg) record, options(nomem, nostack, preserves_flags)) };
    let mut callers = Vec::new();
    while !record.is_null() {
        // SAFETY: the calling convention: the frame pointer of the caller and the return address, or null.
        let [next, return_address] = unsafe { record.read() };
        callers.push(return_address);
        record = next as *const [u64; 2];
    }
    callers
}

/// There the functions of a C library have frame pointers, and their rules are by the stack pointer.
#[test]
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)] // calls the C library
fn a_stack_of_frame_pointers_lacks_no_caller() {
    unsafe extern "C" {
        fn qsort(of: *mut u32, count: usize, size: usize, compare: extern "C" fn(&u32, &u32) -> i32);
    }
    thread_local! {
        static CALLERS: std::cell::Cell<Vec<u64>> = const { std::cell::Cell::new(Vec::new()) };
    }
    extern "C" fn compare(one: &u32, other: &u32) -> i32 {
        CALLERS.set(callers());
        one.cmp(other) as i32
    }
    let mut numbers = [2, 1];
    // SAFETY: two numbers of this size.
    unsafe { qsort(numbers.as_mut_ptr(), numbers.len(), size_of::<u32>(), compare) };
    let callers: Vec<u64> = CALLERS.take().into_iter().take_while(|address| *address != 0).collect();
    let (pid, mut profile) = (std::process::id(), Profile::packets(SequenceId(1)));
    assert!(profile.add_present(pid) && callers.len() > 7, "{callers:x?}");
    let (last, passed) = callers.split_last().expect("callers");
    let passed: Vec<u8> = passed.iter().flat_map(|address| address.to_ne_bytes()).collect();
    let (call_chain, registers) = (Words::of_bytes(&passed), &[0, 0, 1 << 40, *last]);
    let error = profile.unwind(pid, &Sampled { address: 0, call_chain, registers, stack: &[] });
    assert_eq!((error, profile.places.len()), (UnwindError::None, callers.len()), "{:?}", profile.places);
}
