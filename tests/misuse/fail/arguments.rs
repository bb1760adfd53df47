use hairline::trace;

#[trace("t", args(missing))]
fn no_such_variable() {}

#[trace("t", args(n = missing.len()))]
async fn no_such_variable_either() {}

fn main() {
    no_such_variable();
    let _ = no_such_variable_either();
}
