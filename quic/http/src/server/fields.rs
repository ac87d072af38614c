//! The sizes of request fields, on the wire and in memory.

use http::{HeaderMap, Request, Version};

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
