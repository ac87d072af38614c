//! Metrics of connections, counted by the worker until they are published.

use std::{mem, time::Instant};

use hybriq_proto::{
    events::agreement::{EarlyData, Handshake},
    remembered::origin::Downgrade,
    stats::{ConnectionStats, Label, Metric},
    wire::error::{By, Code, ConnectionError},
};
use hybriq_tls::{Alert, Group, Lineage, Side};
use metrics::SharedString;

use super::report::{Common, Mark};

/// Times and phase of a connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::worker) struct Life {
    pub(super) side: Side,
    pub(super) since: Instant,
    pub(super) phase: Phase,
}

/// Phase in which a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Handshake,
    Established,
}

/// A value of a metric: the labels that distinguish it from the others.
trait Labels: PartialEq + Sized {
    const METRIC: Metric;

    /// Returns the values that are published although nothing was counted.
    fn always() -> Vec<Self> {
        Vec::new()
    }

    fn marks(&self) -> Vec<Mark> {
        Vec::new()
    }
}

/// Counts of one metric by labels. There are few label values, whatever peers do.
#[derive(Debug)]
struct Tally<L> {
    counts: Vec<(L, u64)>,
    /// The first of the counts, which are published even at 0.
    always: usize,
}

impl<L: Labels> Default for Tally<L> {
    fn default() -> Self {
        let counts: Vec<_> = L::always().into_iter().map(|labels| (labels, 0)).collect();
        Self {
            always: counts.len(),
            counts,
        }
    }
}

impl<L: Labels> Tally<L> {
    fn add(&mut self, labels: L) {
        match self.counts.iter_mut().find(|(known, _)| *known == labels) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((labels, 1)),
        }
    }

    /// Publishes the counts, and starts again from 0.
    fn publish(&mut self, common: &Common) {
        for (index, (labels, count)) in self.counts.iter_mut().enumerate() {
            if index < self.always || *count > 0 {
                let counter = common.counter(L::METRIC.name, &labels.marks());
                counter.increment(mem::take(count));
            }
        }
    }
}

/// Declares the metrics that are counted here: a field, and the type of its labels.
macro_rules! tallies {
    ($($field:ident: $labels:ty;)+) => {
        #[derive(Debug, Default)]
        struct Tallies {
            $($field: Tally<$labels>,)+
        }

        impl Tallies {
            fn publish(&mut self, common: &Common) {
                $(self.$field.publish(common);)+
            }
        }

        /// Returns all metrics of connections, besides those of their counters.
        pub(super) fn metrics() -> impl Iterator<Item = Metric> {
            [$(<$labels>::METRIC),+].into_iter()
        }
    };
}

tallies! {
    accepted: Accepted;
    initiated: Initiated;
    completed: Completed;
    early: Early;
    downgraded: Downgraded;
    migrations: Migration;
    closed: Closed;
}

/// A connection of a client that was accepted.
#[derive(Debug, PartialEq)]
struct Accepted;

impl Labels for Accepted {
    const METRIC: Metric = Metric::new(
        "hybriq_connections_accepted_total",
        "Connections of clients that were accepted; their handshakes begin.",
    );

    fn always() -> Vec<Self> {
        vec![Self]
    }
}

/// A connection that this end began.
#[derive(Debug, PartialEq)]
struct Initiated;

impl Labels for Initiated {
    const METRIC: Metric = Metric::new(
        "hybriq_connections_initiated_total",
        "Connections that this end began.",
    );

    fn always() -> Vec<Self> {
        vec![Self]
    }
}

/// A change of the path of a connection, by its outcome.
#[derive(Debug, PartialEq)]
enum Migration {
    Done,
    Failed,
}

impl Labels for Migration {
    const METRIC: Metric = Metric::new(
        "hybriq_migrations_total",
        "Changes of the path of a connection, by their outcome.",
    );

    fn always() -> Vec<Self> {
        vec![Self::Done, Self::Failed]
    }

    fn marks(&self) -> Vec<Mark> {
        let outcome = match self {
            Self::Done => "done",
            Self::Failed => "failed",
        };
        vec![("outcome", outcome.into())]
    }
}

/// Result of a handshake.
#[derive(Debug, PartialEq)]
struct Completed {
    side: Side,
    group: Group,
    kind: &'static str,
    hello_retry: bool,
    lineage: Lineage,
}

