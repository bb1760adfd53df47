//! `tasks.rs` over `hairline-tokio`.

#[path = "../../kit/hairline.rs"]
mod kit;
mod tasks;

fn main() -> Result<(), tasks::Failure> {
    tasks::main()
}
