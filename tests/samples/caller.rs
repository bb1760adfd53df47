//! A program whose work is in the library `burn`.

#[link(name = "burn")]
unsafe extern "C" {
    fn burn(rounds: u32) -> u64;
}

fn main() {
    // SAFETY: the library's function takes any number.
    println!("{}", unsafe { burn(200) });
}
