//! W3C Trace Context, levels 1 and 2: the header that carries a flow to another process.
//!
//! ```text
//! traceparent: 00-1fd224d4279041504bf92f3577b34da6-4bf92f3577b34da6-03
//!              version  trace id (16 bytes)          parent id        flags: 1 sampled, 2 random trace id
//! ```
//!
//! The parent id is the id of the flow, so the arrow of a request needs nothing else to continue in another
//! process. The trace id is common to all flows of a request. A flow without a predecessor has the trace id
//! that [`own_trace_id`] computes from the flow's id, so that a reader of the trace finds it there too.

use std::fmt;

/// The length of the header: version, trace id, parent id and flags, with three hyphens.
const LEN: usize = 55;

/// The sender may have recorded the request.
const SAMPLED: u8 = 1;
/// The last seven bytes of the trace id are random (level 2).
const RANDOM: u8 = 2;

/// The upper half of the trace ids that are computed, before the id of the flow is mixed into it: "hairline"
/// in ASCII.
const OWN: u64 = 0x6861_6972_6c69_6e65;

/// The value of a `traceparent` header, as [W3C Trace Context](https://www.w3.org/TR/trace-context-2/)
/// defines it: 55 bytes of text, without an allocation.
///
/// [`Flow::to_traceparent`](crate::Flow::to_traceparent) makes one. It is a text for a header, and an
/// argument for an event:
///
/// ```
/// use hairline::{Flow, trace_scope};
///
/// let flow = Flow::new();
/// let header = flow.to_traceparent();
/// trace_scope!("http", "send", traceparent = header, flow: &flow);
/// let request = match &header {
///     Some(header) => format!("GET / HTTP/1.1\r\ntraceparent: {header}\r\n\r\n"),
///     None => "GET / HTTP/1.1\r\n\r\n".to_owned(), // the crate's feature `enable` is off
/// };
/// # assert_eq!(request.contains("traceparent: 00-"), cfg!(feature = "enable"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Traceparent {
    text: [u8; LEN],
    flags: u8,
}

/// The parts of a context beside the id of its flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The upper and the lower half of the trace id. Both are 0 for [`own_trace_id`].
    trace: [u64; 2],
    /// The flags that came with the trace id.
    flags: u8,
}

/// What this process knows of a flow whose trace id is computed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnFlags {
    /// Whether this process drew the id at random. An id from elsewhere may be any number.
    pub(crate) is_random: bool,
    /// Whether a session runs.
    pub(crate) records: bool,
}

/// Returns both halves of the trace id of a flow without a predecessor. The lower half is the flow's id.
fn own_trace_id(flow: u64) -> [u64; 2] {
    [flow.rotate_left(32) ^ OWN, flow]
}

impl Origin {
    /// Returns the origin of a flow that continues the trace of the flow `id` with this origin.
    #[cfg_attr(not(feature = "enable"), allow(dead_code))] // the flow itself is passed on
    pub(crate) fn of_child(self, id: u64, own: OwnFlags) -> Self {
        if id == 0 {
            return Self::default();
        }
        Self { trace: self.trace_id(id), flags: self.flags(own) }
    }

    fn is_own(self) -> bool {
        self.trace == [0, 0]
    }

    fn trace_id(self, id: u64) -> [u64; 2] {
        if self.is_own() { own_trace_id(id) } else { self.trace }
    }

    /// The flags that were received; those of this process for a trace id that is computed.
    fn flags(self, own: OwnFlags) -> u8 {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        match self.is_own() {
            true => flag(own.is_random, RANDOM) | flag(own.records, SAMPLED),
            false => self.flags,
        }
    }

    /// Reads a header. Returns the id of the flow and its origin, or `None` if the header is not valid.
    ///
    /// Later versions may have more fields, behind a hyphen. They are ignored, as level 1 demands.
    pub(crate) fn parse(header: &[u8]) -> Option<(u64, Self)> {
        let header = trim(header);
        let (fields, rest) = header.split_at_checked(LEN)?;
        let version = hex(&fields[..2])?;
        let ends_well = if version == 0 { rest.is_empty() } else { matches!(rest, [] | [b'-', ..]) };
        let hyphens = fields[2] == b'-' && fields[35] == b'-' && fields[52] == b'-';
        if version == 0xff || !ends_well || !hyphens {
            return None;
        }
        let trace = [hex(&fields[3..19])?, hex(&fields[19..35])?];
        let (id, flags) = (hex(&fields[36..52])?, hex(&fields[53..])?);
        if trace == [0, 0] || id == 0 {
            return None;
        }
        Some((id, Self { trace, flags: flags as u8 & (SAMPLED | RANDOM) }))
    }

    /// Returns the header of the flow `id`. `None` for the id 0, which the standard forbids.
    pub(crate) fn header(self, id: u64, own: OwnFlags) -> Option<Traceparent> {
        if id == 0 {
            return None;
        }
        let ([high, low], flags) = (self.trace_id(id), self.flags(own));
        let mut text = *b"00-                                -                -  ";
        put_hex(&mut text[3..19], high);
        put_hex(&mut text[19..35], low);
        put_hex(&mut text[36..52], id);
        put_hex(&mut text[53..], u64::from(flags));
        Some(Traceparent { text, flags })
    }
}

/// Removes spaces and tabs around a value, which belong to the header field and not to its value.
fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Reads lower-case hexadecimal digits, at most 16. Upper case is not valid in the header.
fn hex(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(digit))
    })
}

/// Fills `text` with the last digits of a number.
fn put_hex(text: &mut [u8], number: u64) {
    for (n, byte) in text.iter_mut().rev().enumerate() {
        *byte = b"0123456789abcdef"[(number >> (4 * n)) as usize & 15];
    }
}

