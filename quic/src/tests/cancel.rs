//! Futures that are dropped at any await, woken or not: nothing is lost, and the next task is
//! woken.

use std::sync::Arc;

use bytes::Bytes;
use hybriq_proto::config::{DatagramConfig, TransportConfig};
use shuttle::future::spawn;

use super::world::{
    Settings, World, abandon, check, client_config, pause, server_address, server_config,
};

/// Number of times that each call is abandoned before it is made for real.
const TIMES: usize = 3;

/// Abandons a call a few times, and passes on its result if it was already ready.
macro_rules! after_abandoned {
    ($call:expr) => {{
        let mut output = None;
        for _ in 0..TIMES {
            if output.is_none() {
                output = abandon($call).await;
            }
        }
        match output {
            Some(output) => output,
            None => $call.await,
        }
    }};
}

#[test]
fn an_abandoned_read_loses_nothing() {
    check(Settings::default(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let writer = spawn(async move {
            let mut send = client.open_uni().await.unwrap();
            for byte in 0..8 {
                send.write_all(&[byte]).await.unwrap();
                pause().await;
            }
            send.finish();
            send
        });
        let mut recv = after_abandoned!(server.accept_uni()).unwrap().unwrap();
        let mut all = Vec::new();
        let mut chunks = [Bytes::new(), Bytes::new()];
        while all.len() < 8 {
            let mut buffer = [0; 1];
            let read = after_abandoned!(recv.read(&mut buffer)).unwrap();
            all.extend_from_slice(&buffer[..read]);
            if let Some(chunk) = after_abandoned!(recv.read_chunk(1)).unwrap() {
                all.extend_from_slice(&chunk);
            }
            if let Some(count) = after_abandoned!(recv.read_chunks(&mut chunks)).unwrap() {
                all.extend(chunks[..count].iter().flatten());
            }
        }
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(after_abandoned!(recv.received_reset()), Ok(None));
        assert_eq!(recv.read_chunk(1).await, Ok(None));
        writer.await.unwrap();
    });
}

#[test]
fn an_abandoned_unordered_read_loses_nothing() {
    check(Settings::default(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let writer = spawn(async move {
            let mut send = client.open_uni().await.unwrap();
            for byte in 0..6 {
                send.write_all(&[byte]).await.unwrap();
                pause().await;
            }
            send.finish();
            send
        });
        let mut recv = server.accept_uni().await.unwrap().unwrap();
        let mut sum = 0;
        while let Some(chunk) = after_abandoned!(recv.read_unordered(2)).unwrap() {
            sum += chunk.bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        }
        assert_eq!(sum, 15);
        writer.await.unwrap();
    });
}

#[test]
fn an_abandoned_write_writes_nothing() {
    let transport = TransportConfig::new().stream_receive_window(1000);
    let client = TransportConfig::new().send_buffer(1000);
    let settings = Settings::new(
        server_config().transport(transport),
        client_config().transport(client),
    );
    check(settings.in_time(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let writer = spawn(async move {
            let mut send = client.open_uni().await.unwrap();
            let mut written = 0;
            for _ in 0..4 {
                written += after_abandoned!(send.write(&[1; 700])).unwrap();
                let mut chunks = [Bytes::from_static(&[1; 400]), Bytes::from_static(&[1; 300])];
                let _ = after_abandoned!(send.write_chunks(&mut chunks));
                let left: usize = chunks.iter().map(Bytes::len).sum();
                written += 700 - left;
            }
            after_abandoned!(send.acknowledged()).unwrap();
            written
        });
        let mut recv = server.accept_uni().await.unwrap().unwrap();
        let all = recv.read_to_end(100_000).await.unwrap();
        assert_eq!(all.len(), writer.await.unwrap());
    });
}

#[test]
fn who_waits_after_an_abandoned_open_gets_the_stream() {
    let transport = TransportConfig::new()
        .max_uni_streams(1)
        .max_bidi_streams(1);
    let settings = Settings::new(server_config().transport(transport), client_config());
    check(settings.in_time(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let opener = |client: crate::api::connection::Connection| {
            spawn(async move {
                let mut send = after_abandoned!(client.open_uni()).unwrap();
                send.write_all(b"x").await.unwrap();
                send.acknowledged().await.unwrap();
                drop(send);
                let (mut send, recv) = after_abandoned!(client.open_bidi()).unwrap();
                drop(recv);
                send.write_all(b"x").await.unwrap();
                send.acknowledged().await.unwrap();
            })
        };
        let openers = [opener(client.clone()), opener(client)];
        for _ in 0..2 {
            let mut recv = after_abandoned!(server.accept_uni()).unwrap().unwrap();
            assert_eq!(recv.read_to_end(1).await.unwrap(), b"x");
        }
        for _ in 0..2 {
            let (_send, mut recv) = after_abandoned!(server.accept_bidi()).unwrap().unwrap();
            assert_eq!(recv.read_to_end(1).await.unwrap(), b"x");
        }
        for opener in openers {
            opener.await.unwrap();
        }
    });
}

