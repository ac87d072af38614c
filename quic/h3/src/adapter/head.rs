//! Encoding of the head of a response: a HEADERS frame (RFC 9114 §7.2.2) whose field section refers to the
//! static table of QPACK alone (RFC 9204 §4.5).

use bytes::BufMut as _;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

/// Types of frames (RFC 9114 §7.2).
const DATA: u8 = 0;
const HEADERS: u8 = 1;

/// Room for the length of a HEADERS frame, as an integer of two bytes.
const LENGTH: usize = 2;

/// Largest size of a field section, counted as in RFC 9114 §4.2.2, that is encoded here. `h3` encodes larger
/// ones, and compares them with the limit of the client's settings.
const MOST: usize = 4096;

/// Largest number of decimal digits of 64 bits.
const DIGITS: usize = 20;

/// Indices in the static table (RFC 9204 Appendix A).
const CONTENT_LENGTH: usize = 4;
const DATE: usize = 6;

/// Responses' fields in the static table (RFC 9204 Appendix A), with the first index of each.
const NAMES: [(HeaderName, u8); 18] = [
    (header::CONTENT_LENGTH, 4),
    (header::DATE, 6),
    (header::CONTENT_TYPE, 44),
    (header::ETAG, 7),
    (header::LAST_MODIFIED, 10),
    (header::CACHE_CONTROL, 36),
    (header::ACCEPT_RANGES, 32),
    (header::VARY, 59),
    (header::SERVER, 92),
    (header::LOCATION, 12),
    (header::SET_COOKIE, 14),
    (header::CONTENT_ENCODING, 42),
    (header::CONTENT_DISPOSITION, 3),
    (header::STRICT_TRANSPORT_SECURITY, 56),
    (header::X_CONTENT_TYPE_OPTIONS, 61),
    (header::ACCESS_CONTROL_ALLOW_ORIGIN, 35),
    (header::ALT_SVC, 83),
    (header::AGE, 2),
];

/// Returns the index of a status in the static table, if it is there.
fn index_of(status: StatusCode) -> Option<u8> {
    Some(match status.as_u16() {
        103 => 24,
        200 => 25,
        304 => 26,
        404 => 27,
        503 => 28,
        100 => 63,
        204 => 64,
        206 => 65,
        302 => 66,
        400 => 67,
        403 => 68,
        421 => 69,
        425 => 70,
        500 => 71,
        _ => return None,
    })
}

/// The head of a response, for [`Payload::response`](crate::adapter::Payload::response).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResponseHead<'a> {
    /// Status code.
    pub status: StatusCode,
    /// Fields of the response.
    pub fields: &'a HeaderMap,
    /// Value of another field, `content-length`, so that a server need not put it into the map.
    pub length: Option<u64>,
    /// Value of another field, `date`.
    pub date: Option<HeaderValue>,
    /// Largest size of the fields that the client takes, in bytes, counted as in RFC 9114 §4.2.2. A head that may be
    /// larger is left to `h3`, which fails if it is.
    pub most: u64,
}

impl<'a> ResponseHead<'a> {
    /// Makes a head of a status and fields.
    pub fn new(status: StatusCode, fields: &'a HeaderMap) -> Self {
        Self {
            status,
            fields,
            length: None,
            date: None,
            most: u64::MAX,
        }
    }
}

/// Encodes the HEADERS frame of a response, with `room` spare bytes behind it. Returns `None` if `h3` must
/// do it, because it is large.
pub(crate) fn encode(head: &ResponseHead<'_>, room: usize) -> Option<Vec<u8>> {
    let size = |name: &str, value: usize| name.len() + value + 32;
    let all = head
        .fields
        .iter()
        .map(|(name, value)| size(name.as_str(), value.len()));
    let own = size(":status", 3) + size("content-length", DIGITS) + size("date", 29);
    let size = own + all.sum::<usize>();
    if size > MOST || size as u64 > head.most {
        return None;
    }
    let mut out = Vec::with_capacity(1 + LENGTH + size + room);
    // The length comes when it is known. The prefix refers to no dynamic entries.
    out.put_slice(&[HEADERS, 0, 0, 0, 0]);
    if let Some(index) = index_of(head.status) {
        put_integer(&mut out, 0b1100_0000, 6, index.into());
    } else {
        put_integer(&mut out, 0b0101_0000, 4, 24);
        put_string(&mut out, 0, 7, head.status.as_str().as_bytes());
    }
    if let Some(length) = head.length {
        put_integer(&mut out, 0b0101_0000, 4, CONTENT_LENGTH);
        put_string(&mut out, 0, 7, Digits::new(length).as_bytes());
    }
    if let Some(date) = &head.date {
        put_integer(&mut out, 0b0101_0000, 4, DATE);
        put_string(&mut out, 0, 7, date.as_bytes());
    }
    for (name, value) in head.fields {
        // Intermediaries must not index what is sensitive (RFC 9204 §4.5.4).
        let sensitive = u8::from(value.is_sensitive());
        match NAMES.iter().find(|(known, _)| known == name) {
            Some((_, index)) => {
                put_integer(&mut out, 0b0101_0000 | sensitive << 5, 4, (*index).into());
            }
            None => put_string(
                &mut out,
                0b0010_0000 | sensitive << 4,
                3,
                name.as_str().as_bytes(),
            ),
        }
        put_string(&mut out, 0, 7, value.as_bytes());
    }
    // At most 4096 bytes and the prefix: an integer of two bytes (RFC 9000 §16).
    let len = out.len() - 1 - LENGTH;
    let [high, low] = ((len as u16) | 0x4000).to_be_bytes();
    if let Some(place) = out.get_mut(1..=LENGTH) {
        place.copy_from_slice(&[high, low]);
    }
    Some(out)
}