impl Completed {
    fn new(side: Side, handshake: &Handshake) -> Self {
        let kind = match (handshake.resumed, handshake.early_data) {
            (_, EarlyData::Accepted) => "0rtt",
            (true, _) => "resumed",
            (false, _) => "full",
        };
        Self {
            side,
            group: handshake.key_exchange.group,
            kind,
            hello_retry: handshake.key_exchange.hello_retry,
            lineage: handshake.lineage,
        }
    }
}

impl Labels for Completed {
    const METRIC: Metric = Metric::new("hybriq_handshakes_total", "Handshakes completed.");

    fn marks(&self) -> Vec<Mark> {
        let group = match self.group.name() {
            Some(name) => name.into(),
            None => SharedString::from(format!("{:#06x}", self.group.0)),
        };
        // As in `Handshake::is_post_quantum`.
        let is_post_quantum = self.group.is_post_quantum() && self.lineage == Lineage::PostQuantum;
        let lineage = match self.lineage {
            Lineage::PostQuantum => "post_quantum",
            Lineage::Classical => "classical",
        };
        vec![
            role(self.side),
            ("group", group),
            ("post_quantum", yes_or_no(is_post_quantum)),
            ("kind", self.kind.into()),
            ("hello_retry", yes_or_no(self.hello_retry)),
            ("lineage", lineage.into()),
        ]
    }
}

/// Fate of 0-RTT data.
#[derive(Debug, PartialEq)]
struct Early {
    side: Side,
    outcome: &'static str,
}

impl Labels for Early {
    const METRIC: Metric = Metric::new(
        "hybriq_early_data_total",
        "Handshakes in which the client offered 0-RTT data, by the server's answer.",
    );

    fn marks(&self) -> Vec<Mark> {
        vec![role(self.side), ("outcome", self.outcome.into())]
    }
}

/// A server that was post-quantum and no longer is.
#[derive(Debug, PartialEq)]
struct Downgraded {
    what: &'static str,
    outcome: &'static str,
}

impl Downgraded {
    const fn new(downgrade: Downgrade, outcome: &'static str) -> Self {
        let what = if downgrade.group.is_some() || downgrade.session {
            "key_exchange"
        } else {
            "certificates"
        };
        Self { what, outcome }
    }
}

impl Labels for Downgraded {
    const METRIC: Metric = Metric::new(
        "hybriq_downgrades_total",
        "Servers that were post-quantum and no longer are, met by clients with the downgrade alarm.",
    );

    fn marks(&self) -> Vec<Mark> {
        vec![("what", self.what.into()), ("outcome", self.outcome.into())]
    }
}

/// End of a connection.
#[derive(Debug, PartialEq)]
struct Closed {
    side: Side,
    phase: Phase,
    by: &'static str,
    reason: &'static str,
    code: Option<Code>,
}

impl Closed {
    fn new(life: &Life, error: Option<&ConnectionError>) -> Self {
        let (by, reason, code) = match error {
            Some(ConnectionError::Application { by, .. }) => (who(*by), "application", None),
            Some(ConnectionError::Transport { by, code, .. }) => {
                (who(*by), "transport", Some(*code))
            }
            Some(ConnectionError::KeyExchangeRefused { by, .. }) => {
                (who(*by), "key_exchange", None)
            }
            Some(ConnectionError::Downgraded(_)) => ("local", "downgrade", None),
            Some(ConnectionError::Reset) => ("peer", "stateless_reset", None),
            Some(ConnectionError::TimedOut) => ("nobody", "timed_out", None),
            Some(ConnectionError::HandshakeTimedOut) => ("nobody", "handshake_timed_out", None),
            Some(ConnectionError::NoAnswer) => ("nobody", "no_answer", None),
            Some(ConnectionError::Unreachable { .. }) => ("nobody", "unreachable", None),
            Some(ConnectionError::AddressGone { .. }) => ("local", "address_gone", None),
            Some(ConnectionError::SocketFailed(_)) => ("local", "socket_failed", None),
            Some(ConnectionError::VersionMismatch) => ("peer", "version_mismatch", None),
            Some(_) | None => ("nobody", "unknown", None),
        };
        Self {
            side: life.side,
            phase: life.phase,
            by,
            reason,
            code: code.map(merged),
        }
    }
}

impl Labels for Closed {
    const METRIC: Metric = Metric::new(
        "hybriq_connections_closed_total",
        "Connections that ended, by the reason.",
    );

    fn marks(&self) -> Vec<Mark> {
        let phase = match self.phase {
            Phase::Handshake => "handshake",
            Phase::Established => "established",
        };
        vec![
            role(self.side),
            ("phase", phase.into()),
            ("by", self.by.into()),
            ("reason", self.reason.into()),
            ("code", self.code.map_or("".into(), code_name)),
        ]
    }
}

