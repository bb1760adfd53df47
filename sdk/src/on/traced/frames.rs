//! The bytes of calls to the tracing service, and of its answers and commands.
//!
//! A frame is its length in 4 bytes, little-endian, and an `IPCFrame`. Names and numbers of fields are those
//! of `wire_protocol.proto` and `producer_port.proto`.

use hairline_formats::proto::{FieldValue, put_bytes, put_message, put_str, put_uint};

use crate::on::traced::wanted::{Wanted, fields};

/// The longest frame of the service (`kIPCBufferSize`).
pub(crate) const LONGEST: usize = 128 << 10;

/// The name of the service to bind to.
const PORT: &str = "ProducerPort";

/// The data source that Hairline is.
const DATA_SOURCE: &str = "track_event";

/// The calls of the service that Hairline uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    InitializeConnection,
    RegisterDataSource,
    UpdateDataSource,
    CommitData,
    GetAsyncCommand,
    RegisterTraceWriter,
    UnregisterTraceWriter,
    NotifyDataSourceStarted,
    NotifyDataSourceStopped,
}

const METHODS: [(Method, &str); 9] = [
    (Method::InitializeConnection, "InitializeConnection"),
    (Method::RegisterDataSource, "RegisterDataSource"),
    (Method::UpdateDataSource, "UpdateDataSource"),
    (Method::CommitData, "CommitData"),
    (Method::GetAsyncCommand, "GetAsyncCommand"),
    (Method::RegisterTraceWriter, "RegisterTraceWriter"),
    (Method::UnregisterTraceWriter, "UnregisterTraceWriter"),
    (Method::NotifyDataSourceStarted, "NotifyDataSourceStarted"),
    (Method::NotifyDataSourceStopped, "NotifyDataSourceStopped"),
];

/// The service's own numbers of itself and its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bound {
    service: u64,
    methods: [Option<u64>; METHODS.len()],
}

/// What a frame of the service says.
#[derive(Debug, PartialEq)]
pub(crate) enum Said {
    /// The answer to `BindService`; `None`: it has no such port.
    Bound(Option<Bound>),
    /// The answer to a call, with its bytes.
    Reply { request: u64, has_succeeded: bool, bytes: Vec<u8> },
    /// Something that Hairline does not use.
    Other,
}

/// A command of the service.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    /// An instance of the data source: its number, its buffer, and what it wants.
    Start {
        id: u64,
        buffer: u16,
        wanted: Wanted,
    },
    Stop {
        id: u64,
    },
    Flush {
        request: u64,
    },
    /// The instances begin anew: what they have been told so far is forgotten.
    Clear {
        ids: Vec<u64>,
    },
    Other,
}

/// Writes a frame with the message that `write` appends.
fn frame(out: &mut Vec<u8>, request: u64, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    put_uint(out, 2, request);
    write(out);
    let len = (out.len() - start - 4) as u32;
    if let Some(head) = out.get_mut(start..start + 4) {
        head.copy_from_slice(&len.to_le_bytes());
    }
}

/// Writes the call that finds the port.
pub(crate) fn put_bind(out: &mut Vec<u8>, request: u64) {
    frame(out, request, |frame| put_message(frame, 3, |bind| put_str(bind, 1, PORT)));
}

impl Bound {
    /// Writes a call. Only [`Method::GetAsyncCommand`] and [`Method::InitializeConnection`] have an answer.
    /// Returns false if the service does not know it.
    pub(crate) fn put_call(&self, out: &mut Vec<u8>, request: u64, method: Method, arguments: &[u8]) -> bool {
        let Some(Some(number)) = self.methods.get(method as usize) else { return false };
        let is_answered = matches!(method, Method::GetAsyncCommand | Method::InitializeConnection);
        frame(out, request, |frame| {
            put_message(frame, 5, |invoke| {
                put_uint(invoke, 1, self.service);
                put_uint(invoke, 2, *number);
                put_bytes(invoke, 3, arguments);
                put_uint(invoke, 4, u64::from(!is_answered));
            });
        });
        true
    }

