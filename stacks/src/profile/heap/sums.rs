//! What a call stack has allocated and freed.

/// The sums of a stack. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) allocated: u64,
    pub(super) freed: u64,
    pub(super) allocations: u64,
    pub(super) frees: u64,
}

/// Returns the value of a number, which may be the first one that has it.
pub(super) fn at<T: Clone + Default>(values: &mut Vec<T>, number: u32) -> &mut T {
    let number = number as usize;
    if number >= values.len() {
        values.resize(number + 1, T::default());
    }
    &mut values[number]
}
