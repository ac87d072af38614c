//! No waiting task is forgotten.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hybriq_proto::{
    config::{DatagramConfig, TransportConfig},
    owners::datagrams::{DatagramOptions, Fate},
};
use shuttle::future::spawn;

use super::world::{Settings, World, check, client_config, pause, server_address, server_config};
use crate::{
    api::{connection::Connection, stream::RecvStream},
    errors::WriteError,
    sync::clock,
};

/// Returns settings of a server that allows one stream, and little data.
fn narrow() -> Settings {
    let transport = TransportConfig::new()
        .max_uni_streams(1)
        .stream_receive_window(1000);
    let client = TransportConfig::new().send_buffer(1000);
    Settings::new(
        server_config().transport(transport),
        client_config().transport(client),
    )
}

async fn accept_uni(connection: &Connection) -> RecvStream {
    connection.accept_uni().await.unwrap().unwrap()
}

#[test]
fn a_reader_is_woken_for_every_byte() {
    check(Settings::default(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let writer = spawn(async move {
            let mut send = client.open_uni().await.unwrap();
            for byte in 0..3 {
                send.write_all(&[byte]).await.unwrap();
                pause().await;
            }
            send.finish();
            client.closed().await
        });
        let mut recv = accept_uni(&server).await;
        assert_eq!(recv.read_to_end(10).await.unwrap(), [0, 1, 2]);
        drop((recv, server));
        assert!(writer.await.unwrap().is_clean());
    });
}

#[test]
fn a_writer_is_woken_when_there_is_credit() {
    check(narrow(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let writer = spawn(async move {
            let mut send = client.open_uni().await.unwrap();
            send.write_all(&[7; 6000]).await.unwrap();
            send.finish();
            send
        });
        let mut recv = accept_uni(&server).await;
        assert_eq!(recv.read_to_end(6000).await.unwrap().len(), 6000);
        writer.await.unwrap();
    });
}

#[test]
fn all_who_open_get_a_stream_in_turn() {
    check(narrow(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let open = |byte| {
            let client = client.clone();
            spawn(async move {
                let mut send = client.open_uni().await.unwrap();
                send.write_all(&[byte]).await.unwrap();
                send.finish();
                send
            })
        };
        let tasks = [open(1), open(2), open(3)];
        let mut sum = 0;
        for _ in 0..3 {
            let mut recv = accept_uni(&server).await;
            sum += recv.read_to_end(1).await.unwrap()[0];
        }
        assert_eq!(sum, 6);
        for task in tasks {
            drop(task.await.unwrap());
        }
    });
}

/// Data that is sent makes room for more, before the peer acknowledges it.
#[test]
fn a_writer_is_woken_when_there_is_room() {
    let transport = TransportConfig::new().send_buffer(1000);
    let settings = Settings::new(server_config(), client_config().transport(transport));
    check(settings, |world: Arc<World>| async move {
        let (_server, client) = world.connect().await;
        let mut send = client.open_uni().await.unwrap();
        world.network.set_reachable(server_address(), Some(0));
        send.write_all(&[7; 5000]).await.unwrap();
        world.network.set_reachable(server_address(), None);
    });
}

#[test]
fn who_waits_for_the_acknowledgement_is_woken() {
    check(
        Settings::default().in_time(),
        |world: Arc<World>| async move {
            let (server, client) = world.connect().await;
            let writer = spawn(async move {
                let mut send = client.open_uni().await.unwrap();
                send.write_all(b"x").await.unwrap();
                send.acknowledged().await
            });
            let mut recv = accept_uni(&server).await;
            assert_eq!(recv.read_to_end(1).await.unwrap(), b"x");
            writer.await.unwrap().unwrap();
        },
    );
}

#[test]
fn each_of_several_who_accept_gets_a_stream() {
    check(Settings::default(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let accept = |mut server: Connection, by_poll| {
            spawn(async move {
                let accepted = if by_poll {
                    poll_fn(|cx| server.poll_accept_uni(cx)).await
                } else {
                    server.accept_uni().await
                };
                accepted.unwrap().unwrap().read_to_end(1).await.unwrap()[0]
            })
        };
        let tasks = [
            accept(server.clone(), false),
            accept(server.clone(), true),
            accept(server.clone(), false),
        ];
        for byte in 1..=3 {
            let mut send = client.open_uni().await.unwrap();
            send.write_all(&[byte]).await.unwrap();
            send.finish();
        }
        let mut sum = 0;
        for task in tasks {
            sum += task.await.unwrap();
        }
        assert_eq!(sum, 6);
    });
}

