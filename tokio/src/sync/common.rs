//! What the locks and their guards have in common.

use std::panic::Location;

use hairline::__tasks::Awaited;

/// A lock that a task has alone. The drop of this comes before the release of the lock.
#[derive(Debug)]
pub(super) struct Held<'a>(&'a Awaited);

impl<'a> Held<'a> {
    /// The caller has noted the holder.
    pub(super) fn new(awaited: &'a Awaited) -> Self {
        Self(awaited)
    }

    pub(super) fn awaited(&self) -> &'a Awaited {
        self.0
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// A lock that a task has with others. The drop of this comes before the release of the lock.
#[derive(Debug)]
pub(super) struct Read<'a> {
    awaited: &'a Awaited,
    place: &'static Location<'static>,
}

impl<'a> Read<'a> {
    pub(super) fn new(awaited: &'a Awaited, place: &'static Location<'static>) -> Self {
        Self { awaited, place }
    }
}

impl Drop for Read<'_> {
    fn drop(&mut self) {
        self.awaited.leave_shared(self.place);
    }
}

/// Defines what the locks of values have in common.
macro_rules! lock {
    ($Lock:ident) => {
        impl<T> $Lock<T> {
            /// Creates a free lock. Its name in the trace is this place in the source.
            #[track_caller]
            pub fn new(value: T) -> Self {
                Self::with(Awaited::made_at("lock", Location::caller()), tokio::sync::$Lock::new(value))
            }

            /// Creates a free lock with a name.
            pub fn named(name: &'static str, value: T) -> Self {
                Self::with(Awaited::named("lock", name), tokio::sync::$Lock::new(value))
            }

            /// As [`new`](Self::new), for a static.
            #[track_caller]
            pub const fn const_new(value: T) -> Self {
                Self::with(Awaited::made_at("lock", Location::caller()), tokio::sync::$Lock::const_new(value))
            }

            /// As [`named`](Self::named), for a static.
            pub const fn const_named(name: &'static str, value: T) -> Self {
                Self::with(Awaited::named("lock", name), tokio::sync::$Lock::const_new(value))
            }

            const fn with(awaited: Awaited, inner: tokio::sync::$Lock<T>) -> Self {
                Self { awaited, inner }
            }

            #[doc = concat!("As [`tokio::sync::", stringify!($Lock), "::into_inner`].")]
            pub fn into_inner(self) -> T {
                self.inner.into_inner()
            }
        }

        impl<T: ?Sized> $Lock<T> {
            #[doc = concat!("As [`tokio::sync::", stringify!($Lock), "::get_mut`].")]
            pub fn get_mut(&mut self) -> &mut T {
                self.inner.get_mut()
            }
        }

        impl<T> From<T> for $Lock<T> {
            #[track_caller]
            fn from(value: T) -> Self {
                Self::new(value)
            }
        }

        impl<T: Default> Default for $Lock<T> {
            #[track_caller]
            fn default() -> Self {
                Self::new(T::default())
            }
        }

        impl<T: ?Sized + fmt::Debug> fmt::Debug for $Lock<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }
    };
}
pub(super) use lock;

/// Defines a guard, and the same one with an owner of the lock. `Held`: what is dropped before the release.
macro_rules! guard {
    ($Guard:ident, $Owned:ident of $Lock:ident: $Held:ty $(, $mut:ident)?) => {
        #[doc = concat!("The guard of [`", stringify!($Lock), "`], as [`tokio::sync::", stringify!($Guard), "`].")]
        #[must_use = "if unused the lock is released at once"]
        pub struct $Guard<'a, T: ?Sized> {
            pub(super) _held: $Held, // dropped first
            pub(super) inner: tokio::sync::$Guard<'a, T>,
        }

        impl<T: ?Sized> Deref for $Guard<'_, T> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.inner
            }
        }

        $(
            impl<T: ?Sized> DerefMut for $Guard<'_, T> {
                fn deref_mut(&$mut self) -> &mut T {
                    &mut self.inner
                }
            }
        )?

        impl<T: ?Sized + fmt::Debug> fmt::Debug for $Guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<T: ?Sized + fmt::Display> fmt::Display for $Guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }

        #[doc = concat!("The guard of an [`Arc`] of a lock, as [`tokio::sync::", stringify!($Owned), "`].")]
        #[must_use = "if unused the lock is released at once"]
        pub struct $Owned<T: ?Sized + 'static> {
            /// Borrows the lock. Dropped first, and never after that.
            guard: ManuallyDrop<$Guard<'static, T>>,
            _lock: Arc<$Lock<T>>,
        }

        impl<T: ?Sized + 'static> $Owned<T> {
            /// Keeps the lock for as long as the guard. `guard` is one of `lock`.
            pub(super) fn new(guard: $Guard<'_, T>, lock: Arc<$Lock<T>>) -> Self {
                // SAFETY: The lifetime is that of a borrow of the lock. The lock does not move, since it is
                // in an `Arc`, and is not freed before the drop of `Self`, which drops the guard first. Nobody
                // gets a reference of this lifetime: `deref` shortens it.
                let guard = unsafe { std::mem::transmute::<$Guard<'_, T>, $Guard<'static, T>>(guard) };
                Self { guard: ManuallyDrop::new(guard), _lock: lock }
            }
        }

        impl<T: ?Sized + 'static> Drop for $Owned<T> {
            fn drop(&mut self) {
                // SAFETY: The guard is dropped here alone, and this is the last use of it.
                unsafe { ManuallyDrop::drop(&mut self.guard) };
            }
        }

        impl<T: ?Sized + 'static> Deref for $Owned<T> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.guard
            }
        }

        $(
            impl<T: ?Sized + 'static> DerefMut for $Owned<T> {
                fn deref_mut(&$mut self) -> &mut T {
                    &mut self.guard
                }
            }
        )?

        impl<T: ?Sized + fmt::Debug + 'static> fmt::Debug for $Owned<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<T: ?Sized + fmt::Display + 'static> fmt::Display for $Owned<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    };
}
pub(super) use guard;
