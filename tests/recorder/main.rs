//! The flight recorder: what the last snapshot shows, in both formats.

mod requests;
mod window;
