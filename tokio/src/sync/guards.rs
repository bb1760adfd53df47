//! What the guards of the locks have in common.

use hairline::__tasks::Awaited;

/// A lock that a task has alone. The drop of this comes before the release of the lock.
#[derive(Debug)]
pub(super) struct Held<'a>(&'a Awaited);

impl<'a> Held<'a> {
    /// The caller has noted the holder.
    pub(super) fn new(awaited: &'a Awaited) -> Self {
        Self(awaited)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

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
                // SAFETY: The lifetime is that of a borrow of the lock. The lock does not move, since it is in an
                // `Arc`, and is not freed before the drop of `Self`, which drops the guard first. Nobody gets a
                // reference of this lifetime: `deref` shortens it.
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
