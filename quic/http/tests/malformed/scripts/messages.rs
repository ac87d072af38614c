//! Heads, and content beside them (RFC 9114 §4.1.2 and §4.3).

use hybriq_h3::Code;

use super::{GOES_ON, Outcome, POST, Script, headers, literal, request, resets};

const MALFORMED: Outcome = resets(Code::H3_MESSAGE_ERROR);

/// Fields of a request: `:method`, `:scheme`, `:authority`, `:path`, and others.
type Fields<'f> = &'f [(&'f str, &'f str)];

const METHOD: (&str, &str) = (":method", "GET");
const SCHEME: (&str, &str) = (":scheme", "https");
const AUTHORITY: (&str, &str) = (":authority", "a");
const PATH: (&str, &str) = (":path", "/");

const HEADS: &[(&str, Fields<'_>, Outcome)] = &[
    ("an empty section (§4.3.1)", &[], MALFORMED),
    ("no pseudo-header (§4.3.1)", &[("x", "y")], MALFORMED),
    (
        "an empty :method (RFC 9110 §9.1)",
        &[(":method", ""), SCHEME, AUTHORITY, PATH],
        MALFORMED,
    ),
    (
        "a :method with a space (RFC 9110 §9.1)",
        &[(":method", "G T"), SCHEME, AUTHORITY, PATH],
        MALFORMED,
    ),
    (
        "a :method that nobody knows (RFC 9110 §9.1)",
        &[(":method", "BREW"), SCHEME, AUTHORITY, PATH],
        GOES_ON,
    ),
    (
        "an empty :scheme (RFC 3986 §3.1)",
        &[METHOD, (":scheme", ""), AUTHORITY, PATH],
        MALFORMED,
    ),
    (
        "a :scheme that begins with a digit (RFC 3986 §3.1)",
        &[METHOD, (":scheme", "1x"), AUTHORITY, PATH],
        MALFORMED,
    ),
    (
        ":scheme twice (§4.3)",
        &[METHOD, SCHEME, SCHEME, AUTHORITY, PATH],
        MALFORMED,
    ),
    (
        ":path twice (§4.3)",
        &[METHOD, SCHEME, AUTHORITY, PATH, PATH],
        MALFORMED,
    ),
    (
        "an empty :path (§4.3.1)",
        &[METHOD, SCHEME, AUTHORITY, (":path", "")],
        MALFORMED,
    ),
    (
        "a :path without its slash (§4.3.1)",
        &[METHOD, SCHEME, AUTHORITY, (":path", "a")],
        MALFORMED,
    ),
    (
        "a :path of * with GET (§4.3.1)",
        &[METHOD, SCHEME, AUTHORITY, (":path", "*")],
        MALFORMED,
    ),
    (
        "a :path of * with OPTIONS (§4.3.1)",
        &[(":method", "OPTIONS"), SCHEME, AUTHORITY, (":path", "*")],
        GOES_ON,
    ),
    (
        "a :path with a space (RFC 3986 §3.3)",
        &[METHOD, SCHEME, AUTHORITY, (":path", "/a b")],
        MALFORMED,
    ),
    (
        "a :path with a line feed (§10.3)",
        &[METHOD, SCHEME, AUTHORITY, (":path", "/\n")],
        MALFORMED,
    ),
    (
        "no :authority and no host (§4.3.1)",
        &[METHOD, SCHEME, PATH],
        MALFORMED,
    ),
    (
        "host instead of :authority (§4.3.1)",
        &[METHOD, SCHEME, PATH, ("host", "a")],
        GOES_ON,
    ),
    (
        "host beside :authority (§4.3.1)",
        &[METHOD, SCHEME, AUTHORITY, PATH, ("host", "a")],
        GOES_ON,
    ),
    (
        "an empty :authority (§4.3.1)",
        &[METHOD, SCHEME, (":authority", ""), PATH],
        MALFORMED,
    ),
    (
        "an empty host instead of :authority (§4.3.1)",
        &[METHOD, SCHEME, PATH, ("host", "")],
        MALFORMED,
    ),
    (
        "an :authority with a space (RFC 3986 §3.2)",
        &[METHOD, SCHEME, (":authority", "a b"), PATH],
        MALFORMED,
    ),
    (
        "an :authority with a path (RFC 3986 §3.2)",
        &[METHOD, SCHEME, (":authority", "a/b"), PATH],
        MALFORMED,
    ),
    (
        "an :authority with a NUL (§10.3)",
        &[METHOD, SCHEME, (":authority", "a\0"), PATH],
        MALFORMED,
    ),
    (
        "a pseudo-header with capitals (§4.2)",
        &[(":Method", "GET"), SCHEME, AUTHORITY, PATH],
        MALFORMED,
    ),
    (
        "a pseudo-header without a name (§4.3)",
        &[METHOD, SCHEME, AUTHORITY, PATH, (":", "x")],
        MALFORMED,
    ),
    (
        "CONNECT with :path (§4.4)",
        &[(":method", "CONNECT"), AUTHORITY, PATH],
        MALFORMED,
    ),
    (
        "CONNECT with :scheme (§4.4)",
        &[(":method", "CONNECT"), SCHEME, AUTHORITY],
        MALFORMED,
    ),
    (
        "CONNECT without :authority (§4.4)",
        &[(":method", "CONNECT")],
        MALFORMED,
    ),
    (
        "CONNECT without a port (RFC 9110 §9.3.6)",
        &[(":method", "CONNECT"), AUTHORITY],
        MALFORMED,
    ),
    (
        ":protocol without CONNECT (RFC 8441 §4)",
        &[METHOD, SCHEME, AUTHORITY, PATH, (":protocol", "w")],
        MALFORMED,
    ),
];

/// Fields behind those of a POST.
const FIELDS: &[(&str, Fields<'_>, Outcome)] = &[
    ("te of trailers (§4.2)", &[("te", "trailers")], GOES_ON),
    (
        "te of trailers and more (§4.2)",
        &[("te", "trailers, gzip")],
        MALFORMED,
    ),
    ("an empty te (§4.2)", &[("te", "")], MALFORMED),
    (
        "an empty connection (§4.2)",
        &[("connection", "")],
        MALFORMED,
    ),
    ("an empty name (§4.2)", &[("", "y")], MALFORMED),
    ("a name with a space (§4.2)", &[("x y", "z")], MALFORMED),
    ("a name with a colon (§4.2)", &[("x:", "z")], MALFORMED),
    ("a name with a line feed (§4.2)", &[("x\n", "z")], MALFORMED),
    ("a name with a NUL (§10.3)", &[("x\0", "z")], MALFORMED),
    ("a name with a DEL (§4.2)", &[("x\x7f", "z")], MALFORMED),
    ("a name beyond ASCII (§4.2)", &[("ä", "z")], MALFORMED),
    ("a value with a NUL (§10.3)", &[("x", "a\0b")], MALFORMED),
    (
        "a value with a carriage return (§10.3)",
        &[("x", "a\rb")],
        MALFORMED,
    ),
    (
        "a value with a line feed (§10.3)",
        &[("x", "a\nb")],
        MALFORMED,
    ),
    (
        "a value with an escape (§10.3)",
        &[("x", "a\x1bb")],
        MALFORMED,
    ),
    ("a value with a DEL (§10.3)", &[("x", "a\x7fb")], MALFORMED),
    (
        "a value with a tab (RFC 9110 §5.5)",
        &[("x", "a\tb")],
        GOES_ON,
    ),
    (
        "a value beyond ASCII (RFC 9110 §5.5)",
        &[("x", "ä")],
        GOES_ON,
    ),
    ("an empty value (RFC 9110 §5.5)", &[("x", "")], GOES_ON),
    (
        "cookies of several lines (§4.2.1)",
        &[("cookie", "a=b"), ("cookie", "c=d")],
        GOES_ON,
    ),
];

/// Values of content-length beside content of five bytes.
const LENGTHS: &[(&str, &[&str], usize, Outcome)] = &[
    ("content of its length (§4.1.2)", &["5"], 5, GOES_ON),
    ("no content, and a length of 0 (§4.1.2)", &["0"], 0, GOES_ON),
    (
        "the same length twice (RFC 9110 §8.6)",
        &["5", "5"],
        5,
        GOES_ON,
    ),
    (
        "a length with a zero in front (RFC 9110 §8.6)",
        &["05"],
        5,
        GOES_ON,
    ),
    ("no content for a length (§4.1.2)", &["5"], 0, MALFORMED),
    ("content that is too short (§4.1.2)", &["5"], 4, MALFORMED),
    ("content that is too long (§4.1.2)", &["5"], 6, MALFORMED),
    ("content for a length of 0 (§4.1.2)", &["0"], 1, MALFORMED),
    (
        "the same length twice, and other content (§4.1.2)",
        &["5", "5"],
        4,
        MALFORMED,
    ),
    (
        "a list of different lengths (RFC 9110 §8.6)",
        &["5, 6"],
        5,
        MALFORMED,
    ),
    ("an empty length (RFC 9110 §8.6)", &[""], 0, MALFORMED),
    ("a negative length (RFC 9110 §8.6)", &["-1"], 1, MALFORMED),
    (
        "a hexadecimal length (RFC 9110 §8.6)",
        &["0x5"],
        5,
        MALFORMED,
    ),
    (
        "a length of 2^64 (RFC 9110 §8.6)",
        &["18446744073709551616"],
        0,
        MALFORMED,
    ),
    (
        "a length with a space (RFC 9110 §8.6)",
        &["5 5"],
        5,
        MALFORMED,
    ),
];

fn lines(fields: Fields<'_>) -> Vec<u8> {
    let lines = fields.iter();
    let lines = lines.map(|(name, value)| literal(name.as_bytes(), value.as_bytes()));
    lines.collect::<Vec<_>>().concat()
}

pub(super) fn scripts() -> Vec<Script> {
    let heads = HEADS
        .iter()
        .map(|(name, fields, expected)| request(name, headers(&[&lines(fields)]), *expected));
    let fields = FIELDS
        .iter()
        .map(|(name, fields, expected)| request(name, headers(&[POST, &lines(fields)]), *expected));
    let lengths = LENGTHS.iter().map(|(name, values, content, expected)| {
        let lengths = values.iter().map(|value| ("content-length", *value));
        let lengths: Vec<_> = lengths.collect();
        let mut bytes = headers(&[POST, &lines(&lengths)]);
        if *content > 0 {
            bytes.extend([0, *content as u8]);
            bytes.extend(vec![b'x'; *content]);
        }
        request(name, bytes, *expected)
    });
    heads.chain(fields).chain(lengths).collect()
}
