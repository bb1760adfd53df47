//! Texts that are not UTF-8. The schema forbids them, but writers in C and C++ do not check, and
//! trace_processor shows them with U+FFFD in the place of what is wrong.

use crate::proto::{Field, FieldValue, Fields, put_field, put_message, put_str};
use crate::track_event::fields::{
    InternedKind, address_symbols, counter_descriptor, debug_annotation, inline_callstack, inline_frame,
    interned_data, interned_string, legacy_event, line, module_symbols, nested_value, process_descriptor,
    process_tree, process_tree_process, process_tree_thread, source_location, system_info, task_state,
    thread_descriptor, trace_packet, track_descriptor, track_event, utsname,
};

/// A message with texts.
#[derive(Clone, Copy)]
enum Message {
    Packet,
    Event,
    LegacyEvent,
    Annotation,
    NestedValue,
    Location,
    Callstack,
    InlineFrame,
    Interned,
    InternedString,
    Track,
    Process,
    Thread,
    Counter,
    Tree,
    TreeProcess,
    TreeThread,
    System,
    Utsname,
    TaskState,
    Symbols,
    AddressSymbols,
    Line,
}

/// The content of a field.
enum Content {
    Text,
    Message(Message),
    Other,
}

impl Message {
    fn content(self, field: u32) -> Content {
        use Content::{Message as Nested, Other, Text};
        let is_text = match self {
            Self::Packet => {
                return match field {
                    trace_packet::TRACK_EVENT => Nested(Self::Event),
                    trace_packet::INTERNED_DATA => Nested(Self::Interned),
                    trace_packet::TRACK_DESCRIPTOR => Nested(Self::Track),
                    trace_packet::PROCESS_TREE => Nested(Self::Tree),
                    trace_packet::SYSTEM_INFO => Nested(Self::System),
                    trace_packet::GENERIC_KERNEL_TASK_STATE_EVENT => Nested(Self::TaskState),
                    trace_packet::MODULE_SYMBOLS => Nested(Self::Symbols),
                    _ => Other,
                };
            }
            Self::Event => match field {
                track_event::DEBUG_ANNOTATIONS => return Nested(Self::Annotation),
                track_event::LEGACY_EVENT => return Nested(Self::LegacyEvent),
                track_event::SOURCE_LOCATION => return Nested(Self::Location),
                track_event::CALLSTACK => return Nested(Self::Callstack),
                _ => matches!(
                    field,
                    track_event::NAME | track_event::CATEGORIES | track_event::CORRELATION_ID_STR
                ),
            },
            Self::Annotation => match field {
                debug_annotation::DICT_ENTRIES | debug_annotation::ARRAY_VALUES => {
                    return Nested(Self::Annotation);
                }
                debug_annotation::NESTED_VALUE => return Nested(Self::NestedValue),
                _ => matches!(
                    field,
                    debug_annotation::NAME
                        | debug_annotation::STRING_VALUE
                        | debug_annotation::LEGACY_JSON_VALUE
                ),
            },
            Self::NestedValue => match field {
                nested_value::DICT_VALUES | nested_value::ARRAY_VALUES => return Nested(Self::NestedValue),
                _ => matches!(field, nested_value::DICT_KEYS | nested_value::STRING_VALUE),
            },
            Self::Interned => match field {
                interned_data::SOURCE_LOCATIONS => return Nested(Self::Location),
                interned_data::FUNCTION_NAMES | interned_data::MAPPING_PATHS => {
                    return Nested(Self::InternedString);
                }
                _ if InternedKind::from_number(field.into()).is_some() => {
                    return Nested(Self::InternedString);
                }
                _ => false,
            },
            Self::Track => match field {
                track_descriptor::PROCESS => return Nested(Self::Process),
                track_descriptor::THREAD => return Nested(Self::Thread),
                track_descriptor::COUNTER => return Nested(Self::Counter),
                _ => matches!(
                    field,
                    track_descriptor::NAME
                        | track_descriptor::STATIC_NAME
                        | track_descriptor::ATRACE_NAME
                        | track_descriptor::DESCRIPTION
                        | track_descriptor::SIBLING_MERGE_KEY
                ),
            },
            Self::Tree => match field {
                process_tree::PROCESSES => return Nested(Self::TreeProcess),
                process_tree::THREADS => return Nested(Self::TreeThread),
                _ => false,
            },
            Self::System if field == system_info::UTSNAME => return Nested(Self::Utsname),
            Self::System => field == system_info::TRACING_SERVICE_VERSION,
            Self::Symbols if field == module_symbols::ADDRESS_SYMBOLS => return Nested(Self::AddressSymbols),
            Self::Symbols => field == module_symbols::PATH,
            Self::Callstack if field == inline_callstack::FRAMES => return Nested(Self::InlineFrame),
            Self::InlineFrame => matches!(field, inline_frame::FUNCTION_NAME | inline_frame::SOURCE_FILE),
            Self::AddressSymbols if field == address_symbols::LINES => return Nested(Self::Line),
            Self::AddressSymbols | Self::Callstack => false,
            Self::Line => matches!(field, line::FUNCTION_NAME | line::SOURCE_FILE_NAME),
            Self::LegacyEvent => field == legacy_event::ID_SCOPE,
            Self::Location => matches!(field, source_location::FILE_NAME | source_location::FUNCTION_NAME),
            Self::InternedString => field == interned_string::NAME,
            Self::Process => matches!(field, process_descriptor::CMDLINE | process_descriptor::PROCESS_NAME),
            Self::Thread => field == thread_descriptor::THREAD_NAME,
            Self::Counter => matches!(
                field,
                counter_descriptor::CATEGORIES
                    | counter_descriptor::UNIT_NAME
                    | counter_descriptor::Y_AXIS_SHARE_KEY
            ),
            Self::TreeProcess => field == process_tree_process::CMDLINE,
            Self::TreeThread => field == process_tree_thread::NAME,
            Self::Utsname => {
                matches!(field, utsname::SYSNAME | utsname::VERSION | utsname::RELEASE | utsname::MACHINE)
            }
            Self::TaskState => field == task_state::COMM,
        };
        if is_text { Text } else { Other }
    }