/// A handle that was polled may never be polled again.
#[test]
fn a_handle_keeps_no_wake_from_a_future() {
    check(Settings::default(), |world: Arc<World>| async move {
        let (mut server, client) = world.connect().await;
        let waiting = server.clone();
        let accepted = poll_fn(|cx| Poll::Ready(server.poll_accept_uni(cx))).await;
        assert!(accepted.is_pending());
        let accept = spawn(async move { accept_uni(&waiting).await });
        pause().await;
        let mut send = client.open_uni().await.unwrap();
        send.write_all(b"x").await.unwrap();
        accept.await.unwrap();
    });
}

#[test]
fn all_who_wait_for_room_for_a_datagram_get_it() {
    let transport = TransportConfig::new().datagrams(DatagramConfig::new().send_queue(1000));
    let settings = Settings::new(
        server_config().transport(transport.clone()),
        client_config().transport(transport),
    );
    check(settings, |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let send = |byte| {
            let client = client.clone();
            spawn(async move {
                let data = Bytes::from(vec![byte; 900]);
                client.send_datagram_wait(data).await
            })
        };
        let tasks = [send(1), send(2), send(3)];
        let mut sum = 0;
        for _ in 0..3 {
            sum += server.recv_datagram().await.unwrap().unwrap()[0];
        }
        assert_eq!(sum, 6);
        for task in tasks {
            task.await.unwrap().unwrap();
        }
    });
}

#[test]
fn those_who_watch_a_stream_learn_its_end() {
    check(Settings::default(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let stop = spawn(async move {
            let (mut send, mut recv) = server.accept_bidi().await.unwrap().unwrap();
            pause().await;
            recv.stop(7);
            pause().await;
            send.reset(8);
            server.closed().await
        });
        let (mut send, mut recv) = client.open_bidi().await.unwrap();
        send.write_all(b"x").await.unwrap();
        let watch = spawn(async move {
            let stopped = send.stopped().await;
            assert_eq!(send.write(b"y").await, Err(WriteError::Stopped(7)));
            stopped
        });
        assert_eq!(recv.received_reset().await, Ok(Some(8)));
        assert_eq!(watch.await.unwrap(), Ok(Some(7)));
        client.close(0, b"");
        stop.await.unwrap();
    });
}

/// Waits of their own, which need no handle: several of one stream, and all of them are woken.
#[test]
fn waits_for_a_stream_outlive_its_handle() {
    check(narrow().in_time(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let reader = spawn(async move {
            let mut recv = accept_uni(&server).await;
            assert_eq!(recv.read_to_end(9).await.unwrap().len(), 9);
            let mut recv = accept_uni(&server).await;
            recv.stop(7);
            server.closed().await
        });
        // The window of a stream is 1000 bytes: the longer one cannot arrive as a whole.
        for (data, end) in [(vec![7; 9], None), (vec![7; 1500], Some(7))] {
            let mut send = client.open_uni().await.unwrap();
            let stopped = [send.stopped(), send.stopped()].map(spawn);
            drop(send.stopped());
            // The peer may stop the longer one before all of it is in the buffer.
            let written = send.write_all(&data).await;
            assert!(written.is_ok() || end.is_some());
            send.finish();
            let late = send.stopped();
            drop(send);
            for stopped in stopped {
                assert_eq!(stopped.await.unwrap(), Ok(end));
            }
            assert_eq!(late.await, Ok(end));
        }
        let send = client.open_uni().await.unwrap();
        let stopped = spawn(send.stopped());
        client.close(0, b"");
        assert!(stopped.await.unwrap().is_err());
        assert!(send.stopped().await.is_err());
        reader.await.unwrap();
    });
}

#[test]
fn who_waits_for_the_first_bytes_is_woken_when_they_have_arrived() {
    let settings = Settings::default().in_time();
    check(settings, |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let mut send = client.open_uni().await.unwrap();
        let waits = [send.delivered(0), send.delivered(3), send.delivered(9)].map(spawn);
        send.write_all(b"abc").await.unwrap();
        assert_eq!(send.delivered(3).await, Ok(()));
        let sent = send.delivery().unwrap();
        assert_eq!((sent.written, sent.acknowledged, sent.lost), (3, 3, 0));
        send.write_all(b"def").await.unwrap();
        send.finish();
        for wait in waits {
            assert_eq!(wait.await.unwrap(), Ok(()), "all of a shorter stream");
        }
        assert_eq!(send.delivery(), None);
        assert_eq!(send.delivered(9).await, Ok(()));
        // What is reset will not be delivered.
        let mut send = client.open_uni().await.unwrap();
        let wait = spawn(send.delivered(1));
        send.reset(4);
        assert_eq!(wait.await.unwrap(), Err(WriteError::Closed));
        assert_eq!(send.delivered(1).await, Err(WriteError::Closed));
        drop(server);
    });
}

