/// NEW_TOKEN (RFC 9000 §19.7).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewToken<'a> {
    /// The token, never empty.
    pub token: &'a [u8],
}
