//! The operator's limits on new clients: connections at once, and a rate for each source network.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::{Duration, Instant},
};

use hybriq_proto::random::prf::Prf;

use crate::config::{Limits, NetworkRate, Prefixes};

/// Number of buckets. Networks that share a bucket share its rate.
const BUCKETS: usize = 1 << 14;

/// Answer to a client that is not admitted, with the limit that it reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum TurnAway {
    /// The client must prove its address first. One that can no longer do so is refused.
    Retry(Limit),
    Refuse(Limit),
}

/// A limit of the operator on new clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Limit {
    /// Connections at once.
    Connections,
    /// Handshakes in progress.
    Handshakes,
    /// Connections that a network starts.
    Rate,
    /// Clients that wait for the application.
    Backlog,
}

/// Status of a client's address (RFC 9000 §8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Address {
    /// The client proved with a token that it receives there.
    Proven,
    Unproven,
}

/// Load of the endpoint when a client arrives.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::worker) struct Present {
    /// Number of connections.
    pub(in crate::worker) connections: usize,
    /// Number of clients that have not completed their handshake.
    pub(in crate::worker) handshakes: usize,
}

/// The operator's limits on new clients.
pub(in crate::worker) struct Admission {
    limits: Limits,
    /// Rates of clients with a proven address, and of the others. A sender that forges addresses
    /// cannot use up the rate of their owners.
    rates: [Option<Rates>; 2],
    /// Last time at which a client without a proven address exceeded its rate.
    rate_met: Option<Instant>,
}

/// How long clients must prove their address from their first packet on, after a client with no
/// proven address exceeded its network's rate.
const WARY: Duration = Duration::from_secs(1);

impl Admission {
    /// Creates the admission. The secret spreads networks over the buckets of their rates.
    pub(in crate::worker) fn new(limits: Limits, secret: Prf) -> Self {
        let new = |rate| Rates::new(rate, limits.prefixes, secret);
        let rates = || limits.per_network.map(new);
        Self {
            limits,
            rates: [rates(), rates()],
            rate_met: None,
        }
    }

    /// Returns true if a client that has not proved its address would be sent a Retry, as far as is
    /// known before its network is.
    pub(in crate::worker) fn wants_proof(&self, now: Instant, present: Present) -> bool {
        let is_wary = |met: Instant| now.saturating_duration_since(met) < WARY;
        self.limit_of_unproven(present).is_some() || self.rate_met.is_some_and(is_wary)
    }

    /// Returns the limit that a client reaches unless it proves its address.
    ///
    /// At least half of the free connections are reserved for clients that do: forged addresses
    /// take the other half at most, and only for as long as handshakes may last.
    fn limit_of_unproven(&self, present: Present) -> Option<Limit> {
        let Present {
            connections,
            handshakes,
        } = present;
        // All connections in a handshake may be forged.
        let finished = connections.saturating_sub(handshakes);
        let are_enough = |most: usize| handshakes >= most.saturating_sub(finished).div_ceil(2);
        if self.limits.connections.is_some_and(are_enough) {
            return Some(Limit::Connections);
        }
        let are_enough = |most: usize| handshakes >= most / 2;
        let handshakes = self.limits.handshakes.is_some_and(are_enough);
        handshakes.then_some(Limit::Handshakes)
    }

    /// Decides about a client.
    ///
    /// # Errors
    /// A limit does not admit the client.
    pub(in crate::worker) fn judge(
        &mut self,
        now: Instant,
        client: IpAddr,
        address: Address,
        present: Present,
    ) -> Result<(), TurnAway> {
        let Limits {
            connections,
            handshakes,
            per_network: _,
            prefixes: _,
        } = self.limits;
        let refused = match address {
            Address::Unproven => self.limit_of_unproven(present).map(TurnAway::Retry),
            Address::Proven if connections.is_some_and(|most| present.connections >= most) => {
                Some(TurnAway::Refuse(Limit::Connections))
            }
            Address::Proven if handshakes.is_some_and(|most| present.handshakes >= most) => {
                Some(TurnAway::Refuse(Limit::Handshakes))
            }
            Address::Proven => None,
        };
        if let Some(refused) = refused {
            return Err(refused);
        }
        let [unproven, proven] = &mut self.rates;
        let (rates, beyond) = if address == Address::Proven {
            (proven, TurnAway::Refuse(Limit::Rate))
        } else {
            (unproven, TurnAway::Retry(Limit::Rate))
        };
        let within = rates.as_mut().is_none_or(|rates| rates.take(now, client));
        if within {
            return Ok(());
        }
        if address == Address::Unproven {
            self.rate_met = Some(now);
        }
        Err(beyond)
    }
}

/// Token buckets of networks, in memory of a fixed size.
struct Rates {
    rate: NetworkRate,
    prefixes: Prefixes,
    /// Assigns networks to buckets, so that an attacker cannot find networks that share one. Its
    /// value is computed once for each new client.
    secret: Prf,
    /// Time since `start` at which each bucket is full again, in microseconds.
    full_at: Box<[u64]>,
    start: Option<Instant>,
}

