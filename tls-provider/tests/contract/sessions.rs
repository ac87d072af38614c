//! Sessions of clients that outlive their provider.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use hybriq_tls::{
    ClientOptions, ConfigError, KeyExchange, MemorySessions, SessionKey, SessionStore, Trust,
};

use crate::support::{CONTENDERS, HOST, Pair, options, pairings};

/// Returns true if sessions of this library can be stored.
fn stores(name: &str) -> bool {
    name == "s2n-tls"
}

/// A store whose contents can be written to a disk.
#[derive(Default)]
struct Disk(Mutex<Files>);

type Files = HashMap<(String, [u8; 16]), Vec<u8>>;

impl Disk {
    /// Returns the only file.
    fn only(&self) -> ((String, [u8; 16]), Vec<u8>) {
        let files = self.0.lock().expect("files");
        assert_eq!(files.len(), 1);
        files.clone().into_iter().next().expect("a session")
    }
}

impl SessionStore for Disk {
    fn put(&self, key: SessionKey<'_>, session: &[u8]) {
        let mut files = self.0.lock().expect("files");
        files.insert((key.server_name.to_owned(), key.policy), session.to_vec());
    }

    fn take(&self, key: SessionKey<'_>) -> Option<Vec<u8>> {
        let key = (key.server_name.to_owned(), key.policy);
        self.0.lock().expect("files").remove(&key)
    }
}

#[test]
fn a_client_of_another_process_resumes() {
    for (client, server) in pairings().filter(|(client, _)| stores(client.name)) {
        let (client_options, server_options) = options();
        let server = (server.server)(&server_options).expect("a server");
        let disk = Arc::new(Disk::default());
        let connect = |disk: &Arc<Disk>| {
            let options = client_options.clone().session_store(disk.clone());
            let client = (client.client)(&options).expect("a client");
            let pair = Pair::new(&*client, &*server).complete();
            pair.client.session.negotiated().resumed
        };
        assert!(!connect(&disk));
        // Only the bytes survive.
        let saved = disk.0.lock().expect("files").clone();
        assert_eq!(disk.only().0.0, HOST);
        let disk = Arc::new(Disk(Mutex::new(saved)));
        assert!(connect(&disk));
        assert!(connect(&disk), "it is put back, or replaced");
        assert!(!connect(&Arc::default()));
    }
}

#[test]
fn bytes_of_something_else_lead_to_a_full_handshake() {
    for (client, server) in pairings().filter(|(client, _)| stores(client.name)) {
        let (client_options, server_options) = options();
        let server = (server.server)(&server_options).expect("a server");
        let disk = Arc::new(Disk::default());
        let options = client_options.session_store(disk.clone());
        let client = (client.client)(&options).expect("a client");
        Pair::new(&*client, &*server).complete();
        let ((_, policy), session) = disk.only();
        for len in [0, 1, 17, 28, session.len() / 2, session.len() - 1] {
            let key = SessionKey::new(HOST, policy);
            disk.put(key, &session[..len]);
            let pair = Pair::new(&*client, &*server).complete();
            assert!(!pair.client.session.negotiated().resumed, "{len}");
        }
    }
}

/// A resumed session shows no certificate: clients that would not have begun it do not have it.
#[test]
fn a_session_stays_with_clients_of_one_policy() {
    for (client, server) in pairings().filter(|(client, _)| stores(client.name)) {
        let (client_options, server_options) = options();
        let server = (server.server)(&server_options).expect("a server");
        let disk = Arc::new(Disk::default());
        let resumes = |options: &ClientOptions| {
            let options = options.clone().session_store(disk.clone());
            let client = (client.client)(&options).expect("a client");
            let pair = Pair::new(&*client, &*server).complete();
            pair.client.session.negotiated().resumed
        };
        let careless = client_options
            .clone()
            .trust(Trust::dangerously_accept_any_certificate());
        assert!(!resumes(&careless) && resumes(&careless));
        assert!(!resumes(&client_options), "another trust");
        assert!(resumes(&client_options) && resumes(&careless));
        let strict = client_options.key_exchange(KeyExchange::RequirePostQuantum);
        assert!(!resumes(&strict) && resumes(&strict), "another policy");
    }
}

#[test]
fn a_library_whose_sessions_have_no_bytes_says_so() {
    for contender in CONTENDERS.iter().filter(|it| !stores(it.name)) {
        let options = ClientOptions::new().session_store(Arc::new(MemorySessions::new()));
        let error = (contender.client)(&options).err().expect("a refusal");
        assert!(matches!(error, ConfigError::Unsupported { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains("cannot turn a session into bytes"),
            "{error}"
        );
    }
}
