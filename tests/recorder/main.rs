//! The flight recorder: what the last snapshot shows, in both formats.

mod long;
mod requests;
mod window;
