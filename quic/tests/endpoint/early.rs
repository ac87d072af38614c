//! 0-RTT through the async handles, over loopback.
#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::{future::Future, pin::Pin};

use crate::endpoint_support::{client_config, reachable, server_config, soon};
use hybriq::{
    ConnectError, Connection, EarlyConnection, Endpoint, ReadError, ServerConfig, TransportConfig,
    WriteError,
    error::{EarlyError, SendDatagramError},
    tls::EarlyData,
};

fn early_server() -> ServerConfig {
    server_config().accept_early_data()
}

fn early_client() -> Endpoint {
    Endpoint::client(client_config().offer_early_data()).unwrap()
}

/// Connects once and waits for the ticket: it comes with what the server says first.
async fn visit(client: &Endpoint, server: &Endpoint) {
    let connecting = client.connect(reachable(server), "localhost");
    let Err(connecting) = soon(connecting.early()).await else {
        panic!("without a ticket there is no 0-RTT");
    };
    let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
    let (client, server) = soon(async { tokio::join!(connecting, accept) }).await;
    let client = client.unwrap();
    assert_eq!(client.handshake().early_data, EarlyData::None);
    let mut send = server.open_uni().await.unwrap();
    send.write_all(b"welcome").await.unwrap();
    send.finish();
    let mut recv = soon(client.accept_uni()).await.unwrap().unwrap();
    assert_eq!(soon(recv.read_to_end(100)).await.unwrap(), b"welcome");
    client.close(0, b"");
}

async fn come_again(client: &Endpoint, server: &Endpoint) -> EarlyConnection {
    let connecting = client.connect(reachable(server), "localhost");
    soon(connecting.early()).await.expect("there is a ticket")
}

async fn echo(connection: &Connection) -> bool {
    let (mut send, mut recv) = soon(connection.accept_bidi()).await.unwrap().unwrap();
    let all = soon(recv.read_to_end(100)).await.unwrap();
    send.write_all(&all).await.unwrap();
    send.finish();
    soon(send.acknowledged()).await.unwrap();
    recv.is_early()
}

#[tokio::test]
async fn an_early_request_is_answered_before_the_handshake_is_over() {
    let server = Endpoint::server("127.0.0.1:0", early_server()).unwrap();
    let client = early_client();
    visit(&client, &server).await;

    let early = come_again(&client, &server).await;
    assert_eq!(early.alpn().as_deref(), Some(b"test".as_slice()));
    let (mut send, mut recv) = soon(early.open_bidi()).await.unwrap();
    send.write_all(b"again?").await.unwrap();
    send.finish();

    let serve = async {
        let accepting = server.accept().await.unwrap().accept();
        let early = accepting.early().await.expect("a server always may");
        let (mut send, mut recv) = early.accept_bidi().await.unwrap().unwrap();
        assert_eq!(recv.read_to_end(100).await.unwrap(), b"again?");
        assert!(recv.is_early(), "it may be a recording");
        send.write_all(b"again!").await.unwrap();
        send.finish();
        let (connection, early_data) = early.established().await.unwrap();
        assert_eq!(early_data, EarlyData::Accepted);
        connection
    };
    let ask = async {
        let (connection, early_data) = early.established().await.unwrap();
        assert_eq!(early_data, EarlyData::Accepted);
        assert_eq!(recv.read_to_end(100).await.unwrap(), b"again!");
        connection
    };
    let (server, client) = soon(async { tokio::join!(serve, ask) }).await;
    assert!(client.handshake().resumed);
    assert_eq!(client.handshake().early_data, EarlyData::Accepted);

    // Data sent now is no recording.
    let (mut send, mut recv) = client.open_bidi().await.unwrap();
    send.write_all(b"and now").await.unwrap();
    send.finish();
    let (early, answer) = tokio::join!(echo(&server), recv.read_to_end(100));
    assert_eq!(answer.unwrap(), b"and now");
    assert!(!early);
}

/// Connects with a ticket, holding the first flight, and lets the worker take many turns.
async fn hold(client: &Endpoint, server: &Endpoint) -> EarlyConnection {
    let connecting = client.connect_early(reachable(server), "localhost");
    let early = soon(connecting.early()).await.expect("there is a ticket");
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(early.stats().packets_sent, 0, "nothing is written");
    early
}

#[tokio::test]
async fn a_first_flight_that_is_held_leaves_with_the_first_data() {
    let server = Endpoint::server("127.0.0.1:0", early_server()).unwrap();
    let client = early_client();
    visit(&client, &server).await;
    let early = hold(&client, &server).await;
    let mut send = early.open_uni().await.unwrap();
    send.write_all(b"early").await.unwrap();
    send.finish();
    let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
    let (connection, client) = soon(async { tokio::join!(accept, early.established()) }).await;
    assert_eq!(client.unwrap().1, EarlyData::Accepted);
    let mut recv = soon(connection.accept_uni()).await.unwrap().unwrap();
    assert!(recv.is_early());
    assert_eq!(soon(recv.read_to_end(100)).await.unwrap(), b"early");
}

