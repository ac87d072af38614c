//! A hierarchy of post-quantum certificates: root, subordinate and leaf of one kind, and the same
//! for clients.

mod openssl;

use std::sync::Arc;

use hybriq::tls::{ClientAuth, SignatureScheme};
use hybriq::{Backend, Group, Identity, KeyExchange, Trust};
use hybriq_tls::{ClientOptions, Provider, ServerOptions};
use serde::{Deserialize, Serialize};

use crate::drivers::Certificates;
use crate::handshake::certificates;
use crate::handshake::certificates::Wanted;
use crate::handshake::exchange::loopback::{Connected, connect};
use crate::handshake::plan::SUITES;
use crate::handshake::{Mode, Outcome, Plan, measure};
use crate::scenario::axes::Certificate;
use crate::system::failure::Failure;

const ALPN: [&str; 1] = ["netbench"];

/// Length of the chain that is sent: a leaf and a subordinate authority. The root is known.
const CHAIN: u8 = 2;

/// Kinds that are compared, the classical one first.
pub(crate) const KINDS: [Certificate; 4] = [
    Certificate::EcdsaP256,
    Certificate::MlDsa44,
    Certificate::MlDsa65,
    Certificate::MlDsa87,
];

/// Outcomes for all kinds of certificates.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Hierarchies {
    pub(crate) connections: Vec<Mutual>,
    pub(crate) openssl: Vec<Verified>,
}

/// A QUIC connection with certificates on both sides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Mutual {
    pub(crate) certificate: String,
    /// Client's provider. Each side verifies the other's certificates, so that two libraries check
    /// each other.
    pub(crate) client: String,
    pub(crate) server: String,
    /// Signature scheme of the server; empty if the library does not tell.
    pub(crate) signature: String,
    /// UDP payload of the client until the first answer arrived.
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    /// Reason of a failure.
    pub(crate) error: Option<String>,
}

/// Verdict on the chain by a library that takes no part in the handshakes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Verified {
    pub(crate) certificate: String,
    pub(crate) by: String,
    /// `None` if it could not be asked.
    pub(crate) valid: Option<bool>,
    pub(crate) detail: String,
}

/// Connects with every kind between every two providers, and lets OpenSSL verify the chains.
pub(crate) async fn run() -> Result<Hierarchies, Failure> {
    let mut connections = Vec::new();
    let mut verified = Vec::new();
    for kind in KINDS {
        let certificates = certificates::make(Wanted {
            kind,
            chain: CHAIN,
            client_auth: true,
        })?;
        for client in Backend::ALL {
            for server in Backend::ALL {
                let connected = mutual(&certificates, client, server).await;
                connections.push(Mutual::new(kind, client, server, connected));
            }
        }
        verified.push(openssl::verify(kind, &certificates));
    }
    Ok(Hierarchies {
        connections,
        openssl: verified,
    })
}

/// Measures the time of both sides with each kind.
pub(crate) fn times(iterations: usize) -> Outcome {
    measure(&plans(), iterations, || ())
}

/// Returns the plans that [`times`] measures.
pub(crate) fn plans() -> Vec<Plan> {
    let plan = |certificate| Plan {
        provider: Backend::Rustls,
        group: Group::X25519MLKEM768,
        suite: SUITES[0],
        certificate,
        chain: CHAIN,
        client_auth: true,
        mode: Mode::default(),
    };
    KINDS.into_iter().map(plan).collect()
}

async fn mutual(
    certificates: &Certificates,
    client: Backend,
    server: Backend,
) -> Result<Connected, Failure> {
    let trust = Trust::roots_pem(certificates.root.as_bytes())?;
    let identity = |chain: &str, key: &str| Identity::from_pem(chain.as_bytes(), key.as_bytes());
    let server_identity = identity(&certificates.server_chain, &certificates.server_key)?;
    let client_identity = identity(&certificates.client_chain, &certificates.client_key)?;
    let client: Arc<dyn Provider> = client.client(
        &ClientOptions::new()
            .alpn(ALPN)
            .trust(trust.clone())
            .identity(client_identity)
            .key_exchange(KeyExchange::PreferPostQuantum),
    )?;
    let server = server.server(
        &ServerOptions::new(server_identity.clone())
            .alpn(ALPN)
            .client_auth(ClientAuth::Required(trust)),
    )?;
    let connected = connect(client, server, server_identity).await?;
    if connected.client_certificates == 0 {
        return Err("the server saw no certificate of the client".into());
    }
    Ok(connected)
}

impl Mutual {
    fn new(
        kind: Certificate,
        client: Backend,
        server: Backend,
        connected: Result<Connected, Failure>,
    ) -> Self {
        let (connected, error) = match connected {
            Ok(connected) => (Some(connected), None),
            Err(failure) => (
                None,
                Some(crate::system::failure::with_causes(failure.as_ref())),
            ),
        };
        let scheme = |connected: &Connected| {
            let (client, server) = (&connected.client, &connected.server);
            client.signature_scheme.or(server.signature_scheme)
        };
        Self {
            certificate: kind.to_string(),
            client: client.name().to_owned(),
            server: server.name().to_owned(),
            signature: connected
                .as_ref()
                .and_then(scheme)
                .map_or_else(String::new, |scheme: SignatureScheme| scheme.to_string()),
            sent_bytes: connected.as_ref().map_or(0, |it| it.sent_bytes),
            received_bytes: connected.as_ref().map_or(0, |it| it.received_bytes),
            error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Backend, KINDS, run, times};

    #[tokio::test]
    async fn both_libraries_verify_each_other_with_every_kind() {
        let hierarchies = run().await.unwrap();
        let pairs = Backend::ALL.len() * Backend::ALL.len();
        assert_eq!(hierarchies.connections.len(), KINDS.len() * pairs);
        for mutual in &hierarchies.connections {
            assert_eq!(mutual.error, None, "{mutual:?}");
        }
        let signed: Vec<_> = hierarchies.connections.iter().step_by(pairs).collect();
        let schemes: Vec<_> = signed.iter().map(|it| it.signature.as_str()).collect();
        assert_eq!(
            schemes,
            ["ecdsa_secp256r1_sha256", "mldsa44", "mldsa65", "mldsa87"]
        );
        assert!(
            signed.is_sorted_by_key(|it| it.received_bytes),
            "{signed:?}"
        );
        assert!(hierarchies.openssl.iter().all(|it| it.valid != Some(false)));
    }

    #[test]
    fn both_sides_of_every_kind_are_timed() {
        let outcome = times(2);
        assert!(outcome.left_out.is_empty(), "{:?}", outcome.left_out);
        assert_eq!(outcome.breakdowns.len(), 2 * KINDS.len());
    }
}
