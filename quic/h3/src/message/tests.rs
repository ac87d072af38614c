//! Rules for messages, each with a message that breaks it.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header::COOKIE};

use super::{Content, Fields, Protocol, Section, content_length, sealed::Sealed as Head};
use crate::{
    error::Violation,
    qpack::{Field, FieldRef},
};

type Line = (&'static str, &'static str);

fn section<H: Head>(lines: &[Line]) -> Result<Section, Violation> {
    section_of(H::PSEUDO, lines)
}

fn section_of(pseudo: super::fields::Pseudo, lines: &[Line]) -> Result<Section, Violation> {
    let mut section = Section::new(pseudo);
    for (name, value) in lines {
        section.take(Field {
            name: Bytes::from_static(name.as_bytes()),
            value: Bytes::from_static(value.as_bytes()),
            never_indexed: *name == "secret" || value.starts_with("secret"),
        });
    }
    section.end().map(|()| section)
}

fn read<H: Head>(lines: &[Line]) -> Result<H, Violation> {
    H::of(section::<H>(lines)?, &mut None)
}

fn request(lines: &[Line]) -> Result<Request<()>, Violation> {
    read(lines)
}

const GET: [Line; 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "example.com"),
    (":path", "/a?b"),
];

fn get_and(more: &[Line]) -> Vec<Line> {
    [&GET, more].concat()
}

fn without(name: &str) -> Vec<Line> {
    let all = GET.iter().copied();
    all.filter(|(known, _)| *known != name).collect()
}

fn with(name: &'static str, value: &'static str) -> Vec<Line> {
    let all = GET.iter().copied();
    all.map(|line| if line.0 == name { (name, value) } else { line })
        .collect()
}

#[test]
fn a_request_has_its_target_and_fields() {
    let request = request(&get_and(&[
        ("x", "1"),
        ("cookie", "a=1"),
        ("x", "2"),
        ("te", "Trailers"),
        ("cookie", "b=2"),
        ("host", "EXAMPLE.com"),
        ("cookie", "c=3"),
        ("secret", "s"),
    ]));
    let request = request.expect("a request");
    assert_eq!(request.method(), Method::GET);
    assert_eq!(request.uri(), "https://example.com/a?b");
    let fields = request.headers();
    assert_eq!(fields.get_all("x").iter().collect::<Vec<_>>(), ["1", "2"]);
    // RFC 9114 §4.2.1.
    let cookies: Vec<_> = fields.get_all(COOKIE).iter().collect();
    assert_eq!(cookies, ["a=1; b=2; c=3"]);
    assert!(fields.get("secret").is_some_and(HeaderValue::is_sensitive));
}

/// RFC 3986 §3.1.
#[test]
fn schemes_have_no_case() {
    let capitals = request(&with(":scheme", "HTTPS")).expect("a request");
    assert_eq!(capitals.uri(), "https://example.com/a?b");
    let mut without: Vec<_> = with(":scheme", "HTTPS");
    without.retain(|(name, _)| *name != ":authority");
    let missing = request(&without).map(drop);
    assert_eq!(missing, Err(Violation::AuthorityMissing));
}

#[test]
fn requests_that_break_a_rule_are_malformed() {
    use Violation as V;
    let cases: &[(Vec<Line>, Violation)] = &[
        (without(":method"), V::PseudoFieldMissing),
        (without(":scheme"), V::PseudoFieldMissing),
        (without(":path"), V::PseudoFieldMissing),
        (without(":authority"), V::AuthorityMissing),
        (get_and(&[(":path", "/")]), V::PseudoFieldTwice),
        (get_and(&[(":status", "200")]), V::PseudoFieldUnknown),
        (get_and(&[(":Path", "/")]), V::PseudoFieldUnknown),
        ([&[("x", "1")], &GET[..]].concat(), V::PseudoFieldLate),
        ([&[("cookie", "1")], &GET[..]].concat(), V::PseudoFieldLate),
        (
            get_and(&[(":protocol", "websocket")]),
            V::PseudoFieldOfConnect,
        ),
        (with(":method", "G T"), V::MethodInvalid),
        (with(":method", ""), V::MethodInvalid),
        (with(":scheme", "h ttps"), V::SchemeInvalid),
        (with(":scheme", ""), V::SchemeInvalid),
        (with(":scheme", "1x"), V::SchemeInvalid),
        (with(":authority", ""), V::AuthorityInvalid),
        (with(":authority", "a b"), V::AuthorityInvalid),
        (with(":authority", "me@example.com"), V::Userinfo),
        (get_and(&[("host", "other.example")]), V::HostDiffers),
        (
            get_and(&[("host", "example.com"), ("host", "example.com")]),
            V::HostTwice,
        ),
        (with(":path", ""), V::PathInvalid),
        (with(":path", "a"), V::PathInvalid),
        (with(":path", "*"), V::PathInvalid),
        (with(":path", "/a b"), V::PathInvalid),
        (with(":path", "/a#b"), V::PathInvalid),
        (get_and(&[("X", "1")]), V::FieldName),
        (get_and(&[("", "1")]), V::FieldName),
        (get_and(&[("a b", "1")]), V::FieldName),
        (get_and(&[("x", "a\nb")]), V::FieldValue),
        (get_and(&[("x", "a\rb")]), V::FieldValue),
        (get_and(&[("x", "a\0b")]), V::FieldValue),
        (get_and(&[("connection", "close")]), V::FieldOfConnection),
        (get_and(&[("keep-alive", "1")]), V::FieldOfConnection),
        (get_and(&[("proxy-connection", "1")]), V::FieldOfConnection),
        (
            get_and(&[("transfer-encoding", "chunked")]),
            V::FieldOfConnection,
        ),
        (get_and(&[("upgrade", "x")]), V::FieldOfConnection),
        (get_and(&[("te", "gzip")]), V::Te),
    ];
    for (lines, violation) in cases {
        assert_eq!(request(lines).err(), Some(*violation), "{lines:?}");
    }
}

