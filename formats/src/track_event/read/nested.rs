//! Reads values of arguments as older tracers nest them.

use crate::proto::{Field, FieldValue, Fields};
use crate::track_event::fields::nested_value;
use crate::{DecodeError, Value};

/// A value as Chrome nested it before 2022: `DebugAnnotation.NestedValue`.
///
/// ```
/// use hairline_formats::Value;
/// use hairline_formats::proto::{put_message, put_str, put_uint};
/// use hairline_formats::track_event::fields::{debug_annotation, nested_value, track_event};
/// use hairline_formats::track_event::{AnnotationValue, Annotations, NestedValue};
///
/// let mut event = Vec::new(); // the bytes of a `TrackEvent`
/// put_message(&mut event, track_event::DEBUG_ANNOTATIONS, |annotation| {
///     put_message(annotation, debug_annotation::NESTED_VALUE, |dict| {
///         put_uint(dict, nested_value::NESTED_TYPE, 1);
///         put_str(dict, nested_value::DICT_KEYS, "port");
///         put_message(dict, nested_value::DICT_VALUES, |port| put_uint(port, nested_value::INT_VALUE, 80));
///     });
/// });
///
/// let annotation = Annotations::of_event(&event).next().unwrap()?;
/// let AnnotationValue::Nested(NestedValue::Dict(mut entries)) = annotation.value else { panic!() };
/// let (key, port) = entries.next().unwrap()?;
/// assert_eq!(key, "port");
/// assert!(matches!(port, NestedValue::Value(Value::I64(80))));
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub enum NestedValue<'a> {
    /// A value that has no other in it. A string that is not UTF-8 is a [`Value::Blob`]. A missing value is
    /// [`Value::Null`].
    Value(Value<'a>),
    /// Keys and values.
    Dict(NestedValues<'a>),
    /// Values; their keys are "".
    Array(NestedValues<'a>),
}

/// `NestedType.DICT`.
const DICT: u64 = 1;
/// `NestedType.ARRAY`.
const ARRAY: u64 = 2;

impl<'a> NestedValue<'a> {
    pub(super) fn decode(message: &Fields<'a>) -> Result<Self, DecodeError> {
        let (mut kind, mut value) = (0, Value::Null);
        for field in message.clone() {
            let field = field?;
            match (field.number, field.value) {
                (nested_value::NESTED_TYPE, FieldValue::Varint(v)) => kind = v,
                (nested_value::INT_VALUE, FieldValue::Varint(v)) => value = Value::I64(v.cast_signed()),
                (nested_value::DOUBLE_VALUE, FieldValue::Fixed64(v)) => value = Value::F64(f64::from_bits(v)),
                (nested_value::BOOL_VALUE, FieldValue::Varint(v)) => value = Value::Bool(v != 0),
                (nested_value::STRING_VALUE, FieldValue::Bytes { bytes, .. }) => {
                    value = std::str::from_utf8(bytes).map_or(Value::Blob(bytes), Value::Str);
                }
                _ => {}
            }
        }
        let values = |keys: Fields<'a>, field| NestedValues { keys, values: message.clone(), field };
        Ok(match kind {
            DICT => Self::Dict(values(message.clone(), nested_value::DICT_VALUES)),
            ARRAY => Self::Array(values(Fields::none(), nested_value::ARRAY_VALUES)),
            _ => Self::Value(value),
        })
    }
}

/// Iterates over the values of a [`NestedValue`], with their keys. Those in them are read only on demand.
#[derive(Clone, Debug)]
pub struct NestedValues<'a> {
    keys: Fields<'a>,
    values: Fields<'a>,
    field: u32,
}

impl<'a> Iterator for NestedValues<'a> {
    type Item = Result<(&'a str, NestedValue<'a>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let value = self.values.next_message(self.field)?;
        // The keys are in the order of the values, in fields of their own.
        let is_key = |field: &Field<'a>| field.number == nested_value::DICT_KEYS;
        let key = self.keys.by_ref().map_while(Result::ok).find(is_key);
        let key = key.and_then(|key| key.value.text()).unwrap_or_default();
        Some(value.and_then(|value| Ok((key, NestedValue::decode(&value)?))))
    }
}