/// A stream whose time has come wakes all who wait for it.
#[test]
fn an_expired_stream_wakes_its_writer() {
    check(narrow().in_time(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let reader = spawn(async move {
            let mut recv = accept_uni(&server).await;
            let end = recv.received_reset().await;
            drop(recv);
            (end, server.closed().await).0
        });
        let mut send = client.open_uni().await.unwrap();
        let late = Duration::from_secs(1);
        send.expire_at(Some(clock::now() + late), 9);
        let waits = [send.delivered(5000), send.delivered(6000)].map(spawn);
        // The window of the stream takes a thousand bytes, and nobody reads.
        assert_eq!(send.write_all(&[7; 6000]).await, Err(WriteError::Expired));
        for wait in waits {
            assert_eq!(wait.await.unwrap(), Err(WriteError::Expired));
        }
        let room = |cx: &mut Context<'_>| client.poll_stream_room(send.id(), 1, cx);
        assert_eq!(poll_fn(room).await, Err(WriteError::Expired));
        assert_eq!(send.acknowledged().await, Err(WriteError::Expired));
        drop(send);
        client.close(0, b"");
        assert_eq!(reader.await.unwrap(), Ok(Some(9)));
    });
}

#[test]
fn who_waits_for_the_fate_of_a_datagram_is_woken() {
    let settings = Settings::default().in_time();
    check(settings, |world: Arc<World>| async move {
        let begun = clock::now();
        let (server, client) = world.connect().await;
        let options = DatagramOptions::new();
        let fate = client.send_datagram_tracked("one".into(), options).unwrap();
        let other = client.send_datagram_tracked("two".into(), options).unwrap();
        drop(other);
        assert_eq!(fate.await, Ok(Fate::Acknowledged));
        let late = options.expires(begun);
        let late = client.send_datagram_tracked("late".into(), late).unwrap();
        assert_eq!(late.await, Ok(Fate::Expired));
        assert!(
            client
                .send_datagram_tracked(Bytes::from(vec![0; 9000]), options)
                .is_err()
        );
        world.network.set_reachable(server_address(), Some(0));
        let last = client
            .send_datagram_tracked("last".into(), options)
            .unwrap();
        let last = spawn(last);
        client.close(0, b"");
        assert!(last.await.unwrap().is_err(), "the connection is over");
        world.network.set_reachable(server_address(), None);
        drop(server);
    });
}

#[test]
fn two_connections_start_at_once() {
    check(Settings::default(), |world: Arc<World>| async move {
        let other = world.clone();
        let second = spawn(async move { other.connect().await });
        let first = world.connect().await;
        let second = second.await.unwrap();
        drop((first, second));
    });
}

#[test]
fn a_server_answers_before_the_handshake_is_over() {
    let settings = Settings::new(server_config().accept_early_data(), client_config());
    check(settings.in_time(), |world: Arc<World>| async move {
        let endpoint = world.server.clone();
        let server = spawn(async move {
            let accepting = endpoint.accept().await.unwrap().accept();
            let (early, connection) = match accepting.early().await {
                Ok(early) => (Some(early), None),
                // The handshake is already over.
                Err(accepting) => (None, Some(accepting.await.unwrap())),
            };
            let mut send = match (&early, &connection) {
                (Some(early), _) => early.open_uni().await.unwrap(),
                (None, connection) => connection.as_ref().unwrap().open_uni().await.unwrap(),
            };
            send.write_all(b"early").await.unwrap();
            send.finish();
            let connection = match early {
                Some(early) => early.established().await.unwrap().0,
                None => connection.unwrap(),
            };
            send.acknowledged().await.unwrap();
            connection.closed().await
        });
        let connecting = world.client.connect(server_address(), "localhost");
        let client = connecting.await.unwrap();
        let mut recv = accept_uni(&client).await;
        assert_eq!(recv.read_to_end(5).await.unwrap(), b"early");
        client.close(0, b"");
        server.await.unwrap();
    });
}