impl Rates {
    fn new(rate: NetworkRate, prefixes: Prefixes, secret: Prf) -> Self {
        Self {
            rate,
            prefixes,
            secret,
            full_at: vec![0; BUCKETS].into_boxed_slice(),
            start: None,
        }
    }

    /// Takes one connection from the bucket of a client's network. Returns false if it is empty.
    fn take(&mut self, now: Instant, client: IpAddr) -> bool {
        let start = *self.start.get_or_insert(now);
        let now = now.saturating_duration_since(start).as_micros() as u64;
        let interval = 1_000_000 / u64::from(self.rate.per_second.max(1));
        let depth = interval.saturating_mul(self.rate.burst.max(1).into());
        let place = self.secret.of(&network(client, self.prefixes).octets()) as usize % BUCKETS;
        let Some(full_at) = self.full_at.get_mut(place) else {
            return true;
        };
        let next = (*full_at).max(now) + interval;
        let has_room = next - now <= depth;
        if has_room {
            *full_at = next;
        }
        has_room
    }
}

/// Returns the first address of the network of a client.
fn network(client: IpAddr, prefixes: Prefixes) -> Ipv6Addr {
    match client.to_canonical() {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefixes.v4.min(32)));
            let network = address.to_bits() & mask.unwrap_or_default();
            Ipv4Addr::from_bits(network).to_ipv6_mapped()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefixes.v6.min(128)));
            Ipv6Addr::from_bits(address.to_bits() & mask.unwrap_or_default())
        }
    }
}

/// Reasons sent to clients with CONNECTION_REFUSED.
pub(crate) mod refusal {
    /// The endpoint drains or is closed.
    pub(crate) const STOPPED: &str = "the server accepts no more connections";

    /// The application refused the client, or dropped its `Incoming`.
    pub(crate) const BY_APPLICATION: &str = "the application refused the connection";

    /// No task waits for the handshake any longer.
    pub(crate) const GIVEN_UP: &str = "the application gave the handshake up";

    /// The limit of connections is reached.
    pub(crate) const TOO_MANY: &str = "too many connections";

    /// The limit of unfinished handshakes is reached.
    pub(crate) const TOO_BUSY: &str = "too many handshakes";

    /// The rate of the client's network is used up.
    pub(crate) const TOO_FAST: &str = "too many connections from this network";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(address: &str) -> IpAddr {
        address.parse().expect("an address")
    }

    fn connections(connections: usize) -> Present {
        Present {
            connections,
            handshakes: 0,
        }
    }

    fn admission(per_second: u32, burst: u32) -> Admission {
        Admission::new(
            Limits {
                connections: Some(100),
                per_network: Some(NetworkRate { per_second, burst }),
                ..Limits::default()
            },
            Prf::new([7; 16]),
        )
    }

    #[test]
    fn a_network_is_as_large_as_the_operator_says() {
        let network = |client, v4, v6| network(ip(client), Prefixes { v4, v6 }).to_string();
        assert_eq!(network("192.0.2.77", 24, 56), "::ffff:192.0.2.0");
        assert_eq!(network("192.0.2.77", 32, 56), "::ffff:192.0.2.77");
        assert_eq!(network("192.0.2.77", 8, 56), "::ffff:192.0.0.0");
        assert_eq!(network("192.0.2.77", 0, 56), "::ffff:0.0.0.0");
        assert_eq!(network("2001:db8:1:ff2::3", 24, 56), "2001:db8:1:f00::");
        assert_eq!(network("2001:db8:1:ff2::3", 24, 64), "2001:db8:1:ff2::");
        assert_eq!(network("2001:db8:1:ff2::3", 24, 128), "2001:db8:1:ff2::3");
        assert_eq!(network("2001:db8:1:ff2::3", 24, 0), "::");
    }

    #[test]
    fn a_network_has_a_burst_and_then_a_rate() {
        let (mut admission, start) = (admission(10, 3), Instant::now());
        let mut ask = |after: u64, client: &str| {
            let now = start + Duration::from_millis(after);
            admission.judge(now, ip(client), Address::Proven, connections(0))
        };
        for host in 0..3 {
            assert_eq!(ask(0, &format!("192.0.2.{host}")), Ok(()));
        }
        assert_eq!(ask(0, "192.0.2.200"), Err(TurnAway::Refuse(Limit::Rate)));
        assert_eq!(ask(99, "192.0.2.200"), Err(TurnAway::Refuse(Limit::Rate)));
        assert_eq!(ask(100, "192.0.2.200"), Ok(()));
        assert_eq!(
            ask(100, "::ffff:192.0.2.7"),
            Err(TurnAway::Refuse(Limit::Rate))
        );
        assert_eq!(ask(100, "198.51.100.7"), Ok(()), "another network");
        for host in [
            "2001:db8:0:100::1",
            "2001:db8:0:1ff::2",
            "2001:db8:0:1aa::3",
        ] {
            assert_eq!(ask(100, host), Ok(()));
        }
        assert_eq!(
            ask(100, "2001:db8:0:100::9"),
            Err(TurnAway::Refuse(Limit::Rate))
        );
        // A long pause allows no more than the burst.
        for host in 0..3 {
            assert_eq!(ask(3_600_000, &format!("192.0.2.{host}")), Ok(()));
        }
        assert_eq!(
            ask(3_600_000, "192.0.2.9"),
            Err(TurnAway::Refuse(Limit::Rate))
        );
    }

