//! Check that a handshake negotiated the parameters of its cell.

use std::fmt::Display;

use crate::drivers::Negotiated;
use crate::scenario::axes::{Cell, Resumption};
use crate::system::outcome::{Failed, Kind};

/// Returns a failure if the negotiated parameters, as far as the stack tells them, differ from the
/// cell's.
pub(crate) fn mismatch(cell: &Cell, negotiated: &Negotiated) -> Option<Failed> {
    let differs = |is: &str, wanted: &dyn Display| !is.is_empty() && is != wanted.to_string();
    let detail = if differs(&negotiated.group, &cell.group) {
        format!(
            "negotiated {} where {} was to be",
            negotiated.group, cell.group
        )
    } else if differs(&negotiated.suite, &cell.suite) {
        format!(
            "negotiated {} where {} was to be",
            negotiated.suite, cell.suite
        )
    } else if negotiated.hello_retry == Some(!cell.hello_retry) {
        let article = if cell.hello_retry { "no" } else { "a" };
        format!("the server sent {article} HelloRetryRequest")
    } else if negotiated.resumed == Some(cell.resumption == Resumption::Full) {
        match cell.resumption {
            Resumption::Full => "the session was resumed".to_owned(),
            _ => "the session was not resumed".to_owned(),
        }
    } else if negotiated.early_data == Some(false) && cell.resumption == Resumption::ZeroRtt {
        return Some(Failed::new(
            Kind::EarlyDataRejected,
            "the server did not take the early data",
        ));
    } else {
        return None;
    };
    Some(Failed::new(Kind::Mismatch, detail))
}
