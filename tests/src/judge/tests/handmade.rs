//! Tiny traces, word by word and field by field. They restate the formats on purpose: the judge is tried
//! with bytes that Hairline's own encoders had no part in.

/// The event types of FXT that are used here.
#[derive(Clone, Copy)]
pub(super) enum Event {
    Instant = 0,
    Begin = 2,
    End = 3,
}

/// An FXT trace that begins with the magic number. Every event is on the thread with index 1.
pub(super) struct Fxt(Vec<u8>);

impl Fxt {
    pub(super) fn new() -> Self {
        Self(Vec::new()).word(0x0016_5478_4604_0010)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn word(mut self, word: u64) -> Self {
        self.0.extend_from_slice(&word.to_le_bytes());
        self
    }

    /// A record's header: type in bits 0..4, size in words in bits 4..16, the rest as given.
    fn header(self, kind: u64, words: u64, rest: u64) -> Self {
        self.word(kind | (words << 4) | rest)
    }

    fn padded(mut self, text: &str) -> Self {
        self.0.extend_from_slice(text.as_bytes());
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        self
    }

    pub(super) fn ticks_per_second(self, ticks: u64) -> Self {
        self.header(1, 2, 0).word(ticks)
    }

    pub(super) fn string(self, index: u64, text: &str) -> Self {
        self.header(2, 1 + words(text), (index << 16) | (len(text) << 32)).padded(text)
    }

    pub(super) fn thread(self, index: u64, pid: u64, tid: u64) -> Self {
        self.header(3, 3, index << 16).word(pid).word(tid)
    }

    pub(super) fn event(self, event: Event, ts: u64, category: u64, name: u64) -> Self {
        self.header(4, 2, ((event as u64) << 16) | (1 << 24) | (category << 32) | (name << 48)).word(ts)
    }

    /// A kernel object of type 1: a process.
    pub(super) fn process_name(self, pid: u64, name: &str) -> Self {
        self.header(7, 2 + words(name), (1 << 16) | (inline(name) << 24)).word(pid).padded(name)
    }

    /// A kernel object of type 2: a thread, with one argument: its process's koid. `key` is the string
    /// "process".
    pub(super) fn thread_name(self, tid: u64, name: &str, key: u64, pid: u64) -> Self {
        const KOID: u64 = 8;
        self.header(7, 4 + words(name), (2 << 16) | (inline(name) << 24) | (1 << 40))
            .word(tid)
            .padded(name)
            .word(KOID | (2 << 4) | (key << 16))
            .word(pid)
    }
}

fn len(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap()
}

fn words(text: &str) -> u64 {
    len(text).div_ceil(8)
}

/// The reference to a string that follows in the record.
fn inline(text: &str) -> u64 {
    0x8000 | len(text)
}

/// A protobuf message.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    fn varint(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
        self
    }

    fn int(self, field: u64, value: u64) -> Self {
        self.varint(field << 3).varint(value)
    }

    fn bytes(self, field: u64, bytes: &[u8]) -> Self {
        let mut message = self.varint((field << 3) | 2).varint(u64::try_from(bytes.len()).unwrap());
        message.0.extend_from_slice(bytes);
        message
    }

    fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u64, message: &Message) -> Self {
        self.bytes(field, &message.0)
    }

    // ---- TrackDescriptor

    pub(super) fn process(self, pid: u64, name: &str) -> Self {
        self.message(3, &Message::default().int(1, pid).text(6, name))
    }

    pub(super) fn thread(self, pid: u64, tid: u64, name: &str) -> Self {
        self.message(4, &Message::default().int(1, pid).int(2, tid).text(5, name))
    }

    // ---- TrackEvent

    pub(super) fn begin(self, category: &str, name: &str) -> Self {
        self.int(9, 1).text(22, category).text(23, name)
    }

    /// A begin whose name is an index into the interned names.
    pub(super) fn begin_interned(self, name: u64) -> Self {
        self.int(9, 1).int(10, name)
    }

    pub(super) fn end(self) -> Self {
        self.int(9, 2)
    }

    pub(super) fn arg_uint(self, name: &str, value: u64) -> Self {
        self.message(4, &Message::default().text(10, name).int(3, value))
    }

    pub(super) fn arg_int(self, name: &str, value: i64) -> Self {
        self.message(4, &Message::default().text(10, name).int(4, value.cast_unsigned()))
    }
}

/// A packet that describes the track `uuid`.
pub(super) fn track_descriptor(uuid: u64, fill: impl FnOnce(Message) -> Message) -> Message {
    packet().message(60, &fill(Message::default().int(1, uuid)))
}

/// A packet with an event on the track `uuid`.
pub(super) fn track_event(ts: u64, uuid: u64, fill: impl FnOnce(Message) -> Message) -> Message {
    packet().int(8, ts).message(11, &fill(Message::default().int(11, uuid)))
}

/// A packet of sequence 1.
fn packet() -> Message {
    Message::default().int(10, 1)
}

/// A whole trace. The first packet says that its sequence starts here.
pub(super) fn pftrace(packets: &[Message]) -> Vec<u8> {
    let state_cleared = packet().int(13, 1);
    std::iter::once(&state_cleared)
        .chain(packets)
        .fold(Message::default(), |trace, packet| trace.message(1, packet))
        .0
}
