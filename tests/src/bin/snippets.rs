//! Runs one Rust snippet of README.md or docs/guide: the one whose number `SNIPPET` is (`tests/build.rs`).

use std::error::Error;
use std::{env, process};

include!(concat!(env!("OUT_DIR"), "/snippets.rs"));

/// How a snippet ends.
type Done = Result<(), Box<dyn Error>>;

/// What the `main` of a snippet may return.
trait Ends {
    fn done(self) -> Done;
}

impl Ends for () {
    fn done(self) -> Done {
        Ok(())
    }
}

impl<E: Into<Box<dyn Error>>> Ends for Result<(), E> {
    fn done(self) -> Done {
        self.map_err(Into::into)
    }
}

fn main() {
    let number = env::var("SNIPPET").ok().and_then(|number| number.parse::<usize>().ok());
    let Some(run) = number.and_then(|number| SNIPPETS.get(number)) else {
        eprintln!("set SNIPPET to a number below {}", SNIPPETS.len());
        process::exit(2);
    };
    if let Err(e) = run() {
        eprintln!("{e}");
        process::exit(1);
    }
}
