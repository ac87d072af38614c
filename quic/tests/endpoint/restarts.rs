//! Clients that restart, with nothing but the bytes of their memory of servers.
#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

use hybriq::{
    Backend, ClientConfig, Endpoint, Trust,
    fleet::AddressValidation,
    memory::{Continuity, ServerMemory, SessionMemory},
    transport::Version,
};

use crate::endpoint_support::{Pair, client_config, server_config};

/// A server that sends everybody without a token away.
fn server() -> Endpoint {
    Endpoint::builder()
        .server(server_config())
        .address_validation(AddressValidation::Always)
        .bind("127.0.0.1:0")
        .unwrap()
}

/// Facts about a connection.
#[derive(Debug, PartialEq, Eq)]
struct Visit {
    /// The client had to prove its address.
    retried: bool,
    resumed: bool,
}

/// A visit of somebody whom the server does not know.
const FIRST: Visit = Visit {
    retried: true,
    resumed: false,
};

/// Connects by a new endpoint, and waits for all that the server says after the handshake.
async fn visit(config: &ClientConfig, server: &Endpoint) -> Visit {
    let retries = server.stats().retries_sent;
    let client = Endpoint::client(config.clone()).unwrap();
    let pair = Pair::of(server.clone(), client).await;
    assert_eq!(pair.client.version(), Version::V2);
    assert_eq!(pair.echo(b"a round trip").await, b"a round trip");
    Visit {
        retried: server.stats().retries_sent > retries,
        resumed: pair.client.handshake().resumed,
    }
}

/// The token is good only in the version of the last connection, so that one says the other.
#[tokio::test]
async fn a_client_that_restarts_uses_token_version_group_and_session() {
    for backend in Backend::ALL {
        let config = || client_config().tls(backend);
        let place = match backend {
            Backend::Rustls => SessionMemory::Library,
            _ => SessionMemory::Stored,
        };
        let is_stored = place == SessionMemory::Stored;
        let (server, memory) = (server(), ServerMemory::new());
        let before = config().server_memory(memory.clone());
        assert_eq!(before.session_memory(), place);
        assert_eq!(visit(&before, &server).await, FIRST);

        let record = memory.get("LOCALHOST").unwrap();
        assert_eq!(record.version(), Some(Version::V2));
        assert!(record.tokens() > 0);
        let port = server.local_address().port();
        assert!(record.port(port).group.is_some());
        assert_eq!(record.sessions(), usize::from(is_stored), "{backend}");

        let read = ServerMemory::from_bytes(&memory.to_bytes()).unwrap();
        let again = visit(&config().server_memory(read), &server).await;
        let expected = Visit {
            retried: false,
            resumed: is_stored,
        };
        assert_eq!(again, expected, "{backend}");
        let without = config().server_memory(ServerMemory::new());
        assert_eq!(visit(&without, &server).await, FIRST);
    }
}

#[tokio::test]
async fn a_clone_with_a_memory_of_its_own_is_a_stranger() {
    for backend in Backend::ALL {
        let (server, config) = (server(), client_config().tls(backend));
        assert_eq!(visit(&config, &server).await, FIRST);
        let clone = config.clone().continuity(Continuity::Report);
        let known = Visit {
            retried: false,
            resumed: true,
        };
        assert_eq!(visit(&clone, &server).await, known, "{backend}");
        let private = config.server_memory(ServerMemory::new());
        assert_eq!(visit(&private, &server).await, FIRST, "{backend}");
    }
}

/// A resumed session shows no certificate.
#[tokio::test]
async fn clients_of_one_memory_resume_no_session_of_another_trust() {
    for backend in Backend::ALL {
        let (server, memory) = (server(), ServerMemory::new());
        let strict = client_config().tls(backend).server_memory(memory);
        let careless = strict
            .clone()
            .trust(Trust::dangerously_accept_any_certificate());
        for (config, resumed) in [
            (&careless, false),
            (&strict, false),
            (&careless, true),
            (&strict, true),
        ] {
            assert_eq!(visit(config, &server).await.resumed, resumed, "{backend}");
        }
    }
}

#[tokio::test]
async fn a_server_that_is_forgotten_knows_nobody() {
    let (server, memory) = (server(), ServerMemory::new());
    let config = client_config()
        .tls(Backend::S2nTls)
        .server_memory(memory.clone());
    assert_eq!(visit(&config, &server).await, FIRST);
    memory.forget("localhost");
    assert!(memory.is_empty());
    assert_eq!(visit(&config, &server).await, FIRST);
}
