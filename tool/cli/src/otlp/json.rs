//! Spans as OTLP's JSON: ids in hexadecimal, integers of 64 bits as text.

use serde_json::{Value, json};

use crate::otlp::attribute::{Attribute, Attributes};
use crate::otlp::messages::{Encoding, Message};
use crate::otlp::protobuf::{about, unix_nanos};
use crate::otlp::span::{Point, Span, TraceId};

pub(super) const ENCODING: Encoding = Encoding { span, separator: b",", message: encode };

/// A span in a message. One at a time: a tree of all of them is many times larger than the text.
fn span(span: &Span, since_1970: i64) -> Vec<u8> {
    of_span(span, since_1970).to_string().into_bytes()
}

fn encode(message: &Message<'_>) -> Vec<u8> {
    let mut out = br#"{"resourceSpans":["#.to_vec();
    for (n, (process, spans)) in message.iter().enumerate() {
        let resource = json!({"attributes": attributes(&about(process))});
        let scope = json!({"name": "hairline", "version": env!("CARGO_PKG_VERSION")});
        let comma = if n > 0 { "," } else { "" };
        out.extend(
            format!(r#"{comma}{{"resource":{resource},"scopeSpans":[{{"scope":{scope},"spans":["#).bytes(),
        );
        out.extend_from_slice(spans);
        out.extend(b"]}]}");
    }
    out.extend(b"]}\n");
    out
}

fn trace_id([high, low]: TraceId) -> String {
    format!("{high:016x}{low:016x}")
}

fn of_span(span: &Span, since_1970: i64) -> Value {
    let time = |time| unix_nanos(time, since_1970).to_string();
    let mut all = json!({
        "traceId": trace_id(span.trace),
        "spanId": format!("{:016x}", span.id),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": time(span.start),
        "endTimeUnixNano": time(span.end),
        "attributes": attributes(&span.attributes),
    });
    if span.parent_id != 0 {
        all["parentSpanId"] = json!(format!("{:016x}", span.parent_id));
    }
    if !span.points.is_empty() {
        let point = |point: &Point| json!({"timeUnixNano": time(point.time), "name": point.name, "attributes": attributes(&point.attributes)});
        all["events"] = span.points.iter().map(point).collect();
    }
    if !span.links.is_empty() {
        let link = |(trace, id): &(TraceId, u64)| json!({"traceId": trace_id(*trace), "spanId": format!("{id:016x}")});
        all["links"] = span.links.iter().map(link).collect();
    }
    if span.is_failed {
        all["status"] = json!({"code": 2});
    }
    all
}

fn attributes(all: &Attributes) -> Value {
    all.iter().map(|(name, value)| json!({"key": name, "value": of(value)})).collect()
}

fn of(value: &Attribute) -> Value {
    match value {
        Attribute::None => json!({}),
        Attribute::Text(text) => json!({"stringValue": text}),
        Attribute::Bool(v) => json!({"boolValue": v}),
        Attribute::Int(v) => json!({"intValue": v.to_string()}),
        Attribute::Double(v) if v.is_finite() => json!({"doubleValue": v}),
        Attribute::Double(v) if v.is_nan() => json!({"doubleValue": "NaN"}),
        Attribute::Double(v) => json!({"doubleValue": if *v > 0.0 { "Infinity" } else { "-Infinity" }}),
        Attribute::Bytes(bytes) => json!({"bytesValue": base64(bytes)}),
        Attribute::Array(all) => json!({"arrayValue": {"values": all.iter().map(of).collect::<Vec<_>>()}}),
        Attribute::Map(all) => json!({"kvlistValue": {"values": attributes(all)}}),
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let bits =
            part.iter().enumerate().fold(0_u32, |bits, (n, byte)| bits | u32::from(*byte) << (16 - 8 * n));
        for n in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * n)) as usize & 63];
            text.push(if n <= part.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn bytes_are_base64() {
        let texts = [&b""[..], b"f", b"fo", b"foo", b"foob", &[0xff, 0xfe]].map(base64);
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "//4="]);
    }
}