/// Each of two streams wakes the oldest waiting task, which may be gone before it is polled.
#[test]
fn an_abandoned_accept_hands_its_wake_on() {
    check(Settings::default(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let acceptor = |server: crate::api::connection::Connection| {
            spawn(async move { abandon(server.accept_uni()).await })
        };
        let leaving = [acceptor(server.clone()), acceptor(server.clone())];
        let staying = spawn(async move {
            let accepted = server.accept_uni().await.unwrap();
            (accepted.unwrap(), server)
        });
        let mut streams = Vec::new();
        for _ in 0..3 {
            let mut send = client.open_uni().await.unwrap();
            send.write_all(b"x").await.unwrap();
            streams.push(send);
            pause().await;
        }
        // There are enough for all, so every task that stays gets one.
        staying.await.unwrap();
        for leaving in leaving {
            drop(leaving.await.unwrap());
        }
    });
}

#[test]
fn an_abandoned_wait_for_a_datagram_loses_none() {
    let transport = TransportConfig::new().datagrams(DatagramConfig::new().send_queue(1000));
    let settings = Settings::new(
        server_config().transport(transport.clone()),
        client_config().transport(transport),
    );
    check(settings, |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let send = |client: crate::api::connection::Connection| {
            spawn(async move {
                let mut sent = 0;
                for _ in 0..2 {
                    let data = Bytes::from_static(&[0; 900]);
                    after_abandoned!(client.send_datagram_wait(data.clone())).unwrap();
                    sent += 1;
                }
                sent
            })
        };
        let senders = [send(client.clone()), send(client.clone())];
        let mut received = 0;
        while received < 4 {
            after_abandoned!(server.recv_datagram()).unwrap().unwrap();
            received += 1;
        }
        for sender in senders {
            assert_eq!(sender.await.unwrap(), 2);
        }
        drop(client);
        assert_eq!(after_abandoned!(server.recv_datagram()), Ok(None));
    });
}

#[test]
fn an_abandoned_wait_for_the_end_is_taken_up_again() {
    check(
        Settings::default().in_time(),
        |world: Arc<World>| async move {
            let (server, client) = world.connect().await;
            let closer = spawn(async move {
                pause().await;
                client.close(7, b"");
            });
            assert!(!after_abandoned!(server.closed()).is_clean());
            closer.await.unwrap();
            after_abandoned!(world.client.idle());
            after_abandoned!(world.server.idle());
        },
    );
}

#[test]
fn an_abandoned_accept_of_the_endpoint_loses_no_client() {
    check(Settings::default(), |world: Arc<World>| async move {
        let acceptor = |world: &World| {
            let server = world.server.clone();
            spawn(async move { abandon(server.accept()).await.flatten() })
        };
        let leaving = [acceptor(&world), acceptor(&world)];
        let endpoint = world.server.clone();
        let connecting = world.client.connect(server_address(), "localhost");
        let staying = spawn(async move { endpoint.accept().await });
        let mut incoming = None;
        for leaving in leaving {
            incoming = incoming.or(leaving.await.unwrap());
        }
        // One of the tasks that left may have taken it.
        let incoming = match incoming {
            Some(incoming) => incoming,
            None => staying.await.unwrap().unwrap(),
        };
        let accepted = spawn(incoming.accept());
        connecting.await.unwrap();
        accepted.await.unwrap().unwrap();
        // Ends the task that stays, if it got none.
        world.server.close(0, b"");
    });
}

/// A handshake that is given up at any time ends on both sides.
#[test]
fn an_abandoned_handshake_ends() {
    check(
        Settings::default().in_time(),
        |world: Arc<World>| async move {
            let endpoint = world.server.clone();
            let server = spawn(async move {
                while let Some(incoming) = endpoint.accept().await {
                    if let Some(Ok(connection)) = abandon(incoming.accept()).await {
                        connection.closed().await;
                    }
                }
            });
            for _ in 0..2 {
                drop(abandon(world.client.connect(server_address(), "localhost")).await);
                pause().await;
            }
            let early = world.client.connect(server_address(), "localhost").early();
            drop(abandon(early).await);
            world.client.idle().await;
            world.server.close(0, b"");
            server.await.unwrap();
            world.server.idle().await;
        },
    );
}
