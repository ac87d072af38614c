//! Handshakes: groups, certificates, resumption and refusals.

use super::*;
use hybriq::{Backend, Profile, tls::Suite};
use std::collections::BTreeMap;

use crate::scenario::axes::{Axes, Certificate, Named, Resumption, Stack};
use crate::system::outcome::Kind;

const CERTIFICATES: [Certificate; 7] = [
    Certificate::EcdsaP256,
    Certificate::EcdsaP384,
    Certificate::Rsa2048,
    Certificate::Ed25519,
    Certificate::MlDsa44,
    Certificate::MlDsa65,
    Certificate::MlDsa87,
];

/// Checks that a stack reports the requested parameters, or nothing.
async fn negotiates_as_asked(mut ends: Ends) {
    let (client, server) = ends.connect().await;
    let cell = &ends.setup.cell;
    for end in [client, server] {
        let told = end.established().await.unwrap();
        assert!(
            told.group.is_empty() || told.group == cell.group.to_string(),
            "{told:?}"
        );
        assert!(
            told.suite.is_empty() || told.suite == cell.suite.to_string(),
            "{told:?}"
        );
        assert_eq!(
            told.hello_retry.unwrap_or(cell.hello_retry),
            cell.hello_retry
        );
        assert!(!told.resumed.unwrap_or(false), "{told:?}");
        assert!(!told.early_data.unwrap_or(false), "{told:?}");
    }
}

#[test]
fn each_group_is_negotiated_and_told() {
    for group in hybriq::Group::ALL {
        let cell = Cell {
            group,
            ..Cell::default()
        };
        println!("{}", cell.group);
        every_pair(&cell, negotiates_as_asked);
    }
}

#[test]
fn each_group_is_asked_for_by_a_hello_retry_request() {
    for group in hybriq::Group::ALL {
        let cell = Cell {
            group,
            hello_retry: true,
            ..Cell::default()
        };
        println!("{}", cell.group);
        every_pair(&cell, negotiates_as_asked);
    }
}

#[test]
fn each_suite_is_negotiated_and_told() {
    for &suite in <Suite as Named>::ALL {
        let cell = Cell {
            suite,
            ..Cell::default()
        };
        println!("{suite}");
        every_pair(&cell, negotiates_as_asked);
    }
}

#[test]
fn each_kind_of_certificate_is_shown_by_both_ends() {
    for certificate in CERTIFICATES {
        let cell = Cell {
            certificate,
            chain: 3,
            client_auth: true,
            ..Cell::default()
        };
        println!("{certificate:?}");
        every_pair(&cell, negotiates_as_asked);
    }
}

/// The cells that follow a profile alone, with either TLS library: handshakes really have what the
/// profile asks for.
#[test]
fn the_first_choice_of_each_profile_is_negotiated() {
    for profile in Profile::ALL {
        for provider in Backend::ALL {
            let mut axes = Axes::default();
            axes.set("profile", profile.name()).unwrap();
            axes.set("provider", &provider.to_string()).unwrap();
            axes.set("client_auth", "yes").unwrap();
            let [cell] = &axes.cells(&BTreeMap::new())[..] else {
                panic!("{profile}: more than one cell");
            };
            axes.check_profile(cell).unwrap();
            println!(
                "{profile}, {provider}: {}, {}",
                cell.group, cell.certificate
            );
            every_pair(cell, negotiates_as_asked);
        }
    }
}

#[test]
fn a_server_that_the_client_does_not_trust_is_an_alert_at_both_ends() {
    every_pair(&Cell::default(), |mut ends| async move {
        if hides_failed_handshakes(&ends) {
            return;
        }
        let stranger = certificates::of_server(Certificate::EcdsaP256, 1).unwrap();
        let mut setup = ends.setup.clone();
        setup.certificates.root = stranger.root;
        ends.connector = Ends::connector(&setup, &*ends.listener);
        let (client, server) = ends.try_connect().await;
        for (role, outcome) in [(Role::Client, client), (Role::Server, server)] {
            let kind = failure(outcome).await.kind;
            if role == Role::Server && kind == Kind::Timeout && keeps_its_close(&ends) {
                continue;
            }
            let Kind::Alert(name) = &kind else {
                panic!("{role:?}: {kind}");
            };
            let names = [
                "unknown_ca",
                "bad_certificate",
                "certificate_unknown",
                "decrypt_error",
                "handshake_failure",
            ];
            assert!(names.contains(&name.as_str()), "{name}");
        }
    });
}

