//! Reads samples of call stacks, and the functions of their addresses.

use crate::DecodeError;
use crate::proto::{FieldValue, Fields};
use crate::track_event::fields::{
    CpuMode, UnwindError, address_symbols, callstack, frame, interned_data, interned_string,
    line as line_fields, mapping, module_symbols, perf_sample,
};
use crate::track_event::read::interned::Entries;
use crate::track_event::read::repeated::Numbers;
use crate::track_event::samples::{AddressSymbols, Frame, InternedStack, Line, Mapping, PerfSample};

pub(super) fn sample(message: Fields<'_>, skipped: &mut u32) -> Result<PerfSample, DecodeError> {
    let mut sample = PerfSample::default();
    for field in message {
        let field = field?;
        match (field.number, field.value) {
            (perf_sample::CPU, FieldValue::Varint(v)) => sample.cpu = Some(v as u32),
            (perf_sample::PID, FieldValue::Varint(v)) => sample.pid = v as u32,
            (perf_sample::TID, FieldValue::Varint(v)) => sample.tid = v as u32,
            (perf_sample::CALLSTACK_IID, FieldValue::Varint(v)) => sample.callstack = v,
            (perf_sample::CPU_MODE, FieldValue::Varint(v)) => {
                sample.mode = CpuMode::from_number(v).unwrap_or_default();
            }
            (perf_sample::UNWIND_ERROR, FieldValue::Varint(v)) => {
                sample.unwind_error = UnwindError::from_number(v).unwrap_or_default();
            }
            (perf_sample::KERNEL_RECORDS_LOST, FieldValue::Varint(v)) => sample.lost = v,
            _ => *skipped += 1,
        }
    }
    Ok(sample)
}

/// `ModuleSymbols`: iterates over the addresses of a file. Text ends at its first byte that is not UTF-8.
#[derive(Clone, Debug)]
pub struct ModuleSymbols<'a> {
    /// The path of the mapping.
    pub path: &'a str,
    /// The build id of the mapping, as raw bytes.
    pub build_id: &'a [u8],
    message: Fields<'a>,
}

impl<'a> ModuleSymbols<'a> {
    pub(super) fn decode(message: Fields<'a>) -> Result<Self, DecodeError> {
        let mut module = Self { path: "", build_id: &[], message: message.clone() };
        for field in message {
            let field = field?;
            match (field.number, field.value) {
                (module_symbols::PATH, value) => module.path = value.text().unwrap_or(""),
                (module_symbols::BUILD_ID, FieldValue::Bytes { bytes, .. }) => module.build_id = bytes,
                _ => {}
            }
        }
        Ok(module)
    }
}

impl<'a> Iterator for ModuleSymbols<'a> {
    type Item = Result<AddressSymbols<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.message.next_message(module_symbols::ADDRESS_SYMBOLS)?.and_then(symbols))
    }
}

fn symbols(message: Fields<'_>) -> Result<AddressSymbols<'_>, DecodeError> {
    let mut of = AddressSymbols { address: 0, lines: Vec::new() };
    for field in message {
        let field = field?;
        match (field.number, field.value) {
            (address_symbols::ADDRESS, FieldValue::Varint(v)) => of.address = v,
            (address_symbols::LINES, value) => {
                if let Some(message) = value.message() {
                    of.lines.push(line(message)?);
                }
            }
            _ => {}
        }
    }
    Ok(of)
}

fn line(message: Fields<'_>) -> Result<Line<'_>, DecodeError> {
    let mut line = Line::default();
    for field in message {
        let field = field?;
        match (field.number, field.value) {
            (line_fields::FUNCTION_NAME, value) => line.function = value.text().unwrap_or(""),
            (line_fields::SOURCE_FILE_NAME, value) => line.file = value.text().unwrap_or(""),
            (line_fields::LINE_NUMBER, FieldValue::Varint(v)) => line.line = v as u32,
            _ => {}
        }
    }
    Ok(line)
}

/// Iterates over the interned parts of call stacks of a packet. Other interned data is ignored.
#[derive(Clone, Debug)]
pub struct InternedStacks<'a> {
    entries: Entries<'a>,
    skipped: u32,
}

impl<'a> InternedStacks<'a> {
    pub(super) fn new(entries: Entries<'a>) -> Self {
        Self { entries, skipped: 0 }
    }

    /// Returns the number of unknown fields of the frames so far.
    #[must_use]
    pub fn skipped(&self) -> u32 {
        self.skipped
    }
}

impl<'a> Iterator for InternedStacks<'a> {
    type Item = Result<InternedStack<'a, Numbers<'a>>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.entries.next(|field, message| entry(field, message, &mut self.skipped))
    }
}

