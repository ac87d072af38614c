//! Decision whether a scenario needs frames on TCP.

use super::Streams;
use crate::scenario::{ClientOp, Op, Scenario};

impl Streams {
    /// Returns what the connections of a scenario carry: HTTP if a script has a `fetch`; one stream
    /// only if every connection has nothing but one bidirectional stream of its client.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        if scenario.has(&|op| matches!(op, Op::Fetch(_))) {
            return Self::Http;
        }
        let mut connections = scenario.clients.iter().flat_map(|client| &client.ops);
        if connections.all(has_one_each) {
            Self::One
        } else {
            Self::Many
        }
    }
}

fn has_one_each(op: &ClientOp) -> bool {
    match op {
        ClientOp::Connect(connect) => {
            opened(&connect.ops) == Some(1) && opened(&connect.server_ops) == Some(0)
        }
        ClientOp::Pool(_) => false,
        ClientOp::Scope(threads) => threads.iter().flatten().all(has_one_each),
        ClientOp::Iterate(iterate) => iterate.ops.iter().all(has_one_each),
        ClientOp::Hold(_) | ClientOp::Sleep(_) | ClientOp::Park(_) | ClientOp::Unpark(_) => true,
    }
}

/// Returns the number of bidirectional streams that a script opens; `None` if it needs more than
/// those.
fn opened(ops: &[Op]) -> Option<u64> {
    ops.iter().try_fold(0, |sum: u64, op| {
        let more = match op {
            Op::OpenBidi(open) => 1 + opened(&open.peer)?,
            Op::OpenUni(_) | Op::Datagrams(_) | Op::Fetch(_) => return None,
            Op::Scope(threads) => threads
                .iter()
                .try_fold(0, |sum: u64, ops| Some(sum.saturating_add(opened(ops)?)))?,
            Op::Iterate(iterate) => match opened(&iterate.ops)? {
                0 => 0,
                once => once.saturating_mul(iterate.times?),
            },
            Op::Request(request) => opened(&request.ops)?,
            _ => 0,
        };
        Some(sum.saturating_add(more))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened_by(script: &str) -> Option<u64> {
        opened(&serde_json::from_str::<Vec<Op>>(script).unwrap())
    }

    #[test]
    fn streams_of_a_script_are_counted_with_those_of_its_peer() {
        assert_eq!(opened_by("[]"), Some(0));
        let one = r#"{"open_bidi": {"peer": [{"receive": 1}]}}"#;
        assert_eq!(opened_by(&format!("[{one}, {{\"send\": 1}}]")), Some(1));
        assert_eq!(
            opened_by(&format!("[{{\"request\": {{\"ops\": [{one}]}}}}]")),
            Some(1)
        );
        assert_eq!(
            opened_by(&format!("[{{\"scope\": [[{one}], [{one}]]}}]")),
            Some(2)
        );
        let twice = format!("[{{\"iterate\": {{\"times\": 2, \"ops\": [{one}]}}}}]");
        assert_eq!(opened_by(&twice), Some(2));
        let peer = format!("[{{\"open_bidi\": {{\"peer\": [{one}]}}}}]");
        assert_eq!(opened_by(&peer), Some(2));
    }

    #[test]
    fn what_is_no_bidirectional_stream_or_has_no_number_is_many() {
        let uni = r#"[{"open_uni": {"peer": [{"receive": 1}]}}]"#;
        assert_eq!(opened_by(uni), None);
        assert_eq!(
            opened_by(r#"[{"datagrams": {"count": 1, "bytes": 1}}]"#),
            None
        );
        let endless = r#"[{"iterate": {"time": "1s", "ops": [{"open_bidi": {"peer": []}}]}}]"#;
        assert_eq!(opened_by(endless), None);
    }
}
