//! Events as TrackEvent packets.

pub(crate) mod message;
pub(crate) mod packet;
pub(crate) mod tracks;
