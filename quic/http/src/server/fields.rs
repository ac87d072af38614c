//! Fields: their sizes on the wire and in memory, and rules that hyper leaves to others. HTTP/3 keeps those by itself.

use http::{
    HeaderMap, HeaderValue, Request, Version,
    header::{COOKIE, HOST},
    uri::Authority,
};

/// Smallest size of a field: its name, and what each field counts in addition (RFC 9114 §4.2.2).
const LEAST_FIELD: u64 = 33;

/// Largest number of fields in a map.
const MOST_FIELDS: u64 = 24_576;

/// Bytes of a place in a map of fields: an index, and three quarters of an entry.
pub(super) const PLACE: u64 = 4 + 3 * 104 / 4;

/// Bytes of a field whose name is already in the map.
const REPEATED: u64 = 72;

/// Smallest number of such fields that a map makes room for.
const LEAST_REPEATED: usize = 4;

/// Returns the size of a request's fields over HTTP/1.1, counted as in the other versions (RFC 9114 §4.2.2): the
/// bytes of names and values, and 32 more for each, including those of the request line.
pub(super) fn size<B>(request: &Request<B>) -> u64 {
    let line = [
        (":method", request.method().as_str().len()),
        (":scheme", "https".len()),
        (":path", path_len(request)),
    ];
    let line = line.into_iter().map(|(name, value)| name.len() + value);
    line.chain(lengths(request.headers()))
        .map(|len| len as u64 + 32)
        .sum()
}

/// Returns the bytes of memory that the fields of a request take: their map, names and values, and the target.
pub(super) fn memory<B>(request: &Request<B>) -> u64 {
    let fields = request.headers();
    // A map fills three quarters of its places.
    let places = fields.capacity() as u64 * 4 / 3;
    let repeated = match fields.len() - fields.keys_len() {
        0 => 0,
        some => some.max(LEAST_REPEATED).next_power_of_two(),
    };
    let strings: usize = lengths(fields).chain([path_len(request)]).sum();
    // Those of HTTP/1.1 are parts of a buffer that doubles.
    let strings = match request.version() {
        Version::HTTP_2 | Version::HTTP_3 => strings,
        _ => 2 * strings,
    };
    places * PLACE + repeated as u64 * REPEATED + strings as u64
}

/// Returns the bytes of the largest map of fields within a limit. A map doubles its places, so the worst case has one
/// field more than fit in half of them, and repeats one field for the rest.
pub(super) fn map_of_fields(list: u64) -> u64 {
    let most = (list / LEAST_FIELD).min(MOST_FIELDS);
    let places = (most + most / 3).next_power_of_two().max(8);
    let different = places / 8 * 3 + 1;
    let rest = list.saturating_sub(LEAST_FIELD * different);
    let repeated = (rest / LEAST_FIELD).min(MOST_FIELDS).next_power_of_two();
    places * PLACE + repeated * REPEATED + 3 * different
}

/// Returns the most memory that the fields of an HTTP/2 field block take: each has at least a byte there.
pub(super) fn most_memory(block: u64, list: u64) -> u64 {
    let each = PLACE * 8 / 3;
    map_of_fields(list).min(block.saturating_mul(each))
}

fn path_len<B>(request: &Request<B>) -> usize {
    let path = request.uri().path_and_query();
    path.map_or(0, |path| path.as_str().len())
}

fn lengths(fields: &HeaderMap) -> impl Iterator<Item = usize> {
    let fields = fields.iter();
    fields.map(|(name, value)| name.as_str().len() + value.len())
}

/// Returns true if a request over TCP names one host: that of its target, or its field `host` (RFC 9112 §3.2, RFC 9113
/// §8.3.1).
pub(super) fn names_one_host<B>(request: &Request<B>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (host, other) = (hosts.next(), hosts.next());
    let target = request.uri().authority().map(Authority::as_str);
    let agrees = |target: &str| {
        host.is_none_or(|host| host.as_bytes().eq_ignore_ascii_case(target.as_bytes()))
    };
    let is_named = match (target, request.version()) {
        (Some(target), Version::HTTP_2) => agrees(target),
        // HTTP/1.1 ignores the field then (RFC 9112 §3.2.2).
        (Some(_), _) | (None, Version::HTTP_09 | Version::HTTP_10) => true,
        (None, _) => host.is_some(),
    };
    let has_userinfo = target.is_some_and(|target| target.contains('@'))
        || host.is_some_and(|host| host.as_bytes().contains(&b'@'));
    is_named && other.is_none() && !has_userinfo
}

/// Joins several cookie fields of HTTP/2, which are one for others (RFC 9113 §8.2.3).
pub(super) fn join_cookies(fields: &mut HeaderMap) {
    let cookies = fields.get_all(COOKIE);
    if cookies.iter().nth(1).is_none() {
        return;
    }
    let is_sensitive = cookies.iter().any(HeaderValue::is_sensitive);
    let cookies: Vec<_> = cookies.iter().map(HeaderValue::as_bytes).collect();
    let joined = cookies.join(&b"; "[..]);
    // It has the characters of its parts.
    if let Ok(mut joined) = HeaderValue::try_from(joined) {
        joined.set_sensitive(is_sensitive);
        fields.insert(COOKIE, joined);
    }
}
