//! Knowledge of both ends about each other's scripts, without a message on the wire.
//!
//! Both ends get the whole scenario and derive from it
//! - the kinds of connections: those whose servers do different things. If there are several, a
//!   client asks for the server name `c0.netbench.localhost`, `c1.netbench.localhost`, …, in the
//!   order of the scenario; otherwise for `localhost`.
//! - on each kind, for each side, the different scripts for streams that the peer opens. If there
//!   are several, a stream begins with one byte, the number of its script. Bidirectional and
//!   unidirectional streams count separately.

use crate::handshake::certificates::{NAMES, SERVER_NAME};
use crate::scenario::{ClientOp, Op, Scenario};
use crate::system::failure::Failure;

/// Maximum number of scripts, the number of values of a byte.
const MOST_SCRIPTS: usize = 256;

/// All kinds of connections of a scenario.
#[derive(Debug)]
pub(super) struct Plan {
    kinds: Vec<Kind>,
}

/// Scripts of a connection in addition to the client's own.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Kind {
    pub(super) server_ops: Vec<Op>,
    /// Scripts of the server on streams that the client opens.
    pub(super) server: Scripts,
    /// Scripts of the client on streams that the server opens.
    pub(super) client: Scripts,
}

/// Scripts that one side runs for the other.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Scripts {
    pub(super) bidi: Vec<Vec<Op>>,
    pub(super) uni: Vec<Vec<Op>>,
    /// Use of datagrams that arrive.
    pub(super) datagrams: Arriving,
}

/// Use of datagrams that arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Arriving {
    /// No datagrams arrive.
    #[default]
    Never,
    /// Datagrams are only read: they are echoes, or need none.
    Read,
    /// Datagrams that are not echoes are sent back.
    Echo,
}

#[derive(Clone, Copy)]
enum Side {
    Client,
    Server,
}

impl Arriving {
    pub(super) fn is_awaited(self) -> bool {
        self != Self::Never
    }
}

impl Plan {
    pub(super) fn new(scenario: &Scenario) -> Result<Self, Failure> {
        let mut kinds = Vec::new();
        for client in &scenario.clients {
            collect(&client.ops, &mut |kind| {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            });
        }
        let most = kinds.iter().map(Kind::scripts).max().unwrap_or(0);
        if most > MOST_SCRIPTS {
            return Err(format!(
                "the streams of a connection have {most} different peer scripts; at most \
                 {MOST_SCRIPTS} can be told apart"
            )
            .into());
        }
        Ok(Self { kinds })
    }

    /// Returns the kind of the connections that an operation makes, and its server name.
    pub(super) fn kind(&self, wanted: &Kind) -> Option<(&Kind, String)> {
        let index = self.kinds.iter().position(|kind| kind == wanted)?;
        let name = match self.kinds.len() {
            1 => SERVER_NAME.to_owned(),
            _ => format!("c{index}.{NAMES}"),
        };
        self.kinds.get(index).map(|kind| (kind, name))
    }

    /// Returns the kind of a connection that asked for that name.
    pub(super) fn kind_by_name(&self, name: Option<&str>) -> Option<&Kind> {
        if let [only] = self.kinds.as_slice() {
            return Some(only);
        }
        let (label, domain) = name?.strip_prefix('c')?.split_once('.')?;
        if domain != NAMES {
            return None;
        }
        let index = label.split_once('-').map_or(label, |(index, _)| index);
        self.kinds.get(index.parse::<usize>().ok()?)
    }
}

/// Returns one of several names for the same kind, each with its own ticket.
pub(super) fn with_ticket(name: &str, number: u64) -> String {
    match name.split_once('.') {
        Some((label, domain)) => format!("{label}-t{number}.{domain}"),
        None => format!("t{number}.{NAMES}"),
    }
}

/// Visits every operation that makes connections, in the order of the scenario.
fn collect(ops: &[ClientOp], meet: &mut impl FnMut(Kind)) {
    for op in ops {
        match op {
            ClientOp::Connect(connect) => meet(Kind::of(&connect.ops, &connect.server_ops)),
            ClientOp::Pool(pool) => meet(Kind::of(&pool.ops, &[])),
            ClientOp::Scope(threads) => threads.iter().for_each(|ops| collect(ops, meet)),
            ClientOp::Iterate(iterate) => collect(&iterate.ops, meet),
            ClientOp::Hold(_) => meet(Kind::default()),
            ClientOp::Sleep(_) | ClientOp::Park(_) | ClientOp::Unpark(_) => {}
        }
    }
}

