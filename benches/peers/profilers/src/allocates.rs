//! Allocates by a known plan, and prints what each function has allocated.
//!
//! ```text
//! allocates sums SCALE      each function writes its blocks; then their bytes and blocks, allocated and still live
//! allocates burst SCALE     the same without the writing: 100 GB in a second and more
//! allocates work SCALE      the same with a little work on each block: what a profile costs such a program
//! allocates parses SCALE    reads text into maps, lists and strings, and keeps one of 20 results for a while
//! allocates leaks SECONDS    100 KiB in a second are never freed, beside 140 MiB in a second that are
//! allocates hoards MIB MS   keeps so many MiB, one in so many milliseconds, says `full`, and waits
//! ```

mod peer;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

#[cfg(feature = "heap")]
#[global_allocator]
static HEAP: hairline::Heap<std::alloc::System> = hairline::Heap::new(std::alloc::System);

#[cfg(feature = "jemalloc")]
#[global_allocator]
static HEAP: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg(feature = "dial9")]
#[global_allocator]
static HEAP: dial9_perf_self_profile::memory_profiling::Dial9Allocator =
    dial9_perf_self_profile::memory_profiling::Dial9Allocator::system();

#[cfg(not(any(feature = "heap", feature = "jemalloc", feature = "dial9")))]
#[global_allocator]
static HEAP: std::alloc::System = std::alloc::System;

type Kept = Vec<Vec<u8>>;

/// What is done with each block.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    Nothing,
    Write,
    Work,
}

/// A block whose first and last bytes are written, as a program would.
#[inline(always)]
fn block(size: usize) -> Vec<u8> {
    let mut block: Vec<u8> = Vec::with_capacity(size);
    block.spare_capacity_mut()[0].write(1);
    block.spare_capacity_mut()[size - 1].write(1);
    black_box(block)
}

/// A function of its own for each kind of block: the profile must tell them apart. One in `$of` stays live.
macro_rules! kinds {
    ($($name:ident: $size:literal bytes, $times:literal times, one of $of:literal is kept;)*) => {
        $(#[inline(never)]
        fn $name(scale: usize, does: Does, kept: &mut Kept) {
            for n in 0..scale * $times {
                let mut block = block($size);
                if does == Does::Write {
                    block.resize($size, n as u8);
                    black_box(&block);
                } else if does == Does::Work {
                    block.resize($size.min(512), n as u8);
                    black_box(block.iter().fold(0_u64, |sum, byte| sum.rotate_left(5) ^ u64::from(*byte)));
                }
                if n % $of == 0 {
                    kept.push(block);
                }
            }
        })*

        /// Runs them all, and prints the truth.
        fn run_all(scale: usize, does: Does) -> Kept {
            // Room for all that is kept, so that this vector is allocated once, before and outside of them.
            let mut kept = Vec::with_capacity(0 $(+ (scale * $times).div_ceil($of))*);
            $($name(scale, does, &mut kept);)*
            $(
                let (blocks, live) = (scale * $times, (scale * $times).div_ceil($of));
                println!("{} {} {blocks} {} {live}", stringify!($name), blocks * $size, live * $size);
            )*
            kept
        }
    };
}

kinds! {
    small: 80_usize bytes, 4_000_000 times, one of 1_000_000_000 is kept;
    small_kept: 80_usize bytes, 2_000_000 times, one of 2 is kept;
    medium: 1_500_usize bytes, 400_000 times, one of 1_000_000_000 is kept;
    medium_kept: 1_500_usize bytes, 200_000 times, one of 4 is kept;
    large: 100_000_usize bytes, 6_000 times, one of 1_000_000_000 is kept;
    large_kept: 100_000_usize bytes, 4_000 times, one of 4 is kept;
}

/// 2,000 records of 8 fields with up to 4 values, some 500 KB.
fn text() -> String {
    let field = |n: usize, key: usize| {
        let values = (0..key % 4 + 1).map(|value| format!("value {value} of record {n}"));
        format!("field {key}={}", values.collect::<Vec<_>>().join(","))
    };
    let record = |n: usize| (0..8).map(|key| field(n, key)).collect::<Vec<_>>().join(";");
    (0..2000).map(record).collect::<Vec<_>>().join("\n")
}

type Record = BTreeMap<String, Vec<String>>;

#[inline(never)]
fn parse(text: &str) -> Vec<Record> {
    let field = |field: &str| {
        let (key, values) = field.split_once('=').expect("a field");
        (key.to_owned(), values.split(',').map(str::to_owned).collect())
    };
    text.lines().map(|line| line.split(';').map(field).collect()).collect()
}

fn parses(scale: usize) {
    let (text, mut kept) = (text(), Vec::new());
    for n in 0..scale * 100 {
        let records = black_box(parse(&text));
        if n % 20 == 0 {
            kept.push(records);
        }
        if kept.len() > 20 {
            kept.clear();
        }
    }
    println!("{}", black_box(kept).len());
}

#[inline(never)]
fn leaks(leaked: &mut Kept) {
    leaked.push(block(1024));
}

#[inline(never)]
fn churns(bytes: usize) {
    let blocks: Kept = (0..bytes / 2_000).map(|_| block(2_000)).collect();
    drop(black_box(blocks));
}

/// A cache that is filled once and then replaced block by block: large, live, and no leak.
#[inline(never)]
fn caches(cache: &mut Kept, n: usize) {
    if cache.len() < 4_000 {
        cache.push(block(4_096));
    } else {
        let at = n % cache.len();
        cache[at] = block(4_096);
    }
}

fn leaks_for(time: Duration) {
    let (mut leaked, mut cache) = (Vec::with_capacity(1 << 16), Vec::with_capacity(4_000));
    let begun = Instant::now();
    let mut turn = 0_u32;
    while begun.elapsed() < time {
        for n in 0..100 {
            caches(&mut cache, turn as usize * 100 + n);
        }
        churns(1 << 20);
        leaks(&mut leaked);
        turn += 1;
        // A hundred turns in a second: 100 KiB that are leaked, 100 MiB that are freed, 40 MiB through the cache.
        std::thread::sleep((Duration::from_millis(10) * turn).saturating_sub(begun.elapsed()));
    }
    println!("{} KiB", leaked.len());
    end(leaked);
    end(cache);
}

#[inline(never)]
fn hoards(kept: &mut Kept) {
    kept.push(black_box(vec![1; 1 << 20]));
}

/// The session of the environment ends with the process, while all that was kept is live.
fn end(kept: Kept) {
    std::mem::forget(black_box(kept));
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |at: usize| arguments.get(at).and_then(|n| n.parse::<usize>().ok()).expect("a number");
    // An allocation starts no session: an event does.
    hairline::trace_instant!("profilers", "begins");
    let _recorder = peer::dial9();
    match arguments.get(1).map(String::as_str) {
        Some("sums") => end(run_all(number(2), Does::Write)),
        Some("burst") => end(run_all(number(2), Does::Nothing)),
        Some("work") => end(run_all(number(2), Does::Work)),
        Some("parses") => parses(number(2)),
        Some("leaks") => leaks_for(Duration::from_secs(number(2) as u64)),
        Some("hoards") => {
            let mut kept = Vec::with_capacity(number(2));
            for _ in 0..number(2) {
                hoards(&mut kept);
                std::thread::sleep(Duration::from_millis(number(3) as u64));
            }
            println!("full");
            std::thread::sleep(Duration::from_secs(600));
            end(kept);
        }
        _ => panic!("sums, burst, work, parses, leaks or hoards"),
    }
}
