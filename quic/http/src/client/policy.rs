//! Use of HTTP/3.

/// Use of HTTP/3 by a [`Client`](crate::Client).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Http3 {
    /// HTTP/3 with servers that have offered it by `alt-svc` in an earlier response (RFC 7838), otherwise
    /// HTTP/2 or HTTP/1.1.
    #[default]
    Discover,
    /// HTTP/3 first, without an offer. Where UDP does not get through, HTTP/2 or HTTP/1.1.
    First,
    /// HTTP/3 and nothing else.
    Only,
    /// HTTP/2 or HTTP/1.1 and nothing else.
    Off,
}
