//! Handles that are dropped at any time, even by a waker.

use std::{
    future::Future,
    pin::pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use hybriq_proto::config::TransportConfig;
use shuttle::future::spawn;

use super::world::{Settings, World, abandon, check, client_config, pause, server_config};
use crate::{
    api::{
        connection::Connection,
        stream::{RecvStream, SendStream},
    },
    sync::time,
};

/// The last handle is dropped while the worker has something to report to it.
#[test]
fn the_last_handle_closes_the_connection() {
    check(Settings::default(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let writer = spawn(async move {
            let (mut send, recv) = client.open_bidi().await.unwrap();
            send.write_all(b"x").await.unwrap();
            let handles = (client.clone(), client, send, recv);
            let (first, second, third, fourth) = handles;
            let tasks = [
                spawn(async move { drop(first) }),
                spawn(async move { drop(second) }),
                spawn(async move { drop(third) }),
                spawn(async move { drop(fourth) }),
            ];
            for task in tasks {
                task.await.unwrap();
            }
        });
        let answerer = server.clone();
        let answer = spawn(async move {
            if let Ok(Some((mut send, recv))) = answerer.accept_bidi().await {
                drop(recv);
                let _ = send.write_all(b"y").await;
            }
        });
        assert!(server.closed().await.is_clean());
        writer.await.unwrap();
        answer.await.unwrap();
    });
}

/// Finished streams arrive although every handle is dropped while they are in flight, in any order.
#[test]
fn what_was_finished_arrives_after_the_last_handle_is_gone() {
    check(
        Settings::default().in_time(),
        |world: Arc<World>| async move {
            let (server, client) = world.connect().await;
            let writer = spawn(async move {
                let mut send = client.open_uni().await.unwrap();
                send.write_all(&vec![1; 20_000]).await.unwrap();
                send.finish();
                let tasks = [
                    spawn(async move { drop(send) }),
                    spawn(async move { drop(client) }),
                ];
                for task in tasks {
                    task.await.unwrap();
                }
            });
            let mut recv = server.accept_uni().await.unwrap().unwrap();
            assert_eq!(recv.read_to_end(30_000).await.unwrap().len(), 20_000);
            assert!(server.closed().await.is_clean());
            writer.await.unwrap();
        },
    );
}

/// A peer that accepts no data keeps a connection without handles for a limited time.
#[test]
fn finished_streams_that_do_not_arrive_are_given_up() {
    let small = TransportConfig::new()
        .receive_window(10_000)
        .stream_receive_window(10_000);
    let settings = Settings::new(server_config().transport(small), client_config());
    check(settings, |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let mut send = client.open_uni().await.unwrap();
        send.write_all(&vec![1; 20_000]).await.unwrap();
        send.finish();
        let now = time::now().unwrap();
        let mut state = client.handle().lock();
        assert_eq!(state.leave(), None, "half of the data is still here");
        let mut wakes = Vec::new();
        state.go_on_leaving(now, &mut wakes);
        let until = state.next_timeout().unwrap();
        assert!(until <= now + Duration::from_secs(30));
        state.go_on_leaving(now + Duration::from_millis(29_999), &mut wakes);
        assert_eq!(state.closed, None);
        state.go_on_leaving(now + Duration::from_secs(30), &mut wakes);
        assert!(state.closed.is_some());
        drop(state);
        drop(server);
    });
}

