//! URI templates of proxies (RFC 9298 §2, RFC 6570).

use std::{fmt, str::FromStr};

use http::Uri;

use super::target::{Target, TargetError};

/// Path of the template of proxies that have no other, before its variables (RFC 9298 §2).
const DEFAULT_PREFIX: &str = "/.well-known/masque/udp/";

/// The URI template of a proxy, with the variables `target_host` and `target_port` (RFC 9298 §2). Other variables are
/// undefined, and add nothing.
///
/// # Examples
/// ```
/// use hybriq_http::masque::Template;
///
/// let template: Template = "https://proxy.example/udp{?target_host,target_port}".parse()?;
/// let uri = template.expand(&"[2001:db8::42]:443".parse()?);
/// assert_eq!(uri.to_string(), "https://proxy.example/udp?target_host=2001%3Adb8%3A%3A42&target_port=443");
/// let proxy = Template::well_known("proxy.example:4433")?;
/// assert_eq!(proxy.to_string(), "https://proxy.example:4433/.well-known/masque/udp/{target_host}/{target_port}/");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    host: String,
    port: u16,
    /// Scheme and authority.
    origin: String,
    /// Path and query.
    parts: Vec<Part>,
}

/// A part of an expansion.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Host,
    Port,
}

/// Reason why a text is not a valid [`Template`] (RFC 9298 §2).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// It contains a character that is not visible ASCII.
    #[error("the template has the character {0:?}; use visible ASCII alone")]
    Character(char),
    /// It does not begin with `https://` and an authority.
    #[error("the template is not absolute; begin with https://host[:port]/")]
    NotAbsolute,
    /// The port is not between 1 and 65535.
    #[error("the port of the template is none; use one from 1 to 65535, or none at all")]
    Port,
    /// A variable is outside of the path and the query.
    #[error("a variable of the template is outside of its path and query")]
    Place,
    /// It has a fragment.
    #[error("the template has a fragment")]
    Fragment,
    /// A brace is unmatched, or a pair of braces contains no list of names.
    #[error("{0:?} is no expression; use {{target_host}}, or {{?target_host,target_port}}")]
    Expression(String),
    /// An expression has an operator that is not allowed: only `?` and `&` are.
    #[error("the operator {0:?} is not allowed in the template; use '?', '&' or none")]
    Operator(char),
    /// An expression has a modifier, which is of level 4 of RFC 6570.
    #[error("the modifier of {0:?} is not allowed in the template; name the variable alone")]
    Modifier(String),
    /// This variable is missing, or occurs twice.
    #[error("the template must have the variable {0} once")]
    Variable(&'static str),
    /// The variables are adjacent, so a proxy cannot tell where one ends.
    #[error("nothing separates the variables of the template; put a '/' between them")]
    Adjacent,
}

impl Template {
    /// Returns the template that a proxy at this authority has without configuration (RFC 9298 §2): at
    /// `/.well-known/masque/udp/`.
    ///
    /// # Errors
    /// The authority is invalid.
    pub fn well_known(authority: &str) -> Result<Self, TemplateError> {
        format!("https://{authority}{DEFAULT_PREFIX}{{target_host}}/{{target_port}}/").parse()
    }

    /// Returns the address of the request for a tunnel to a target.
    pub fn expand(&self, target: &Target) -> Uri {
        let path = self.path(target);
        let uri = Uri::builder().scheme("https");
        let authority = self.origin.trim_start_matches("https://");
        // All parts were checked when the template was parsed.
        let uri = uri.authority(authority).path_and_query(path).build();
        uri.unwrap_or_default()
    }

    /// Returns the default template of a proxy that need not know its own authority.
    pub(super) fn any_host() -> Self {
        let parts = [
            Part::Literal(DEFAULT_PREFIX.to_owned()),
            Part::Host,
            Part::Literal("/".to_owned()),
            Part::Port,
            Part::Literal("/".to_owned()),
        ];
        Self {
            text: DEFAULT_PREFIX.to_owned(),
            host: String::new(),
            port: 443,
            origin: String::new(),
            parts: parts.into(),
        }
    }

    fn path(&self, target: &Target) -> String {
        let mut path = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => path.push_str(text),
                Part::Host => path.push_str(&target.encoded_host()),
                Part::Port => path.push_str(&target.port().to_string()),
            }
        }
        path
    }

    /// Returns the host of the proxy, without brackets, and its port.
    pub(super) fn proxy(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// Returns the target that the path and query of a request name; `None` if the request is not for this template.
    pub(super) fn target(&self, path: &str) -> Option<Result<Target, TargetError>> {
        let (mut host, mut port) = ("", "");
        let mut rest = path;
        for part in &self.parts {
            match part {
                Part::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
                Part::Host => (host, rest) = value(rest),
                Part::Port => (port, rest) = value(rest),
            }
        }
        rest.is_empty().then(|| Target::decode(host, port))
    }
}

