//! The content of messages that are sent: what a response may have (RFC 9110 §6.4.1), and the length that a message
//! promises (§8.6).

use http::{
    HeaderMap, HeaderName, Method, StatusCode,
    header::{CONNECTION, CONTENT_LENGTH, TE, TRANSFER_ENCODING, UPGRADE},
    response::Parts,
};
use hybriq_h3::content_length;

/// The part of a response that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    All,
    /// Only the head (RFC 9110 §9.3.2).
    Head,
    /// A tunnel, which has no content (RFC 9110 §9.3.6).
    Connect,
}

/// Content of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    /// False if the body is not sent, regardless of its content.
    pub(crate) is_sent: bool,
    /// Value of `content-length` that the fields lack.
    pub(crate) missing_length: Option<u64>,
    pub(crate) promised: Promised,
}

/// Bytes that a message promises by its `content-length` and that are still to come. By default, it promises nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Promised(Option<u64>);

/// A message does not have the length that it promised (RFC 9110 §8.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the length of the body differs from its content-length")]
pub(crate) struct BrokenPromise;

impl Asked {
    pub(crate) fn by(method: &Method) -> Self {
        match *method {
            Method::HEAD => Self::Head,
            Method::CONNECT => Self::Connect,
            _ => Self::All,
        }
    }
}

impl Content {
    /// Returns the content of a response with a body of this length, if that is known. Removes a `content-length` that
    /// the response must not have, or that is no number.
    ///
    /// # Errors
    /// The body has another length than the response promises.
    pub(crate) fn of(
        head: &mut Parts,
        length: Option<u64>,
        asked: Asked,
    ) -> Result<Self, BrokenPromise> {
        let status = head.status;
        let has_content = match status {
            StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED => false,
            _ => asked != Asked::Connect || !status.is_success(),
        };
        let told = content_length(&head.headers);
        if told.is_err() {
            tracing::error!("the service answered with a content-length that is no number");
        }
        let told = told.unwrap_or_else(|_| {
            head.headers.remove(CONTENT_LENGTH);
            None
        });
        if !has_content && status != StatusCode::NOT_MODIFIED {
            head.headers.remove(CONTENT_LENGTH);
        }
        if !has_content || asked == Asked::Head {
            let length = length.filter(|length| has_content && told.is_none() && *length > 0);
            return Ok(Self {
                is_sent: false,
                missing_length: length,
                promised: Promised::default(),
            });
        }
        let promised = Promised(told.or(length));
        promised.check(length)?;
        Ok(Self {
            is_sent: true,
            missing_length: length.filter(|_| told.is_none()),
            promised,
        })
    }
}

impl Promised {
    /// Returns what the fields of a request promise.
    pub(crate) fn by(fields: &HeaderMap) -> Self {
        Self(content_length(fields).unwrap_or_default())
    }

    /// Checks that a body of this length, if that is known, is what was promised.
    pub(crate) fn check(self, length: Option<u64>) -> Result<(), BrokenPromise> {
        let Self(promised) = self;
        let differ = promised
            .zip(length)
            .is_some_and(|(promised, length)| promised != length);
        if differ { Err(BrokenPromise) } else { Ok(()) }
    }

    /// Counts a part of the body, which may be the last.
    pub(crate) fn on_data(&mut self, len: usize, is_last: bool) -> Result<(), BrokenPromise> {
        let Some(left) = &mut self.0 else {
            return Ok(());
        };
        *left = left.checked_sub(len as u64).ok_or(BrokenPromise)?;
        if is_last && *left > 0 {
            return Err(BrokenPromise);
        }
        Ok(())
    }
}

/// Removes the fields of a connection, which belong neither into trailers and interim responses nor into a message that
/// is passed on (RFC 9110 §7.6.1).
pub(crate) fn remove_those_of_connection(fields: &mut HeaderMap) {
    const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
    const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
    for name in [
        CONNECTION,
        TRANSFER_ENCODING,
        UPGRADE,
        TE,
        KEEP_ALIVE,
        PROXY_CONNECTION,
    ] {
        fields.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Response};

    use super::*;

    /// RFC 9110 §6.4.1, §8.6 and §9.3.6.
    #[test]
    fn a_response_has_the_content_that_its_request_and_status_allow() {
        use Asked::{All, Connect, Head};

        for (asked, status, told, length, expected) in [
            (All, 200, None, Some(4), Ok((true, None, Some(4)))),
            (All, 200, None, Some(0), Ok((true, None, Some(0)))),
            (All, 200, None, None, Ok((true, None, None))),
            (All, 200, Some("4"), Some(4), Ok((true, Some("4"), None))),
            (All, 200, Some("4"), None, Ok((true, Some("4"), None))),
            (All, 200, Some("4"), Some(5), Err(BrokenPromise)),
            (All, 200, Some("x"), Some(5), Ok((true, None, Some(5)))),
            (All, 204, Some("4"), Some(4), Ok((false, None, None))),
            (All, 205, Some("4"), Some(4), Ok((false, None, None))),
            (All, 304, Some("4"), Some(0), Ok((false, Some("4"), None))),
            (All, 304, None, Some(4), Ok((false, None, None))),
            (Head, 200, Some("4"), Some(0), Ok((false, Some("4"), None))),
            (Head, 200, None, Some(4), Ok((false, None, Some(4)))),
            (Head, 200, None, Some(0), Ok((false, None, None))),
            (Head, 204, Some("4"), Some(4), Ok((false, None, None))),
            (Connect, 200, Some("4"), Some(4), Ok((false, None, None))),
            (Connect, 407, None, Some(4), Ok((true, None, Some(4)))),
        ] {
            let response = Response::builder().status(status).body(());
            let (mut head, ()) = response.expect("a response").into_parts();
            if let Some(told) = told {
                let told = HeaderValue::from_static(told);
                head.headers.insert(CONTENT_LENGTH, told);
            }
            let content = Content::of(&mut head, length, asked);
            let left = head.headers.get(CONTENT_LENGTH);
            let left = left.and_then(|left| left.to_str().ok());
            let found = content.map(|content| (content.is_sent, left, content.missing_length));
            assert_eq!(found, expected, "{asked:?} {status} {told:?} {length:?}");
        }
    }

    #[test]
    fn a_promise_is_kept_to_the_byte() {
        for (parts, expected) in [
            (&[2, 3][..], Ok(())),
            (&[5], Ok(())),
            (&[2, 2], Err(BrokenPromise)),
            (&[2, 4], Err(BrokenPromise)),
        ] {
            let mut promised = Promised(Some(5));
            let counted = parts.iter().map(|len| promised.on_data(*len, false));
            let counted: Result<(), _> = counted.collect();
            let ended = counted.and_then(|()| promised.on_data(0, true));
            assert_eq!(ended, expected, "{parts:?}");
        }
        assert_eq!(Promised::default().on_data(1, true), Ok(()));
    }
}
