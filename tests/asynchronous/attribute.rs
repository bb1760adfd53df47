//! `#[trace]` on all kinds of functions.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hairline::{trace, trace_instant};
use hairline_tests::recording::{FORMATS, record};

#[trace]
fn plain() {}

#[trace("t", name = "renamed", args(n, twice = n * 2, text = %"shown"))]
fn with_arguments(n: u32) -> u32 {
    n + 1
}

#[trace("t", args, skip(secret))]
fn all_arguments(a: i32, mut b: &str, (c, _): (u8, u8), secret: &str) -> usize {
    b = &b[1..];
    a.unsigned_abs() as usize + b.len() + usize::from(c) + secret.len()
}

#[trace("t")]
fn early(n: u32) -> Result<u32, std::num::ParseIntError> {
    if n == 0 {
        return Ok(0);
    }
    let parsed: u32 = "x".parse()?;
    Ok(parsed)
}

#[trace("t")]
fn generic<'a, T, const N: usize>(items: &'a [T; N]) -> impl Iterator<Item = String> + use<'a, T, N>
where
    T: Display,
{
    trace_instant!("t", "inside");
    items.iter().map(ToString::to_string)
}

#[trace("t")]
fn panics() {
    panic!("on purpose");
}

#[trace("t")]
unsafe extern "C" fn foreign(x: i32) -> i32 {
    x
}

struct Counter(u32);

impl Counter {
    #[trace("t", args(count = self.0))]
    fn add(&mut self, n: u32) -> &mut Self {
        self.0 += n;
        self
    }

    #[trace("t")]
    fn into_inner(self) -> u32 {
        self.0
    }
}

trait Greets {
    #[trace("t")]
    fn greet(&self) -> &'static str {
        "hello"
    }
}

impl Greets for Counter {}

#[test]
fn every_kind_of_function_is_one_slice_a_call() {
    for format in FORMATS {
        let trace = record(format, |_| {
            plain();
            assert_eq!(with_arguments(3), 4);
            assert_eq!(all_arguments(-1, "xy", (3, 4), "key"), 8);
            assert_eq!(early(0), Ok(0));
            assert!(early(1).is_err());
            assert_eq!(generic(&[1, 2]).collect::<Vec<_>>(), ["1", "2"]);
            assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
            // SAFETY: it only gives back what it takes.
            #[allow(unsafe_code)]
            let same = unsafe { foreign(7) };
            assert_eq!(same, 7);
            let mut counter = Counter(1);
            counter.add(2).add(3);
            assert_eq!(counter.greet(), "hello");
            assert_eq!(counter.into_inner(), 6);
        });
        let module = module_path!();
        assert_eq!(
            trace.rows("select depth, category, name, dur >= 0 from slice order by ts"),
            format!(
                "0\t{module}\tplain\t1\n0\tt\trenamed\t1\n0\tt\tall_arguments\t1\n0\tt\tearly\t1\n0\tt\tearly\t1\n\
                 0\tt\tgeneric\t1\n1\tt\tinside\t1\n0\tt\tpanics\t1\n0\tt\tforeign\t1\n0\tt\tadd\t1\n0\tt\tadd\t1\n\
                 0\tt\tgreet\t1\n0\tt\tinto_inner\t1"
            ),
            "{format:?}"
        );
        assert_eq!(
            trace.arguments(),
            "renamed: n = 3\nrenamed: twice = 6\nrenamed: text = shown\nall_arguments: a = -1\nall_arguments: b = xy\n\
             add: count = 1\nadd: count = 3",
            "{format:?}"
        );
    }
}