/// Takes the value of a variable: nothing but unreserved characters and percent-encoding (RFC 6570 §3.2.2).
fn value(rest: &str) -> (&str, &str) {
    rest.split_at(rest.bytes().take_while(|byte| is_of_value(*byte)).count())
}

fn is_of_value(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'%')
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        if let Some(character) = text
            .chars()
            .find(|character| !('!'..='~').contains(character))
        {
            return Err(TemplateError::Character(character));
        }
        let rest = text
            .strip_prefix("https://")
            .ok_or(TemplateError::NotAbsolute)?;
        let end = rest.find(['/', '?', '#', '{']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        match path.chars().next() {
            Some('/') => {}
            Some('{') => return Err(TemplateError::Place),
            _ => return Err(TemplateError::NotAbsolute),
        }
        let authority: http::uri::Authority =
            authority.parse().map_err(|_| TemplateError::NotAbsolute)?;
        if authority.host().is_empty() || authority.as_str().contains('@') {
            return Err(TemplateError::NotAbsolute);
        }
        let behind = authority.as_str().strip_prefix(authority.host());
        let port = match (behind, authority.port_u16()) {
            (Some("" | ":"), _) => 443,
            (_, Some(port @ 1..)) => port,
            _ => return Err(TemplateError::Port),
        };
        let parts = parts(path)?;
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let template = Self {
            text: text.to_owned(),
            host,
            port,
            origin: format!("https://{authority}"),
            parts,
        };
        // Whatever the target is, the path must be one.
        let path = template.path(&Target::from(std::net::SocketAddr::from(([0; 4], 1))));
        if path.parse::<http::uri::PathAndQuery>().is_err() {
            return Err(TemplateError::NotAbsolute);
        }
        Ok(template)
    }
}

/// Returns the parts of a path and query.
fn parts(mut rest: &str) -> Result<Vec<Part>, TemplateError> {
    let mut parts = Vec::new();
    while let Some(start) = rest.find(['{', '}', '#']) {
        let (literal, behind) = rest.split_at(start);
        push(&mut parts, literal);
        if behind.starts_with('#') {
            return Err(TemplateError::Fragment);
        }
        let malformed = || TemplateError::Expression(behind.to_owned());
        let inner = behind.strip_prefix('{').ok_or_else(malformed)?;
        let (inner, behind) = inner.split_once('}').ok_or_else(malformed)?;
        expression(inner, &mut parts)?;
        rest = behind;
    }
    push(&mut parts, rest);
    for (variable, name) in [(Part::Host, "target_host"), (Part::Port, "target_port")] {
        if parts.iter().filter(|part| **part == variable).count() != 1 {
            return Err(TemplateError::Variable(name));
        }
    }
    let ends = |pair: &[Part]| match pair {
        // A literal that begins like a value would be taken for a part of it.
        [Part::Host | Part::Port, Part::Literal(next)] => {
            next.bytes().next().is_some_and(is_of_value)
        }
        [Part::Literal(_), _] => false,
        _ => true,
    };
    if parts.windows(2).any(ends) {
        return Err(TemplateError::Adjacent);
    }
    Ok(parts)
}

/// Appends the parts of an expression, without its braces.
fn expression(inner: &str, parts: &mut Vec<Part>) -> Result<(), TemplateError> {
    let malformed = || TemplateError::Expression(format!("{{{inner}}}"));
    let first = inner.chars().next().ok_or_else(malformed)?;
    let form = inner.strip_prefix(['?', '&']);
    let (mut before, between, names) = match first {
        '?' => ("?", "&", form.unwrap_or_default()),
        '&' => ("&", "&", form.unwrap_or_default()),
        '+' | '#' | '.' | '/' | ';' | '=' | ',' | '!' | '@' | '|' => {
            return Err(TemplateError::Operator(first));
        }
        _ => ("", ",", inner),
    };
    for name in names.split(',') {
        if name.contains([':', '*']) {
            return Err(TemplateError::Modifier(name.to_owned()));
        }
        let is_of_name =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'%');
        if name.is_empty() || !name.bytes().all(is_of_name) {
            return Err(malformed());
        }
        let variable = match name {
            "target_host" => Part::Host,
            "target_port" => Part::Port,
            _ => continue,
        };
        push(parts, before);
        if form.is_some() {
            push(parts, &format!("{name}="));
        }
        parts.push(variable);
        before = between;
    }
    Ok(())
}

