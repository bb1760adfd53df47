//! Numbers spread over all their bits.

use hairline_formats::track_event::TrackUuid;

/// Returns the track uuid of `seed`: 56 bits whose varint is 8 bytes long.
#[inline]
pub(crate) fn track_uuid(seed: u64) -> TrackUuid {
    TrackUuid(mix(seed) >> 8 | 1 << 55)
}

/// Spreads `seed` over 64 bits, one to one: splitmix64's finaliser.
#[inline]
pub(crate) fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Inverts [`mix`].
pub(crate) fn unmix(mixed: u64) -> u64 {
    let z = (mixed ^ (mixed >> 31) ^ (mixed >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    let z = (z ^ (z >> 27) ^ (z >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    (z ^ (z >> 30) ^ (z >> 60)).wrapping_sub(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use hairline_formats::proto;

    use super::*;

    #[test]
    fn the_varint_of_a_track_uuid_has_eight_bytes() {
        for seed in [0, 1, u64::MAX, 0x1234] {
            assert_eq!(proto::varint_len(track_uuid(seed).0), 8);
        }
    }
}
