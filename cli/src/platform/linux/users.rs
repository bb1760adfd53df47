//! Users, by their numbers. The library has the same rule for its outputs and for regions.

use std::io;

/// Whether `number` stands for one user. In a user namespace, all users who have no number there have the one
/// of the overflow user.
pub(crate) fn is_one_user(number: u32) -> bool {
    const DEFAULT: u32 = 65534;
    let text = std::fs::read_to_string("/proc/sys/kernel/overflowuid");
    let overflow = text.ok().and_then(|number| number.trim().parse().ok()).unwrap_or(DEFAULT);
    number != overflow || knows_all_users()
}

/// Whether each user of the machine has a number in this process's user namespace.
fn knows_all_users() -> bool {
    match std::fs::read_to_string("/proc/self/uid_map") {
        Ok(map) => {
            // A line has the first number here, the first one outside, and the length of the range. The kernel
            // refuses ranges that overlap.
            let users =
                map.lines().filter_map(|line| line.split_ascii_whitespace().nth(2)?.parse::<u64>().ok());
            users.sum::<u64>() >= u64::from(u32::MAX) // the last number is no user
        }
        // A kernel without user namespaces has no such file.
        Err(e) => e.kind() == io::ErrorKind::NotFound && std::fs::exists("/proc/self/stat").unwrap_or(false),
    }
}
