//! The semaphore.

use std::future::Future;
use std::ops::Deref;
use std::panic::Location;
use std::sync::Arc;

use hairline::__tasks::Awaited;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, SemaphorePermit, TryAcquireError};

use crate::sync::acquire;

/// As [`tokio::sync::Semaphore`], with the waits for its permits in the trace. The permits are those of
/// tokio. Functions that do not wait are those of the [`Deref`] target.
///
/// ```
/// # async fn work() -> Result<(), tokio::sync::AcquireError> {
/// let connections = hairline_tokio::sync::Semaphore::named("connections", 10);
/// let permit = connections.acquire().await?;
/// assert_eq!(connections.available_permits(), 9);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Semaphore {
    awaited: Awaited,
    inner: Arc<tokio::sync::Semaphore>,
}

impl Semaphore {
    /// As [`tokio::sync::Semaphore::MAX_PERMITS`].
    pub const MAX_PERMITS: usize = tokio::sync::Semaphore::MAX_PERMITS;

    /// Creates a semaphore. Its name in the trace is this place in the source.
    ///
    /// # Panics
    /// If `permits` is above the limit of tokio.
    #[track_caller]
    #[must_use]
    pub fn new(permits: usize) -> Self {
        let inner = Arc::new(tokio::sync::Semaphore::new(permits));
        Self { awaited: Awaited::made_at("semaphore", Location::caller()), inner }
    }

    /// Creates a semaphore with a name.
    ///
    /// # Panics
    /// If `permits` is above the limit of tokio.
    #[must_use]
    pub fn named(name: &'static str, permits: usize) -> Self {
        let inner = Arc::new(tokio::sync::Semaphore::new(permits));
        Self { awaited: Awaited::named("semaphore", name), inner }
    }

    /// As [`tokio::sync::Semaphore::acquire`].
    ///
    /// # Errors
    /// If the semaphore is closed.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Result<SemaphorePermit<'_>, AcquireError>> {
        acquire(&self.awaited, self.inner.acquire(), (Location::caller(), None), Result::is_ok)
    }

    /// As [`tokio::sync::Semaphore::acquire_many`].
    ///
    /// # Errors
    /// If the semaphore is closed.
    #[track_caller]
    pub fn acquire_many(&self, n: u32) -> impl Future<Output = Result<SemaphorePermit<'_>, AcquireError>> {
        let at = (Location::caller(), Some(n));
        acquire(&self.awaited, self.inner.acquire_many(n), at, Result::is_ok)
    }

    /// As [`tokio::sync::Semaphore::acquire_owned`].
    ///
    /// # Errors
    /// If the semaphore is closed.
    #[track_caller]
    pub fn acquire_owned(
        self: Arc<Self>,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> {
        let place = Location::caller();
        async move {
            let inner = Arc::clone(&self.inner).acquire_owned();
            acquire(&self.awaited, inner, (place, None), Result::is_ok).await
        }
    }

    /// As [`tokio::sync::Semaphore::acquire_many_owned`].
    ///
    /// # Errors
    /// If the semaphore is closed.
    #[track_caller]
    pub fn acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> {
        let place = Location::caller();
        async move {
            let inner = Arc::clone(&self.inner).acquire_many_owned(n);
            acquire(&self.awaited, inner, (place, Some(n)), Result::is_ok).await
        }
    }

    /// As [`tokio::sync::Semaphore::try_acquire_owned`].
    ///
    /// # Errors
    /// If no permit is free, or the semaphore is closed.
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        Arc::clone(&self.inner).try_acquire_owned()
    }

    /// As [`tokio::sync::Semaphore::try_acquire_many_owned`].
    ///
    /// # Errors
    /// If so many permits are not free, or the semaphore is closed.
    pub fn try_acquire_many_owned(self: Arc<Self>, n: u32) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        Arc::clone(&self.inner).try_acquire_many_owned(n)
    }
}

impl Deref for Semaphore {
    type Target = tokio::sync::Semaphore;

    fn deref(&self) -> &tokio::sync::Semaphore {
        &self.inner
    }
}