#[test]
fn the_host_stands_for_an_authority_that_is_missing() {
    let mut lines = without(":authority");
    lines.push(("host", "example.com:8443"));
    let request = request(&lines).expect("a request");
    assert_eq!(request.uri(), "https://example.com:8443/a?b");
}

#[test]
fn options_may_ask_for_the_server_itself() {
    let mut lines = with(":path", "*");
    lines[0].1 = "OPTIONS";
    let options = request(&lines).expect("a request");
    assert_eq!(options.uri().path(), "*");
    let sent = sent(&filled(|fields| fields.request(&options)));
    assert!(sent.contains(&(":path".into(), "*".into())), "{sent:?}");
}

/// RFC 9114 §4.4, RFC 9220 §3.
#[test]
fn connect_has_an_authority_and_extended_connect_a_whole_target() {
    let plain = [(":method", "CONNECT"), (":authority", "example.com:443")];
    let connect = request(&plain).expect("a request");
    assert_eq!(connect.uri(), "example.com:443");
    assert!(connect.opens_tunnel(false));
    let extended = [
        &with(":method", "CONNECT")[..],
        &[(":protocol", "websocket")],
    ]
    .concat();
    let request_of = request(&extended).expect("a request");
    assert_eq!(request_of.uri(), "https://example.com/a?b");
    let protocol = request_of.extensions().get::<Protocol>();
    assert_eq!(protocol.map(Protocol::as_str), Some("websocket"));
    for (lines, violation) in [
        (with(":method", "CONNECT"), Violation::PseudoFieldOfConnect),
        (vec![(":method", "CONNECT")], Violation::PseudoFieldMissing),
        (
            vec![(":method", "CONNECT"), (":authority", "example.com")],
            Violation::AuthorityInvalid,
        ),
    ] {
        assert_eq!(request(&lines).err(), Some(violation), "{lines:?}");
    }
}

#[test]
fn responses_that_break_a_rule_are_malformed() {
    use Violation as V;
    let fine = read::<Response<()>>(&[(":status", "404"), ("x", "1")]).expect("a response");
    assert_eq!(fine.status(), StatusCode::NOT_FOUND);
    let cases: &[(&[Line], Violation)] = &[
        (&[], V::PseudoFieldMissing),
        (&[("x", "1")], V::PseudoFieldMissing),
        (&[(":status", "20")], V::StatusInvalid),
        (&[(":status", "2000")], V::StatusInvalid),
        (&[(":status", "099")], V::StatusInvalid),
        (&[(":status", "101")], V::SwitchingProtocols),
        (
            &[(":status", "200"), (":status", "200")],
            V::PseudoFieldTwice,
        ),
        (&[(":status", "200"), (":path", "/")], V::PseudoFieldUnknown),
        (&[("x", "1"), (":status", "200")], V::PseudoFieldLate),
        (&[(":status", "200"), ("te", "gzip")], V::Te),
        (
            &[(":status", "200"), ("upgrade", "x")],
            V::FieldOfConnection,
        ),
    ];
    for (lines, violation) in cases {
        assert_eq!(
            read::<Response<()>>(lines).err(),
            Some(*violation),
            "{lines:?}"
        );
    }
}

#[test]
fn trailers_have_no_pseudo_header_fields_and_no_fields_of_connections() {
    use Violation as V;
    let trailers = section_of(&[], &[("x", "1")]).expect("trailers");
    assert_eq!(trailers.into_trailers().len(), 1);
    for (line, violation) in [
        ((":path", "/"), V::PseudoFieldInTrailers),
        (("connection", "close"), V::FieldOfConnection),
        (("X", "1"), V::FieldName),
    ] {
        assert_eq!(section_of(&[], &[line]).err(), Some(violation));
    }
}

/// More fields than a map of the crate `http` takes, which would panic.
#[test]
fn fields_without_number_are_refused() {
    let mut section = Section::new(&[]);
    for _ in 0..=super::MOST_FIELDS {
        section.take(Field {
            name: Bytes::from_static(b"x"),
            value: Bytes::new(),
            never_indexed: false,
        });
    }
    assert_eq!(section.end(), Err(Violation::SectionTooLarge));
}

