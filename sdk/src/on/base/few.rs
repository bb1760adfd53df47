//! A list that is on the stack while it is short. The arguments of an event nearly always are.

use crate::on::base::memory::List;

/// Default number of entries on the stack. A signal handler may have little of that.
const FEW: usize = 8;

/// A list of any length.
pub(crate) struct Few<T, const N: usize = FEW> {
    few: [T; N],
    len: usize,
    /// All entries, once there are more than `N`.
    many: List<T>,
}

impl<T: Copy, const N: usize> Few<T, N> {
    /// Creates an empty list. `filler` fills the unused entries and is never returned.
    #[inline]
    pub(crate) fn new(filler: T) -> Self {
        Self { few: [filler; N], len: 0, many: List::new() }
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: T) {
        if let Some(slot) = self.few.get_mut(self.len) {
            *slot = entry;
        } else {
            if self.many.is_empty() {
                self.many.reserve(N + 1);
                self.many.extend_from_slice(&self.few);
            }
            self.many.push(entry);
        }
        self.len += 1;
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[T] {
        if self.many.is_empty() { &self.few[..self.len] } else { &self.many }
    }
}

impl<T: Copy + Default, const N: usize> Default for Few<T, N> {
    #[inline]
    fn default() -> Self {
        Self::new(T::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_all_entries_below_at_and_above_its_stack_size() {
        for len in [0, 1, FEW - 1, FEW, FEW + 1, 4 * FEW] {
            let mut list: Few<_> = Few::new(usize::MAX);
            (0..len).for_each(|n| list.push(n));
            assert_eq!(list.as_slice(), (0..len).collect::<Vec<_>>());
        }
    }
}
