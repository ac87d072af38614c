/// CONNECTION_CLOSE (RFC 9000 §19.19).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConnectionClose<'a> {
    /// By the transport (0x1c).
    Transport {
        /// The error code.
        code: u64,
        /// The type of the frame at fault, 0 if none.
        frame: u64,
        /// For people.
        reason: &'a [u8],
    },
    /// By the application (0x1d).
    Application {
        /// The application's error code.
        code: u64,
        /// For people.
        reason: &'a [u8],
    },
}
