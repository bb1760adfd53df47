//! The mappings of a process, and the unwinding of its stacks.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use framehop::{FrameAddress, Unwinder as _};
use hairline_formats::track_event::UnwindError;
use hairline_perf::Words;

use crate::file::ProgramFile;
use crate::machine::{
    Cache, Section, Unwinder, code_address, far_apart, interrupted, is_frame_record, registers,
};

/// The frames of a stack that are kept: an FXT record has no room for more.
pub(crate) const MOST_FRAMES: usize = 255;

/// How far from its frame pointer a function keeps what its callers need.
const NEAR: u64 = 4096;

/// The memory of a process that has code.
#[derive(Clone, Default)]
pub(crate) struct Process {
    /// By their first address.
    mappings: BTreeMap<u64, Mapped>,
    unwinder: Unwinder<Section>,
    life: Life,
}

/// Whether a process goes on.
#[derive(Clone, Copy, Debug)]
enum Life {
    /// It is the recording one.
    Endless,
    /// The number of its threads besides the first one, and whether the first one has ended. A record that
    /// was lost makes a process outlive its end here, or lose a few of its threads: never all of them.
    Counted { others: u32, first_has_ended: bool },
}

impl Default for Life {
    fn default() -> Self {
        Self::Counted { others: 0, first_has_ended: false }
    }
}

/// A mapping.
#[derive(Clone, Debug)]
struct Mapped {
    end: u64,
    /// The number of the mapping in the [table](crate::table).
    number: u32,
    /// The difference of addresses in the process and in the file.
    bias: u64,
    /// The code to which handlers of signals return, by its addresses in the file: few files have any.
    signal_frames: Arc<[Range<u64>]>,
}

/// A place in a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// The number of the mapping. `None`: code that no file has.
    pub(crate) mapping: Option<u32>,
    /// The address as in the mapping's file.
    pub(crate) rel_pc: u64,
    /// The address in the process. In a caller it is inside of the call.
    pub(crate) address: u64,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").field("mappings", &self.mappings).finish_non_exhaustive()
    }
}

impl Process {
    /// Returns a copy for a process that this one has forked.
    pub(crate) fn forked(&self) -> Self {
        Self { life: Life::default(), ..self.clone() }
    }

    /// The process outlives its records.
    pub(crate) fn set_endless(&mut self) {
        self.life = Life::Endless;
    }

    pub(crate) fn thread_started(&mut self) {
        if let Life::Counted { others, .. } = &mut self.life {
            *others = others.saturating_add(1);
        }
    }

    /// Counts the end of the first thread or of another one. Returns whether it was the last one.
    pub(crate) fn thread_ended(&mut self, is_first: bool) -> bool {
        let Life::Counted { others, first_has_ended } = &mut self.life else { return false };
        if is_first {
            *first_has_ended = true;
        } else {
            *others = others.saturating_sub(1);
        }
        *first_has_ended && *others == 0
    }

    /// Adds a mapping, and removes those that it covers.
    pub(crate) fn map(&mut self, start: u64, end: u64, offset: u64, number: u32, file: &ProgramFile) {
        let covered: Vec<u64> =
            self.mappings.range(..end).filter(|(_, m)| m.end > start).map(|(start, _)| *start).collect();
        for start in covered {
            self.mappings.remove(&start);
            self.unwinder.remove_module(start);
        }
        let bias = file.bias(start, offset);
        if let Some(bias) = bias {
            self.unwinder.add_module(file.module(start..end, bias));
        }
        // Without a file, the addresses of the trace are those of the process.
        let signal_frames = bias.map(|_| Arc::clone(file.signal_frames())).unwrap_or_default();
        self.mappings.insert(start, Mapped { end, number, bias: bias.unwrap_or(0), signal_frames });
    }

    /// Returns whether the address is in a mapping.
    pub(crate) fn has_code(&self, address: u64) -> bool {
        self.place(address).mapping.is_some()
    }

    fn is_signal_frame(&self, address: u64) -> bool {
        let is_marked = |mapped: &Mapped| {
            let in_file = address.wrapping_sub(mapped.bias);
            mapped.signal_frames.iter().any(|code| code.contains(&in_file))
        };
        self.mapped(address).is_some_and(is_marked)
    }

    fn mapped(&self, address: u64) -> Option<&Mapped> {
        let found = self.mappings.range(..=address).next_back();
        found.map(|(_, mapped)| mapped).filter(|mapped| address < mapped.end)
    }

