//! What a record has beside its event: nothing here, and `facts.rs` has the rest.

use crate::on::base::this_thread::Hot;
use crate::on::thread::raw::Raw;

/// What a record has beside its event. Most sessions have nothing, `()`: a type of its own, so that their
/// events do not look for it.
pub(crate) trait Beside: Copy {
    /// Returns the bytes that a begin reserves for its end, `usual` without a CPU time.
    fn end_size(self, hot: &Hot, usual: i32) -> i32;

    /// Returns the number of FXT arguments, and that of their words.
    fn fxt_arguments(self) -> (u64, usize);

    /// Writes them as FXT arguments.
    fn put_fxt(self, raw: &mut Raw);

    /// Returns the bytes of their fields in an event.
    fn fields_len(self) -> usize;

    /// Writes them as fields of an event.
    fn put_fields(self, raw: &mut Raw);
}

impl Beside for () {
    #[inline(always)]
    fn end_size(self, _: &Hot, usual: i32) -> i32 {
        usual
    }

    #[inline(always)]
    fn fxt_arguments(self) -> (u64, usize) {
        (0, 0)
    }

    #[inline(always)]
    fn put_fxt(self, _: &mut Raw) {}

    #[inline(always)]
    fn fields_len(self) -> usize {
        0
    }

    #[inline(always)]
    fn put_fields(self, _: &mut Raw) {}
}