impl Traceparent {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.text).unwrap_or_default() // it is ASCII
    }

    /// Returns the trace id, which is common to all flows of a request: 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id(&self) -> &str {
        &self.as_str()[3..35]
    }

    /// Returns the parent id, which is the id of the flow: 16 hexadecimal digits.
    #[must_use]
    pub fn parent_id(&self) -> &str {
        &self.as_str()[36..52]
    }

    /// Whether the flag `sampled` is set: the sender may have recorded the request. A flow of this process
    /// has it if a session ran when the header was made. A flow from another process passes on what it got.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Sets or clears the flag `sampled`. Tracers behind the next process may decide by it whether they
    /// record.
    ///
    /// The standard demands a new parent id with another value of the flag. So for a flow that came in, take
    /// the header of a [`child`](crate::Flow::child).
    ///
    /// ```
    /// # use hairline::Flow;
    /// let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// let child = Flow::from_traceparent(header).unwrap_or_default().child();
    /// let dropped = child.to_traceparent().map(|header| header.sampled(false));
    /// assert!(dropped.is_some_and(|dropped| !dropped.is_sampled()));
    /// ```
    #[must_use]
    pub fn sampled(mut self, sampled: bool) -> Self {
        self.flags = if sampled { self.flags | SAMPLED } else { self.flags & !SAMPLED };
        put_hex(&mut self.text[53..], u64::from(self.flags));
        self
    }
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Traceparent").field(&self.as_str()).finish()
    }
}

impl AsRef<str> for Traceparent {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn sent_on(header: &str) -> Option<String> {
        let (id, origin) = Origin::parse(header.as_bytes())?;
        Some(origin.header(id, OwnFlags::default())?.to_string())
    }

    #[test]
    fn a_header_is_passed_on_as_it_came() {
        assert_eq!(sent_on(VALID).as_deref(), Some(VALID));
        assert_eq!(sent_on(&format!(" \t{VALID} ")).as_deref(), Some(VALID));
        let random = VALID.replace("-01", "-03");
        assert_eq!(sent_on(&random).as_ref(), Some(&random));
        assert_eq!(
            sent_on(&VALID.replace("-01", "-fd")).as_deref(),
            Some(VALID),
            "unknown flags are dropped"
        );
    }

    #[test]
    fn a_later_version_may_have_more_fields() {
        assert_eq!(sent_on(&VALID.replacen("00", "cc", 1)).as_deref(), Some(VALID));
        assert_eq!(
            sent_on(&format!("{}-what-follows", VALID.replacen("00", "01", 1))).as_deref(),
            Some(VALID)
        );
        assert_eq!(sent_on(&format!("{}x", VALID.replacen("00", "01", 1))), None);
    }

    #[test]
    fn a_header_that_is_not_valid_is_none() {
        let zeros = |from: &str| VALID.replace(from, &"0".repeat(from.len()));
        for bad in [
            String::new(),
            "00".to_owned(),
            VALID[..54].to_owned(),
            format!("{VALID}-00"),
            format!("{VALID}0"),
            VALID.replacen("00", "ff", 1),
            VALID.replacen("00", "0x", 1),
            VALID.to_uppercase(),
            VALID.replace("-01", "_01"),
            VALID.replace("-01", "-0g"),
            zeros("4bf92f3577b34da6a3ce929d0e0e4736"),
            zeros("00f067aa0ba902b7"),
            VALID.replace('4', "\u{e9}"),
            format!("{VALID}\u{0}"),
            format!("{VALID}\n"),
            format!("{VALID}\r\n"),
            format!("\u{c}{VALID}"),
            VALID.replacen("00", "0A", 1),
            VALID.replacen("00f", "+0f", 1),
        ] {
            assert_eq!(Origin::parse(bad.as_bytes()), None, "{bad:?}");
        }
        for len in 0..200 {
            assert_eq!(Origin::parse(&vec![b'-'; len]), None);
            assert_eq!(Origin::parse(&vec![0xff; len]), None);
        }
    }

    /// An id of this process, while a session runs.
    const RECORDED: OwnFlags = OwnFlags { is_random: true, records: true };

    #[test]
    fn a_flow_without_predecessor_has_the_trace_id_that_its_id_gives() {
        let id = 0x00f0_67aa_0ba9_02b7;
        let header = |own| Origin::default().header(id, own).expect("the id is not 0");
        let first = header(RECORDED);
        assert_eq!(first.as_str(), "00-63c86bc56c9909cf00f067aa0ba902b7-00f067aa0ba902b7-03");
        assert_eq!((first.trace_id(), first.parent_id()), (&first.as_str()[3..35], "00f067aa0ba902b7"));
        assert!(first.is_sampled() && !header(OwnFlags { records: false, ..RECORDED }).is_sampled());
        let elsewhere = header(OwnFlags { is_random: false, ..RECORDED });
        assert!(elsewhere.as_str().ends_with("-01"), "an id from elsewhere may not be random: {elsewhere}");
        assert!(Origin::default().header(0, RECORDED).is_none());
    }

    #[test]
    fn a_child_has_the_trace_id_and_the_flags_of_its_parent() {
        let (id, parent) = Origin::parse(VALID.as_bytes()).unwrap();
        let child = parent.of_child(id, RECORDED).header(7, RECORDED).unwrap();
        assert_eq!(child.as_str(), "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000007-01");
        let first = Origin::default().header(9, RECORDED).unwrap();
        let child = Origin::default().of_child(9, RECORDED).header(7, OwnFlags::default()).unwrap();
        assert_eq!((first.trace_id(), first.is_sampled()), (child.trace_id(), child.is_sampled()));
    }
}
