//! Reads the arguments of events.

use crate::proto::{Field, FieldValue, Fields, WireType, tag};
use crate::track_event::fields::{debug_annotation as annotation, track_event};
use crate::track_event::read::nested::NestedValue;
use crate::track_event::read::rest::Rest;
use crate::{DecodeError, Value};

/// An argument of an event: `DebugAnnotation`.
///
/// ```
/// use hairline_formats::Value;
/// use hairline_formats::track_event::{AnnotationValue, Annotations, put_annotation};
///
/// let mut event = Vec::new(); // the bytes of a `TrackEvent`
/// put_annotation(&mut event, 1, &Value::I64(-3));
/// put_annotation(&mut event, 2, &Value::Interned { iid: 7, text: "GET" });
///
/// let mut annotations = Annotations::of_event(&event);
/// let first = annotations.next().unwrap()?;
/// assert_eq!(first.name_iid, Some(1));
/// assert!(matches!(first.value, AnnotationValue::Value(Value::I64(-3))));
/// let second = annotations.next().unwrap()?;
/// assert!(matches!(second.value, AnnotationValue::StringIid(7)));
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Annotation<'a> {
    /// The id of an interned name.
    pub name_iid: Option<u64>,
    /// The name, if it is not interned.
    pub name: Option<&'a str>,
    /// The bytes of a name that is not UTF-8. `name` is then the text before the first wrong byte.
    pub wrong_name: Option<&'a [u8]>,
    /// The value.
    pub value: AnnotationValue<'a>,
}

