use hairline::trace;

#[trace("t", nmae = "x")]
fn unknown_option() {}

#[trace("t", skip(a))]
fn skip_without_args(a: u32) {
    let _ = a;
}

#[trace("t", skip(a), args(b))]
fn skip_beside_a_list(a: u32, b: u32) {
    let _ = (a, b);
}

#[trace("t", args, skip(b))]
fn skip_of_nothing(a: u32) {
    let _ = a;
}

// The functions are there all the same.
fn main() {
    unknown_option();
    skip_without_args(1);
    skip_beside_a_list(1, 2);
    skip_of_nothing(1);
}
