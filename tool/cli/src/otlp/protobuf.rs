//! Spans as `opentelemetry.proto.trace.v1.TracesData`, which is also the request of an OTLP exporter.

use hairline_formats::proto::{PutMessages, put_bytes, put_double, put_fixed64, put_str, put_uint};

use crate::otlp::attribute::{Attribute, Attributes};
use crate::otlp::messages::{Encoding, Message};
use crate::otlp::span::{Process, Span};

/// Field numbers, by message.
mod fields {
    pub(super) const RESOURCE_SPANS: u32 = 1;
    pub(super) mod resource_spans {
        pub(in super::super) const RESOURCE: u32 = 1;
        pub(in super::super) const SCOPE_SPANS: u32 = 2;
    }
    pub(super) const RESOURCE_ATTRIBUTES: u32 = 1;
    pub(super) mod scope_spans {
        pub(in super::super) const SCOPE: u32 = 1;
        pub(in super::super) const SPANS: u32 = 2;
    }
    pub(super) mod scope {
        pub(in super::super) const NAME: u32 = 1;
        pub(in super::super) const VERSION: u32 = 2;
    }
    pub(super) mod span {
        pub(in super::super) const TRACE_ID: u32 = 1;
        pub(in super::super) const SPAN_ID: u32 = 2;
        pub(in super::super) const PARENT_SPAN_ID: u32 = 4;
        pub(in super::super) const NAME: u32 = 5;
        pub(in super::super) const KIND: u32 = 6;
        pub(in super::super) const START: u32 = 7;
        pub(in super::super) const END: u32 = 8;
        pub(in super::super) const ATTRIBUTES: u32 = 9;
        pub(in super::super) const EVENTS: u32 = 11;
        pub(in super::super) const LINKS: u32 = 13;
        pub(in super::super) const STATUS: u32 = 15;
    }
    pub(super) mod event {
        pub(in super::super) const TIME: u32 = 1;
        pub(in super::super) const NAME: u32 = 2;
        pub(in super::super) const ATTRIBUTES: u32 = 3;
    }
    pub(super) mod link {
        pub(in super::super) const TRACE_ID: u32 = 1;
        pub(in super::super) const SPAN_ID: u32 = 2;
    }
    pub(super) const STATUS_CODE: u32 = 3;
    pub(super) mod key_value {
        pub(in super::super) const KEY: u32 = 1;
        pub(in super::super) const VALUE: u32 = 2;
    }
    pub(super) mod any_value {
        pub(in super::super) const STRING: u32 = 1;
        pub(in super::super) const BOOL: u32 = 2;
        pub(in super::super) const INT: u32 = 3;
        pub(in super::super) const DOUBLE: u32 = 4;
        pub(in super::super) const ARRAY: u32 = 5;
        pub(in super::super) const KEY_VALUES: u32 = 6;
        pub(in super::super) const BYTES: u32 = 7;
    }
    /// Of `ArrayValue` and of `KeyValueList`.
    pub(super) const VALUES: u32 = 1;
}

/// `STATUS_CODE_ERROR`.
const ERROR: u64 = 2;

pub(super) const ENCODING: Encoding = Encoding { span, separator: b"", message: encode };

/// A span in a message.
fn span(span: &Span, since_1970: i64) -> Vec<u8> {
    let mut out = Vec::new();
    out.message(fields::scope_spans::SPANS, |out| put_span(out, span, since_1970));
    out
}

fn encode(message: &Message<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for (process, spans) in message {
        out.message(fields::RESOURCE_SPANS, |out| {
            out.message(fields::resource_spans::RESOURCE, |out| {
                put_attributes(out, fields::RESOURCE_ATTRIBUTES, &about(process));
            });
            out.message(fields::resource_spans::SCOPE_SPANS, |out| {
                out.message(fields::scope_spans::SCOPE, |out| {
                    put_str(out, fields::scope::NAME, "hairline");
                    put_str(out, fields::scope::VERSION, env!("CARGO_PKG_VERSION"));
                });
                out.extend_from_slice(spans);
            });
        });
    }
    out
}

/// The attributes of a resource.
pub(super) fn about(process: &Process) -> Attributes {
    let mut about = Vec::new();
    if !process.name.is_empty() {
        about.push(("service.name".to_owned(), Attribute::Text(process.name.clone())));
    }
    if let Some(pid) = process.pid {
        about.push(("process.pid".to_owned(), Attribute::Int(pid as i64)));
    }
    about
}

/// A time since 1970: earlier ones are 1970. An end stays behind its begin, whatever the clocks say.
pub(super) fn unix_nanos(time: i64, since_1970: i64) -> u64 {
    time.saturating_add(since_1970).max(0).cast_unsigned()
}

fn put_span(out: &mut Vec<u8>, span: &Span, since_1970: i64) {
    use fields::span as field;
    let id = |[high, low]: [u64; 2]| (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    put_bytes(out, field::TRACE_ID, &id(span.trace));
    put_bytes(out, field::SPAN_ID, &span.id.to_be_bytes());
    if span.parent_id != 0 {
        put_bytes(out, field::PARENT_SPAN_ID, &span.parent_id.to_be_bytes());
    }
    put_str(out, field::NAME, &span.name);
    put_uint(out, field::KIND, span.kind as u64);
    put_fixed64(out, field::START, unix_nanos(span.start, since_1970));
    put_fixed64(out, field::END, unix_nanos(span.end, since_1970));
    put_attributes(out, field::ATTRIBUTES, &span.attributes);
    for point in &span.points {
        out.message(field::EVENTS, |out| {
            put_fixed64(out, fields::event::TIME, unix_nanos(point.time, since_1970));
            put_str(out, fields::event::NAME, &point.name);
            put_attributes(out, fields::event::ATTRIBUTES, &point.attributes);
        });
    }
    for (trace, span) in &span.links {
        out.message(field::LINKS, |out| {
            put_bytes(out, fields::link::TRACE_ID, &id(*trace));
            put_bytes(out, fields::link::SPAN_ID, &span.to_be_bytes());
        });
    }
    if span.is_failed {
        out.message(field::STATUS, |out| put_uint(out, fields::STATUS_CODE, ERROR));
    }
}

fn put_attributes(out: &mut Vec<u8>, field: u32, attributes: &Attributes) {
    for (name, value) in attributes {
        out.message(field, |out| {
            put_str(out, fields::key_value::KEY, name);
            out.message(fields::key_value::VALUE, |out| put_value(out, value));
        });
    }
}

fn put_value(out: &mut Vec<u8>, value: &Attribute) {
    use fields::any_value as field;
    match value {
        Attribute::None => {}
        Attribute::Text(text) => put_str(out, field::STRING, text),
        Attribute::Bool(v) => put_uint(out, field::BOOL, u64::from(*v)),
        Attribute::Int(v) => put_uint(out, field::INT, v.cast_unsigned()),
        Attribute::Double(v) => put_double(out, field::DOUBLE, *v),
        Attribute::Bytes(bytes) => put_bytes(out, field::BYTES, bytes),
        Attribute::Array(all) => out.message(field::ARRAY, |out| {
            all.iter().for_each(|value| out.message(fields::VALUES, |out| put_value(out, value)));
        }),
        Attribute::Map(all) => out.message(field::KEY_VALUES, |out| put_attributes(out, fields::VALUES, all)),
    }
}