/// Returns true for s2n-quic, whose client sends no CONNECTION_CLOSE in one of a hundred handshakes that it
/// ends: nothing leaves its socket after the server's first flight.
fn keeps_its_close(ends: &Ends) -> bool {
    ends.setup.cell.client == Stack::S2nQuic
}

/// Returns true for s2n-quic, whose server never hands out a connection with a failed handshake.
fn hides_failed_handshakes(ends: &Ends) -> bool {
    let hides = ends.setup.cell.driver == Stack::S2nQuic;
    if hides {
        println!("left out: s2n-quic's server does not tell of handshakes that failed");
    }
    hides
}

/// Returns the failure of a connection, in the handshake or right after it.
async fn failure(outcome: Outcome) -> Failed {
    match outcome {
        Err(failed) => failed,
        Ok(connection) => connection.closed().await.unwrap_err(),
    }
}

#[test]
fn a_client_without_a_certificate_is_refused_by_a_server_that_wants_one() {
    let cell = Cell {
        client_auth: true,
        ..Cell::default()
    };
    every_pair(&cell, |mut ends| async move {
        if hides_failed_handshakes(&ends) {
            return;
        }
        let mut setup = ends.setup.clone();
        setup.cell.client_auth = false;
        ends.connector = Ends::connector(&setup, &*ends.listener);
        let (client, server) = ends.try_connect().await;
        for outcome in [client, server] {
            let kind = failure(outcome).await.kind;
            let Kind::Alert(name) = &kind else {
                panic!("{kind}");
            };
            let names = [
                "certificate_required",
                "handshake_failure",
                "bad_certificate",
            ];
            assert!(names.contains(&name.as_str()), "{name}");
        }
    });
}

/// Connects once, and stays until there is a ticket for the next connection.
async fn earn_a_ticket(ends: &mut Ends) {
    let (client, server) = ends.connect().await;
    let asking = async {
        let (mut writer, mut reader) = client.open_bidi().await.unwrap();
        while {
            send(&mut *writer, &b"?"[..]).await.unwrap();
            receive_exactly(&mut *reader, 1).await.unwrap();
            !client.has_ticket()
        } {}
        finish(&mut *writer).await.unwrap();
        receive_all(&mut *reader).await.unwrap();
        client.close(0);
        client.closed().await.unwrap();
    };
    tokio::join!(asking, echo(&*server));
}

#[test]
fn a_connection_after_the_first_is_resumed() {
    let cell = Cell {
        resumption: Resumption::Psk,
        ..Cell::default()
    };
    every_pair(&cell, |mut ends| async move {
        earn_a_ticket(&mut ends).await;
        let (client, server) = ends.connect().await;
        for end in [client, server] {
            let told = end.established().await.unwrap();
            assert!(told.resumed.unwrap_or(true), "{told:?}");
            assert!(!told.early_data.unwrap_or(false), "{told:?}");
        }
    });
}

#[test]
fn without_resumption_every_handshake_is_a_full_one() {
    every_pair(&Cell::default(), |mut ends| async move {
        for _ in 0..2 {
            let (client, server) = ends.connect().await;
            for end in [&client, &server] {
                let told = end.established().await.unwrap();
                assert!(!told.resumed.unwrap_or(false), "{told:?}");
            }
            client.close(0);
            let _ = tokio::join!(client.closed(), server.closed());
        }
    });
}

#[test]
fn early_data_is_answered_before_the_handshake_is_complete() {
    let cell = Cell {
        resumption: Resumption::ZeroRtt,
        ..Cell::default()
    };
    every_pair(&cell, |mut ends| async move {
        earn_a_ticket(&mut ends).await;
        let address = ends.listener.address();
        let asking = async {
            let connect = ends.connector.connect(address, certificates::SERVER_NAME);
            let client = connect.await.unwrap();
            let (mut writer, mut reader) = client.open_bidi().await.unwrap();
            send(&mut *writer, pattern(1, 1000)).await.unwrap();
            finish(&mut *writer).await.unwrap();
            let (told, answer) = tokio::join!(client.established(), receive_all(&mut *reader));
            assert!(answer.unwrap() == pattern(1, 1000), "other bytes came");
            assert!(told.unwrap().early_data.unwrap_or(true));
            client.close(0);
            client
        };
        let answering = async {
            let server = ends.listener.accept().await.unwrap().await.unwrap();
            let (told, ()) = tokio::join!(server.established(), echo(&*server));
            assert!(told.unwrap().early_data.unwrap_or(true));
        };
        tokio::join!(asking, answering);
    });
}