/// The value of an annotation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnnotationValue<'a> {
    /// A value. A string that is not UTF-8 is a [`Value::Blob`]. A missing or unknown value is
    /// [`Value::Null`].
    Value(Value<'a>),
    /// The id of an interned string.
    StringIid(u64),
    /// Text in JSON.
    Json(&'a str),
    /// A value of an older tracer.
    Nested(NestedValue<'a>),
    /// Names and values.
    Dict(Annotations<'a>),
    /// Values without names.
    Array(Annotations<'a>),
}

const NAME_IID: u64 = tag(annotation::NAME_IID, WireType::Varint) as u64;
const NAME: u64 = tag(annotation::NAME, WireType::Bytes) as u64;
const BOOL: u64 = tag(annotation::BOOL_VALUE, WireType::Varint) as u64;
const UINT: u64 = tag(annotation::UINT_VALUE, WireType::Varint) as u64;
const INT: u64 = tag(annotation::INT_VALUE, WireType::Varint) as u64;
const DOUBLE: u64 = tag(annotation::DOUBLE_VALUE, WireType::Fixed64) as u64;
const POINTER: u64 = tag(annotation::POINTER_VALUE, WireType::Varint) as u64;
const STRING: u64 = tag(annotation::STRING_VALUE, WireType::Bytes) as u64;
const STRING_IID: u64 = tag(annotation::STRING_VALUE_IID, WireType::Varint) as u64;

/// Iterates over the annotations of a message. Nested annotations are read only on demand.
#[derive(Clone, Debug)]
pub struct Annotations<'a> {
    message: Fields<'a>,
    field: u32,
}

impl<'a> Annotations<'a> {
    pub(super) fn new(message: Fields<'a>, field: u32) -> Self {
        Self { message, field }
    }

    /// Iterates over the annotations in the bytes of an event:
    /// [`TrackEvent::bytes`](crate::track_event::TrackEvent::bytes) or
    /// [`PlainEvent::annotated`](crate::track_event::PlainEvent::annotated).
    #[must_use]
    pub fn of_event(bytes: &'a [u8]) -> Self {
        Self::new(Fields::new(bytes, 0), track_event::DEBUG_ANNOTATIONS)
    }
}

impl<'a> Iterator for Annotations<'a> {
    type Item = Result<Annotation<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let message = self.message.next_message(self.field)?;
        Some(message.and_then(|message| Annotation::decode(&message)))
    }
}

impl<'a> Annotation<'a> {
    const EMPTY: Self =
        Self { name_iid: None, name: None, wrong_name: None, value: AnnotationValue::Value(Value::Null) };

    #[inline]
    fn decode(message: &Fields<'a>) -> Result<Self, DecodeError> {
        match Self::decode_flat(message.rest()) {
            Some(flat) => Ok(flat),
            None => Self::decode_any(message),
        }
    }

    /// Reads an annotation that has only a name and a value that is not nested, as nearly all are. Returns
    /// `None` for any other.
    #[inline]
    fn decode_flat(message: &'a [u8]) -> Option<Self> {
        let (mut flat, mut rest) = (Self::EMPTY, Rest(message));
        while !rest.0.is_empty() {
            flat.value = AnnotationValue::Value(match rest.varint()? {
                NAME_IID => {
                    flat.name_iid = Some(rest.varint()?);
                    continue;
                }
                NAME => {
                    flat.name = Some(std::str::from_utf8(rest.bytes()?).ok()?);
                    continue;
                }
                BOOL => Value::Bool(rest.varint()? != 0),
                UINT => Value::U64(rest.varint()?),
                INT => Value::I64(rest.varint()?.cast_signed()),
                DOUBLE => Value::F64(f64::from_bits(rest.fixed64()?)),
                POINTER => Value::Pointer(rest.varint()?),
                STRING => Value::Str(std::str::from_utf8(rest.bytes()?).ok()?),
                STRING_IID => {
                    flat.value = AnnotationValue::StringIid(rest.varint()?);
                    continue;
                }
                _ => return None,
            });
        }
        Some(flat)
    }

    #[inline(never)]
    fn decode_any(message: &Fields<'a>) -> Result<Self, DecodeError> {
        let mut decoded = Self::EMPTY;
        for field in message.clone() {
            let field = field?;
            match (field.number, field.value) {
                (annotation::NAME_IID, FieldValue::Varint(v)) => decoded.name_iid = Some(v),
                (annotation::NAME, value @ FieldValue::Bytes { bytes, .. }) => {
                    decoded.name = value.text();
                    let is_whole = decoded.name.is_some_and(|name| name.len() == bytes.len());
                    decoded.wrong_name = (!is_whole).then_some(bytes);
                }
                _ => {
                    if let Some(value) = AnnotationValue::decode(&field, message) {
                        decoded.value = value;
                    }
                }
            }
        }
        Ok(decoded)
    }
}

impl<'a> AnnotationValue<'a> {
    /// Returns the value in this field of an annotation. Returns `None` if the field is no value.
    fn decode(field: &Field<'a>, message: &Fields<'a>) -> Option<Self> {
        use FieldValue::{Bytes, Fixed64, Varint};
        let nested = || Annotations::new(message.clone(), field.number);
        Some(Self::Value(match (field.number, field.value) {
            (annotation::BOOL_VALUE, Varint(v)) => Value::Bool(v != 0),
            (annotation::UINT_VALUE, Varint(v)) => Value::U64(v),
            (annotation::INT_VALUE, Varint(v)) => Value::I64(v.cast_signed()),
            (annotation::DOUBLE_VALUE, Fixed64(v)) => Value::F64(f64::from_bits(v)),
            (annotation::POINTER_VALUE, Varint(v)) => Value::Pointer(v),
            (annotation::STRING_VALUE, Bytes { bytes, .. }) => {
                std::str::from_utf8(bytes).map_or(Value::Blob(bytes), Value::Str)
            }
            (annotation::STRING_VALUE_IID, Varint(v)) => return Some(Self::StringIid(v)),
            (annotation::NESTED_VALUE, value @ Bytes { .. }) => {
                return NestedValue::decode(&value.message()?).ok().map(Self::Nested);
            }
            (annotation::LEGACY_JSON_VALUE, value) => return value.text().map(Self::Json),
            (annotation::DICT_ENTRIES, Bytes { .. }) => return Some(Self::Dict(nested())),
            (annotation::ARRAY_VALUES, Bytes { .. }) => return Some(Self::Array(nested())),
            _ => return None,
        }))
    }
}
