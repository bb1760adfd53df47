//! A program that keeps memory, for the tests of `HAIRLINE_HEAP`.
//!
//! ```text
//! hoarder MEBIBYTES     keeps so many, says `full`, and waits to be killed
//! hoarder 0             ends at once
//! hoarder serve         a hundred requests, of which two keep 6 MiB each; ends
//! ```

use std::alloc::System;
use std::hint::black_box;
use std::time::Duration;

#[global_allocator]
static HEAP: hairline::Heap<System> = hairline::Heap::new(System);

#[inline(never)]
fn hoard(kept: &mut Vec<Vec<u8>>) {
    kept.push(black_box(vec![1; 1 << 20]));
}

/// The requests sleep: the slowest is the second one that keeps something.
fn serve(kept: &mut Vec<Vec<u8>>) {
    for number in 0..100 {
        hairline::trace_scope!("hoarder", "request", number);
        let wait = match number {
            10 | 90 => {
                (0..2).for_each(|_| store(kept));
                u64::from(number > 10) * 100 + 200
            }
            _ => 1,
        };
        std::thread::sleep(Duration::from_millis(wait));
    }
}

#[inline(never)]
fn store(kept: &mut Vec<Vec<u8>>) {
    kept.push(black_box(vec![1; 3 << 20]));
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        let mut kept = Vec::with_capacity(4);
        serve(&mut kept);
        std::process::exit(i32::from(black_box(kept).len() != 4)); // the rest is live at the end
    }
    let megabytes: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    hairline::trace_instant!("hoarder", "begins");
    let mut kept = Vec::with_capacity(megabytes);
    for _ in 0..megabytes {
        hoard(&mut kept);
        std::thread::sleep(Duration::from_millis(2));
    }
    if megabytes > 0 {
        println!("full");
        std::thread::sleep(Duration::from_secs(600));
    }
    black_box(kept);
}
