//! Signature schemes and application protocols without which a server neither answers nor forecasts.

use hybriq_tls::{ClientOptions, ServerOptions, Side};

use crate::flights::Chain;
use crate::support::{ALPN, Pair, client_hello, pairings, providers};

#[test]
fn no_answer_is_forecast_without_an_application_protocol_in_common() {
    let chain = Chain::of(&rcgen::PKCS_ECDSA_P256_SHA256);
    let client = || ClientOptions::new().trust(chain.trust());
    let server = || ServerOptions::new(chain.whole());
    for pairing in pairings() {
        for options in [
            (client().alpn(ALPN), server().alpn(["other"])),
            (client().alpn(ALPN), server()),
            (client(), server().alpn(ALPN)),
        ] {
            let (client, server) = providers(pairing, &options);
            assert_eq!(server.server_flights(&client_hello(&*client), 0), []);
            Pair::new(&*client, &*server)
                .fail()
                .assert(Side::Server, 120);
        }
        let options = (client().alpn(ALPN), server().alpn(["other", ALPN[0]]));
        let (client, server) = providers(pairing, &options);
        assert_eq!(server.server_flights(&client_hello(&*client), 0).len(), 1);
    }
}

#[cfg(all(unix, feature = "s2n-tls"))]
mod with_classical_clients {
    use hybriq_tls::{Backend, KeyExchange, Provider, Tickets};

    use super::*;
    use crate::support::{Contender, with_ml_dsa};

    fn strong_and_weak() -> (Chain, Chain) {
        let of = Chain::of;
        (
            of(&rcgen::PKCS_ML_DSA_65),
            of(&rcgen::PKCS_ECDSA_P256_SHA256),
        )
    }

    /// A client whose policy has no signatures of ML-DSA.
    fn client(chains: &[&Chain]) -> std::sync::Arc<dyn Provider> {
        let roots = chains.iter().map(|chain| chain.root());
        let options = ClientOptions::new()
            .alpn(ALPN)
            .trust(hybriq_tls::Trust::roots_der(roots))
            .key_exchange(KeyExchange::OnlyClassical);
        Backend::S2nTls.client(&options).expect("a client")
    }

    fn server(of: &Contender, chain: &Chain, tickets: &Tickets) -> std::sync::Arc<dyn Provider> {
        println!("{}", of.name);
        let options = ServerOptions::new(chain.whole()).alpn(ALPN);
        (of.server)(&options.tickets(tickets.clone())).expect("a server")
    }

    #[test]
    fn no_answer_is_forecast_to_a_client_that_verifies_no_signature_of_the_server() {
        let (strong, weak) = strong_and_weak();
        for of in with_ml_dsa() {
            let client = client(&[&strong, &weak]);
            let hello = client_hello(&*client);
            let suits = server(of, &weak, &Tickets::new());
            assert_eq!(suits.server_flights(&hello, 0).len(), 1);

            let server = server(of, &strong, &Tickets::new());
            assert_eq!(server.server_flights(&hello, 0), []);
            let failure = Pair::new(&*client, &*server).fail();
            failure.assert(Side::Server, 40);
            let text = failure.error.detail;
            assert!(text.starts_with("no signature scheme in common"), "{text}");
            for name in ["signs by mldsa65", "rsa_pss_rsae_sha256"] {
                assert!(text.contains(name), "{text}");
            }
            assert!(!text.contains("0x0401"), "{text}");
        }
    }

    /// Its policies for classical groups and for pure ML-KEM alone have no signatures of ML-DSA.
    #[cfg(all(feature = "rustls", not(feature = "fips")))]
    #[test]
    fn s2n_tls_tells_with_which_groups_it_cannot_sign() {
        use hybriq_tls::Group;

        let chain = Chain::of(&rcgen::PKCS_ML_DSA_65);
        for (group, policy) in [
            (Group::MLKEM1024, KeyExchange::PreferPostQuantum),
            (Group::X25519, KeyExchange::OnlyClassical),
        ] {
            let client = ClientOptions::new().alpn(ALPN).trust(chain.trust());
            let client = client.key_exchange(KeyExchange::Exactly(vec![group]));
            let client = Backend::Rustls.client(&client).expect("a client");
            let server = ServerOptions::new(chain.whole()).alpn(ALPN);
            let server = server.key_exchange(policy);
            let server = Backend::S2nTls.server(&server).expect("a server");
            assert_eq!(server.server_flights(&client_hello(&*client), 0), []);
            let failure = Pair::new(&*client, &*server).fail();
            failure.assert(Side::Server, 40);
            let text = failure.error.detail;
            assert!(text.starts_with("no signature scheme in common"), "{text}");
            assert!(text.contains("s2n-tls signs by ecdsa_secp256r1"), "{text}");
        }
    }

    /// A resumed session needs no signature.
    #[test]
    fn a_client_with_a_ticket_need_not_verify_a_signature_of_the_server() {
        let (strong, weak) = strong_and_weak();
        for of in with_ml_dsa() {
            let client = client(&[&strong, &weak]);
            let tickets = Tickets::new();
            let before = server(of, &weak, &tickets);
            let after = server(of, &strong, &tickets);
            for (server, resumes) in [(&before, false), (&after, true)] {
                let done = Pair::new(&*client, &**server).complete();
                assert_eq!(done.server.session.negotiated().resumed, resumes);
            }
        }
    }
}
