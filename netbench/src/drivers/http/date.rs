//! The `date` field of servers that do not make it themselves.

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderValue;

/// Returns the value of a `date` field (RFC 9110 §6.6.1), which is made once a second.
pub(crate) fn date() -> HeaderValue {
    thread_local! {
        static LAST: RefCell<(u64, HeaderValue)> =
            const { RefCell::new((0, HeaderValue::from_static(""))) };
    }
    let now = SystemTime::now();
    let second = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    LAST.with_borrow_mut(|(at, date)| {
        if *at != second {
            *at = second;
            *date = HeaderValue::try_from(httpdate::fmt_http_date(now))
                .unwrap_or_else(|_| date.clone());
        }
        date.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn a_date_is_one_of_http() {
        let date = date();
        assert!(
            httpdate::parse_http_date(date.to_str().unwrap()).is_ok(),
            "{date:?}"
        );
        assert_eq!(super::date().len(), date.len());
    }
}
