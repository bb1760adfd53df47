//! Whether a subscriber supports filters of single layers.
//!
//! Only tracing-subscriber's registry does, and layers above it. `register_filter` of any other subscriber
//! panics, and nothing but the subscriber's type says which one it is. A wrong "no" costs time, not
//! correctness, so the name of the type is good enough a source.

use std::any::type_name;

use tracing_subscriber::layer::Layered;
use tracing_subscriber::registry::Registry;

/// Returns whether the subscriber is the registry, with any layers above it.
pub(crate) fn are_supported_by<S>() -> bool {
    let layered = type_name::<Layered<(), ()>>();
    let layered = layered.split_once('<').map_or(layered, |(name, _)| name);
    let mut subscriber = type_name::<S>();
    while let Some(below) = below(subscriber, layered) {
        subscriber = below;
    }
    subscriber == type_name::<Registry>()
}

/// Returns the second type argument of `name`, if that is a type `layered`: what the layer is above.
fn below<'n>(name: &'n str, layered: &str) -> Option<&'n str> {
    let arguments = name.strip_prefix(layered)?.strip_prefix('<')?;
    let (mut depth, mut begin, mut before) = (0_u32, None, ' ');
    for (at, c) in arguments.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' if before == '-' => {} // of a function's type
            ',' | '>' if depth == 0 => match begin {
                Some(begin) => return arguments.get(begin..at).map(str::trim),
                None => begin = Some(at + 1),
            },
            '>' | ')' | ']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_core::Metadata;
    use tracing_subscriber::filter::{FilterFn, LevelFilter};
    use tracing_subscriber::layer::Identity;

    type Function = FilterFn<fn(&Metadata<'_>) -> bool>;

    #[test]
    fn the_registry_and_layers_above_it_support_filters() {
        assert!(are_supported_by::<Registry>());
        assert!(are_supported_by::<Layered<LevelFilter, Registry>>());
        assert!(are_supported_by::<Layered<Function, Layered<[(u8, Identity); 2], Registry>>>());
        assert!(are_supported_by::<Layered<Layered<Identity, LevelFilter, Registry>, Registry>>());
    }

    #[test]
    fn another_subscriber_does_not_whatever_it_contains() {
        assert!(!are_supported_by::<crate::Subscriber>());
        assert!(!are_supported_by::<Vec<Registry>>());
        assert!(!are_supported_by::<Layered<Registry, crate::Subscriber>>());
        assert!(!are_supported_by::<Layered<Function, Layered<LevelFilter, Vec<Registry>>>>());
    }
}
