//! Users, by their numbers.

use crate::platform;

/// Whether `number` stands for one user.
///
/// In a user namespace, all users who have no number there appear as the overflow user. A process whose own
/// user has none appears so too. A file of that number may belong to anybody.
///
/// ```
/// assert!(hairline_shm::is_one_user(4711));
/// ```
#[must_use]
pub fn is_one_user(number: u32) -> bool {
    platform::is_one_user(number)
}
