//! The static table (RFC 9204 Appendix A).

/// Names and values of the static table, by their index.
pub(super) const FIELDS: [(&str, &str); 99] = [
    (":authority", ""),
    (":path", "/"),
    ("age", "0"),
    ("content-disposition", ""),
    ("content-length", "0"),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("referer", ""),
    ("set-cookie", ""),
    (":method", "CONNECT"),
    (":method", "DELETE"),
    (":method", "GET"),
    (":method", "HEAD"),
    (":method", "OPTIONS"),
    (":method", "POST"),
    (":method", "PUT"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "103"),
    (":status", "200"),
    (":status", "304"),
    (":status", "404"),
    (":status", "503"),
    ("accept", "*/*"),
    ("accept", "application/dns-message"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"),
    ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"),
    ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"),
    ("cache-control", "no-cache"),
    ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"),
    ("content-encoding", "br"),
    ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"),
    ("content-type", "application/javascript"),
    ("content-type", "application/json"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"),
    ("content-type", "image/jpeg"),
    ("content-type", "image/png"),
    ("content-type", "text/css"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"),
    ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    (
        "strict-transport-security",
        "max-age=31536000; includesubdomains",
    ),
    (
        "strict-transport-security",
        "max-age=31536000; includesubdomains; preload",
    ),
    ("vary", "accept-encoding"),
    ("vary", "origin"),
    ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1; mode=block"),
    (":status", "100"),
    (":status", "204"),
    (":status", "206"),
    (":status", "302"),
    (":status", "400"),
    (":status", "403"),
    (":status", "421"),
    (":status", "425"),
    (":status", "500"),
    ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"),
    ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"),
    ("access-control-request-method", "get"),
    ("access-control-request-method", "post"),
    ("alt-svc", "clear"),
    ("authorization", ""),
    (
        "content-security-policy",
        "script-src 'none'; object-src 'none'; base-uri 'none'",
    ),
    ("early-data", "1"),
    ("expect-ct", ""),
    ("forwarded", ""),
    ("if-range", ""),
    ("origin", ""),
    ("purpose", "prefetch"),
    ("server", ""),
    ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", ""),
    ("x-forwarded-for", ""),
    ("x-frame-options", "deny"),
    ("x-frame-options", "sameorigin"),
];

/// Index of the field `date`.
pub(super) const DATE: u8 = 6;

/// Slots of the table of names: more than twice as many as there are names, so that few collide.
const SLOTS: usize = 128;

/// No index.
const NONE: u8 = u8::MAX;

/// First index of each name, at the place that [`place`] computes or behind it.
static PLACES: [u8; SLOTS] = places();

/// The next index with the same name, for each index.
static NEXT: [u8; FIELDS.len()] = next();

/// What the static table has for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The field with this index.
    Field(u8),
    /// The name, with this index.
    Name(u8),
    Nothing,
}

/// Looks for a field.
pub(super) fn find(name: &[u8], value: &[u8]) -> Found {
    let Some(first) = find_name(name) else {
        return Found::Nothing;
    };
    let mut index = first;
    while let Some((_, known)) = FIELDS.get(usize::from(index)) {
        if known.as_bytes() == value {
            return Found::Field(index);
        }
        index = NEXT[usize::from(index)];
    }
    Found::Name(first)
}

fn find_name(name: &[u8]) -> Option<u8> {
    let mut at = place(name);
    loop {
        let index = PLACES[at];
        let (known, _) = FIELDS.get(usize::from(index))?;
        if known.as_bytes() == name {
            return Some(index);
        }
        at = (at + 1) % SLOTS;
    }
}

/// Returns the place of a name.
const fn place(name: &[u8]) -> usize {
    let len = name.len();
    if len == 0 {
        return 0;
    }
    let (first, middle, last) = (name[0], name[len / 2], name[len - 1]);
    (len * 7 + first as usize * 31 + middle as usize * 13 + last as usize * 3) % SLOTS
}

const fn places() -> [u8; SLOTS] {
    let mut places = [NONE; SLOTS];
    let mut index = 0;
    while index < FIELDS.len() {
        let name = FIELDS[index].0.as_bytes();
        let mut at = place(name);
        loop {
            if places[at] == NONE {
                places[at] = index as u8;
                break;
            }
            if is_same(FIELDS[places[at] as usize].0.as_bytes(), name) {
                break;
            }
            at = (at + 1) % SLOTS;
        }
        index += 1;
    }
    places
}

const fn next() -> [u8; FIELDS.len()] {
    let mut next = [NONE; FIELDS.len()];
    let mut index = 0;
    while index < FIELDS.len() {
        let mut other = index + 1;
        while other < FIELDS.len() {
            if is_same(FIELDS[index].0.as_bytes(), FIELDS[other].0.as_bytes()) {
                next[index] = other as u8;
                break;
            }
            other += 1;
        }
        index += 1;
    }
    next
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_first_index() {
        for (index, (name, value)) in FIELDS.iter().enumerate() {
            let first = FIELDS.iter().position(|(other, _)| other == name).unwrap();
            let (name, value) = (name.as_bytes(), value.as_bytes());
            assert_eq!(find(name, value), Found::Field(index as u8));
            assert_eq!(find(name, b"another"), Found::Name(first as u8));
        }
        assert_eq!(find(b"x-unknown", b""), Found::Nothing);
        assert_eq!(find(b"", b""), Found::Nothing);
    }
}