    #[test]
    fn forged_addresses_only_make_their_owners_prove_theirs() {
        let (mut admission, now) = (admission(1, 1), Instant::now());
        let client = ip("192.0.2.1");
        assert_eq!(
            admission.judge(now, client, Address::Unproven, connections(0)),
            Ok(())
        );
        assert_eq!(
            admission.judge(now, client, Address::Unproven, connections(0)),
            Err(TurnAway::Retry(Limit::Rate))
        );
        assert_eq!(
            admission.judge(now, client, Address::Proven, connections(0)),
            Ok(())
        );
        assert_eq!(
            admission.judge(now, client, Address::Proven, connections(0)),
            Err(TurnAway::Refuse(Limit::Rate))
        );
    }

    #[test]
    fn the_number_of_connections_is_bounded_first() {
        let (mut admission, now) = (admission(1, 1), Instant::now());
        let client = ip("192.0.2.1");
        assert_eq!(
            admission.judge(now, client, Address::Proven, connections(100)),
            Err(TurnAway::Refuse(Limit::Connections))
        );
        assert_eq!(
            admission.judge(now, client, Address::Proven, connections(99)),
            Ok(())
        );
    }

    /// Forged addresses leave half of the free connections to clients that prove theirs, and
    /// clients without a proof are asked for one before anybody is refused.
    #[test]
    fn forged_addresses_take_half_of_the_free_connections_at_most() {
        let (mut admission, now) = (admission(1_000_000, 1_000_000), Instant::now());
        let mut judge = |address, connections, handshakes| {
            let present = Present {
                connections,
                handshakes,
            };
            let verdict = admission.judge(now, ip("192.0.2.1"), address, present);
            if address == Address::Unproven {
                assert_eq!(admission.wants_proof(now, present), verdict.is_err());
            }
            verdict
        };
        let retry = Err(TurnAway::Retry(Limit::Connections));
        assert_eq!(judge(Address::Unproven, 49, 49), Ok(()));
        assert_eq!(judge(Address::Unproven, 50, 50), retry);
        assert_eq!(judge(Address::Proven, 50, 50), Ok(()));
        assert_eq!(judge(Address::Proven, 99, 50), Ok(()));
        // Established connections are not a flood.
        assert_eq!(judge(Address::Unproven, 80, 0), Ok(()));
        assert_eq!(judge(Address::Unproven, 89, 9), Ok(()));
        assert_eq!(judge(Address::Unproven, 90, 10), retry);
        assert_eq!(judge(Address::Unproven, 99, 0), Ok(()));
        // No client is refused before it has been asked for a proof.
        assert_eq!(judge(Address::Unproven, 100, 0), retry);
        assert_eq!(
            judge(Address::Proven, 100, 0),
            Err(TurnAway::Refuse(Limit::Connections))
        );
    }

    #[test]
    fn a_rate_that_was_met_asks_for_proofs_from_the_first_packet_on() {
        let (mut admission, now) = (admission(1, 1), Instant::now());
        let client = ip("192.0.2.1");
        let none = connections(0);
        admission
            .judge(now, client, Address::Unproven, none)
            .unwrap();
        assert!(!admission.wants_proof(now, none));
        admission
            .judge(now, client, Address::Unproven, none)
            .unwrap_err();
        assert!(admission.wants_proof(now, none));
        assert!(!admission.wants_proof(now + WARY, none));
    }

    /// Forged addresses leave half of the handshakes to clients that prove theirs.
    #[test]
    fn handshakes_have_a_limit() {
        let mut admission = Admission::new(
            Limits {
                handshakes: Some(10),
                ..Limits::default()
            },
            Prf::new([7; 16]),
        );
        let now = Instant::now();
        let mut judge = |address, handshakes| {
            let present = Present {
                connections: 1_000,
                handshakes,
            };
            admission.judge(now, ip("192.0.2.1"), address, present)
        };
        assert_eq!(judge(Address::Unproven, 4), Ok(()));
        assert_eq!(
            judge(Address::Unproven, 5),
            Err(TurnAway::Retry(Limit::Handshakes))
        );
        assert_eq!(judge(Address::Proven, 9), Ok(()));
        assert_eq!(
            judge(Address::Proven, 10),
            Err(TurnAway::Refuse(Limit::Handshakes))
        );
    }
}
