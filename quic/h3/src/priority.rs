//! The `priority` field (RFC 9218).

use hybriq_proto::owners::streams::Priority;
use sfv::{BareItem, Dictionary, ListEntry, Parser};

/// Returns the priority that a `priority` field asks for (RFC 9218 §4). What is missing, malformed or
/// out of range has its default: urgency 3, not incremental.
///
/// A request carries it as a header field, a response may replace it, and PRIORITY_UPDATE frames
/// carry it as their value.
///
/// # Examples
/// ```
/// use hybriq_h3::{Priority, priority};
///
/// assert_eq!(priority(b"u=1, i"), Priority::new(1).incremental());
/// assert_eq!(priority(b""), Priority::new(3).non_incremental());
/// ```
pub fn priority(field: &[u8]) -> Priority {
    response_priority(field, Priority::new(3).non_incremental())
}

/// Returns the priority of a response with a `priority` field: what the field leaves out stays as the client asked (RFC
/// 9218 §8).
///
/// # Examples
/// ```
/// use hybriq_h3::{Priority, priority, response_priority};
///
/// let asked = priority(b"u=5, i");
/// assert_eq!(response_priority(b"u=1", asked), Priority::new(1).incremental());
/// ```
pub fn response_priority(field: &[u8], asked: Priority) -> Priority {
    let fields = Parser::new(field).parse::<Dictionary>().unwrap_or_default();
    let bare = |key: &str| match fields.get(key) {
        Some(ListEntry::Item(item)) => Some(&item.bare_item),
        _ => None,
    };
    let urgency = match bare("u") {
        Some(BareItem::Integer(urgency)) => u8::try_from(i64::from(*urgency)).ok(),
        _ => None,
    };
    let urgency = urgency.filter(|urgency| *urgency <= 7);
    let priority = Priority::new(urgency.unwrap_or(asked.urgency()));
    let is_incremental = match bare("i") {
        Some(BareItem::Boolean(is_incremental)) => *is_incremental,
        _ => asked.is_incremental(),
    };
    if is_incremental {
        priority.incremental()
    } else {
        priority.non_incremental()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_changes_what_it_names() {
        let asked = priority(b"u=5, i");
        for (field, expected) in [
            ("", asked),
            ("u=1", Priority::new(1)),
            ("i=?0", Priority::new(5).non_incremental()),
            ("u=8, i=1", asked),
        ] {
            assert_eq!(
                response_priority(field.as_bytes(), asked),
                expected,
                "{field}"
            );
        }
    }

    #[test]
    fn fields_are_read_as_rfc_9218_says() {
        let plain = |urgency| Priority::new(urgency).non_incremental();
        for (field, expected) in [
            ("", plain(3)),
            ("u=0", plain(0)),
            ("u=7", plain(7)),
            ("u=5, i", Priority::new(5)),
            ("i=?0, u=2", plain(2)),
            ("i", Priority::new(3)),
            // Out of range, of another type, unknown, malformed: ignored (RFC 9218 §4).
            ("u=8", plain(3)),
            ("u=-1", plain(3)),
            ("u=\"1\"", plain(3)),
            ("u=(1 2), i", Priority::new(3)),
            ("i=1", plain(3)),
            ("x=1, u=4;a=b", plain(4)),
            ("u=1,", plain(3)),
        ] {
            assert_eq!(priority(field.as_bytes()), expected, "{field}");
        }
    }
}