#[test]
fn a_content_length_is_one_number() {
    for (values, expected) in [
        (&[][..], Ok(None)),
        (&["0"], Ok(Some(0))),
        (&["12", "12"], Ok(Some(12))),
        (&["12", "13"], Err(Violation::ContentLengthInvalid)),
        (&["12, 12"], Err(Violation::ContentLengthInvalid)),
        (&["-1"], Err(Violation::ContentLengthInvalid)),
        (&["1 2"], Err(Violation::ContentLengthInvalid)),
        (&["0x10"], Err(Violation::ContentLengthInvalid)),
        (&["+1"], Err(Violation::ContentLengthInvalid)),
        (&[""], Err(Violation::ContentLengthInvalid)),
        (
            &["18446744073709551616"],
            Err(Violation::ContentLengthInvalid),
        ),
    ] {
        let mut fields = HeaderMap::new();
        for value in values {
            fields.append("content-length", HeaderValue::from_static(value));
        }
        assert_eq!(content_length(&fields), expected, "{values:?}");
    }
}

#[test]
fn content_is_as_long_as_it_says() {
    let mut exactly = Content::Exactly(3);
    assert_eq!(exactly.on_data(2), Ok(()));
    assert_eq!(exactly.on_end(), Err(Violation::ContentLengthDiffers));
    assert_eq!(exactly.on_data(2), Err(Violation::ContentLengthDiffers));
    assert_eq!(exactly.on_data(1), Ok(()));
    assert_eq!(exactly.on_end(), Ok(()));
    let mut nothing = Content::Nothing;
    assert_eq!(nothing.on_data(0), Ok(()));
    assert_eq!(nothing.on_data(1), Err(Violation::ContentNotAllowed));
}

fn filled<'a>(fill: impl FnOnce(&mut Fields<'a>)) -> Fields<'a> {
    let mut fields = Fields::new();
    fill(&mut fields);
    fields
}

fn sent(fields: &Fields<'_>) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let fields = fields.iter();
    fields
        .map(|field| (text(field.name), text(field.value)))
        .collect()
}

#[test]
fn what_is_sent_leaves_out_what_http3_does_not_have() {
    let request = Request::get("https://me:secret@example.com")
        .header("host", "example.com")
        .header("connection", "close")
        .header("keep-alive", "1")
        .header("te", "gzip")
        .header("te", "trailers")
        .header("x", "1")
        .body(())
        .expect("a request");
    let sent = sent(&filled(|fields| fields.request(&request)));
    let sent: Vec<_> = sent
        .iter()
        .map(|(name, value)| (&name[..], &value[..]))
        .collect();
    let expected = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "example.com"),
        (":path", "/"),
        ("te", "trailers"),
        ("x", "1"),
    ];
    assert_eq!(sent, expected);
}

/// As hyper does for HTTP/2.
#[test]
fn responses_and_trailers_leave_out_what_belongs_to_a_connection() {
    let mut fields = HeaderMap::new();
    for (name, value) in [
        ("connection", "close, X-Hop"),
        ("connection", "x-other"),
        ("transfer-encoding", "chunked"),
        ("te", "trailers"),
        ("keep-alive", "5"),
        ("proxy-connection", "close"),
        ("upgrade", "h2c"),
        ("x-hop", "1"),
        ("x-other", "1"),
        ("x", "1"),
    ] {
        fields.append(name, HeaderValue::from_static(value));
    }
    let kept = ("x".to_owned(), "1".to_owned());
    let status = (":status".to_owned(), "200".to_owned());
    let response = sent(&filled(|all| all.response(&StatusCode::OK, &fields, [])));
    assert_eq!(response, [status, kept]);
    assert_eq!(sent(&filled(|all| all.trailers(&fields))), response[1..]);
}

/// A secret cookie stays one when it is joined with others (RFC 9204 §7.1.3).
#[test]
fn cookies_with_a_secret_are_secret() {
    for (second, is_secret) in [("secret=1", true), ("b=2", false)] {
        let lines = get_and(&[("cookie", "a=1"), ("cookie", second), ("cookie", "c=3")]);
        let request = request(&lines).expect("a request");
        let cookies = request.headers().get(COOKIE);
        assert_eq!(cookies.map(HeaderValue::is_sensitive), Some(is_secret));
    }
}

/// RFC 7541 §7.1.3: what could be guessed by its size.
#[test]
fn secrets_are_never_indexed() {
    let mut marked = HeaderValue::from_static("marked");
    marked.set_sensitive(true);
    let request = Request::get("https://example.com/")
        .header("authorization", "Basic eA==")
        .header("cookie", "short=1")
        .header("cookie", "long=123456789012345678901234567890")
        .header("x", marked)
        .body(())
        .expect("a request");
    let fields = filled(|fields| fields.request(&request));
    let sensitive: Vec<_> = fields
        .iter()
        .filter(|field| field.sensitive)
        .map(|FieldRef { value, .. }| value)
        .collect();
    let expected: [&[u8]; 3] = [b"Basic eA==", b"short=1", b"marked"];
    assert_eq!(sensitive, expected);
}
