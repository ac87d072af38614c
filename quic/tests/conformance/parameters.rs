//! Ends that say other transport parameters than their own.

use std::sync::Arc;

use hybriq::{KeyExchange, TransportConfig, error::ConfigError, tls::Side};
use hybriq_proto::{endpoint::Setup, wire::Reader};
use hybriq_sim::{Idle, Network, World, ms};
use hybriq_tls::{Provider, Session, Start};

use crate::duo::{Duo, client, server};

/// Transport parameters, in the order in which they are sent (RFC 9000 §18).
#[derive(Clone, Debug)]
pub(crate) struct Parameters(pub(crate) Vec<(u64, Vec<u8>)>);

impl Parameters {
    fn decode(bytes: &[u8]) -> Self {
        let mut reader = Reader::new(bytes);
        let mut list = Vec::new();
        while !reader.is_empty() {
            let id = reader.varint().unwrap();
            list.push((id, reader.prefixed().unwrap().to_vec()));
        }
        Self(list)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (id, value) in &self.0 {
            out.extend(integer(*id));
            out.extend(integer(value.len() as u64));
            out.extend(value);
        }
        out
    }

    /// Puts a value in the place of another, if there is one.
    pub(crate) fn set(&mut self, id: u64, value: &[u8]) {
        self.remove(id);
        self.push(id, value);
    }

    pub(crate) fn push(&mut self, id: u64, value: &[u8]) {
        self.0.push((id, value.to_vec()));
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.0.retain(|(other, _)| *other != id);
    }
}

/// An integer as eight bytes.
pub(crate) fn integer(value: u64) -> [u8; 8] {
    (value | 0xc0 << 56).to_be_bytes()
}

type Change = Arc<dyn Fn(&mut Parameters) + Send + Sync>;

struct Changing {
    honest: Arc<dyn Provider>,
    change: Change,
}

impl Provider for Changing {
    fn name(&self) -> &'static str {
        self.honest.name()
    }

    fn supports_early_data(&self) -> bool {
        self.honest.supports_early_data()
    }

    fn key_exchange(&self) -> &KeyExchange {
        self.honest.key_exchange()
    }

    fn session(&self, start: Start<'_>) -> Result<Box<dyn Session>, ConfigError> {
        let mut parameters = Parameters::decode(start.params());
        (self.change)(&mut parameters);
        let params = &parameters.encode()[..];
        self.honest.session(start.with_params(params))
    }
}

/// A setup whose transport parameters are changed on their way to TLS.
pub(crate) fn changing(
    setup: Setup,
    change: impl Fn(&mut Parameters) + Send + Sync + 'static,
) -> Setup {
    Setup {
        provider: Arc::new(Changing {
            honest: setup.provider,
            change: Arc::new(change),
        }),
        ..setup
    }
}

/// Two ends, one of which says other transport parameters than its own, some time after they met.
pub(crate) fn duo(liar: Side, change: impl Fn(&mut Parameters) + Send + Sync + 'static) -> Duo {
    let honest = [client, server].map(|setup| setup(TransportConfig::new()));
    let [client, server] = match (liar, honest) {
        (Side::Client, [client, server]) => [changing(client, change), server],
        (Side::Server, [client, server]) => [client, changing(server, change)],
    };
    let mut world = World::new(Network::new(1).delay(ms(10)), server);
    world.connect(&client, Idle);
    world.run_for(ms(1000));
    Duo { world }
}

/// The code that ended the connection for the liar. `None` if it continues.
pub(crate) fn code_for(
    liar: Side,
    change: impl Fn(&mut Parameters) + Send + Sync + 'static,
) -> Option<u64> {
    let verdict = duo(liar, change).verdict(liar.peer());
    verdict.map(|verdict| verdict.code)
}
