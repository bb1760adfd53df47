//! A list that stands on the stack while it is short, as the arguments of an event nearly always are.

/// Entries kept on the stack, unless said otherwise.
const FEW: usize = 16;

/// A list of any length.
pub(crate) struct Few<T, const N: usize = FEW> {
    few: [T; N],
    len: usize,
    /// All entries, once there are more than `N`.
    many: Vec<T>,
}

impl<T: Copy, const N: usize> Few<T, N> {
    /// An empty list; `filler` is never seen.
    #[inline]
    pub(crate) fn new(filler: T) -> Self {
        Self { few: [filler; N], len: 0, many: Vec::new() }
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: T) {
        if let Some(place) = self.few.get_mut(self.len) {
            *place = entry;
        } else {
            if self.many.is_empty() {
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
    fn a_list_holds_what_was_pushed_around_the_size_of_the_stack_part() {
        for len in [0, 1, FEW - 1, FEW, FEW + 1, 4 * FEW] {
            let mut list: Few<_> = Few::new(usize::MAX);
            (0..len).for_each(|n| list.push(n));
            assert_eq!(list.as_slice(), (0..len).collect::<Vec<_>>());
        }
    }
}
