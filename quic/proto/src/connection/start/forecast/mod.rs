//! Forecast of a server's first flight: datagrams and round trips, before any public-key work.

use hybriq_tls::{
    CertificateCompression, ClientHello, ConfigError, Flight, Group, PerLevel, ServerFlight, Side,
};

use super::{Exchanged, ServerStart, Setup, announced, local_params};
use crate::{
    owners::{cids, congestion::initial_window},
    wire::{
        ResetToken, limits,
        packet::{Cid, Version},
        params::Params,
        udp::EcnState,
    },
};
use model::{Bounds, Crypto, Model};

mod model;

#[cfg(test)]
mod tests;

/// How a client proves that it receives at its address (RFC 9000 §8.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressProof {
    /// By its handshake alone: until then the server sends at most three times what it received.
    #[default]
    None,
    /// By a token of an earlier connection.
    Token,
    /// By the token of a Retry, which costs a round trip.
    Retry,
}

/// What stops the server's first flight before it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlightLimit {
    /// Three times the bytes received, before the client's address is validated (RFC 9000 §8.1).
    Amplification,
    /// The initial congestion window (RFC 9002 §7.2).
    Window,
}

/// Forecast of a server's answer to a client in a full handshake with one of its certificates.
///
/// It counts what the handshake itself sends. It does not include datagrams that the application
/// sends before the handshake is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FirstFlight {
    /// Position of the certificate in the order in which they were added, from 0.
    pub identity: usize,
    /// True if a quantum computer can break no key and no signature in its chain.
    pub post_quantum: bool,
    /// Algorithm with which the chain is compressed, if it is.
    pub compression: Option<CertificateCompression>,
    /// Key-exchange group.
    pub group: Group,
    /// True if the server first asks for a share of this group, which costs a round trip.
    pub hello_retry: bool,
    /// Bytes of the message with the certificates.
    pub certificate_bytes: usize,
    /// Bytes of all handshake messages of the server, without the packets around them.
    pub handshake_bytes: usize,
    /// Datagrams of the client that carry the ClientHello.
    pub client_datagrams: usize,
    /// Datagrams from the ServerHello to the Finished.
    pub datagrams: usize,
    /// Total UDP payload of these datagrams, in bytes.
    pub bytes: usize,
    /// Number of these datagrams that leave before the client has answered.
    pub at_once: usize,
    /// What stops the remaining datagrams, if there are any.
    pub limit: Option<FlightLimit>,
    /// Round trips until the client's handshake is complete: one, plus any extra ones.
    pub round_trips: u32,
    /// True if the length of an ECDSA signature, which is not known yet, may change one of the
    /// numbers. The numbers are for the longest signature.
    pub varies: bool,
}

impl FirstFlight {
    /// Returns the round trips beyond the one that every handshake takes.
    pub const fn extra_round_trips(&self) -> u32 {
        self.round_trips.saturating_sub(1)
    }
}

/// Facts about a connection that determine its first flight.
pub(crate) struct Situation {
    /// Bytes of the datagrams exchanged so far.
    pub(crate) exchanged: Exchanged,
    pub(crate) proof: AddressProof,
    /// Length of the client's connection id.
    pub(crate) peer_cid: usize,
    /// Connection id of the server, whose bytes determine the length of a transport parameter.
    pub(crate) local_cid: Cid,
    /// True if the client's packets carry ECN marks, which acknowledgements count.
    pub(crate) ecn: bool,
}

impl Setup {
    /// Forecasts the answers of a server with this setup to a client with another, for each
    /// certificate that suits the client, the server's first choice first. Empty if the provider
    /// cannot forecast them.
    ///
    /// The client's ClientHello is generated, which costs its key shares. Connection ids are
    /// assumed to have 8 bytes, and the datagrams of the ClientHello the smallest size.
    ///
    /// # Errors
    /// The client's configuration cannot be used.
    pub fn first_flights(
        &self,
        client: &Self,
        server_name: &str,
        proof: AddressProof,
    ) -> Result<Vec<FirstFlight>, ConfigError> {
        let Some(hello) = client.client_hello(server_name)? else {
            return Ok(Vec::new());
        };
        let datagrams = datagrams_of_hello(hello.message().len());
        let situation = Situation {
            exchanged: Exchanged {
                received: (datagrams * limits::MIN_DATAGRAM) as u64,
                sent: 0,
            },
            proof,
            peer_cid: ASSUMED_CID,
            local_cid: Cid::from(ASSUMED_LOCAL),
            ecn: client.transport.flight.ecn != EcnState::Disabled,
        };
        Ok(self.forecast(&hello, &situation))
    }

    /// Returns the ClientHello of a client with this setup.
    fn client_hello(&self, server_name: &str) -> Result<Option<ClientHello>, ConfigError> {
        let mut params = Vec::with_capacity(128);
        let cid = Cid::from([0; ASSUMED_CID]);
        local_params(&self.transport, Version::V1, cid, None).encode(Side::Client, &mut params);
        let start = hybriq_tls::ClientStart {
            params: &params,
            server_name,
            ..Default::default()
        };
        let mut session = self.provider.session(start.into())?;
        let mut flight = Flight::default();
        if session
            .drive(&mut PerLevel::default(), &mut flight)
            .is_err()
        {
            return Ok(None);
        }
        let hello = ClientHello::parse(&flight.crypto.initial).ok().flatten();
        Ok(hello.map(|(hello, _)| hello))
    }