/// Appends a literal.
fn push(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(Part::Literal(literal)) => literal.push_str(text),
        _ => parts.push(Part::Literal(text.to_owned())),
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 9298 §2 and §3, and all that it allows besides.
    #[test]
    fn targets_pass_through_every_form() {
        for (template, path) in [
            (
                "https://example.org/.well-known/masque/udp/{target_host}/{target_port}/",
                "/.well-known/masque/udp/2001%3Adb8%3A%3A42/443/",
            ),
            (
                "https://proxy.example.org:4443/masque?h={target_host}&p={target_port}",
                "/masque?h=2001%3Adb8%3A%3A42&p=443",
            ),
            (
                "https://proxy.example.org:4443/masque{?target_host,target_port}",
                "/masque?target_host=2001%3Adb8%3A%3A42&target_port=443",
            ),
            (
                "https://[::1]/x?a=b{&tag,target_port}{&target_host}",
                "/x?a=b&target_port=443&target_host=2001%3Adb8%3A%3A42",
            ),
            (
                "https://a/{target_host,target_port}",
                "/2001%3Adb8%3A%3A42,443",
            ),
        ] {
            let parsed: Template = template.parse().expect(template);
            assert_eq!(parsed.to_string(), template);
            let target = Target::new("2001:db8::42", 443).expect("a target");
            let uri = parsed.expand(&target);
            assert_eq!(
                uri.path_and_query().map(http::uri::PathAndQuery::as_str),
                Some(path)
            );
            assert_eq!(parsed.target(path), Some(Ok(target)));
            assert_eq!(parsed.target(&format!("{path}x/")), None);
        }
    }

    #[test]
    fn what_a_template_must_not_have_is_named() {
        use TemplateError as Error;

        let both = "{target_host}/{target_port}";
        let expression = |text: &str| Error::Expression(text.to_owned());
        for (template, error) in [
            (format!("https://é/{both}"), Error::Character('é')),
            (format!("https://a/ {both}"), Error::Character(' ')),
            (format!("http://a/{both}"), Error::NotAbsolute),
            (format!("/{both}"), Error::NotAbsolute),
            (format!("https:///{both}"), Error::NotAbsolute),
            (format!("https://me@a/{both}"), Error::NotAbsolute),
            (format!("https://a:99999/{both}"), Error::Port),
            (format!("https://a:0/{both}"), Error::Port),
            (
                "https://a?{target_host}&{target_port}".to_owned(),
                Error::NotAbsolute,
            ),
            (
                "https://{target_host}:443/{target_port}".to_owned(),
                Error::Place,
            ),
            (format!("https://a/{both}#x"), Error::Fragment),
            (
                format!("https://a/{{#target_host}}{both}"),
                Error::Operator('#'),
            ),
            (
                format!("https://a/{{+target_host}}{both}"),
                Error::Operator('+'),
            ),
            (
                format!("https://a/{{.target_host}}{both}"),
                Error::Operator('.'),
            ),
            (format!("https://a{{/target_host}}{both}"), Error::Place),
            (
                format!("https://a/{{/target_host}}{both}"),
                Error::Operator('/'),
            ),
            (
                format!("https://a/{{;target_host}}{both}"),
                Error::Operator(';'),
            ),
            (
                "https://a/{target_host:3}".to_owned(),
                Error::Modifier("target_host:3".to_owned()),
            ),
            (
                "https://a/{target_host*}".to_owned(),
                Error::Modifier("target_host*".to_owned()),
            ),
            (
                "https://a/{target_host}".to_owned(),
                Error::Variable("target_port"),
            ),
            (
                format!("https://a/{both}/{{target_host}}"),
                Error::Variable("target_host"),
            ),
            (
                "https://a/{target_host}{target_port}".to_owned(),
                Error::Adjacent,
            ),
            (
                "https://a/{target_host}x{target_port}".to_owned(),
                Error::Adjacent,
            ),
            ("https://a/{".to_owned(), expression("{")),
            ("https://a/}".to_owned(), expression("}")),
            ("https://a/{}".to_owned(), expression("{}")),
            ("https://a/{a,,b}".to_owned(), expression("{a,,b}")),
            ("https://a/{?}".to_owned(), expression("{?}")),
        ] {
            assert_eq!(template.parse::<Template>(), Err(error), "{template}");
        }
    }

    #[test]
    fn a_path_for_something_else_has_no_target() {
        let template = Template::well_known("a").expect("a template");
        assert_eq!(template.target("/"), None);
        assert_eq!(template.target("/.well-known/masque/udp/a/1"), None);
        assert_eq!(template.target("/.well-known/masque/udp/a:1/1/"), None);
        let malformed = template.target("/.well-known/masque/udp//1/");
        assert_eq!(malformed, Some(Err(TargetError::Host(String::new()))));
    }
}
