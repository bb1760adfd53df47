//! Whose the other end of a connection is.

use std::net::SocketAddr;

/// The user who has connected from this address of this machine. `None` where the system does not tell: there
/// is no `/proc`.
pub(super) fn user_of(client: SocketAddr) -> Option<u32> {
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    let SocketAddr::V4(client) = client else { return None };
    // As the kernel prints it: the address as a number in the machine's order.
    let address = u32::from_ne_bytes(client.ip().octets());
    let local = format!("{address:08X}:{:04X}", client.port());
    let mut sockets = table.lines().map(|line| line.split_ascii_whitespace().skip(1));
    let found = sockets.find_map(|mut fields| (fields.next()? == local).then_some(fields));
    // Fields 8 of the line, which is 6 after the local address. Who has closed the socket is nobody's user.
    Some(found.and_then(|mut fields| fields.nth(5)?.parse().ok()).unwrap_or(u32::MAX))
}