/// Appends the header of a DATA frame.
pub(crate) fn put_data_header(out: &mut Vec<u8>, len: u64) {
    out.put_u8(DATA);
    match len {
        0..0x40 => out.put_u8(len as u8),
        0x40..0x4000 => out.put_u16(len as u16 | 0x4000),
        0x4000..0x4000_0000 => out.put_u32(len as u32 | 0x8000_0000),
        _ => out.put_u64(len | 0xc000_0000_0000_0000),
    }
}

/// Appends an integer with a prefix of `bits` bits (RFC 9204 §4.1.1), after the bits of `first`.
fn put_integer(out: &mut Vec<u8>, first: u8, bits: u8, value: usize) {
    let most = (1 << bits) - 1;
    if value < most {
        return out.put_u8(first | value as u8);
    }
    out.put_u8(first | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}

/// Appends a string without Huffman coding, which costs more time than the bytes are worth.
fn put_string(out: &mut Vec<u8>, first: u8, bits: u8, text: &[u8]) {
    put_integer(out, first, bits, text.len());
    out.put_slice(text);
}

/// A number in decimal digits.
struct Digits {
    digits: [u8; DIGITS],
    start: usize,
}

impl Digits {
    fn new(mut number: u64) -> Self {
        let mut digits = [0; DIGITS];
        let mut start = DIGITS;
        for (index, digit) in digits.iter_mut().enumerate().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
            start = index;
            if number == 0 {
                break;
            }
        }
        Self { digits, start }
    }

    fn as_bytes(&self) -> &[u8] {
        self.digits.get(self.start..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9204 Appendix A, and §4.5: what `h3` reads is tested over connections.
    #[test]
    fn a_head_refers_to_the_static_table() {
        let mut fields = HeaderMap::new();
        fields.insert(header::CONTENT_LENGTH, 5.into());
        let frame = encode(&ResponseHead::new(StatusCode::OK, &fields), 0).unwrap();
        assert_eq!(frame[..], [1, 0x40, 6, 0, 0, 0xd9, 0x54, 1, b'5']);
        let frame = encode(
            &ResponseHead::new(StatusCode::IM_A_TEAPOT, &HeaderMap::new()),
            0,
        )
        .unwrap();
        assert_eq!(frame[3..], [0, 0, 0x5f, 9, 3, b'4', b'1', b'8']);
    }

    /// Fields outside the map are encoded like those in it.
    #[test]
    fn the_length_and_the_date_need_no_map() {
        for length in [0, 9, 10, 1234, u64::MAX] {
            let date = HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT");
            let mut fields = HeaderMap::new();
            fields.insert(header::CONTENT_LENGTH, length.into());
            fields.insert(header::DATE, date.clone());
            let inside = encode(&ResponseHead::new(StatusCode::OK, &fields), 0);
            let fields = HeaderMap::new();
            let outside = ResponseHead {
                length: Some(length),
                date: Some(date),
                ..ResponseHead::new(StatusCode::OK, &fields)
            };
            assert_eq!(encode(&outside, 0), inside);
        }
    }

    #[test]
    fn sensitive_fields_and_long_names_are_marked() {
        let mut fields = HeaderMap::new();
        let mut secret = http::HeaderValue::from_static("x");
        secret.set_sensitive(true);
        fields.insert(header::SET_COOKIE, secret);
        let frame = encode(&ResponseHead::new(StatusCode::OK, &fields), 0).unwrap();
        assert_eq!(frame[6..], [0x7e, 1, b'x']);
        let mut fields = HeaderMap::new();
        fields.insert("x-longer", "1".parse().unwrap());
        let frame = encode(&ResponseHead::new(StatusCode::OK, &fields), 0).unwrap();
        // 8 is 7 and 1.
        assert_eq!(frame[6..8], [0x27, 1]);
    }

    #[test]
    fn large_fields_are_left_to_h3() {
        let mut fields = HeaderMap::new();
        fields.insert("x", vec![b'y'; MOST].try_into().unwrap());
        assert_eq!(encode(&ResponseHead::new(StatusCode::OK, &fields), 0), None);
        let fields = HeaderMap::new();
        let mut head = ResponseHead::new(StatusCode::OK, &fields);
        assert!(encode(&head, 0).is_some());
        head.most = 100;
        assert_eq!(encode(&head, 0), None, "the client takes less");
    }

    #[test]
    fn lengths_of_data_are_integers_of_rfc_9000() {
        for len in [0, 0x3f, 0x40, 0x3fff, 0x4000, 0x3fff_ffff, 0x4000_0000] {
            let mut out = Vec::new();
            put_data_header(&mut out, len);
            let mut rest = &out[1..];
            assert_eq!(crate::adapter::varint::read(&mut rest), Some(len));
            assert!(rest.is_empty());
        }
    }
}
