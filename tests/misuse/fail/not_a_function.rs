use hairline::trace;

#[trace]
struct NotAFunction;

#[trace]
const fn compiled() {}

trait T {
    #[trace]
    fn no_body(&self);
}

fn main() {}
