//! Sessions of clients that outlive their provider.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use hybriq_tls::{ClientOptions, ConfigError, MemorySessions, SessionStore};

use crate::support::{CONTENDERS, HOST, Pair, options, pairings};

/// Returns true if sessions of this library can be stored.
fn stores(name: &str) -> bool {
    name == "s2n-tls"
}

/// A store whose contents can be written to a disk.
#[derive(Default)]
struct Disk(Mutex<HashMap<String, Vec<u8>>>);

impl SessionStore for Disk {
    fn put(&self, server_name: &str, session: &[u8]) {
        let mut files = self.0.lock().expect("files");
        files.insert(server_name.to_owned(), session.to_vec());
    }

    fn take(&self, server_name: &str) -> Option<Vec<u8>> {
        self.0.lock().expect("files").remove(server_name)
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
        assert_eq!(saved.keys().collect::<Vec<_>>(), [HOST]);
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
        let session = disk.take(HOST).expect("a session");
        for len in [0, 1, 17, 28, session.len() / 2, session.len() - 1] {
            disk.put(HOST, &session[..len]);
            let pair = Pair::new(&*client, &*server).complete();
            assert!(!pair.client.session.negotiated().resumed, "{len}");
        }
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
