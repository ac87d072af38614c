//! Who is let in, and which server is trusted.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use hybriq::{
    ConnectError, ConnectionError, Identity,
    error::Alert,
    tls::{CertificateAlgorithms, SignError, SignatureScheme, Signer},
    transport::Congestion,
};

use super::{Place, tree};
use crate::{
    endpoint::{self, First, Pin, peer_key},
    error::Error,
    folder::{FolderError, Own},
    keys::KeysError,
    options::NewKey,
    server::Settings,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_not_listed_is_refused_until_it_is() {
    let place = Place::new("stranger");
    place.write("source/file", "hello");
    let server = place.serve_with(place.settings());
    let client = place.client();
    let own = client.folder.own().unwrap().fingerprint;
    let refused = client.push(&place.at("source"), &server.at("")).await;
    let Err(error @ Error::NotAuthorized(key)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(key, own);
    assert!(
        error
            .to_string()
            .ends_with(&format!("file_transfer authorize {own}"))
    );
    assert!(tree(&place.at("served")).is_empty());
    // The server is not restarted.
    place.authorize("client");
    client
        .push(&place.at("source"), &server.at(""))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_client_may_be_let_in_but_no_other() {
    let place = Place::new("first");
    place.write("source/file", "hello");
    let settings = Settings {
        first: First::Accept,
        ..place.settings()
    };
    let server = place.serve_with(settings);
    for _ in 0..2 {
        place
            .client()
            .push(&place.at("source"), &server.at(""))
            .await
            .unwrap();
    }
    let second = place
        .client_of("second")
        .push(&place.at("source"), &server.at(""))
        .await;
    assert!(matches!(second, Err(Error::NotAuthorized(_))), "{second:?}");
    let listed = place.folder("server").authorized().all().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        listed[0].key,
        place.folder("client").own().unwrap().fingerprint
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_another_key_is_refused_with_the_line_to_remove() {
    let place = Place::new("changed-key");
    place.write("source/file", "hello");
    let server = place.serve();
    let client = place.client();
    let hosts = client.folder.known_hosts();
    let (other, right) = (
        place.folder("other").own().unwrap(),
        place.folder("server").own().unwrap(),
    );
    hosts.add("elsewhere:1", other.fingerprint).unwrap();
    hosts
        .add(&server.at("").authority, other.fingerprint)
        .unwrap();
    let refused = client.push(&place.at("source"), &server.at("")).await;
    let Err(Error::KeyChanged {
        known, shown, line, ..
    }) = &refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!(
        (*known, *shown, *line),
        (other.fingerprint, right.fingerprint, 2)
    );
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("remove line 2 of"), "{text}");
    assert!(tree(&place.at("served")).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_new_server_is_not_taken_without_a_word() {
    let place = Place::new("new-server");
    place.write("source/file", "hello");
    let server = place.serve();
    let mut client = place.client();
    client.new_key = NewKey::Ask;
    // Nobody can be asked here.
    let refused = client.push(&place.at("source"), &server.at("")).await;
    let Err(Error::Unknown { shown, .. }) = refused else {
        panic!("{refused:?}");
    };
    let own = place.folder("server").own().unwrap().fingerprint;
    assert_eq!(shown, own);
    assert!(client.folder.known_hosts().all().unwrap().is_empty());
    client.new_key = NewKey::Accept;
    client
        .push(&place.at("source"), &server.at(""))
        .await
        .unwrap();
    let known = client
        .folder
        .known_hosts()
        .named(&server.at("").authority)
        .unwrap();
    assert_eq!(known.unwrap().key, own);
    client.new_key = NewKey::Ask;
    client
        .push(&place.at("source"), &server.at(""))
        .await
        .unwrap();
}

/// A signer without the key.
struct Forger;

impl Signer for Forger {
    fn schemes(&self) -> &[SignatureScheme] {
        &[SignatureScheme(0x0905)] // mldsa65
    }

    fn sign(&self, _: SignatureScheme, _: &[u8]) -> Result<Vec<u8>, SignError> {
        Ok(vec![7; 3309])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_certificate_is_worth_nothing_without_its_key() {
    let place = Place::new("copied");
    let server = place.serve();
    let own = place.folder("client").own().unwrap();
    let identity = Identity::from_signer(own.identity.certificates().to_vec(), Forger);
    let forged = Own {
        identity,
        fingerprint: own.fingerprint,
    };
    let endpoint = endpoint::client(&forged, &Pin::new(None), Congestion::Cubic).unwrap();
    let ended = match endpoint.connect(server.address, "localhost").await {
        Ok(connection) => connection.closed().await,
        Err(ConnectError::Connection(error)) => error,
        Err(error) => panic!("{error}"),
    };
    let ConnectionError::Transport { code, .. } = ended else {
        panic!("{ended}");
    };
    assert_eq!(code.alert(), Some(Alert::DECRYPT_ERROR.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn both_ends_are_post_quantum_in_keys_and_signatures() {
    let place = Place::new("post-quantum");
    let server = place.serve();
    let (_endpoint, connection) = place.connect(&server).await;
    let handshake = connection.handshake();
    assert!(handshake.requires_post_quantum);
    assert!(
        handshake
            .peer_certificates
            .iter()
            .all(CertificateAlgorithms::is_post_quantum)
    );
    let own = place.folder("server").own().unwrap().fingerprint;
    assert_eq!(peer_key(&connection).unwrap(), own);
}

#[test]
fn an_identity_is_made_once_and_kept_from_others() {
    let place = Place::new("identity");
    let folder = place.folder("client");
    let first = folder.own().unwrap().fingerprint;
    assert_eq!(folder.own().unwrap().fingerprint, first);
    assert_ne!(place.folder("other").own().unwrap().fingerprint, first);
    let file = place.at("client/identity.pem");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(&place.at("client")), 0o700);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(folder.own(), Err(FolderError::Exposed(_))));
}

#[test]
fn a_list_of_keys_with_a_bad_line_is_not_used() {
    let place = Place::new("bad-line");
    let authorized = place.folder("server").authorized();
    let key = place.folder("client").own().unwrap().fingerprint;
    assert_eq!(authorized.all().unwrap(), []);
    assert!(matches!(
        authorized.add("two words", key),
        Err(KeysError::Name(_))
    ));
    authorized.add("client", key).unwrap();
    assert_eq!(authorized.with_key(key).unwrap().unwrap().name, "client");
    place.write(
        "server/authorized",
        format!("# mine\nclient {key}\nother SHA256:short\n"),
    );
    assert!(matches!(
        authorized.all(),
        Err(KeysError::Line { line: 3, .. })
    ));
}
