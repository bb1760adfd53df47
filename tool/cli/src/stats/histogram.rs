//! Percentiles in bounded memory.

/// The limit for exact values. Most names of most traces have fewer slices.
const FEW: usize = 32;
/// The number of cells for each power of two, as a power of two: a cell's value differs by at most 1/128.
const PARTS_BITS: u32 = 6;
const PARTS: usize = 1 << PARTS_BITS;
/// One block for values below [`PARTS`], and one for each power of two from there on.
const BLOCKS: usize = 64 - PARTS_BITS as usize + 1;

/// A histogram: exact for few values, otherwise within 0.8 %.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Histogram {
    many: Option<Box<Many>>,
    few: Vec<u64>,
}

/// Blocks for the powers of two that occur. Those up to some hours are in one line of the processor's cache.
#[derive(Debug)]
#[repr(C, align(64))]
struct Many {
    blocks: Vec<Block>,
    /// The index of each block plus 1; 0 is none.
    indices: [u8; BLOCKS],
    /// What the bytes of each block could not hold, in units of 256.
    carried: Vec<[u32; PARTS]>,
}

/// The low byte of each count: one line of the processor's cache, since each value counts in another line.
#[derive(Debug)]
#[repr(align(64))]
struct Block([u8; PARTS]);

impl Histogram {
    /// Adds a value.
    #[inline]
    pub(super) fn add(&mut self, value: u64) {
        if let Some(many) = &mut self.many {
            return many.add(value);
        }
        self.few.push(value);
        if self.few.len() > FEW {
            self.grow();
        }
    }

    /// Adds the values of another one.
    pub(super) fn merge(&mut self, other: &Self) {
        other.few.iter().for_each(|value| self.add(*value));
        if let Some(theirs) = &other.many {
            if self.many.is_none() {
                self.grow();
            }
            if let Some(many) = &mut self.many {
                many.merge(theirs);
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let mut many = Box::new(Many { blocks: Vec::new(), indices: [0; BLOCKS], carried: Vec::new() });
        std::mem::take(&mut self.few).into_iter().for_each(|value| many.add(value));
        self.many = Some(many);
    }

    /// For each fraction in `parts`, the smallest value that this fraction of `count` values does not exceed.
    pub(super) fn percentiles<const N: usize>(&self, parts: [f64; N], count: u64) -> [u64; N] {
        #[allow(clippy::cast_precision_loss, clippy::cast_sign_loss, clippy::cast_possible_truncation)]
        let rank = |part: f64| ((part * count as f64).ceil() as u64).clamp(1, count.max(1));
        match &self.many {
            Some(many) => parts.map(|part| many.at(rank(part))),
            None => {
                let mut sorted = self.few.clone();
                sorted.sort_unstable();
                parts.map(|part| sorted.get(rank(part) as usize - 1).copied().unwrap_or(0))
            }
        }
    }
}

/// The block of a value, and its cell.
#[inline]
fn place(value: u64) -> (usize, usize) {
    let bits = u64::BITS - value.leading_zeros();
    let shift = bits.saturating_sub(PARTS_BITS + 1);
    let block = bits.saturating_sub(PARTS_BITS) as usize;
    (block, (value >> shift) as usize % PARTS)
}

/// The middle value of a cell.
fn value(block: usize, part: usize) -> u64 {
    let Some(shift) = block.checked_sub(1) else { return part as u64 };
    let from = ((PARTS + part) as u64) << shift;
    from + ((1_u64 << shift) - 1) / 2
}

impl Many {
    #[inline]
    fn add(&mut self, value: u64) {
        let (block, part) = place(value);
        let mut at = self.indices[block];
        if at == 0 {
            at = self.new_block(block);
        }
        let index = usize::from(at) - 1;
        let count = &mut self.blocks[index].0[part];
        *count = count.wrapping_add(1);
        if *count == 0 {
            self.carry(index, part);
        }
    }

    #[inline(never)]
    fn carry(&mut self, block: usize, part: usize) {
        if self.carried.len() <= block {
            self.carried.resize(block + 1, [0; PARTS]);
        }
        let count = &mut self.carried[block][part];
        *count = count.saturating_add(1);
    }

    fn count(&self, block: usize, part: usize) -> u64 {
        let carried = self.carried.get(block).map_or(0, |block| block[part]);
        u64::from(carried) << 8 | u64::from(self.blocks[block].0[part])
    }

    /// Adds the counts of another one.
    fn merge(&mut self, other: &Self) {
        for (block, at) in other.indices.iter().enumerate().filter(|(_, at)| **at > 0) {
            let own = match self.indices[block] {
                0 => self.new_block(block),
                own => own,
            };
            let (own, theirs) = (usize::from(own) - 1, usize::from(*at) - 1);
            for part in 0..PARTS {
                let count = self.count(own, part).saturating_add(other.count(theirs, part));
                self.blocks[own].0[part] = count as u8; // the low byte; the others are carried
                let carried = u32::try_from(count >> 8).unwrap_or(u32::MAX);
                if carried > 0 {
                    if self.carried.len() <= own {
                        self.carried.resize(own + 1, [0; PARTS]);
                    }
                    self.carried[own][part] = carried;
                }
            }
        }
    }

    #[cold]
    fn new_block(&mut self, block: usize) -> u8 {
        self.blocks.push(Block([0; PARTS]));
        self.indices[block] = self.blocks.len() as u8; // at most BLOCKS
        self.indices[block]
    }

    fn at(&self, rank: u64) -> u64 {
        let mut before = 0;
        for (block, at) in self.indices.iter().enumerate().filter(|(_, at)| **at > 0) {
            for part in 0..PARTS {
                before += self.count(usize::from(*at) - 1, part);
                if before >= rank {
                    return value(block, part);
                }
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> (Histogram, u64) {
        let (mut histogram, mut count) = (Histogram::default(), 0);
        for value in values {
            histogram.add(value);
            count += 1;
        }
        (histogram, count)
    }

    #[test]
    fn few_values_are_exact() {
        let (histogram, count) = of([1_000_003, 7, 5]);
        assert_eq!(histogram.percentiles([0.0, 0.5, 0.9, 1.0], count), [5, 7, 1_000_003, 1_000_003]);
    }

    #[test]
    fn every_value_is_found_again_within_one_in_128() {
        let near = |power: u32| [(1_u64 << power) - 1, 1 << power, (1 << power) + (1 << power) / 3];
        for expected in (0..64).flat_map(near).chain([u64::MAX, 63, 64, 65, 127, 128]) {
            let (block, part) = place(expected);
            let found = value(block, part);
            assert!(found.abs_diff(expected) <= expected / 128, "{expected}: {found}");
        }
    }

    #[test]
    fn percentiles_of_many_values_are_within_one_percent() {
        let values: Vec<u64> = (0..100_000_u64).map(|n| n * n % 1_000_003 * 17).collect();
        let (histogram, count) = of(values.iter().copied());
        let mut sorted = values;
        sorted.sort_unstable();
        for part in [0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let exact = sorted[(part * 1e5) as usize - 1];
            let [found] = histogram.percentiles([part], count);
            assert!(found.abs_diff(exact) * 100 <= exact, "{part}: {found} is not {exact}");
        }
    }
}
