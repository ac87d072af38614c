//! What connections and endpoints hold once everything is over: no more than fresh ones.
#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

use crate::endpoint_support::{
    Pair, at_rest, client, client_config, reachable, server, server_config, soon,
};
use hybriq::{Connection, Endpoint, tls::EarlyData};

/// Waits until both ends hold nothing that a fresh connection does not hold.
async fn rest(pair: &Pair) {
    soon(at_rest(&pair.client)).await;
    soon(at_rest(&pair.server)).await;
}

/// Polls a future once and drops it.
async fn abandon<F: Future>(future: F) {
    let mut future = std::pin::pin!(future);
    let polled =
        std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_ready()));
    assert!(!polled.await);
}

/// Uses streams in every way, and leaves none.
async fn use_streams(from: &Connection, to: &Connection) {
    for how in 0..6 {
        let (mut send, mut recv) = from.open_bidi().await.unwrap();
        send.write_all(b"a question").await.unwrap();
        let (mut answer, mut question) = soon(to.accept_bidi()).await.unwrap().unwrap();
        abandon(recv.read(&mut [0; 8])).await;
        match how {
            0 => {
                send.finish();
                assert_eq!(question.read_to_end(100).await.unwrap(), b"a question");
                answer.finish_with(&mut ["an answer".into()]).await.unwrap();
                assert_eq!(recv.read_to_end(100).await.unwrap(), b"an answer");
            }
            1 => send.reset(7),
            2 => {
                question.stop(7);
                answer.reset(8);
            }
            3 => {
                abandon(question.received_reset()).await;
                abandon(send.stopped()).await;
            }
            4 => assert!(question.read_to_end(3).await.is_err()),
            _ => assert!(question.read_unordered(4).await.unwrap().is_some()),
        }
    }
}

#[tokio::test]
async fn connections_of_all_kinds_come_to_rest() {
    let pair = Pair::new("127.0.0.1:0").await;
    rest(&pair).await;
    let fresh = [pair.client.census(), pair.server.census()];
    use_streams(&pair.client, &pair.server).await;
    use_streams(&pair.server, &pair.client).await;

    pair.client.send_datagram("a datagram".into()).unwrap();
    assert!(soon(pair.server.recv_datagram()).await.unwrap().is_some());
    abandon(pair.server.recv_datagram()).await;
    abandon(pair.client.accept_uni()).await;
    abandon(pair.client.closed()).await;
    rest(&pair).await;
    for (end, fresh) in [&pair.client, &pair.server].into_iter().zip(fresh) {
        let grown = end.census().grown_since(&fresh);
        assert!(grown.is_empty(), "{:?}: {grown}", end.side());
    }
}

#[tokio::test]
async fn early_streams_leave_nothing_whatever_becomes_of_them() {
    let early_server = || Endpoint::server("127.0.0.1:0", server_config().accept_early_data());
    let server = early_server().unwrap();
    let client = Endpoint::client(client_config().offer_early_data()).unwrap();
    let first = Pair::of(server.clone(), client.clone()).await;
    assert_eq!(first.echo(b"for the ticket").await, b"for the ticket");
    drop(first);
    for expected in [EarlyData::Accepted, EarlyData::Rejected] {
        // The tickets of the first server are of no use to another one.
        let server = if expected == EarlyData::Accepted {
            server.clone()
        } else {
            server.close(0, b"");
            soon(server.idle()).await;
            Endpoint::server(server.local_address(), server_config().accept_early_data()).unwrap()
        };
        let early = soon(client.connect(reachable(&server), "localhost").early()).await;
        let early = early.expect("there is a ticket");
        let (mut send, recv) = soon(early.open_bidi()).await.unwrap();
        send.write_all(b"early").await.unwrap();
        let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
        let (server, established) = soon(async { tokio::join!(accept, early.established()) }).await;
        let (client, outcome) = established.unwrap();
        assert_eq!(outcome, expected);
        drop((send, recv));
        if outcome == EarlyData::Accepted {
            drop(soon(server.accept_bidi()).await);
        }
        soon(at_rest(&client)).await;
        soon(at_rest(&server)).await;
    }
}

#[tokio::test]
async fn an_endpoint_without_connections_is_as_new() {
    let (server, client) = (server("127.0.0.1:0"), client());
    let fresh = [server.census().await, client.census().await];
    for _ in 0..3 {
        let pair = Pair::of(server.clone(), client.clone()).await;
        pair.echo(b"hello").await;
        let anywhere = "127.0.0.1:0".parse().unwrap();
        soon(pair.client.migrate(anywhere)).await.unwrap();
        pair.client.close(0, b"");
        soon(pair.server.closed()).await;
    }
    // A client that gives up, and one that is refused.
    abandon(client.connect(reachable(&server), "localhost")).await;
    let connecting = client.connect(reachable(&server), "localhost");
    let refuse = async {
        while let Some(incoming) = server.accept().await {
            incoming.refuse();
        }
    };
    let refused = soon(async {
        tokio::select! {
            refused = connecting => refused.is_err(),
            () = refuse => false,
        }
    });
    assert!(refused.await);
    soon(client.idle()).await;
    soon(server.idle()).await;
    for (endpoint, fresh) in [&server, &client].into_iter().zip(fresh) {
        let grown = endpoint.census().await.grown_since(&fresh);
        assert!(grown.is_empty(), "{grown}");
    }
}
