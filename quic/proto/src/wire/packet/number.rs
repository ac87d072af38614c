//! Packet numbers: shortened when sent, expanded when received (RFC 9000 §17.1).

use crate::wire::PacketNumber;

/// Returns the number of bytes, 1 to 4, that let the peer tell `pn` from every other number it may
/// have in flight (RFC 9000 §17.1 and appendix A.2).
pub const fn encoded_len(pn: PacketNumber, largest_acked: Option<PacketNumber>) -> usize {
    let unacked = match largest_acked {
        Some(acked) => pn.distance_from(acked),
        None => pn.get() + 1,
    };
    // More than twice the distance must be representable.
    match unacked {
        0..0x80 => 1,
        0x80..0x8000 => 2,
        0x8000..0x0080_0000 => 3,
        _ => 4,
    }
}

/// Returns the number closest to the next expected one whose low `len` bytes are `truncated` (RFC
/// 9000 appendix A.3).
pub const fn expand(truncated: u32, len: usize, largest: Option<PacketNumber>) -> PacketNumber {
    let expected = match largest {
        Some(largest) => largest.next().get(),
        None => 0,
    };
    let window = 1_u64 << (8 * if len < 4 { len } else { 4 });
    let half = window / 2;
    let candidate = (expected & !window.saturating_sub(1)) | truncated as u64;
    let closest = if candidate.saturating_add(half) <= expected {
        candidate.saturating_add(window)
    } else if candidate > expected.saturating_add(half) && candidate >= window {
        candidate.saturating_sub(window)
    } else {
        candidate
    };
    // No packet has a larger number (RFC 9000 §12.3); one that claims to have fails to decrypt.
    PacketNumber::saturating(closest)
}
