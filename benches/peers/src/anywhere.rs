//! Sixty-four callsites, of which each operation hits one at random, as in a program: the branches and the
//! callsites' memory are not those of the operation before.

use hairline_benches::timing::Effort;

use crate::bench::{Bench, Row, two_clock_reads};

/// The functions of 64 callsites.
pub type Callsites = [fn(); 64];

/// Makes a function of the block for each of 64 callsites.
macro_rules! callsites {
    ($body:block) => {
        $crate::anywhere::callsites!(@ $body
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63)
    };
    (@ $body:block $($number:literal)*) => {[$({
        fn one() {
            std::hint::black_box($number); // no two functions are merged
            $body
        }
        one as fn()
    }),*]};
}
pub(crate) use callsites;

/// Calls one of them at random.
fn at_random(callsites: Callsites) -> impl FnMut() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64; // any but 0
    move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        callsites[(random >> 58) as usize]();
    }
}

impl Bench {
    /// Measures a scope at one of these callsites. The floor is two clock reads in one of 64 functions. See
    /// [`row_between`](Self::row_between).
    pub fn anywhere(&mut self, between: impl FnMut(), scopes: Callsites) {
        self.measure_anywhere(self.effort, between, |_| {}, scopes);
    }

    /// As [`anywhere`](Self::anywhere), in batches of 10,000. `before` gets the number of each operation.
    pub fn anywhere_of_ten_thousand(&mut self, before: impl FnMut(u32), scopes: Callsites) {
        self.measure_anywhere(self.of_ten_thousand(), || {}, before, scopes);
    }

    fn measure_anywhere(
        &mut self,
        effort: Effort,
        between: impl FnMut(),
        mut before: impl FnMut(u32),
        scopes: Callsites,
    ) {
        let (mut floor, mut scope) = (at_random(callsites!({ two_clock_reads(0) })), at_random(scopes));
        let operation = |i| {
            before(i);
            scope();
        };
        self.measure(Row::Anywhere, effort, between, |_| floor(), operation);
    }
}
