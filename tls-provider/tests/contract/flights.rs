//! Sizes of a server's answer, told before the handshake and compared with it; and the choice among
//! certificates.

use std::sync::atomic::{AtomicUsize, Ordering};

use hybriq_tls::{
    CertificateDer, ClientAuth, ClientOptions, Group, Identity, KeyExchange, PrivateKeyDer,
    Provider, ServerFlight, ServerOptions, ServerStart, Side, Trust,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::support::{
    ALPN, CONTENDERS, Contender, End, HOST, LEVELS, Pair, SERVER_PARAMS, Slices, client_hello,
    client_start, exactly, ocsp_response, pairings, server_start,
};

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A root, an intermediate and a leaf with keys of one kind.
pub(crate) struct Chain {
    leaf: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    pub(crate) intermediate: CertificateDer<'static>,
    root: CertificateDer<'static>,
}

impl Chain {
    pub(crate) fn of(algorithm: &'static rcgen::SignatureAlgorithm) -> Self {
        let generate = || KeyPair::generate_for(algorithm).expect("a key");
        let authority = |name: &str| {
            let mut params = CertificateParams::new(Vec::new()).expect("parameters");
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let common_name = rcgen::DnType::CommonName;
            params.distinguished_name.push(common_name, name);
            params
        };
        // Another name for each, so that no chain is taken for another.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (root, intermediate) = (
            authority(&format!("root {number}")),
            authority(&format!("intermediate {number}")),
        );
        let (root_key, key) = (generate(), generate());
        let root_certificate = root.self_signed(&root_key).expect("a root");
        let issuer = Issuer::new(root, root_key);
        let second = intermediate.signed_by(&key, &issuer).expect("a second");
        let issuer = Issuer::new(intermediate, key);
        let key = generate();
        let mut params = CertificateParams::new(vec![HOST.to_owned()]).expect("parameters");
        params.serial_number = Some(7_u64.into());
        let leaf = params.signed_by(&key, &issuer).expect("a leaf");
        Self {
            leaf: leaf.der().clone(),
            key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            intermediate: second.der().clone(),
            root: root_certificate.der().clone(),
        }
    }

    pub(crate) fn whole(&self) -> Identity {
        let chain = vec![self.leaf.clone(), self.intermediate.clone()];
        Identity::from_der(chain, self.key.clone_key())
    }

    /// The same with an OCSP response.
    #[cfg(feature = "rustls")]
    fn stapled(&self) -> Identity {
        let response = ocsp_response(&[7], 0x80);
        let stapled = self.whole().with_ocsp_response(response);
        stapled.expect("a good response")
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust::roots_der([self.root()])
    }

    pub(crate) fn root(&self) -> CertificateDer<'static> {
        self.root.clone()
    }
}

/// Sizes told before a handshake, and the bytes that the server then sent at each level.
fn told_and_sent(client: &dyn Provider, server: &dyn Provider) -> (ServerFlight, [usize; 3]) {
    let hello = client_hello(client);
    let flights = server.server_flights(&hello, SERVER_PARAMS.len());
    let mut pair = Pair::new(client, server);
    while pair.server.sent.handshake == 0 {
        assert!(pair.turn(Slices::Whole).expect("a turn"), "nothing more");
    }
    let flight = flights.first().expect("sizes").clone();
    (flight, LEVELS.map(|level| pair.server.sent[level]))
}

#[track_caller]
fn assert_exact(client: &dyn Provider, server: &dyn Provider) -> ServerFlight {
    let (told, [initial, handshake, _]) = told_and_sent(client, server);
    let retry = told.retry_request.unwrap_or_default();
    assert_eq!(retry + told.server_hello, initial, "{told:?}");
    let least = told.handshake - told.varies;
    let range = least..=told.handshake;
    assert!(range.contains(&handshake), "{told:?}: {handshake}");
    told
}

