//! Protocols of applications, which both ends of a session agree on (draft-ietf-webtrans-http3 §3.3).

use http::{HeaderMap, HeaderName, HeaderValue};
use sfv::{BareItem, Item, List, ListEntry, Parser};

/// Field of a request: the protocols that the client speaks, the most preferred first.
pub const AVAILABLE_PROTOCOLS: HeaderName = HeaderName::from_static("wt-available-protocols");

/// Field of a response: the protocol that the server has chosen.
pub const PROTOCOL: HeaderName = HeaderName::from_static("wt-protocol");

/// Number of protocols that are read, at most. Those behind them count as not offered.
const MOST: usize = 64;

/// Returns the value of [`AVAILABLE_PROTOCOLS`], or, for one protocol, of [`PROTOCOL`]. `None` if a name has characters
/// other than printable ASCII.
pub fn offer<'a>(protocols: impl IntoIterator<Item = &'a str>) -> Option<HeaderValue> {
    let mut value = String::new();
    for protocol in protocols {
        if !value.is_empty() {
            value.push_str(", ");
        }
        value.push('"');
        for character in protocol.chars() {
            if !matches!(character, ' '..='~') {
                return None;
            }
            if matches!(character, '"' | '\\') {
                value.push('\\');
            }
            value.push(character);
        }
        value.push('"');
    }
    HeaderValue::try_from(value).ok()
}

/// Returns the protocols that the client of a request offers, at most 64. Empty if it offers none, or if the field is
/// malformed and thus ignored.
pub fn offered(fields: &HeaderMap) -> Vec<String> {
    let lines = fields.get_all(AVAILABLE_PROTOCOLS).iter();
    let lines: Vec<&[u8]> = lines.map(HeaderValue::as_bytes).collect();
    let list = Parser::new(&lines.join(&b", "[..])).parse::<List>();
    let protocols = list
        .unwrap_or_default()
        .into_iter()
        .map(|entry| match entry {
            ListEntry::Item(item) => string(item),
            ListEntry::InnerList(_) => None,
        });
    let mut protocols = protocols.collect::<Option<Vec<_>>>().unwrap_or_default();
    protocols.truncate(MOST);
    protocols
}

/// Returns the protocol that the server of a response has chosen. `None` if it has not, or if the field is malformed
/// and thus ignored.
pub fn choice(fields: &HeaderMap) -> Option<String> {
    let mut lines = fields.get_all(PROTOCOL).iter();
    let line = lines.next().filter(|_| lines.next().is_none())?;
    string(Parser::new(line.as_bytes()).parse::<Item>().ok()?)
}

fn string(item: Item) -> Option<String> {
    match item.bare_item {
        BareItem::String(text) => Some(text.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(name: &HeaderName, lines: &[&'static str]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for line in lines {
            fields.append(name.clone(), HeaderValue::from_static(line));
        }
        fields
    }

    #[test]
    fn protocols_are_written_and_read() {
        let protocols = ["moq-00", "a \"b\" \\c"];
        let value = offer(protocols).unwrap();
        assert_eq!(value, r#""moq-00", "a \"b\" \\c""#);
        let mut fields = HeaderMap::new();
        fields.insert(AVAILABLE_PROTOCOLS, value);
        assert_eq!(offered(&fields), protocols);
        for protocol in protocols {
            fields.insert(PROTOCOL, offer([protocol]).unwrap());
            assert_eq!(choice(&fields).as_deref(), Some(protocol));
        }
        assert_eq!(offer(["ä"]), None);
    }

    #[test]
    fn fields_with_other_values_than_strings_are_ignored() {
        let some = |lines: &[&'static str]| offered(&fields(&AVAILABLE_PROTOCOLS, lines));
        assert_eq!(some(&["\"a\";q=1", "\"b\""]), ["a", "b"]);
        for lines in [
            &[][..],
            &["a"],
            &["\"a\", 1"],
            &["\"a\", (\"b\")"],
            &["\"a\","],
            &["\"a"],
        ] {
            assert_eq!(some(lines), [""; 0], "{lines:?}");
        }
        let one = |lines: &[&'static str]| choice(&fields(&PROTOCOL, lines));
        assert_eq!(one(&["\"a\";x"]).as_deref(), Some("a"));
        for lines in [
            &[][..],
            &["a"],
            &["?1"],
            &["\"a\", \"b\""],
            &["\"a\"", "\"b\""],
        ] {
            assert_eq!(one(lines), None, "{lines:?}");
        }
    }

    #[test]
    fn protocols_without_number_are_bounded() {
        let value = offer(["x"; 1000]).unwrap();
        let mut fields = HeaderMap::new();
        fields.insert(AVAILABLE_PROTOCOLS, value);
        assert_eq!(offered(&fields).len(), MOST);
    }
}
