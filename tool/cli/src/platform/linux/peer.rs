//! Finds the user at the other end of a connection.
//!
//! The kernel's socket tables have a line for each end of a local connection, with the socket's user. If the
//! tables cannot be read or have no such line, the client is not trusted.

use std::fs;
use std::io;
use std::net::SocketAddr;

use hairline_shm::is_one_user;

use crate::platform::facts::Client;

/// The sockets of IPv4 and of IPv6. An IPv6 socket can connect to an IPv4 address.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// The number of reads. The tables change while they are read, so one read can miss a line.
const TRIES: u32 = 3;

/// Root, who can read the trace anyway. Tools that forward ports run as root.
const ROOT: u32 = 0;

/// The users whose requests are answered.
#[derive(Debug)]
pub(crate) struct Trusted {
    /// The user of this process.
    own: u32,
    /// The user who called sudo. The browser runs as this user.
    caller: Option<u32>,
}

impl Trusted {
    /// Creates the list of trusted users.
    ///
    /// # Errors
    /// Fails if the system does not tell which user connects: the tables cannot be read, or this user and
    /// others have the same number in this user namespace.
    pub(crate) fn new() -> io::Result<Self> {
        let at = |e: io::Error| {
            let what = format!("{}: {e}; without it, `hairline view` cannot refuse other users", TABLES[0]);
            io::Error::new(e.kind(), what)
        };
        fs::read(TABLES[0]).map_err(at)?;
        let own = rustix::process::geteuid().as_raw();
        if !is_one_user(own) {
            let what = format!(
                "{own} is the number of every user who has none in this user namespace, so `hairline view` \
                 cannot refuse other users"
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        // Only root can have set the variable.
        let caller = std::env::var("SUDO_UID").ok().filter(|_| own == ROOT);
        let caller = caller.and_then(|uid| uid.parse().ok()).filter(|uid| is_one_user(*uid));
        Ok(Self { own, caller })
    }

    /// Who the client of this connection is.
    pub(crate) fn client(&self, client: SocketAddr, server: SocketAddr) -> Client {
        match (0..TRIES).find_map(|_| user_of(client, server)) {
            Some(user) if self.has_user(user) => Client::Trusted,
            Some(user) => Client::Other(user),
            None => Client::Unknown,
        }
    }

    fn has_user(&self, user: u32) -> bool {
        user == self.own || user == ROOT || Some(user) == self.caller
    }
}

/// The user of the client's socket. `None` if the system does not say.
fn user_of(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    // The server has an IPv4 address, so its clients have one too.
    let (Some(client), Some(server)) = (Columns::new(client), Columns::new(server)) else { return None };
    TABLES.iter().find_map(|table| user_in(&fs::read_to_string(table).ok()?, &client, &server))
}

/// An address in the form of the two tables.
struct Columns([String; 2]);

impl Columns {
    fn new(address: SocketAddr) -> Option<Self> {
        let SocketAddr::V4(address) = address else { return None };
        let mapped = address.ip().to_ipv6_mapped().octets();
        // Words of four bytes, each as a number in native byte order.
        let words: String = mapped
            .chunks_exact(4)
            .map(|word| format!("{:08X}", u32::from_ne_bytes([word[0], word[1], word[2], word[3]])))
            .collect();
        let port = address.port();
        Some(Self([format!("{}:{port:04X}", &words[24..]), format!("{words}:{port:04X}")]))
    }

    fn are(&self, column: &str) -> bool {
        self.0.iter().any(|own| own == column)
    }
}

/// The user of the socket that is at `client` and connected to `server`, by one of the tables.
///
/// Both columns count: the same port of this machine may be an end of other connections, of other users.
fn user_in(table: &str, client: &Columns, server: &Columns) -> Option<u32> {
    table.lines().find_map(|line| {
        let columns: Vec<_> = line.split_ascii_whitespace().collect();
        // number, local, remote, state, queues, timer, retransmits, user, timeout, inode
        let [_, local, remote, _, _, _, _, user, _, inode, ..] = columns[..] else { return None };
        // A socket closed by its process has no inode, and on some kernels user 0.
        let is_it = client.are(local) && server.are(remote) && inode != "0";
        if is_it { user.parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    use super::*;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    /// A line of a table, with what follows the state as the kernel prints it.
    fn line(local: &str, remote: &str, user: u32, inode: u32) -> String {
        format!(
            "   0: {local} {remote} 01 00000000:00000000 00:00000000 00000000 {user:5}        0 {inode} 1 \
             0000000000000000 20 4 30 10 -1\n"
        )
    }

    fn found(table: &str) -> Option<u32> {
        let columns = |address: &str| Columns::new(address.parse().expect("an address")).expect("of IPv4");
        user_in(&format!("{HEAD}{table}"), &columns("127.0.0.1:40000"), &columns("127.0.0.1:9001"))
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_user_is_known_by_both_ends_of_the_connection() {
        let (client, server) = ("0100007F:9C40", "0100007F:2329");
        assert_eq!(found(&line(client, server, 7, 1)), Some(7));
        let others = [
            line(server, client, 1, 1),          // the server's own end
            line(client, "0100007F:0050", 2, 1), // another connection from the same port
            line(client, "00000000:0000", 3, 1), // a server at the same port
            line("0200007F:9C40", server, 4, 1), // the same port of another address
            line(client, server, 0, 0),          // a connection that is over
        ]
        .concat();
        assert_eq!(found(&others), None);
        assert_eq!(found(&(others + &line(client, server, 7, 1))), Some(7));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_socket_of_ipv6_has_a_user_too() {
        let mapped = |address: &str| format!("0000000000000000FFFF0000{address}");
        let (client, server) = (mapped("0100007F:9C40"), mapped("0100007F:2329"));
        assert_eq!(found(&line(&client, &server, 7, 1)), Some(7));
        assert_eq!(found(&line("00000000000000000000000001000000:9C40", &server, 7, 1)), None, "::1");
    }

    #[test]
    fn what_is_no_table_names_nobody() {
        for table in ["", "\n\n", "a b c", &line("0100007F:9C40", "0100007F:2329", 7, 1)[..70]] {
            assert_eq!(found(table), None, "{table:?}");
        }
        assert_eq!(found(&line("0100007F:9C40", "0100007F:2329", 7, 1).replace("    7 ", "   -7 ")), None);
    }

    #[test]
    fn this_process_is_known_and_a_connection_of_nobody_is_not_trusted() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let server = listener.local_addr().expect("an address");
        let client = TcpStream::connect(server).expect("connected");
        let address = client.local_addr().expect("an address");
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(user_of(address, server), Some(own));
        let trusted = Trusted { own, caller: None };
        assert_eq!(trusted.client(address, server), Client::Trusted);
        drop((client, listener));
        // A process that another test starts has the socket too, until its exec.
        let until = Instant::now() + Duration::from_secs(10);
        while trusted.client(address, server) != Client::Unknown {
            assert!(Instant::now() < until, "the connection is over");
        }
        let of_ipv6 = "[::1]:40000".parse().expect("an address");
        assert_eq!(trusted.client(of_ipv6, server), Client::Unknown);
    }

    #[test]
    fn the_user_root_and_the_caller_of_sudo_are_trusted() {
        let trusted = Trusted { own: 7, caller: Some(8) };
        assert_eq!(
            [0, 7, 8, 9, u32::MAX].map(|user| trusted.has_user(user)),
            [true, true, true, false, false]
        );
    }
}
