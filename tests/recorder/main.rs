//! The flight recorder: what the last snapshot shows, in both formats.

mod killed;
mod long;
mod random;
mod requests;
mod told_again;
mod window;