/// Code that represents all codes without a name, which a peer may invent.
const OTHER: Code = Code(u64::MAX);
/// Code that represents all TLS alerts without a name.
const UNKNOWN_ALERT: Code = Code(u64::MAX - 1);

/// Merges the codes without a name.
fn merged(code: Code) -> Code {
    match code.alert() {
        Some(alert) if Alert(alert).name().is_none() => UNKNOWN_ALERT,
        Some(_) => code,
        None if code.0 <= 0x11 => code,
        None => OTHER,
    }
}

fn code_name(code: Code) -> SharedString {
    match code {
        OTHER => "other".into(),
        UNKNOWN_ALERT => "CRYPTO_ERROR".into(),
        code => match code.alert().and_then(|alert| Alert(alert).name()) {
            Some(name) => name.into(),
            None => SharedString::from(format!("{code:?}")),
        },
    }
}

fn role(side: Side) -> Mark {
    let role = match side {
        Side::Client => "client",
        Side::Server => "server",
    };
    ("role", role.into())
}

fn yes_or_no(yes: bool) -> SharedString {
    if yes { "true" } else { "false" }.into()
}

const fn who(by: By) -> &'static str {
    match by {
        By::Local => "local",
        By::Peer => "peer",
    }
}

/// Counts of connections that are not yet published.
#[derive(Debug, Default)]
pub(super) struct Counts {
    tallies: Tallies,
    sums: Sums,
    changed: bool,
}

impl Counts {
    /// Returns true if something was counted since the last publication.
    pub(super) const fn are_new(&self) -> bool {
        self.changed
    }

    fn change(&mut self) -> &mut Tallies {
        self.changed = true;
        &mut self.tallies
    }

    pub(super) fn on_started(&mut self, side: Side) {
        match side {
            Side::Client => self.change().initiated.add(Initiated),
            Side::Server => self.change().accepted.add(Accepted),
        }
    }

    pub(super) fn on_handshake(&mut self, side: Side, handshake: &Handshake) {
        let tallies = self.change();
        tallies.completed.add(Completed::new(side, handshake));
        if let Some(downgrade) = &handshake.downgrade {
            let reported = Downgraded::new(*downgrade, "reported");
            tallies.downgraded.add(reported);
        }
        let outcome = match handshake.early_data {
            EarlyData::None => return,
            EarlyData::Accepted => "accepted",
            EarlyData::Rejected => "rejected",
        };
        tallies.early.add(Early { side, outcome });
    }

    pub(super) fn on_path_changed(&mut self) {
        self.change().migrations.add(Migration::Done);
    }

    pub(super) fn on_path_failed(&mut self) {
        self.change().migrations.add(Migration::Failed);
    }

    pub(super) fn on_closed(&mut self, life: &Life, error: Option<&ConnectionError>) {
        let tallies = self.change();
        if let Some(ConnectionError::Downgraded(downgrade)) = error {
            let refused = Downgraded::new(*downgrade, "refused");
            tallies.downgraded.add(refused);
        }
        tallies.closed.add(Closed::new(life, error));
    }

    pub(super) fn on_stats(&mut self, stats: &ConnectionStats) {
        self.sums.add(stats);
    }

    pub(super) fn publish(&mut self, common: &Common) {
        self.tallies.publish(common);
        self.sums.publish(common);
        self.changed = false;
    }
}

/// Sums over connections that ended and are not yet published, in the order of
/// [`ConnectionStats::metrics`].
#[derive(Debug)]
pub(super) struct Sums(Vec<(&'static Metric, Label, u64)>);

impl Default for Sums {
    fn default() -> Self {
        let mut sums = Vec::new();
        ConnectionStats::default().metrics(|metric, label, none| sums.push((metric, label, none)));
        Self(sums)
    }
}

impl Sums {
    /// Adds the counters of a connection.
    pub(super) fn add(&mut self, stats: &ConnectionStats) {
        let mut sums = self.0.iter_mut();
        stats.metrics(|_, _, value| {
            if let Some((.., sum)) = sums.next() {
                *sum = sum.saturating_add(value);
            }
        });
    }

    pub(super) fn publish(&mut self, common: &Common) {
        for (metric, label, sum) in &mut self.0 {
            let marks = label.map(|(name, value)| (name, value.into()));
            let counter = common.counter(metric.name, marks.as_slice());
            counter.increment(mem::take(sum));
        }
    }
}