impl Kind {
    pub(super) fn of(client_ops: &[Op], server_ops: &[Op]) -> Self {
        let mut kind = Self {
            server_ops: server_ops.to_vec(),
            ..Self::default()
        };
        kind.meet(client_ops, Side::Client);
        kind.meet(server_ops, Side::Server);
        kind
    }

    /// Adds the scripts that one side's script expects of the other.
    fn meet(&mut self, ops: &[Op], side: Side) {
        let (own, peer) = match side {
            Side::Client => (&mut self.client, &mut self.server),
            Side::Server => (&mut self.server, &mut self.client),
        };
        for op in ops {
            match op {
                Op::Datagrams(datagrams) => {
                    let (there, back) = if datagrams.echo {
                        (Arriving::Echo, Arriving::Read)
                    } else {
                        (Arriving::Read, Arriving::Never)
                    };
                    peer.datagrams = peer.datagrams.max(there);
                    own.datagrams = own.datagrams.max(back);
                }
                Op::OpenBidi(open) => add(&mut peer.bidi, &open.peer),
                Op::OpenUni(open) => add(&mut peer.uni, &open.peer),
                _ => {}
            }
        }
        let other = match side {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        };
        for op in ops {
            match op {
                Op::OpenBidi(open) | Op::OpenUni(open) => self.meet(&open.peer, other),
                Op::Scope(threads) => threads.iter().for_each(|ops| self.meet(ops, side)),
                Op::Iterate(iterate) => self.meet(&iterate.ops, side),
                Op::Request(request) => self.meet(&request.ops, side),
                _ => {}
            }
        }
    }

    fn scripts(&self) -> usize {
        [&self.client, &self.server]
            .into_iter()
            .flat_map(|scripts| [scripts.bidi.len(), scripts.uni.len()])
            .max()
            .unwrap_or(0)
    }
}

fn add(scripts: &mut Vec<Vec<Op>>, script: &[Op]) {
    if number(scripts, script).is_none() {
        scripts.push(script.to_vec());
    }
}

fn number(scripts: &[Vec<Op>], script: &[Op]) -> Option<usize> {
    scripts.iter().position(|known| known == script)
}

/// Returns the first byte of a stream with that peer script.
pub(super) fn prefix(scripts: &[Vec<Op>], script: &[Op]) -> Option<u8> {
    match scripts.len() {
        0 | 1 => None,
        _ => number(scripts, script)?.try_into().ok(),
    }
}

/// Returns the number of streams that a script opens; `None` if it is unknown.
pub(super) fn opens(ops: &[Op]) -> Option<u64> {
    ops.iter().try_fold(0_u64, |sum, op| {
        let more = match op {
            Op::OpenBidi(_) | Op::OpenUni(_) => 1,
            Op::Scope(threads) => threads
                .iter()
                .try_fold(0_u64, |sum, ops| Some(sum.saturating_add(opens(ops)?)))?,
            Op::Request(request) => opens(&request.ops)?,
            Op::Iterate(iterate) => match (opens(&iterate.ops)?, iterate.times, iterate.time) {
                (0, _, _) => 0,
                (each, Some(times), None) => each.saturating_mul(times),
                _ => return None,
            },
            _ => 0,
        };
        Some(sum.saturating_add(more))
    })
}

#[cfg(test)]
mod tests {
    use super::{Arriving, Kind, Plan, opens, prefix, with_ticket};
    use crate::scenario::{Op, Scenario};

    fn ops(text: &str) -> Vec<Op> {
        serde_json::from_str(text).unwrap()
    }

