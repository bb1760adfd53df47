//! Values of some rows in few bytes: what they have above the least of them, in as many bytes as the largest
//! needs. Ids and times that follow one another take two to four bytes, a value that repeats takes none.

/// The rows of a block are 2 to this power at most: a question reads a block from the temporary file for each
/// row that it looks up.
pub(crate) const SHIFT: u32 = 13;
/// See [`SHIFT`].
pub(crate) const MOST: usize = 1 << SHIFT;

/// The values of a column in some rows, apart from their bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// The least value.
    pub(crate) least: i64,
    /// The largest value.
    pub(crate) most: i64,
    rows: u32,
    width: u8,
    nulls: Nulls,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nulls {
    None,
    /// A bit for each row, before the values.
    Some,
    All,
}

impl Block {
    /// Rows that all have this value.
    pub(crate) fn repeated(value: i64, rows: u32) -> Self {
        Self { least: value, most: value, rows, width: 0, nulls: Nulls::None }
    }

    /// Rows without a value.
    pub(crate) fn nulls(rows: u32) -> Self {
        Self { least: 0, most: 0, rows, width: 0, nulls: Nulls::All }
    }

    /// Whether no row has a value.
    pub(crate) fn is_null(&self) -> bool {
        self.nulls == Nulls::All
    }

    /// At most [`MOST`] values, and whether each is one; all are if `is_valid` is empty. Their bytes come
    /// after those of `out`.
    pub(crate) fn of(values: &[i64], is_valid: &[bool], out: &mut Vec<u8>) -> Self {
        let rows = values.len() as u32; // at most MOST
        let valid = |row: usize| is_valid.is_empty() || is_valid[row];
        let range =
            values.iter().enumerate().filter(|(row, _)| valid(*row)).fold(None, |range, (_, value)| {
                let (least, most) = range.unwrap_or((*value, *value));
                Some(((*value).min(least), (*value).max(most)))
            });
        let Some((least, most)) = range else {
            return Self::nulls(rows);
        };
        let nulls = if is_valid.iter().all(|valid| *valid) { Nulls::None } else { Nulls::Some };
        if nulls == Nulls::Some {
            let bits = is_valid.chunks(8).map(|rows| {
                rows.iter().enumerate().fold(0, |bits, (bit, valid)| bits | u8::from(*valid) << bit)
            });
            out.extend(bits);
        }
        let width = match most.wrapping_sub(least) as u64 {
            0 => 0,
            1..=0xff => 1,
            0x100..=0xffff => 2,
            0x1_0000..=0xffff_ffff => 4,
            _ => 8,
        };
        if width > 0 {
            for (row, value) in values.iter().enumerate() {
                let above = if valid(row) { value.wrapping_sub(least) } else { 0 };
                out.extend_from_slice(&above.to_le_bytes()[..width]);
            }
        }
        Self { least, most, rows, width: width as u8, nulls }
    }

    /// The value of a row, from the bytes of this block.
    #[inline]
    pub(crate) fn get(&self, bytes: &[u8], row: usize) -> Option<i64> {
        let bytes = match self.nulls {
            Nulls::None => bytes,
            Nulls::All => return None,
            Nulls::Some if bytes[row / 8] >> (row % 8) & 1 == 0 => return None,
            Nulls::Some => &bytes[self.rows.div_ceil(8) as usize..],
        };
        fn at<const N: usize>(bytes: &[u8], row: usize) -> u64 {
            let mut word = [0; 8];
            word[..N].copy_from_slice(&bytes[row * N..][..N]);
            u64::from_le_bytes(word)
        }
        let above = match self.width {
            0 => 0,
            1 => at::<1>(bytes, row),
            2 => at::<2>(bytes, row),
            4 => at::<4>(bytes, row),
            _ => at::<8>(bytes, row),
        };
        Some(self.least.wrapping_add(above as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_as_they_were() {
        let lists: [&[Option<i64>]; 7] = [
            &[Some(7), Some(7)],
            &[None, None, None],
            &[Some(i64::MIN), Some(i64::MAX), None, Some(0)],
            &[Some(-1), None, Some(254)],
            &[Some(1 << 40), Some((1 << 40) + 300)],
            &[Some(5), None],
            &[Some(0), Some(1 << 31), None, None, None, None, None, None, Some(3)],
        ];
        for list in lists {
            let values: Vec<i64> = list.iter().map(|value| value.unwrap_or(99)).collect();
            let is_valid: Vec<bool> = list.iter().map(Option::is_some).collect();
            let mut bytes = Vec::new();
            let block = Block::of(&values, &is_valid, &mut bytes);
            let found: Vec<_> = (0..list.len()).map(|row| block.get(&bytes, row)).collect();
            assert_eq!(found, list);
        }
    }
}
