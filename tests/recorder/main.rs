//! The flight recorder: what the last snapshot shows, in both formats.

mod idle;
mod killed;
mod long;
mod mistakes;
mod random;
mod repeated_begins;
mod requests;
mod slow;
mod window;
