//! Fields that HTTP/3 has not, or that every response has.

use http::{
    HeaderMap, HeaderName, HeaderValue, Request,
    header::{self, DATE},
};

use super::clock;

/// Fields of a connection, which HTTP/3 has not (RFC 9114 §4.2).
static CONNECTION_FIELDS: [HeaderName; 5] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Removes the fields that responses of HTTP/3 have not.
pub(super) fn strip(fields: &mut HeaderMap) {
    if !fields.is_empty() {
        for field in &CONNECTION_FIELDS {
            fields.remove(field);
        }
        fields.remove(header::ALT_SVC);
    }
}

/// Returns the date for a response that has none.
pub(super) fn date(fields: &HeaderMap) -> Option<HeaderValue> {
    if fields.contains_key(DATE) {
        None
    } else {
        clock::date()
    }
}

/// Returns the size of a request's fields over HTTP/1.1, as the other versions count it (RFC 9114 §4.2.2): the
/// bytes of names and values, and 32 more for each, those of the request line included.
pub(super) fn size<B>(request: &Request<B>) -> u64 {
    let path = request.uri().path_and_query();
    let path = path.map_or(0, |path| path.as_str().len());
    let line = [
        (":method", request.method().as_str().len()),
        (":scheme", "https".len()),
        (":path", path),
    ];
    let line = line.into_iter().map(|(name, value)| name.len() + value);
    let fields = request.headers();
    let fields = fields
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len());
    line.chain(fields).map(|len| len as u64 + 32).sum()
}