fn entry<'a>(
    field: u32,
    message: Fields<'a>,
    skipped: &mut u32,
) -> Result<Option<InternedStack<'a, Numbers<'a>>>, DecodeError> {
    Ok(Some(match field {
        interned_data::BUILD_IDS => {
            let (iid, value) = string(message)?;
            let bytes = if let Some(FieldValue::Bytes { bytes, .. }) = value { bytes } else { &[] };
            InternedStack::BuildId { iid, bytes }
        }
        interned_data::MAPPING_PATHS => {
            let (iid, value) = string(message)?;
            InternedStack::Path { iid, path: value.and_then(|v| v.text()).unwrap_or("") }
        }
        interned_data::FUNCTION_NAMES => {
            let (iid, value) = string(message)?;
            InternedStack::Function { iid, name: value.and_then(|v| v.text()).unwrap_or("") }
        }
        interned_data::MAPPINGS => {
            let path = Numbers::varints(message.clone(), mapping::PATH_STRING_IDS);
            let [iid, build_id, start, end, load_bias, offset] = numbers(
                message,
                [
                    mapping::IID,
                    mapping::BUILD_ID,
                    mapping::START,
                    mapping::END,
                    mapping::LOAD_BIAS,
                    mapping::EXACT_OFFSET,
                ],
            )?;
            InternedStack::Mapping { iid, mapping: Mapping { build_id, path, start, end, offset, load_bias } }
        }
        interned_data::FRAMES => {
            let fields = [frame::IID, frame::FUNCTION_NAME_ID, frame::MAPPING_ID, frame::REL_PC];
            let of_frame = message.clone().map_while(Result::ok);
            *skipped += of_frame.filter(|field| !fields.contains(&field.number)).count() as u32;
            let [iid, function, mapping, rel_pc] = numbers(message, fields)?;
            InternedStack::Frame { iid, frame: Frame { function, mapping, rel_pc } }
        }
        interned_data::CALLSTACKS => {
            let frames = Numbers::varints(message.clone(), callstack::FRAME_IDS);
            let [iid] = numbers(message, [callstack::IID])?;
            InternedStack::Callstack { iid, frames }
        }
        _ => return Ok(None),
    }))
}

fn string(message: Fields<'_>) -> Result<(u64, Option<FieldValue<'_>>), DecodeError> {
    let (mut iid, mut string) = (0, None);
    for field in message {
        let field = field?;
        match (field.number, field.value) {
            (interned_string::IID, FieldValue::Varint(v)) => iid = v,
            (interned_string::NAME, value) => string = Some(value),
            _ => {}
        }
    }
    Ok((iid, string))
}

/// Returns the values of these fields; 0 for a missing one.
fn numbers<const N: usize>(message: Fields<'_>, fields: [u32; N]) -> Result<[u64; N], DecodeError> {
    let mut values = [0; N];
    for field in message {
        let field = field?;
        if let (Some(at), FieldValue::Varint(v)) =
            (fields.iter().position(|it| *it == field.number), field.value)
        {
            values[at] = v;
        }
    }
    Ok(values)
}
