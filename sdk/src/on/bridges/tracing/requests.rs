//! The field `traceparent`: the flow of a request that comes from another process, or goes to one.
//!
//! A span or event with the field takes part in the flow whose header is the field's value. A flow that this
//! process made begins there; another one goes on. The field is an argument too, so the trace has the trace
//! id. No other callsite pays for it but with one check.

use hairline_formats::Value;

use crate::on::callsite::Epoch;
use crate::on::event::flow::Flow;

/// The name of the field.
pub(crate) const TRACEPARENT: &str = "traceparent";

/// Returns the flow that the field names. `None` without a valid header in it.
#[cold]
pub(crate) fn flow_of<'v>(
    mut values: impl Iterator<Item = (&'v str, Value<'v>)>,
    epoch: Epoch,
) -> Option<Flow> {
    values.find_map(|(name, value)| match value {
        Value::Str(header) if name == TRACEPARENT => Flow::named_by(header, epoch),
        _ => None,
    })
}