    /// Forecasts the answers to a ClientHello.
    pub(crate) fn forecast(&self, hello: &ClientHello, situation: &Situation) -> Vec<FirstFlight> {
        let params = self.params_len(situation);
        let flights = self.provider.server_flights(hello, params);
        let forecast = flights.iter().map(|flight| {
            let longest = forecast(hello, flight, situation, 0);
            let shortest = forecast(hello, flight, situation, flight.varies);
            FirstFlight {
                varies: (longest.datagrams, longest.round_trips)
                    != (shortest.datagrams, shortest.round_trips),
                ..longest
            }
        });
        forecast.collect()
    }

    /// Returns the bytes of a server's transport parameters.
    fn params_len(&self, situation: &Situation) -> usize {
        let local = situation.local_cid;
        let wanted = self.transport.migration;
        let preferred = wanted.preferred_v4.is_some() || wanted.preferred_v6.is_some();
        let issued: cids::Issued = (local, ResetToken::new([0; 16]));
        let params = Params {
            retry_scid: (situation.proof == AddressProof::Retry).then_some(local),
            stateless_reset_token: Some(ResetToken::new([0; 16])),
            preferred_address: announced(&self.transport, preferred.then_some(issued)),
            post_quantum_commitment: self.transport.server_terms.commitment,
            ..local_params(
                &self.transport,
                Version::V1,
                local,
                Some(Cid::from([0; limits::INITIAL_DCID_LEN])),
            )
        };
        let mut encoded = Vec::with_capacity(192);
        params.encode(Side::Server, &mut encoded);
        encoded.len()
    }
}

/// Assumed length of unknown connection ids.
const ASSUMED_CID: usize = limits::INITIAL_DCID_LEN;

/// Assumed connection id of a server: that of the first worker, whose number comes first.
const ASSUMED_LOCAL: [u8; ASSUMED_CID] = [0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];

/// Bytes of CRYPTO data in a datagram of a client's first flight.
const HELLO_ROOM: usize = limits::MIN_DATAGRAM - 64;

/// Returns the number of datagrams that carry a ClientHello of ours, spread evenly.
const fn datagrams_of_hello(len: usize) -> usize {
    len.div_ceil(HELLO_ROOM)
}

/// Forecasts one flight, whose signature has this many bytes less than the longest.
fn forecast(
    hello: &ClientHello,
    flight: &ServerFlight,
    situation: &Situation,
    shorter: usize,
) -> FirstFlight {
    let retry = flight.retry_request.unwrap_or_default();
    let Exchanged {
        mut received,
        mut sent,
    } = situation.exchanged;
    let mut client_datagrams = datagrams_of_hello(hello.message().len());
    if flight.retry_request.is_some() {
        client_datagrams = datagrams_of_hello(second_hello(hello, flight.group));
        received += (client_datagrams * limits::MIN_DATAGRAM) as u64;
        sent += limits::MIN_DATAGRAM as u64;
    }
    let model = Model {
        peer_cid: situation.peer_cid,
        local_cid: situation.local_cid.len(),
        ack: if situation.ecn { 8 } else { 5 },
        bounds: Bounds {
            credit: (situation.proof == AddressProof::None)
                .then(|| (limits::AMPLIFICATION_FACTOR * received).saturating_sub(sent)),
            window: initial_window(limits::MIN_DATAGRAM as u64),
        },
    };
    let handshake = flight.handshake - shorter.min(flight.handshake);
    let outcome = model.run(&Crypto {
        initial: retry..retry + flight.server_hello,
        handshake: 0..handshake,
    });
    let before = u32::from(flight.retry_request.is_some())
        + u32::from(situation.proof == AddressProof::Retry);
    FirstFlight {
        identity: flight.identity,
        post_quantum: flight.post_quantum,
        compression: flight.compression,
        group: flight.group,
        hello_retry: flight.retry_request.is_some(),
        certificate_bytes: flight.certificate,
        handshake_bytes: retry + flight.server_hello + handshake,
        client_datagrams,
        datagrams: outcome.datagrams,
        bytes: outcome.bytes,
        at_once: outcome.at_once,
        limit: outcome.limit,
        round_trips: before + outcome.rounds,
        varies: false,
    }
}

/// Returns the bytes of the second ClientHello, which has one share, of the group that the server
/// wants.
fn second_hello(hello: &ClientHello, group: Group) -> usize {
    let first = hello.key_shares().iter().map(|share| 4 + share.len);
    let second = group.share_sizes().unwrap_or_default().client;
    (hello.message().len() + 4 + second).saturating_sub(first.sum())
}

/// Returns the identity with which the handshake takes the fewest round trips, if the provider
/// leaves the choice to the transport. In case of a tie, the first one wins.
pub(in crate::connection) fn choose_identity(start: &ServerStart<'_>) -> Option<usize> {
    let setup = start.setup;
    if !setup.provider.chooses_by_round_trips() {
        return None;
    }
    let [_, peer, local] = start.cids;
    let situation = Situation {
        exchanged: start.exchanged,
        proof: match (start.validated, start.original_dcid) {
            (false, _) => AddressProof::None,
            (true, None) => AddressProof::Token,
            (true, Some(_)) => AddressProof::Retry,
        },
        peer_cid: peer.len(),
        local_cid: local,
        ecn: start.received.ecn_counts().is_some(),
    };
    let flights = setup.forecast(start.client_hello, &situation);
    let best = flights.iter().min_by_key(|flight| flight.round_trips)?;
    Some(best.identity)
}
