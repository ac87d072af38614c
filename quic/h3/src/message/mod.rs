//! Messages: heads and trailers from fields and to fields, by the rules of RFC 9114 §4.
//!
//! Semantics are those of RFC 9110, as hyper keeps them for HTTP/1.1 and HTTP/2.

mod encode;
mod fields;
mod head;
mod length;

#[cfg(test)]
mod tests;

use http::{Request, Response};

use crate::error::Violation;

pub(crate) use encode::Fields;
pub(crate) use fields::Section;
pub use head::Protocol;
pub(crate) use length::Content;
pub use length::content_length;

/// Fields of a section that a [`HeaderMap`] takes, at most: with more it panics.
pub(crate) const MOST_FIELDS: usize = 24_576;

/// The head of a message: a request, which servers receive, or a response, which clients receive.
pub trait Head: sealed::Sealed + Sized {}

impl Head for Request<()> {}
impl Head for Response<()> {}

pub(crate) mod sealed {
    use http::uri::Authority;

    use super::{Content, Section, Violation};

    /// What differs between requests and responses.
    pub trait Sealed: Sized {
        /// Pseudo-header fields that the message may have.
        const PSEUDO: super::fields::Pseudo;
        /// The stream ended before the head.
        const INCOMPLETE: Violation;

        /// Makes the head of a section that was decoded. `last` is the authority of the last request: most of a
        /// connection have the same.
        fn of(section: Section, last: &mut Option<Authority>) -> Result<Self, Violation>;

        /// Returns true if the rest of the stream is a tunnel (RFC 9114 §4.4), for a response to CONNECT or not.
        fn opens_tunnel(&self, asked_connect: bool) -> bool;

        /// Returns true for a head after which another one comes.
        fn is_interim(&self) -> bool;

        /// Returns the content that the head announces, and that the message may have.
        fn content(&self) -> Result<Content, Violation>;
    }
}
