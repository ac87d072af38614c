/// CRYPTO (RFC 9000 §19.6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crypto<'a> {
    /// Where the data starts.
    pub offset: u64,
    /// The data.
    pub data: &'a [u8],
}
