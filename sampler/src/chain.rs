//! The chain of frame pointers, which a program has that was built with them.
//!
//! ```text
//!  frame pointer ──> | frame pointer of the caller | return address |      at the end of each frame
//!                                │
//!                                └──> the same of the caller
//! ```
//!
//! The chain is no more than numbers that may be any: code without frame pointers keeps its own values in the
//! register. So each step goes to a higher address, not too far, and reads only what is there.

/// The most frames that are passed: a reader keeps no more.
pub(crate) const MOST: usize = 255;

/// How far from the stack pointer the chain may lead: the usual limit of the largest stack.
const FARTHEST: u64 = 8 << 20;

/// The instruction, the stack pointer and the frame pointer.
pub(crate) type Frame = [u64; 3];

/// Follows the chain from the innermost frame on. Calls `pass` with the instruction of each frame that it
/// leaves, which in a caller is the return address, until that returns false. `read` returns the two words at
/// an address of the stack, if they are there. Returns the frame at which the chain ends.
pub(crate) fn follow(
    innermost: Frame,
    mut read: impl FnMut(u64) -> Option<[u64; 2]>,
    mut pass: impl FnMut(u64) -> bool,
) -> Frame {
    let [_, lowest, _] = innermost;
    let [mut instruction, mut sp, mut fp] = innermost;
    while fp >= sp && fp.is_multiple_of(8) && fp - lowest <= FARTHEST {
        let Some([of_caller, return_address]) = read(fp) else { break };
        if return_address == 0 || !pass(instruction) {
            break;
        }
        [instruction, sp, fp] = [return_address, fp.saturating_add(16), of_caller];
    }
    [instruction, sp, fp]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows a chain in a stack of words that begins at 0x1000, with the frame pointer there.
    fn followed(words: &[u64]) -> (Vec<u64>, Frame) {
        let mut passed = Vec::new();
        let read = |at: u64| {
            let index = usize::try_from((at - 0x1000) / 8).ok()?;
            words.get(index..)?.first_chunk().copied()
        };
        let end = follow([1, 0x1000, 0x1000], read, |instruction| {
            passed.push(instruction);
            passed.len() < 5
        });
        (passed, end)
    }

    #[test]
    fn a_chain_is_followed_to_a_number_that_is_no_frame() {
        let words = [0x1018, 11, 0, 0x1030, 22, 0, 77, 33];
        assert_eq!(followed(&words), (vec![1, 11, 22], [33, 0x1040, 77]));
    }

    #[test]
    fn a_chain_never_goes_back_nor_to_an_odd_address_nor_far_nor_in_a_circle() {
        for wrong in [0, 0x1000, 0x1008, 0x1011, 0x1000 + FARTHEST + 8, u64::MAX, u64::MAX - 7] {
            assert_eq!(
                followed(&[wrong, 11, 0x1018, 22, 0, 33]),
                (vec![1], [11, 0x1010, wrong]),
                "{wrong:#x}"
            );
        }
        assert_eq!(followed(&[0x1010, 0, 0, 5]), (vec![], [1, 0x1000, 0x1000]), "no return address");
    }

    #[test]
    fn a_chain_ends_where_the_stack_is_not_there_and_where_there_is_no_room() {
        assert_eq!(followed(&[0x1010, 11]), (vec![1], [11, 0x1010, 0x1010]));
        let words: Vec<u64> = (1..100).flat_map(|n| [0x1000 + n * 16, n + 1]).collect();
        assert_eq!(followed(&words).0, [1, 2, 3, 4, 5]);
        assert_eq!(followed(&words).1[0], 5, "it is where the next sample of the stack begins");
    }
}