type Wait = Pin<Box<dyn Future<Output = ()>>>;

/// Whatever the application waits for needs the handshake.
#[tokio::test]
async fn a_first_flight_that_is_held_leaves_when_the_application_waits() {
    let server = Endpoint::server("127.0.0.1:0", early_server()).unwrap();
    let waits: [fn(EarlyConnection) -> Wait; 4] = [
        |early| Box::pin(async move { drop(early.accept_uni().await) }),
        |early| Box::pin(async move { drop(early.established().await) }),
        |early| Box::pin(async move { drop(early.closed().await) }),
        |early| {
            Box::pin(async move {
                let (_send, mut recv) = early.open_bidi().await.unwrap();
                drop(recv.read_to_end(100).await);
            })
        },
    ];
    for wait in waits {
        let client = early_client();
        visit(&client, &server).await;
        let early = hold(&client, &server).await;
        let mut wait = wait(early);
        tokio::select! {
            () = &mut wait => panic!("the server says nothing"),
            incoming = soon(server.accept()) => drop(incoming),
        }
    }
}

#[tokio::test]
async fn a_first_flight_is_not_held_without_a_ticket() {
    let server = Endpoint::server("127.0.0.1:0", early_server()).unwrap();
    let client = early_client();
    let _connecting = client.connect_early(reachable(&server), "localhost");
    assert!(soon(server.accept()).await.is_some());
}

#[tokio::test]
async fn early_streams_come_with_the_connection_where_nobody_asks_earlier() {
    let server = Endpoint::server("127.0.0.1:0", early_server()).unwrap();
    let client = early_client();
    visit(&client, &server).await;
    let early = come_again(&client, &server).await;
    let mut send = soon(early.open_uni()).await.unwrap();
    send.write_all(b"early").await.unwrap();
    send.finish();
    let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
    let (connection, client) = soon(async { tokio::join!(accept, early.established()) }).await;
    let (client, _) = client.unwrap();
    let mut recv = soon(connection.accept_uni()).await.unwrap().unwrap();
    assert!(recv.is_early());
    assert_eq!(soon(recv.read_to_end(100)).await.unwrap(), b"early");
    assert!(recv.is_early(), "after its end, too");
    drop(client);
}

#[tokio::test]
async fn who_waits_for_an_early_stream_still_gets_it_once_the_handshake_is_complete() {
    let server = Endpoint::server("127.0.0.1:0", early_server()).unwrap();
    let client = early_client();
    visit(&client, &server).await;

    let early = come_again(&client, &server).await;
    let connecting = soon(server.accept()).await.unwrap().accept();
    let served = soon(connecting.early()).await.unwrap();
    let (stream, complete, asked) = soon(async {
        tokio::join!(served.accept_uni(), served.complete(), async {
            let (connection, _) = early.established().await.unwrap();
            let mut send = connection.open_uni().await.unwrap();
            send.write_all(b"late").await.unwrap();
            send.finish();
            connection
        })
    })
    .await;
    let (connection, _) = complete.unwrap();
    assert!(connection.handshake().resumed);
    let mut stream = stream.unwrap().unwrap();
    assert_eq!(soon(stream.read_to_end(100)).await.unwrap(), b"late");
    assert!(served.complete().await.is_err(), "it is handed out once");
    drop(asked);
}

#[tokio::test]
async fn refused_streams_fail_and_their_ids_are_used_anew() {
    let first = Endpoint::server("127.0.0.1:0", early_server()).unwrap();
    let client = early_client();
    visit(&client, &first).await;
    // Another server, for all that TLS can tell: it has no tickets.
    let server = Endpoint::server("127.0.0.1:0", early_server()).unwrap();
    let early = come_again(&client, &server).await;
    let (mut send, mut recv) = soon(early.open_bidi()).await.unwrap();
    send.write_all(b"lost").await.unwrap();
    let mut waiting = soon(early.open_uni()).await.unwrap();
    waiting.write_all(b"lost, too").await.unwrap();

    let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
    let reads = async { recv.read(&mut [0; 8]).await };
    let writes = async { waiting.acknowledged().await };
    let (connection, read, written, client) =
        soon(async { tokio::join!(accept, reads, writes, early.established()) }).await;
    assert_eq!(read, Err(ReadError::ZeroRttRejected));
    assert_eq!(written, Err(WriteError::ZeroRttRejected));
    let (client, early_data) = client.unwrap();
    assert_eq!(early_data, EarlyData::Rejected);
    assert_eq!(send.write(b"more").await, Err(WriteError::ZeroRttRejected));

    let (mut again, mut answer) = client.open_bidi().await.unwrap();
    assert_eq!(again.id(), send.id(), "the stream never was");
    again.write_all(b"again").await.unwrap();
    // Handles of streams that never were do nothing to those that are.
    send.reset(7);
    recv.stop(7);
    drop((send, recv, waiting));
    again.finish();
    let (early, answer) = tokio::join!(echo(&connection), answer.read_to_end(100));
    assert_eq!(answer.unwrap(), b"again");
    assert!(!early);
}

