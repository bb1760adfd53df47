//! `tasks.rs` over tokio alone.

#[path = "../../kit/tokio.rs"]
mod kit;
mod tasks;

fn main() -> Result<(), tasks::Failure> {
    tasks::main()
}
