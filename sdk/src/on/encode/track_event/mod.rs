//! Events as TrackEvent packets.

pub(crate) mod location;
pub(crate) mod message;
pub(crate) mod packet;
pub(crate) mod repeat;
pub(crate) mod scheduling;
pub(crate) mod sequence;
pub(crate) mod stream;
pub(crate) mod strings;
pub(crate) mod tracks;