    fn parse(message: &[u8]) -> Option<Self> {
        let mut bound = Self::default();
        let mut has_succeeded = false;
        for (number, value) in fields(message) {
            match (number, value) {
                (1, FieldValue::Varint(success)) => has_succeeded = success != 0,
                (2, FieldValue::Varint(service)) => bound.service = service,
                (3, FieldValue::Bytes { bytes, .. }) => {
                    let name = bytes_of(bytes, 2).unwrap_or_default();
                    let known = METHODS.iter().position(|(_, known)| known.as_bytes() == name);
                    if let Some(place) = known.and_then(|known| bound.methods.get_mut(known)) {
                        *place = varint_of(bytes, 1);
                    }
                }
                _ => {}
            }
        }
        has_succeeded.then_some(bound)
    }
}

/// Splits the first frame off. `Err`: its length is beyond the limit.
pub(crate) fn split(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, ()> {
    let Some((head, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let len = u32::from_le_bytes(*head) as usize;
    if len > LONGEST {
        return Err(());
    }
    Ok(rest.get(..len).map(|frame| (frame, 4 + len)))
}

/// Reads a frame.
pub(crate) fn said(frame: &[u8]) -> Said {
    let request = varint_of(frame, 2).unwrap_or(0);
    if let Some(reply) = bytes_of(frame, 4) {
        return Said::Bound(Bound::parse(reply));
    }
    if let Some(reply) = bytes_of(frame, 6) {
        let bytes = bytes_of(reply, 3).unwrap_or_default().to_vec();
        return Said::Reply { request, has_succeeded: varint_of(reply, 1) == Some(1), bytes };
    }
    Said::Other
}

/// Whether the answer to [`Method::InitializeConnection`] says that the service maps this process's memory.
pub(crate) fn takes_our_memory(reply: &[u8]) -> bool {
    varint_of(reply, 1) == Some(1)
}

/// Reads a command: an answer to [`Method::GetAsyncCommand`].
pub(crate) fn command(reply: &[u8]) -> Command {
    if let Some(start) = bytes_of(reply, 1) {
        let config = bytes_of(start, 2).unwrap_or_default();
        let buffer = varint_of(config, 2).and_then(|buffer| u16::try_from(buffer).ok());
        return match (varint_of(start, 1), buffer) {
            (Some(id), Some(buffer)) if bytes_of(config, 1) == Some(DATA_SOURCE.as_bytes()) => {
                Command::Start { id, buffer, wanted: Wanted::of(bytes_of(config, 113).unwrap_or_default()) }
            }
            _ => Command::Other,
        };
    }
    if let Some(stop) = bytes_of(reply, 2) {
        return varint_of(stop, 1).map_or(Command::Other, |id| Command::Stop { id });
    }
    if let Some(flush) = bytes_of(reply, 5) {
        return varint_of(flush, 2).map_or(Command::Other, |request| Command::Flush { request });
    }
    if let Some(clear) = bytes_of(reply, 7) {
        return Command::Clear { ids: numbers(clear, 1) };
    }
    Command::Other
}

/// The arguments of [`Method::InitializeConnection`], for a process that brings `len` bytes of memory.
pub(crate) fn connection(page: usize, len: usize, process: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_uint(&mut out, 1, page as u64);
    put_uint(&mut out, 2, len as u64);
    put_str(&mut out, 3, process);
    put_uint(&mut out, 4, 1); // scraping is on: the service reads the memory if this process dies
    put_uint(&mut out, 6, 1); // the memory comes with the call
    put_str(&mut out, 8, concat!("hairline ", env!("CARGO_PKG_VERSION")));
    out
}

/// The arguments of [`Method::RegisterDataSource`] and [`Method::UpdateDataSource`].
pub(crate) fn data_source(categories: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    put_message(&mut out, 1, |descriptor| {
        put_str(descriptor, 1, DATA_SOURCE);
        put_uint(descriptor, 7, 1); // its number, which an update needs
        put_uint(descriptor, 2, 1); // it says when it has stopped
        put_uint(descriptor, 3, 1); // and when it has started
        put_uint(descriptor, 4, 1); // it can begin anew
        put_message(descriptor, 6, |track_event| {
            for category in categories {
                put_message(track_event, 1, |it| put_str(it, 1, category));
            }
        });
    });
    out
}

/// The arguments of a call with one number.
pub(crate) fn number(number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_uint(&mut out, 1, number);
    out
}

/// The arguments of [`Method::RegisterTraceWriter`].
pub(crate) fn writer(id: u16, buffer: u16) -> Vec<u8> {
    let mut out = number(u64::from(id));
    put_uint(&mut out, 2, u64::from(buffer));
    out
}

/// The arguments of [`Method::CommitData`]: complete chunks, each the page and the buffer that it goes to,
/// and the number of the flush that they end.
pub(crate) fn commit(chunks: &[(u32, u16)], flush: Option<u64>) -> Vec<u8> {
    let mut out = Vec::new();
    for (page, buffer) in chunks {
        put_message(&mut out, 1, |chunk| {
            put_uint(chunk, 1, u64::from(*page));
            put_uint(chunk, 2, 0); // a page has one chunk
            put_uint(chunk, 3, u64::from(*buffer));
        });
    }
    if let Some(flush) = flush {
        put_uint(&mut out, 3, flush);
    }
    out
}

fn bytes_of(message: &[u8], number: u32) -> Option<&[u8]> {
    fields(message).find_map(|field| match field {
        (n, FieldValue::Bytes { bytes, .. }) if n == number => Some(bytes),
        _ => None,
    })
}

fn varint_of(message: &[u8], number: u32) -> Option<u64> {
    fields(message).find_map(|field| match field {
        (n, FieldValue::Varint(value)) if n == number => Some(value),
        _ => None,
    })
}

/// The numbers of a repeated field.
fn numbers(message: &[u8], number: u32) -> Vec<u64> {
    let of = |field| match field {
        (n, FieldValue::Varint(value)) if n == number => Some(value),
        _ => None,
    };
    fields(message).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of the service with `message` in field `number`.
    fn of_service(number: u32, message: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        frame(&mut out, 7, |frame| put_bytes(frame, number, message));
        out
    }

    fn reply(command: u32, message: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, command, message);
        out
    }

    #[test]
    fn a_frame_comes_in_any_pieces_and_has_a_limit() {
        let frame = of_service(6, &[8, 1]);
        for len in 0..frame.len() {
            assert_eq!(split(&frame[..len]), Ok(None), "{len}");
        }
        let (body, len) = split(&frame).unwrap().unwrap();
        assert_eq!(len, frame.len());
        assert_eq!(said(body), Said::Reply { request: 7, has_succeeded: true, bytes: Vec::new() });
        assert_eq!(split(&(LONGEST as u32 + 1).to_le_bytes()), Err(()));
    }

    #[test]
    fn calls_have_the_numbers_that_the_service_gave_them() {
        let mut message = vec![8, 1, 16, 5];
        for (number, name) in [(9, "CommitData"), (4, "Unknown")] {
            put_message(&mut message, 3, |method| {
                put_uint(method, 1, number);
                put_str(method, 2, name);
            });
        }
        let frame = of_service(4, &message);
        let Said::Bound(Some(bound)) = said(&frame[4..]) else { panic!() };
        let mut call = Vec::new();
        assert!(!bound.put_call(&mut call, 1, Method::UpdateDataSource, &[]));
        assert!(bound.put_call(&mut call, 1, Method::CommitData, &[24, 3]));
        assert_eq!(call, [14, 0, 0, 0, 16, 1, 42, 10, 8, 5, 16, 9, 26, 2, 24, 3, 32, 1]);
        let frame = of_service(4, &[16, 5]);
        assert_eq!(said(&frame[4..]), Said::Bound(None));
    }

    #[test]
    fn commands_are_read() {
        let mut config = Vec::new();
        put_str(&mut config, 1, DATA_SOURCE);
        put_uint(&mut config, 2, 3);
        let mut start = number(11);
        put_bytes(&mut start, 2, &config);
        let wanted = Wanted::of(&[]);
        assert_eq!(command(&reply(1, &start)), Command::Start { id: 11, buffer: 3, wanted });
        assert_eq!(command(&reply(2, &number(11))), Command::Stop { id: 11 });
        assert_eq!(command(&reply(5, &[8, 11, 16, 2])), Command::Flush { request: 2 });
        assert_eq!(command(&reply(7, &[8, 11, 8, 12])), Command::Clear { ids: vec![11, 12] });
        assert_eq!(command(&reply(3, &[8, 4])), Command::Other);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic() {
        let mut random = 1_u64;
        let mut bytes = vec![0; 64];
        for _ in 0..20_000 {
            for byte in &mut bytes {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (random >> 59) as u8 | (random >> 33) as u8 & 0xc0;
            }
            let _ = split(&bytes);
            if let Said::Reply { bytes, .. } = said(&bytes) {
                command(&bytes);
            }
            command(&bytes);
        }
    }
}
