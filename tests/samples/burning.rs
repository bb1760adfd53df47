//! A program that uses CPU time for ever, for tests that kill it: two threads with slices `work`, in which 70
//! and 30 % belong to two functions. The main thread prints the time, and `n` of the slice, after each of
//! them.

use std::io::Write;

use hairline::{trace_instant, trace_scope};

#[allow(dead_code, unsafe_code, unreachable_pub, missing_docs, clippy::all)] // a program of its own
mod burn;

fn main() {
    std::thread::Builder::new()
        .name("a name of more than fifteen bytes".to_owned())
        .spawn(|| {
            for n in 0_u64.. {
                trace_scope!("burning", "beside", n);
                burn::burn(2);
            }
        })
        .expect("a thread");
    let mut stdout = std::io::stdout();
    for n in 0_u64.. {
        {
            trace_scope!("burning", "work", n);
            burn::burn(2);
        }
        for filler in 0..200_u64 {
            trace_instant!("burning", "filler", filler);
        }
        writeln!(stdout, "{n} {}", hairline_tests::clock::boottime()).expect("somebody reads");
    }
}
