//! What the peer learns about a handshake that fails at this end: nothing about this machine.
#![cfg(feature = "rustls")]
#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

use crate::endpoint_support::soon;
use hybriq::{
    Backend, ClientConfig, ConnectError, Endpoint, Identity, ServerConfig, Trust,
    error::{Alert, TlsError},
    tls::{
        CertificateDer, ClientAuth, PeerChain, PrivateKeyDer, SignError, SignatureScheme, Signer,
    },
};

/// An error of the system, which names a path.
const LOCAL: &str = "/run/secrets/quic.pem: permission denied (os error 13)";

/// Text for the peer.
const FOR_THE_PEER: &str = "this key is not on the list";

/// A key that cannot be used.
struct Locked;

impl Signer for Locked {
    fn schemes(&self) -> &[SignatureScheme] {
        &[SignatureScheme::ECDSA_SECP256R1_SHA256]
    }

    fn sign(&self, _: SignatureScheme, _: &[u8]) -> Result<Vec<u8>, SignError> {
        Err(SignError(LOCAL.to_owned()))
    }

    fn signs_digests(&self) -> bool {
        true
    }

    fn sign_digest(&self, _: SignatureScheme, _: &[u8]) -> Result<Vec<u8>, SignError> {
        Err(SignError(LOCAL.to_owned()))
    }
}

/// A certificate, and its key in memory.
struct Owner {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Owner {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        Self {
            chain: vec![made.cert.der().clone()],
            key: PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into()),
        }
    }

    fn identity(&self) -> Identity {
        Identity::from_der(self.chain.clone(), self.key.clone_key())
    }

    fn locked(&self) -> Identity {
        Identity::from_signer(self.chain.clone(), Locked)
    }

    fn trust(&self) -> Trust {
        Trust::roots_der(self.chain.clone())
    }
}

/// Returns the errors of both ends.
async fn errors(server: ServerConfig, client: ClientConfig) -> (String, String) {
    let server = Endpoint::server("127.0.0.1:0", server.alpn(["test"])).unwrap();
    let client = Endpoint::client(client.alpn(["test"])).unwrap();
    let connecting = client.connect(server.local_address(), "localhost");
    let accept = async { server.accept().await.unwrap().accept().await };
    let connect = async {
        // A client is done before the server has looked at its certificate.
        match connecting.await {
            Ok(connection) => ConnectError::Connection(connection.closed().await),
            Err(error) => error,
        }
    };
    let (accepted, error) = soon(async { tokio::join!(accept, connect) }).await;
    (accepted.unwrap_err().to_string(), error.to_string())
}

fn deny(text: fn() -> TlsError) -> impl Fn(&PeerChain<'_>) -> Result<(), TlsError> {
    move |_| Err(text())
}

fn local() -> TlsError {
    TlsError::new(Alert::ACCESS_DENIED, LOCAL)
}

fn told() -> TlsError {
    TlsError::told(Alert::ACCESS_DENIED, FOR_THE_PEER)
}

fn internal() -> TlsError {
    TlsError::told(Alert::INTERNAL_ERROR, LOCAL)
}

/// Checks that one end knows everything and the other nothing.
fn assert_kept(at: &str, other: &str) {
    assert!(at.contains(LOCAL), "{at}");
    assert!(
        !other.contains("secrets") && !other.contains("os error"),
        "{other}"
    );
    assert!(
        other.contains("the log of the endpoint that closed"),
        "{other}"
    );
}

#[tokio::test]
async fn errors_of_signers_and_verifiers_stay_at_the_end_that_has_them() {
    let (own, theirs) = (Owner::new(), Owner::new());
    for backend in Backend::ALL {
        let server = |identity| ServerConfig::new(identity).tls(backend);
        let client = || ClientConfig::new().tls(backend).trust(own.trust());
        let asking = |trust| server(own.identity()).client_auth(ClientAuth::Required(trust));

        let (at, other) = errors(server(own.locked()), client()).await;
        assert_kept(&at, &other);
        let asked = asking(theirs.trust());
        let (other, at) = errors(asked, client().identity(theirs.locked())).await;
        assert_kept(&at, &other);
        for error in [local as fn() -> TlsError, internal] {
            let trust = own.trust().also(deny(error));
            let (other, at) = errors(server(own.identity()), client().trust(trust)).await;
            assert_kept(&at, &other);
            let asked = asking(theirs.trust().also(deny(error)));
            let (at, other) = errors(asked, client().identity(theirs.identity())).await;
            assert_kept(&at, &other);
        }
    }
}

#[tokio::test]
async fn a_verifier_may_tell_the_peer_what_to_do() {
    let (own, theirs) = (Owner::new(), Owner::new());
    let asked = ServerConfig::new(own.identity())
        .client_auth(ClientAuth::Required(theirs.trust().also(deny(told))));
    let client = ClientConfig::new().trust(own.trust());
    let (at, other) = errors(asked, client.identity(theirs.identity())).await;
    assert!(
        at.contains(FOR_THE_PEER) && other.contains(FOR_THE_PEER),
        "{at}\n{other}"
    );
}