    fn scenario(connects: &[&str]) -> Scenario {
        let clients: Vec<_> = connects
            .iter()
            .map(|ops| format!(r#"{{"name": "client", "ops": [{{"connect": {{"ops": {ops}}}}}]}}"#))
            .collect();
        let clients = clients.join(",");
        let text = format!(r#"{{"netbench": 1, "name": "test", "clients": [{clients}]}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn streams_with_one_script_begin_with_nothing_extra() {
        let script = r#"[{"open_bidi": {"peer": [{"send": 1}]}}, {"scope": [
            [{"open_bidi": {"peer": [{"send": 1}]}}], [{"open_uni": {"peer": [{"receive": 9}]}}]]}]"#;
        let kind = Kind::of(&ops(script), &[]);
        assert_eq!(prefix(&kind.server.bidi, &ops(r#"[{"send": 1}]"#)), None);
        assert_eq!(prefix(&kind.server.uni, &ops(r#"[{"receive": 9}]"#)), None);
        assert!(kind.client.bidi.is_empty());
    }

    #[test]
    fn streams_with_different_scripts_begin_with_its_number() {
        let script = r#"[{"iterate": {"times": 2, "ops": [{"open_uni": {"peer": [{"receive": 1}]}}]}},
            {"request": {"ops": [{"open_uni": {"peer": [{"receive": 2}]}}]}}]"#;
        let kind = Kind::of(&ops(script), &[]);
        assert_eq!(
            prefix(&kind.server.uni, &ops(r#"[{"receive": 1}]"#)),
            Some(0)
        );
        assert_eq!(
            prefix(&kind.server.uni, &ops(r#"[{"receive": 2}]"#)),
            Some(1)
        );
    }

    #[test]
    fn streams_that_the_peer_opens_in_turn_count_for_the_other_side() {
        let script = r#"[{"open_bidi": {"peer": [
            {"open_uni": {"peer": [{"receive": 1}]}}, {"open_uni": {"peer": [{"receive": 2}]}}]}}]"#;
        let kind = Kind::of(&ops(script), &[]);
        assert_eq!(
            prefix(&kind.client.uni, &ops(r#"[{"receive": 2}]"#)),
            Some(1)
        );
        assert!(kind.server.uni.is_empty());
    }

    #[test]
    fn connections_that_are_alike_for_the_server_share_a_name() {
        let (one, other) = (
            r#"[{"open_bidi": {"peer": [{"send": 1}]}}, {"receive": 1}]"#,
            r#"[{"open_bidi": {"peer": [{"send": 2}]}}, {"receive": 2}]"#,
        );
        let same = r#"[{"sleep": 5}, {"open_bidi": {"peer": [{"send": 1}]}}]"#;
        let alike = Plan::new(&scenario(&[one, same])).unwrap();
        assert_eq!(
            alike.kind(&Kind::of(&ops(same), &[])).unwrap().1,
            "localhost"
        );
        let plan = Plan::new(&scenario(&[one, same, other])).unwrap();
        let wanted = Kind::of(&ops(other), &[]);
        let (kind, name) = plan.kind(&wanted).unwrap();
        assert_eq!(name, "c1.netbench.localhost");
        assert_eq!(plan.kind_by_name(Some(&name)), Some(kind));
        assert_eq!(with_ticket(&name, 7), "c1-t7.netbench.localhost");
        assert_eq!(
            plan.kind_by_name(Some("c1-t7.netbench.localhost")),
            Some(kind)
        );
        for unknown in [
            None,
            Some("localhost"),
            Some("c2.netbench.localhost"),
            Some("c1.net"),
        ] {
            assert_eq!(plan.kind_by_name(unknown), None);
        }
    }

    #[test]
    fn more_scripts_than_a_byte_numbers_are_refused() {
        let opens: Vec<_> = (0..257)
            .map(|bytes| format!(r#"{{"open_uni": {{"peer": [{{"receive": {bytes}}}]}}}}"#))
            .collect();
        let error = Plan::new(&scenario(&[&format!("[{}]", opens.join(","))])).unwrap_err();
        assert!(error.to_string().contains("257"), "{error}");
    }

    #[test]
    fn echoes_come_back_to_those_who_asked_for_them() {
        let script = r#"[{"datagrams": {"count": 1, "bytes": 9, "echo": true}}]"#;
        let kind = Kind::of(&ops(script), &[]);
        assert_eq!(kind.server.datagrams, Arriving::Echo);
        assert_eq!(kind.client.datagrams, Arriving::Read);
    }

    #[test]
    fn streams_to_come_are_counted_where_the_script_says_how_many() {
        let open = r#"{"open_uni": {"peer": []}}"#;
        let script = format!(r#"[{open}, {{"iterate": {{"times": 5, "ops": [{open}, {open}]}}}}]"#);
        assert_eq!(opens(&ops(&script)), Some(11));
        let script = format!(r#"[{{"iterate": {{"time": "1s", "ops": [{open}]}}}}]"#);
        assert_eq!(opens(&ops(&script)), None);
    }
}