#[tokio::test]
async fn datagrams_are_sent_early() {
    let server = Endpoint::server("127.0.0.1:0", early_server()).unwrap();
    let client = early_client();
    visit(&client, &server).await;
    let early = come_again(&client, &server).await;
    let most = early.max_datagram_size().unwrap();
    early.send_datagram(vec![1; most].into()).unwrap();
    let too_large = early.send_datagram(vec![1; most + 1].into());
    let (len, max) = (most + 1, most);
    assert_eq!(too_large, Err(SendDatagramError::TooLarge { len, max }));
    let serve = async {
        let early = server.accept().await.unwrap().accept().early().await;
        let early = early.expect("a server always may");
        let datagram = early.recv_datagram().await.unwrap().unwrap();
        assert_eq!(datagram.len(), most);
        early.send_datagram("answer".into()).unwrap();
        early.established().await.unwrap().0
    };
    let ask = async {
        let (connection, early_data) = early.established().await.unwrap();
        assert_eq!(early_data, EarlyData::Accepted);
        let answer = connection.recv_datagram().await.unwrap();
        assert_eq!(answer.as_deref(), Some(b"answer".as_slice()));
        connection
    };
    let (server, client) = soon(async { tokio::join!(serve, ask) }).await;
    assert!(client.max_datagram_size().unwrap() > most);
    drop((server, client));
}

#[tokio::test]
async fn whoever_waits_for_a_datagram_learns_of_the_refusal() {
    let first = Endpoint::server("127.0.0.1:0", early_server()).unwrap();
    let client = early_client();
    visit(&client, &first).await;
    let server = Endpoint::server("127.0.0.1:0", early_server()).unwrap();
    let early = come_again(&client, &server).await;
    early.send_datagram("lost".into()).unwrap();
    let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
    let (connection, waited) = soon(async { tokio::join!(accept, early.recv_datagram()) }).await;
    assert_eq!(waited, Err(EarlyError::ZeroRttRejected));
    let refused = early.send_datagram("lost, too".into());
    assert_eq!(refused, Err(SendDatagramError::ZeroRttRejected));
    let (client, early_data) = soon(early.established()).await.unwrap();
    assert_eq!(early_data, EarlyData::Rejected);
    assert_eq!(client.stats().datagram_frames.lost, 1);
    client.send_datagram("again".into()).unwrap();
    let came = soon(connection.recv_datagram()).await.unwrap();
    assert_eq!(came.as_deref(), Some(b"again".as_slice()));
}

#[tokio::test]
async fn whoever_waits_to_open_a_stream_learns_of_the_refusal() {
    let transport = TransportConfig::new().max_uni_streams(1);
    let config = early_server().transport(transport);
    let first = Endpoint::server("127.0.0.1:0", config).unwrap();
    let client = early_client();
    visit(&client, &first).await;
    let server = Endpoint::server("127.0.0.1:0", early_server()).unwrap();
    let early = come_again(&client, &server).await;
    let _only = soon(early.open_uni()).await.unwrap();
    let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
    let (connection, second) = soon(async { tokio::join!(accept, early.open_uni()) }).await;
    assert_eq!(second.unwrap_err(), EarlyError::ZeroRttRejected);
    let (client, early_data) = soon(early.established()).await.unwrap();
    assert_eq!(early_data, EarlyData::Rejected);
    drop((client, connection));
}

#[tokio::test]
async fn a_dropped_early_connection_is_closed_with_its_last_stream() {
    let server = Endpoint::server("127.0.0.1:0", early_server()).unwrap();
    let client = early_client();
    visit(&client, &server).await;
    let early = come_again(&client, &server).await;
    let mut send = soon(early.open_uni()).await.unwrap();
    drop(early);
    send.write_all(b"still here").await.unwrap();
    let connection = soon(async { server.accept().await.unwrap().accept().await }).await;
    let connection = connection.unwrap();
    let mut recv = soon(connection.accept_uni()).await.unwrap().unwrap();
    let mut buffer = [0; 10];
    assert_eq!(soon(recv.read(&mut buffer)).await, Ok(10));
    drop(send);
    assert!(soon(connection.closed()).await.is_clean());
}

#[tokio::test]
async fn an_attempt_that_cannot_start_is_given_back() {
    let client = early_client();
    let address = "127.0.0.1:1".parse().unwrap();
    let connecting = client.connect(address, "not a name");
    let connecting = soon(connecting.early()).await.unwrap_err();
    assert!(matches!(connecting.await, Err(ConnectError::ServerName(_))));
    let connecting = client.connect(address, "localhost");
    client.close(0, b"");
    let connecting = soon(connecting.early()).await.unwrap_err();
    assert!(soon(connecting).await.is_err());
}
