//! Reads an object into memory: as JSON, or else as what it means.

use std::io::Read;

use crate::input::Input;
use crate::trace_event_json::ahead::Ahead;
use crate::trace_event_json::json::{self, Checked};
use crate::trace_event_json::tolerant::{self, Fresh, Tolerated};
use crate::trace_event_json::window::{End, wanted};
use crate::{DecodeError, DecodeErrorKind};

/// An object in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    pub(super) end: usize,
    /// Whether it is JSON, but for strings that are not UTF-8.
    pub(super) is_json: bool,
}

impl<R: Read> Input<R> {
    /// Finds the end of the object here. If it is not JSON, `json` gets what it means.
    ///
    /// What may be JSON is read on, to the limit: a part of it could be taken for something else that is no
    /// JSON. What cannot be JSON is read by what it may mean.
    pub(super) fn object(
        &mut self,
        limit: usize,
        ahead: &mut Ahead,
        json: &mut Vec<u8>,
    ) -> Result<Object, DecodeError> {
        /// So far an object is read in any case.
        const SHORT: usize = 512;
        let offset = self.offset();
        let reach = limit.min(ahead.left(offset).max(SHORT));
        let (mut is_all, mut may_be_json, mut in_vain) = (false, true, 0);
        let before = *ahead;
        loop {
            let available = self.available();
            let seen = available.len();
            let is_far = seen > reach;
            let window = &available[..seen.min(reach.saturating_add(1))];
            if may_be_json {
                match json::first(window) {
                    Checked::End(end) if end <= reach => return Ok(Object { end, is_json: true }),
                    Checked::Cut if !is_all && !is_far => {
                        is_all = self.fill(wanted(seen))?.len() == seen;
                        continue;
                    }
                    Checked::Wrong => {}
                    // It may be JSON to its end: nothing in it is taken for something else.
                    Checked::Cut | Checked::End(_) if is_far && reach == limit => {
                        return Err(self.pass_object(limit, reach, ahead));
                    }
                    Checked::Cut | Checked::End(_) => in_vain = window.len(),
                }
                may_be_json = false;
            }
            *ahead = before; // with more bytes, the same looks are repeated
            let is_end = is_all && !is_far;
            let mut read = |fresh| tolerant::object((window, is_end), fresh, json, (&mut *ahead, offset));
            let mut found = read(Fresh::AtLine);
            if found == Tolerated::More && !is_all && !is_far {
                is_all = self.fill(wanted(seen))?.len() == seen;
                continue;
            }
            if found == Tolerated::More {
                found = read(Fresh::Anywhere);
                in_vain = window.len();
            }
            return match found {
                Tolerated::End(end) if end <= reach => {
                    ahead.spend(in_vain.saturating_sub(end));
                    Ok(Object { end, is_json: false })
                }
                _ if is_far => Err(self.pass_object(limit, reach, ahead)),
                _ => Err(DecodeError::truncated(offset, "an object")),
            };
        }
    }

    /// Passes over an object without an end in `reach`. Returns the error.
    #[cold]
    fn pass_object(&mut self, limit: usize, reach: usize, ahead: &mut Ahead) -> DecodeError {
        let offset = self.offset();
        match self.value_end(0, reach) {
            // Its brackets end here, but its strings do not.
            Ok(End::At(end)) => {
                ahead.spend(reach.saturating_sub(end));
                self.consume(end);
            }
            Ok(End::TooLarge) => {}
            Ok(End::Cut) => return DecodeError::truncated(offset, "an object"),
            Err(e) => return e,
        }
        DecodeError::new(offset, DecodeErrorKind::TooLarge { what: "an object", limit })
    }
}
