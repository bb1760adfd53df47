//! `short`: a program that ends after its first event. `report --cold` runs it with and without a trace.

fn main() {
    hairline::trace_scope!("bench", "all there is");
}
