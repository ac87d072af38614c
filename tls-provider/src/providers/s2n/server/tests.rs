use rcgen::{CertificateParams, KeyPair};

use super::*;
use crate::{
    Backend, ClientOptions, ClientStart, Flight, Identity, PerLevel, PrivateKeyDer, Status, Trust,
    tickets::s2n::ROTATION,
};

pub(in crate::providers::s2n) fn identity() -> Identity {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["example.test".to_owned()]).expect("parameters");
    let certificate = params.self_signed(&key).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    Identity::from_der(vec![certificate.der().clone()], key)
}

/// Performs a handshake of `client` with `server`; returns true if the session was resumed.
fn resumed(client: &dyn Provider, server: &Server) -> bool {
    let ours = ClientStart {
        params: &[1],
        server_name: "example.test",
        resume: true,
        ..ClientStart::default()
    };
    let theirs = ServerStart {
        params: &[1],
        ..ServerStart::default()
    };
    let mut client = client.session(ours.into()).expect("a session");
    let mut server = server.session(theirs.into()).expect("a session");
    let (mut to_client, mut to_server) = (PerLevel::default(), Flight::default());
    let mut from_server = Flight::default();
    for _ in 0..3 {
        to_server.secrets.clear();
        from_server.secrets.clear();
        client
            .drive(&mut to_client, &mut to_server)
            .expect("the client");
        server
            .drive(&mut to_server.crypto, &mut from_server)
            .expect("the server");
        std::mem::swap(&mut to_client, &mut from_server.crypto);
    }
    let status = client.drive(&mut to_client, &mut to_server);
    assert_eq!(status, Ok(Status::Complete));
    client.negotiated().resumed
}

#[test]
fn a_ticket_key_is_replaced_and_opens_its_tickets_for_a_while() {
    let server = Server::new(&ServerOptions::new(identity())).expect("a server");
    let options = ClientOptions::new().trust(Trust::dangerously_accept_any_certificate());
    let client = Backend::S2nTls.client(&options).expect("a client");
    let tickets = server.shared.policies.default().parts.tickets.clone();
    let tickets = tickets.expect("tickets");
    let key = || tickets.s2n().at(SystemTime::now()).expect("keys");
    let first = key();

    assert!(!resumed(&*client, &server));
    assert!(resumed(&*client, &server));
    assert!(Arc::ptr_eq(&key(), &first));

    tickets.s2n().age(ROTATION);
    assert!(resumed(&*client, &server), "a ticket of the previous key");
    let second = key();
    assert!(!Arc::ptr_eq(&second, &first));

    tickets.s2n().age(ROTATION);
    assert!(
        !resumed(&*client, &server),
        "a ticket of a key that is gone"
    );
    assert!(!Arc::ptr_eq(&key(), &second));
    assert!(resumed(&*client, &server), "a ticket of the newest key");
}