    fn place(&self, address: u64) -> Place {
        match self.mapped(address) {
            Some(m) => Place { mapping: Some(m.number), rel_pc: address.wrapping_sub(m.bias), address },
            None => Place { mapping: None, rel_pc: address, address },
        }
    }

    /// Returns whether the function of this return address has a frame pointer, as its rule for its caller tells.
    /// If not, a chain of frame pointers leads past that caller.
    fn has_frame_pointer(&self, return_address: u64, cache: &mut Cache) -> bool {
        let (mut registers, frame_pointer) = far_apart();
        let (mut has_one, mut before) = (false, None);
        let mut read = |at: u64| {
            has_one |=
                at.abs_diff(frame_pointer) < NEAR || before.is_some_and(|other| is_frame_record(at, other));
            before = Some(at);
            Ok(frame_pointer)
        };
        let Some(address) = FrameAddress::from_return_address(return_address) else { return false };
        let ends = matches!(self.unwinder.unwind_frame(address, &mut registers, cache, &mut read), Ok(None));
        has_one || ends
    }

    /// Unwinds a stack into `places`, the innermost first, and notes the words that it reads, with their
    /// distances from the stack pointer. Returns why it ends before its root.
    pub(crate) fn unwind(
        &self,
        sample: &Sampled<'_>,
        cache: &mut Cache,
        places: &mut Vec<Place>,
        words: &mut Vec<(usize, u64)>,
    ) -> UnwindError {
        let Some((ip, sp, mut registers)) = registers(sample.registers) else {
            places.push(self.place(sample.address));
            return UnwindError::Unknown;
        };
        let (mut ip, mut lacks_some) = (ip, false);
        if !sample.call_chain.is_empty() {
            for (depth, address) in sample.call_chain.iter().map(code_address).enumerate() {
                let place = self.place(if depth == 0 { address } else { address.wrapping_sub(1) });
                if place.mapping.is_none() && depth > 0 {
                    return UnwindError::InvalidMap; // the register had some number
                }
                places.push(place);
                // At the innermost instruction there may be none yet, also in a function that has one.
                let has_none = self.is_signal_frame(place.address) || !self.has_frame_pointer(address, cache);
                lacks_some |= depth > 0 && has_none;
            }
            ip = ip.wrapping_sub(1);
        }
        let mut read = |address: u64| {
            let at = address.checked_sub(sp).and_then(|at| usize::try_from(at).ok()).ok_or(())?;
            let word = sample.word(at).ok_or(())?;
            words.push((at, word));
            Ok(word)
        };
        let mut frame = FrameAddress::from_instruction_pointer(ip);
        loop {
            if places.len() == MOST_FRAMES {
                break UnwindError::MaxFramesExceeded;
            }
            let place = self.place(frame.address_for_lookup());
            // A frame outside of all code is what the unwinder made of a register that is none.
            if place.mapping.is_none() && !places.is_empty() {
                break UnwindError::InvalidMap;
            }
            places.push(place);
            if self.is_signal_frame(place.address)
                && let Some((at, before)) = interrupted(&registers, &mut read)
                && self.has_code(at)
            {
                (frame, registers) = (FrameAddress::from_instruction_pointer(at), before);
                continue;
            }
            let caller = self.unwinder.unwind_frame(frame, &mut registers, cache, &mut read);
            match caller.map(|address| address.and_then(FrameAddress::from_return_address)) {
                Ok(Some(caller)) => frame = caller,
                Ok(None) if lacks_some => break UnwindError::UnwindInfo,
                Ok(None) => break UnwindError::None,
                Err(framehop::Error::CouldNotReadStack(_)) => break UnwindError::MemoryInvalid,
                Err(_) => break UnwindError::UnwindInfo,
            }
        }
    }
}

/// What a sample has of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled<'a> {
    /// The instruction.
    pub(crate) address: u64,
    /// The instructions of the frames that are not in `stack`, the innermost first; those of callers are return
    /// addresses, and so is that of `registers` then. Empty: `stack` has all.
    pub(crate) call_chain: Words<'a>,
    /// The registers of the mask [`REGISTERS`](crate::REGISTERS). Empty if the thread has none.
    pub(crate) registers: &'a [u64],
    /// The memory from the stack pointer on.
    pub(crate) stack: &'a [u8],
}

impl Sampled<'_> {
    /// Returns the word at this distance from the stack pointer.
    pub(crate) fn word(&self, at: usize) -> Option<u64> {
        self.stack.get(at..).and_then(<[u8]>::first_chunk).copied().map(u64::from_ne_bytes)
    }
}