    /// Counts the texts that are not UTF-8. Nested arguments deeper than `depth` are passed over. `None` for
    /// a malformed message.
    fn wrong_texts(self, fields: Fields<'_>, depth: usize) -> Option<u64> {
        let mut wrong = 0;
        for field in fields {
            let field = field.ok()?;
            let FieldValue::Bytes { bytes, offset } = field.value else { continue };
            wrong += match self.content(field.number) {
                Content::Text => u64::from(std::str::from_utf8(bytes).is_err()),
                Content::Message(message) if depth > 0 => {
                    message.wrong_texts(Fields::new(bytes, offset), depth - 1)?
                }
                _ => 0,
            };
        }
        Some(wrong)
    }

    fn put_valid(self, out: &mut Vec<u8>, fields: Fields<'_>, depth: usize) {
        for field in fields.map_while(Result::ok) {
            let Field { number, value, .. } = field;
            match (value, self.content(number)) {
                (FieldValue::Bytes { bytes, .. }, Content::Text) => {
                    put_str(out, number, &String::from_utf8_lossy(bytes));
                }
                (FieldValue::Bytes { bytes, offset }, Content::Message(message)) if depth > 0 => {
                    put_message(out, number, |out| {
                        message.put_valid(out, Fields::new(bytes, offset), depth - 1);
                    });
                }
                _ => put_field(out, &field),
            }
        }
    }
}

/// The limit for nested messages: arguments are not read any deeper.
const DEEPEST: usize = 64;

/// Returns the fields of a packet whose texts are not all UTF-8, with U+FFFD in the place of what is wrong,
/// and the number of such texts. `None` for any other packet.
///
/// ```
/// use hairline_formats::proto::{Fields, put_bytes, put_message};
/// use hairline_formats::track_event::{Packet, PacketData, fields, valid_texts};
///
/// let mut packet = Vec::new();
/// put_message(&mut packet, fields::trace_packet::TRACK_EVENT, |event| {
///     put_bytes(event, fields::track_event::NAME, b"caf\xe9.rs"); // Latin-1
/// });
/// let (valid, wrong) = valid_texts(&Fields::new(&packet, 0)).unwrap();
/// let packet = Packet::decode(Fields::new(&valid, 0))?;
/// let Some(PacketData::Event(event)) = packet.data else { panic!() };
/// assert_eq!((event.name, wrong), (Some("caf\u{fffd}.rs"), 1));
/// assert!(valid_texts(&Fields::new(&valid, 0)).is_none());
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[must_use]
pub fn valid_texts(packet: &Fields<'_>) -> Option<(Vec<u8>, u64)> {
    let wrong = Message::Packet.wrong_texts(packet.clone(), DEEPEST).filter(|wrong| *wrong > 0)?;
    let mut valid = Vec::with_capacity(packet.rest().len() + 64);
    Message::Packet.put_valid(&mut valid, packet.clone(), DEEPEST);
    Some((valid, wrong))
}
