//! The packets between a process that listens and a command that connects to it.
//!
//! A process that listens has a socket in the folder of the regions: [`name`]. A packet is text. Its first
//! line is `hairline 1 WORD`, and each further line is `NAME=VALUE`:
//!
//! | from | word | lines | meaning |
//! |---|---|---|---|
//! | command | `record` | variables of the environment; `HAIRLINE` is the trace's path, for messages | record into the open file that comes with the packet, until `stop` or the end of the connection |
//! | command | `start` | variables of the environment; `HAIRLINE` is the absolute path of the trace, as the process sees it | record into a file that the process opens, until `stop` or the process's end |
//! | command | `stop` | | end that recording, or, as the packet of another connection, that of a `start` |
//! | command | `filter` | `HAIRLINE_CATEGORIES`, `HAIRLINE_LEVEL` | change what is recorded |
//! | command | `trigger` | | write a snapshot of the flight recorder that runs |
//! | command | `status` | | ask what is recorded |
//! | process | `recording` | `output`, `by`, `for_ms` | records now, by this command for so long |
//! | process | `ended` | `output`, `records`, `bytes`, `lost`, `note` | the recording has ended, and the file is complete |
//! | process | `idle` | | nothing is recorded |
//! | process | `done` | `output` | the filter is changed, or the snapshot is requested |
//! | process | `error` | `why` | nothing has changed |
//!
//! A process answers each packet but `stop` of a recording that has ended. It reads one packet of a
//! connection that does not record, and closes the connection then.

/// The longest packet, in bytes.
pub const LONGEST: usize = 16 << 10;

/// The longest wait of a process for the packet of a new connection, in ms.
pub const PATIENCE_MS: u64 = 2_000;

const HEAD: &str = "hairline 1 ";
const PREFIX: &str = "hairline-";
const SUFFIX: &str = ".door";

/// A packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    pub word: String,
    pub lines: Vec<(String, String)>,
}

impl Packet {
    #[must_use]
    pub fn new(word: &str) -> Self {
        Self { word: word.to_owned(), lines: Vec::new() }
    }

    /// Adds a line. Line ends in the value become spaces.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.lines.push((name.to_owned(), value.to_string().replace(['\n', '\0'], " ")));
        self
    }

    /// The value of the first line with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.lines.iter().find(|(of, _)| of == name).map(|(_, value)| &**value)
    }

    /// The values of all lines with this name.
    pub fn all<'p>(&'p self, name: &'p str) -> impl Iterator<Item = &'p str> {
        self.lines.iter().filter(move |(of, _)| of == name).map(|(_, value)| &**value)
    }

    /// The bytes of the packet. Lines that are beyond [`LONGEST`] are left out.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("{HEAD}{}\n", self.word);
        for (name, value) in &self.lines {
            if text.len() + name.len() + value.len() + 2 <= LONGEST {
                text += &format!("{name}={value}\n");
            }
        }
        text.into_bytes()
    }

    /// Reads a packet. `None` if the bytes are none.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(bytes).ok()?.strip_prefix(HEAD)?.strip_suffix('\n')?.split('\n');
        let word = lines.next()?.to_owned();
        let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some(Self { word, lines: lines.map(pair).collect::<Option<_>>()? })
    }
}

/// The name of a process's socket.
#[must_use]
pub fn name(pid: u32, random: u64) -> String {
    format!("{PREFIX}{pid}-{random:016x}{SUFFIX}")
}

/// The pid in the name of a socket. `None` for other names.
#[must_use]
pub fn pid_in(name: &str) -> Option<u32> {
    let (pid, random) = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('-')?;
    let is_random = random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit());
    pid.parse().ok().filter(|_| is_random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_what_was_sent() {
        let packet =
            Packet::new("record").with("HAIRLINE", "a=b.fxt").with("note", "two\nlines").with("n", 7);
        let read = Packet::parse(&packet.to_bytes()).expect("read");
        assert_eq!(read, packet);
        assert_eq!(
            (read.get("HAIRLINE"), read.get("note"), read.get("n")),
            (Some("a=b.fxt"), Some("two lines"), Some("7"))
        );
        assert_eq!(Packet::parse(&Packet::new("stop").to_bytes()), Some(Packet::new("stop")));
    }

    #[test]
    fn what_is_no_packet_is_refused_at_every_byte() {
        for bytes in
            [&b""[..], b"hairline 1 record", b"hairline 2 record\n", b"hairline 1 a\nno value\n", b"\xff\n"]
        {
            assert_eq!(Packet::parse(bytes), None, "{bytes:?}");
        }
        let whole = Packet::new("record").with("a", "b").to_bytes();
        for cut in 0..whole.len() {
            let _ = Packet::parse(&whole[..cut]);
        }
    }

    #[test]
    fn a_packet_has_a_limit() {
        let packet = Packet::new("ended").with("note", "x".repeat(LONGEST)).with("records", 7);
        let read = Packet::parse(&packet.to_bytes()).expect("read");
        assert_eq!((read.get("note"), read.get("records")), (None, Some("7")));
    }

    #[test]
    fn the_name_of_a_socket_has_the_pid() {
        assert_eq!(pid_in(&name(4711, 0xab)), Some(4711));
        for other in
            ["hairline-4711-00000000000000ab", "hairline-x-00000000000000ab.door", "hairline-1-2.door"]
        {
            assert_eq!(pid_in(other), None, "{other}");
        }
    }
}
