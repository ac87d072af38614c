/// QUIC version 1 (RFC 9000).
pub const VERSION_1: u32 = 0x0000_0001;

/// The versions we speak, the preferred one first.
pub const SUPPORTED_VERSIONS: [u32; 1] = [VERSION_1];

/// What a version changes in packet protection.
pub(super) struct Constants {
    /// Salt of the Initial secrets (RFC 9001 §5.2).
    pub(super) initial_salt: [u8; 20],
    /// Labels of the keys (RFC 9001 §5.1, §6.1).
    pub(super) labels: Labels,
    /// Key of the Retry integrity tag (RFC 9001 §5.8).
    pub(super) retry_key: [u8; 16],
    /// Nonce that goes with it.
    pub(super) retry_nonce: [u8; 12],
}

/// HKDF labels, `tls13 ` left out.
pub(super) struct Labels {
    pub(super) key: &'static [u8],
    pub(super) iv: &'static [u8],
    pub(super) header: &'static [u8],
    pub(super) update: &'static [u8],
}

static CONSTANTS_1: Constants = Constants {
    initial_salt: [
        0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c,
        0xad, 0xcc, 0xbb, 0x7f, 0x0a,
    ],
    labels: Labels {
        key: b"quic key",
        iv: b"quic iv",
        header: b"quic hp",
        update: b"quic ku",
    },
    retry_key: [
        0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8,
        0x4e,
    ],
    retry_nonce: [
        0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
    ],
};

/// The constants of a version. A packet of a version we don't speak has no keys: decoding has
/// already sorted it out, so there is nothing but version 1 to find yet.
pub(super) fn constants(version: u32) -> &'static Constants {
    debug_assert!(
        SUPPORTED_VERSIONS.contains(&version),
        "no keys for version {version:#x}"
    );
    &CONSTANTS_1
}
