//! The layer and the subscriber for the `tracing` crate, which record nothing.

#![allow(unsafe_code)] // `downcast_raw`, by which tracing-subscriber finds out that a layer is absent

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Interest, LevelFilter, Metadata};

use crate::spans::{Category, Mode};

/// A subscriber that is interested in nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subscriber(());

impl Subscriber {
    /// Makes the subscriber.
    #[must_use]
    pub fn new() -> Self {
        Self(())
    }

    /// Would set how spans are recorded.
    #[must_use]
    pub fn mode(self, _: Mode) -> Self {
        self
    }

    /// Would set the category of spans and events.
    #[must_use]
    pub fn category(self, _: Category) -> Self {
        self
    }
}

impl tracing_core::Subscriber for Subscriber {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::never()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::OFF)
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1) // never called: no span is enabled
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[cfg(feature = "tracing")]
pub use self::layer::{Layer, layer};

#[cfg(feature = "tracing")]
mod layer {
    use std::any::TypeId;
    use std::marker::PhantomData;

    use tracing_core::{Interest, LevelFilter, Metadata, Subscriber};
    use tracing_subscriber::layer::{Context, Identity};

    use crate::spans::{Category, Mode};

    /// A layer that is absent: as `None` of a layer, it has no part in what the others record.
    pub struct Layer<S> {
        absent: Option<Identity>,
        of: PhantomData<fn(S)>,
    }

    /// Makes a layer that records nothing.
    #[must_use]
    pub fn layer<S>() -> Layer<S> {
        Layer::default()
    }

    impl<S> Default for Layer<S> {
        fn default() -> Self {
            Self { absent: None, of: PhantomData }
        }
    }

    impl<S> std::fmt::Debug for Layer<S> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_struct("Layer").finish_non_exhaustive()
        }
    }

    impl<S> Layer<S> {
        /// Would set how spans are recorded.
        #[must_use]
        pub fn mode(self, _: Mode) -> Self {
            self
        }

        /// Would set the category of spans and events.
        #[must_use]
        pub fn category(self, _: Category) -> Self {
            self
        }
    }

    impl<S: Subscriber> tracing_subscriber::Layer<S> for Layer<S> {
        fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
            tracing_subscriber::Layer::<S>::register_callsite(&self.absent, metadata)
        }

        fn enabled(&self, metadata: &Metadata<'_>, context: Context<'_, S>) -> bool {
            self.absent.enabled(metadata, context)
        }

        fn max_level_hint(&self) -> Option<LevelFilter> {
            tracing_subscriber::Layer::<S>::max_level_hint(&self.absent)
        }

        unsafe fn downcast_raw(&self, id: TypeId) -> Option<*const ()> {
            // SAFETY: the caller promises what the inner function asks for: it uses the pointer as one to the
            // type with this id.
            unsafe { tracing_subscriber::Layer::<S>::downcast_raw(&self.absent, id) }
        }
    }
}