fn kinds() -> [(&'static rcgen::SignatureAlgorithm, bool); 6] {
    [
        (&rcgen::PKCS_ECDSA_P256_SHA256, false),
        (&rcgen::PKCS_ECDSA_P384_SHA384, false),
        (&rcgen::PKCS_ED25519, false),
        (&rcgen::PKCS_ML_DSA_44, true),
        (&rcgen::PKCS_ML_DSA_65, true),
        (&rcgen::PKCS_ML_DSA_87, true),
    ]
}

/// Providers of a contender with a chain of a kind, as far as it has the kind.
fn server_of(
    contender: &Contender,
    options: &ServerOptions,
) -> Option<std::sync::Arc<dyn Provider>> {
    let server = (contender.server)(options);
    assert!(contender.name != "rustls" || server.is_ok());
    server.ok()
}

#[cfg(feature = "rustls")]
#[test]
fn the_sizes_of_an_answer_are_known_before_it_is_made() {
    let rustls = &CONTENDERS[0];
    for (kind, post_quantum) in kinds() {
        let chain = Chain::of(kind);
        let options = ServerOptions::new(chain.whole()).alpn(ALPN);
        for contender in CONTENDERS {
            let Some(server) = server_of(contender, &options) else {
                continue;
            };
            for group in Group::ALL {
                let client = ClientOptions::new()
                    .alpn(ALPN)
                    .trust(chain.trust())
                    .key_exchange(exactly(group));
                let client = (rustls.client)(&client).expect("a client");
                let hello = client_hello(&*client);
                if server.server_flights(&hello, 0).is_empty() {
                    assert_ne!(contender.name, "rustls");
                    let mut pair = Pair::new(&*client, &*server);
                    assert!(pair.run(Slices::Whole).is_err(), "{kind:?} {group}");
                    continue;
                }
                println!("{} {kind:?} {group}", contender.name);
                let told = assert_exact(&*client, &*server);
                assert_eq!(told.post_quantum, post_quantum);
                assert_eq!((told.group, told.retry_request), (group, None));
            }
        }
    }
}

#[cfg(feature = "rustls")]
#[test]
fn a_retry_a_staple_and_a_request_for_certificates_count() {
    let chain = Chain::of(&rcgen::PKCS_ECDSA_P256_SHA256);
    let classical_first = KeyExchange::Exactly(vec![Group::X25519, Group::X25519MLKEM768]);
    let client = || ClientOptions::new().alpn(ALPN).trust(chain.trust());
    let rustls = &CONTENDERS[0];
    for (contender, identity) in CONTENDERS
        .iter()
        .flat_map(|it| [(it, chain.whole()), (it, chain.stapled())])
    {
        let server = ServerOptions::new(identity).alpn(ALPN);
        let server = (contender.server)(&server).expect("a server");
        let retried = client().key_exchange(classical_first.clone());
        let retried = (rustls.client)(&retried).expect("a client");
        let told = assert_exact(&*retried, &*server);
        assert!(told.retry_request.is_some());
        assert_eq!(told.group, Group::X25519MLKEM768);
    }
    let server = ServerOptions::new(chain.whole())
        .alpn(ALPN)
        .client_auth(ClientAuth::Required(chain.trust()));
    let server = (rustls.server)(&server).expect("a server");
    let client = (rustls.client)(&client().identity(chain.whole())).expect("a client");
    assert_exact(&*client, &*server);
}

#[cfg(all(feature = "rustls", feature = "brotli", feature = "zlib"))]
#[test]
fn compressed_chains_have_their_sizes_too() {
    use hybriq_tls::CertificateCompression as Algorithm;
    let rustls = &CONTENDERS[0];
    for (at, (kind, _)) in kinds().into_iter().enumerate() {
        let chain = Chain::of(kind);
        // With an OCSP response in every other chain.
        let identity = if at % 2 == 0 {
            chain.stapled()
        } else {
            chain.whole()
        };
        let server = ServerOptions::new(identity)
            .alpn(ALPN)
            .client_auth(ClientAuth::Optional(chain.trust()))
            .certificate_compression(Algorithm::ALL);
        let server = (rustls.server)(&server).expect("a server");
        for accepted in [&Algorithm::ALL[..], &[Algorithm::Zlib], &[]] {
            let client = ClientOptions::new()
                .alpn(ALPN)
                .trust(chain.trust())
                .certificate_compression(accepted.iter().copied());
            let client = (rustls.client)(&client).expect("a client");
            let told = assert_exact(&*client, &*server);
            assert_eq!(told.compression, accepted.first().copied());
        }
    }
}

/// Proves that the transport's word counts, and for one handshake only.
#[cfg(feature = "rustls")]
#[test]
fn the_transport_may_choose_the_certificate() {
    use hybriq_tls::{Backend, ChainChoice, ClientHello};
    let (large, small) = (
        Chain::of(&rcgen::PKCS_ML_DSA_65),
        Chain::of(&rcgen::PKCS_ECDSA_P256_SHA256),
    );
    let options = ServerOptions::new(large.whole())
        .add_identity(small.whole())
        .chain_choice(ChainChoice::FewestRoundTrips)
        .without_tickets()
        .alpn(ALPN);
    let server = Backend::Rustls.server(&options).expect("a server");
    assert!(server.chooses_by_round_trips());
    let trust = Trust::roots_der([large.root.clone(), small.root.clone()]);
    let client = ClientOptions::new().alpn(ALPN).trust(trust);
    let client = Backend::Rustls.client(&client).expect("a client");
    let flights = server.server_flights(&client_hello(&*client), 0);
    let told: Vec<_> = flights
        .iter()
        .map(|it| (it.identity, it.post_quantum))
        .collect();
    assert_eq!(told, [(0, true), (1, false)]);
    for (identity, expected) in [(Some(1), &small), (Some(0), &large), (None, &large)] {
        let session = client
            .session(client_start(HOST).into())
            .expect("a client session");
        let mut end = End::new(session);
        end.drive().expect("a ClientHello");
        let hello = ClientHello::parse(&end.outbox.crypto.initial).expect("a hello");
        let (hello, _) = hello.expect("a whole one");
        let start = ServerStart {
            identity,
            ..server_start(Some(&hello))
        };
        let session = server.session(start.into()).expect("a session");
        let pair = Pair {
            client: end,
            server: End::new(session),
        };
        let pair = pair.complete();
        let shown = pair.client.session.peer_certificates();
        assert_eq!(shown.first(), Some(&expected.leaf), "{identity:?}");
    }
}

#[cfg(feature = "unstable-rustls")]
#[test]
fn post_quantum_certificates_come_first_where_they_are_wanted_and_accepted() {
    use hybriq_tls::{Backend, ChainChoice, rustls};
    let (small, large) = (
        Chain::of(&rcgen::PKCS_ECDSA_P256_SHA256),
        Chain::of(&rcgen::PKCS_ML_DSA_65),
    );
    let trust = || Trust::roots_der([large.root.clone(), small.root.clone()]);
    let client = ClientOptions::new().alpn(ALPN).trust(trust());
    let modern = Backend::Rustls.client(&client).expect("a client");
    let older = rustls::Client::with_crypto(&client, |mut crypto| {
        crypto.signature_verification_algorithms = classical(&crypto);
        crypto
    })
    .expect("a client");
    for (choice, of_modern) in [
        (ChainChoice::First, &small),
        (ChainChoice::PostQuantumFirst, &large),
    ] {
        let options = ServerOptions::new(small.whole())
            .add_identity(large.whole())
            .chain_choice(choice)
            .without_tickets()
            .alpn(ALPN);
        let server = Backend::Rustls.server(&options).expect("a server");
        for (client, expected) in [(&*modern, of_modern), (&older as &dyn Provider, &small)] {
            let pair = Pair::new(client, &*server).complete();
            let shown = pair.client.session.peer_certificates();
            assert_eq!(shown.first(), Some(&expected.leaf), "{choice:?}");
        }
    }
}

/// The algorithms of a client from before ML-DSA.
#[cfg(feature = "unstable-rustls")]
fn classical(crypto: &rustls::crypto::CryptoProvider) -> rustls::crypto::WebPkiSupportedAlgorithms {
    let mut algorithms = crypto.signature_verification_algorithms;
    let is_old = |scheme: u16| !(0x0904..=0x0906).contains(&scheme);
    let old = algorithms.mapping.iter().copied();
    let old: Vec<_> = old.filter(|(scheme, _)| is_old((*scheme).into())).collect();
    algorithms.mapping = Vec::leak(old);
    algorithms
}

#[test]
fn s2n_tls_leaves_no_choice() {
    use hybriq_tls::ChainChoice;
    let chain = Chain::of(&rcgen::PKCS_ECDSA_P256_SHA256);
    for contender in CONTENDERS.iter().filter(|it| it.name != "rustls") {
        for choice in [ChainChoice::PostQuantumFirst, ChainChoice::FewestRoundTrips] {
            let options = ServerOptions::new(chain.whole()).chain_choice(choice);
            let refused = (contender.server)(&options).map(drop).expect_err("refused");
            assert!(refused.to_string().contains("use rustls"), "{refused}");
        }
    }
}

#[test]
fn intermediates_left_out_need_a_client_that_has_them() {
    let chain = Chain::of(&rcgen::PKCS_ECDSA_P256_SHA256);
    let server = ServerOptions::new(chain.whole())
        .alpn(ALPN)
        .leave_out_intermediates();
    for (client, server_by) in pairings() {
        let lacking = ClientOptions::new().alpn(ALPN).trust(chain.trust());
        let failure = Pair::of((client, server_by), &(lacking, server.clone())).fail();
        failure.assert(Side::Client, 48);
        let told = failure.error.to_string();
        let remedy = "Trust::intermediates";
        assert!(client.name != "rustls" || told.contains(remedy), "{told}");

        let trust = chain.trust().intermediates([chain.intermediate.clone()]);
        let knowing = ClientOptions::new().alpn(ALPN).trust(trust);
        if client.name != "rustls" {
            let refused = (client.client)(&knowing).map(drop).expect_err("refused");
            assert!(refused.to_string().contains("use rustls"), "{refused}");
            continue;
        }
        let pair = Pair::of((client, server_by), &(knowing.clone(), server.clone())).complete();
        assert_eq!(
            pair.client.session.peer_certificates(),
            std::slice::from_ref(&chain.leaf)
        );
        let small = pair.server.sent.handshake;
        // The same client takes a whole chain as well.
        let whole = ServerOptions::new(chain.whole()).alpn(ALPN);
        let pair = Pair::of((client, server_by), &(knowing, whole)).complete();
        assert_eq!(pair.client.session.peer_certificates().len(), 2);
        let saved = pair.server.sent.handshake - small;
        let intermediate = 3 + chain.intermediate.len() + 2;
        assert!(saved.abs_diff(intermediate) <= 8, "{saved} bytes");
    }
}

#[test]
fn a_known_intermediate_is_not_a_root() {
    let (chain, other) = (
        Chain::of(&rcgen::PKCS_ECDSA_P256_SHA256),
        Chain::of(&rcgen::PKCS_ECDSA_P256_SHA256),
    );
    let server = ServerOptions::new(chain.whole()).alpn(ALPN);
    for (client, server_by) in pairings().filter(|(client, _)| client.name == "rustls") {
        let trust = other.trust().intermediates([chain.intermediate.clone()]);
        let client_options = ClientOptions::new().alpn(ALPN).trust(trust);
        let options = (client_options, server.clone().leave_out_intermediates());
        let failure = Pair::of((client, server_by), &options).fail();
        failure.assert(Side::Client, 48);
    }
}

#[cfg(feature = "rustls")]
#[test]
fn intermediates_are_left_out_for_some_protocols_alone() {
    let chain = Chain::of(&rcgen::PKCS_ECDSA_P256_SHA256);
    let server = ServerOptions::new(chain.whole())
        .without_tickets()
        .alpn(["mesh/1", "h3"])
        .leave_out_intermediates_for(["mesh/1"]);
    let trust = chain.trust().intermediates([chain.intermediate.clone()]);
    let rustls = &CONTENDERS[0];
    let server = (rustls.server)(&server).expect("a server");
    for (alpn, certificates) in [(&["mesh/1"][..], 1), (&["h3"], 2), (&["h3", "mesh/1"], 1)] {
        let client = ClientOptions::new().alpn(alpn).trust(trust.clone());
        let client = (rustls.client)(&client).expect("a client");
        assert_exact(&*client, &*server);
        let pair = Pair::new(&*client, &*server).complete();
        let shown = pair.client.session.peer_certificates();
        assert_eq!(shown.len(), certificates, "{alpn:?}");
    }
}

#[test]
fn clients_leave_out_intermediates_too() {
    let chain = Chain::of(&rcgen::PKCS_ECDSA_P256_SHA256);
    let client = ClientOptions::new()
        .alpn(ALPN)
        .trust(chain.trust())
        .identity(chain.whole())
        .leave_out_intermediates();
    for pairing in pairings().filter(|(_, server)| server.name == "rustls") {
        let server = |trust| {
            ServerOptions::new(chain.whole())
                .alpn(ALPN)
                .client_auth(ClientAuth::Required(trust))
        };
        let lacking = server(chain.trust());
        Pair::of(pairing, &(client.clone(), lacking))
            .fail()
            .assert(Side::Server, 48);
        let knowing = server(chain.trust().intermediates([chain.intermediate.clone()]));
        let pair = Pair::of(pairing, &(client.clone(), knowing)).complete();
        assert_eq!(
            pair.server.session.peer_certificates(),
            std::slice::from_ref(&chain.leaf)
        );
    }
}

/// A profile and a verifier see the chain that was checked.
#[cfg(feature = "rustls")]
#[test]
fn verifiers_see_the_chain_with_what_was_left_out() {
    use std::sync::{Arc, Mutex};

    use hybriq_tls::{Error, PeerChain, Verifier};

    struct Seen(Arc<Mutex<Vec<usize>>>);
    impl Verifier for Seen {
        fn verify(&self, peer: &PeerChain<'_>) -> Result<(), Error> {
            self.0.lock().expect("a lock").push(peer.certificates.len());
            Ok(())
        }
    }
    let chain = Chain::of(&rcgen::PKCS_ECDSA_P256_SHA256);
    let other = Chain::of(&rcgen::PKCS_ECDSA_P384_SHA384);
    let seen: Arc<Mutex<Vec<usize>>> = Arc::default();
    let trust = chain
        .trust()
        .intermediates([chain.intermediate.clone(), other.leaf.clone()])
        .also(Seen(seen.clone()));
    let client = ClientOptions::new().alpn(ALPN).trust(trust);
    let server = ServerOptions::new(chain.whole()).alpn(ALPN);
    let rustls = (&CONTENDERS[0], &CONTENDERS[0]);
    for server in [server.clone(), server.leave_out_intermediates()] {
        Pair::of(rustls, &(client.clone(), server)).complete();
    }
    assert_eq!(*seen.lock().expect("a lock"), [2, 2]);
}