/// A stream is dropped in the middle of a poll or after its wake, and the others continue.
#[test]
fn a_stream_that_goes_leaves_the_others_alone() {
    check(Settings::default(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let sender = spawn(async move {
            let mut streams = Vec::new();
            for _ in 0..3 {
                let mut send = client.open_uni().await.unwrap();
                send.write_all(b"x").await.unwrap();
                streams.push(send);
            }
            pause().await;
            for send in &mut streams {
                let _ = send.write_all(b"y").await;
                send.finish();
            }
            client.closed().await
        });
        let mut tasks = Vec::new();
        for leaves in [true, false, true] {
            let mut recv = server.accept_uni().await.unwrap().unwrap();
            tasks.push(spawn(async move {
                if leaves {
                    abandon(async move { recv.read_to_end(2).await }).await;
                } else {
                    assert_eq!(recv.read_to_end(2).await.unwrap(), b"xy");
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        drop(server);
        sender.await.unwrap();
    });
}

/// A waker that owns handles, like the waker of a task whose future owns them.
struct Owner<T>(Mutex<Option<T>>);

impl<T: Send + 'static> Owner<T> {
    fn waker(owned: T) -> Waker {
        Waker::from(Arc::new(Self(Mutex::new(Some(owned)))))
    }
}

impl<T: Send + 'static> Wake for Owner<T> {
    /// Drops the handles, as a task does when it ends.
    fn wake(self: Arc<Self>) {
        let owned = self.0.lock().unwrap().take();
        drop(owned);
    }
}

fn poll_once<F: Future>(future: F, waker: &Waker) {
    let polled = pin!(future).poll(&mut Context::from_waker(waker));
    assert!(matches!(polled, Poll::Pending));
}

/// Drops the wakers that own handles.
enum Ending {
    Replaced,
    ClosedByPeer,
    Closed,
    Dropped,
}

/// Polls through a handle with wakers that own other handles: dropping or calling such a waker
/// locks again.
async fn with_owners(world: &World, ending: Ending) {
    let (server, mut client) = world.connect().await;
    let stream = |client: Connection| async move { client.open_bidi().await.unwrap() };
    let mut watched: Vec<(SendStream, RecvStream)> = Vec::new();
    for _ in 0..2 {
        let (mut send, recv) = stream(client.clone()).await;
        let owner = || async { Owner::waker(stream(client.clone()).await) };
        let [read, watch] = [owner().await, owner().await];
        let mut recv = recv;
        assert!(
            recv.poll_read_chunk(&mut Context::from_waker(&read), 1)
                .is_pending()
        );
        assert!(
            send.poll_stopped(&mut Context::from_waker(&watch))
                .is_pending()
        );
        watched.push((send, recv));
    }
    let accept = Owner::waker(stream(client.clone()).await);
    let end = Owner::waker((stream(client.clone()).await, client.clone()));
    assert!(
        client
            .poll_accept_uni(&mut Context::from_waker(&accept))
            .is_pending()
    );
    assert!(
        client
            .poll_closed(&mut Context::from_waker(&end))
            .is_pending()
    );
    let clone = client.clone();
    let future = Owner::waker(stream(client.clone()).await);
    poll_once(clone.recv_datagram(), &future);
    drop((accept, end, future));
    match ending {
        Ending::Replaced => {
            let mut cx = Context::from_waker(Waker::noop());
            for (send, recv) in &mut watched {
                assert!(recv.poll_read_chunk(&mut cx, 1).is_pending());
                assert!(send.poll_stopped(&mut cx).is_pending());
            }
            assert!(client.poll_accept_uni(&mut cx).is_pending());
            assert!(client.poll_closed(&mut cx).is_pending());
        }
        Ending::ClosedByPeer => {
            server.close(0, b"");
            client.closed().await;
        }
        Ending::Closed => client.close(0, b""),
        Ending::Dropped => drop(watched),
    }
}

#[test]
fn a_waker_that_is_replaced_may_drop_handles() {
    check(Settings::default(), |world: Arc<World>| async move {
        with_owners(&world, Ending::Replaced).await;
    });
}

#[test]
fn a_waker_that_is_called_by_the_worker_may_drop_handles() {
    check(Settings::default(), |world: Arc<World>| async move {
        with_owners(&world, Ending::ClosedByPeer).await;
    });
}

#[test]
fn a_waker_that_is_called_by_a_handle_may_drop_handles() {
    check(Settings::default(), |world: Arc<World>| async move {
        with_owners(&world, Ending::Closed).await;
    });
}

#[test]
fn a_stream_that_goes_with_its_waker_may_drop_handles() {
    check(Settings::default(), |world: Arc<World>| async move {
        with_owners(&world, Ending::Dropped).await;
    });
}

/// A connection that was established when nobody waited for it any longer is closed.
#[test]
fn a_handshake_whose_future_goes_is_over_for_both() {
    check(
        Settings::default().in_time(),
        |world: Arc<World>| async move {
            let server = world.server.clone();
            let accept = spawn(async move {
                let incoming = server.accept().await?;
                let connection = incoming.accept().await.ok()?;
                Some(connection.closed().await)
            });
            let address = super::world::server_address();
            let connecting = world.client.connect(address, "localhost");
            let connected = abandon(connecting).await;
            drop(connected);
            world.client.idle().await;
            world.server.close(0, b"");
            accept.await.unwrap();
        },
    );
}
