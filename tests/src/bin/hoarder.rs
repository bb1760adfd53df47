//! A program that keeps memory, for the tests of `HAIRLINE_HEAP`.
//!
//! ```text
//! hoarder MEBIBYTES     keeps so many, says `full`, and waits to be killed
//! hoarder 0             ends at once
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

fn main() {
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
