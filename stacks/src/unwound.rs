//! Stacks that were unwound before, by what the unwinder read of them.
//!
//! A program allocates in the same places again and again. What the unwinder finds depends on the registers,
//! on the words that it reads, and on the mappings; that of a chain of frame pointers also on its addresses.
//! Where all of them are as before, so is the stack: to compare them takes a few nanoseconds for each frame.
//!
//! Of the words, one kind is not compared. A function may keep a number in the frame pointer's register. Its
//! callees save it, and the number differs each time. The unwinder reads it and never uses it: the address of
//! a frame would be near the stack, and the root of a chain of frame pointers 0.

use hairline_perf::Map;

use crate::machine::registers;
use crate::process::Sampled;

/// The stacks that are kept, each with some 16 bytes for a frame. Then all are forgotten.
const MOST: usize = 4096;
/// Those with the same instruction and the same stack pointer.
const MOST_ALIKE: usize = 32;

/// How far from the copied stack an address may be that is one of a frame: a frame pointer may be inside of
/// its frame.
const NEAR: u64 = 64 << 10;

/// The stacks, by their stack pointer and their instruction, or those of their chain of frame pointers.
#[derive(Debug, Default)]
pub(crate) struct Unwound {
    stacks: Map<(u64, u64), Vec<Stack>>,
    count: usize,
}

#[derive(Debug)]
struct Stack {
    /// Native words.
    call_chain: Box<[u8]>,
    /// The registers by their index, and the words by their distance from the stack pointer, that matter.
    registers: Box<[(usize, u64)]>,
    words: Box<[(usize, u64)]>,
    found: Found,
}

/// What was found of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) number: u32,
    /// The address after the last word that was read.
    pub(crate) end: u64,
}

impl Unwound {
    /// Returns what was found of the stack, if it was [noted](Self::note) before.
    pub(crate) fn find(&mut self, sampled: &Sampled<'_>) -> Option<Found> {
        let alike = self.stacks.get_mut(&key(sampled)?)?;
        let at = alike.iter().position(|stack| stack.is(sampled))?;
        alike.swap(0, at); // often the next one too
        Some(alike[0].found)
    }

    /// Notes what was found of a stack that was unwound up to its root, with the words that were read.
    /// `is_code`: whether an address is in a mapping.
    pub(crate) fn note(
        &mut self,
        sampled: &Sampled<'_>,
        words: &[(usize, u64)],
        is_code: impl Fn(u64) -> bool,
        found: Found,
    ) {
        let Some(key) = key(sampled) else { return };
        let (_, sp) = key;
        let stack = sp.saturating_sub(NEAR)..sp.saturating_add(sampled.stack.len() as u64 + NEAR);
        // A return address is one after its call. On other processors it may be signed, and look like a number.
        let matters = |(_, value): &(usize, u64)| {
            !cfg!(target_arch = "x86_64")
                || *value == 0
                || stack.contains(value)
                || is_code(value.wrapping_sub(1))
                || is_code(*value)
        };
        if self.count >= MOST {
            *self = Self::default();
        }
        let alike = self.stacks.entry(key).or_default();
        if alike.len() >= MOST_ALIKE {
            self.count -= alike.len();
            alike.clear();
        }
        alike.push(Stack {
            call_chain: sampled.call_chain.bytes().into(),
            registers: sampled.registers.iter().copied().enumerate().filter(matters).collect(),
            words: words.iter().copied().filter(matters).collect(),
            found,
        });
        self.count += 1;
    }
}

impl Stack {
    fn is(&self, sampled: &Sampled<'_>) -> bool {
        *self.call_chain == *sampled.call_chain.bytes()
            && self.words.iter().all(|(at, value)| sampled.word(*at) == Some(*value))
            && self.registers.iter().all(|(index, value)| sampled.registers.get(*index) == Some(value))
    }
}

fn key(sampled: &Sampled<'_>) -> Option<(u64, u64)> {
    let (instruction, sp, _) = registers(sampled.registers)?;
    // Chains end in the same few frames.
    let of_chain =
        |key: u64, address: u64| (key.rotate_left(5) ^ address).wrapping_mul(0x517c_c1b7_2722_0a95);
    Some((sampled.call_chain.iter().fold(instruction, of_chain), sp))
}

#[cfg(test)]
mod tests {
    use hairline_perf::Words;

    use super::*;

    const REGISTERS: usize = crate::REGISTERS.count_ones() as usize;
    const SP: u64 = 0x7000_0000;
    const CODE: u64 = 0x5000;

    fn stack_of(words: [u64; 3]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_stack_is_found_again_if_all_that_matters_is_the_same() {
        let mut unwound = Unwound::default();
        let read = [(0, 77), (8, CODE), (16, SP + 8)];
        let (first, registers) = (stack_of([77, CODE, SP + 8]), [SP; REGISTERS]);
        fn sampled<'a>(registers: &'a [u64], stack: &'a [u8]) -> Sampled<'a> {
            Sampled { address: 0, call_chain: Words::default(), registers, stack }
        }
        let is_code = |address| address / 0x1000 == CODE / 0x1000;
        let find = |unwound: &mut Unwound, stack: &[u8]| unwound.find(&sampled(&registers, stack));
        assert_eq!(find(&mut unwound, &first), None);
        let found = Found { number: 5, end: SP + 24 };
        unwound.note(&sampled(&registers, &first), &read, is_code, found);
        assert_eq!(find(&mut unwound, &first), Some(found));
        let of_a_number = find(&mut unwound, &stack_of([78, CODE, SP + 8]));
        assert_eq!(of_a_number, cfg!(target_arch = "x86_64").then_some(found));
        for other in [[77, CODE + 1, SP + 8], [77, CODE, SP + 16], [77, CODE, 0]] {
            assert_eq!(find(&mut unwound, &stack_of(other)), None);
        }
        assert_eq!(find(&mut unwound, &first[..16]), None, "a shorter copy");
        let elsewhere = [SP + 8; REGISTERS];
        assert_eq!(unwound.find(&sampled(&elsewhere, &first)), None);
    }

    #[test]
    fn stacks_without_end_take_bounded_memory() {
        let mut unwound = Unwound::default();
        for n in 0..3 * MOST as u64 {
            let registers = [SP + n / 64 * 8; REGISTERS];
            let stack = stack_of([n, 0, 0]);
            let call_chain = Words::default();
            let sampled = Sampled { address: 0, call_chain, registers: &registers, stack: &stack };
            let found = Found { number: n as u32, end: SP };
            unwound.note(&sampled, &[(0, n)], |_| true, found);
            assert_eq!(unwound.find(&sampled), Some(found));
            assert!(unwound.count <= MOST);
            assert_eq!(unwound.stacks.values().map(Vec::len).sum::<usize>(), unwound.count);
        }
    }
}
