//! What streams leave behind in the tables of their connection: nothing, regardless of how they
//! end.

use std::sync::Arc;

use bytes::Bytes;
use shuttle::future::spawn;

use super::world::{Settings, World, abandon, check, pause};
use crate::api::{
    connection::Connection,
    stream::{RecvStream, SendStream},
};

/// Returns the numbers of senders and of readers that a connection has entries for.
fn entries(connection: &Connection) -> (usize, usize) {
    let state = connection.handle().lock();
    (state.sends.len(), state.recvs.len())
}

/// The calls that read a stream to its end.
#[derive(Clone, Copy, Debug)]
enum Read {
    Copied,
    Chunk,
    Chunks,
    Unordered,
    All,
}

/// Reads a stream to its end.
async fn read(recv: &mut RecvStream, how: Read) {
    match how {
        Read::Copied => while recv.read(&mut [0; 8]).await.unwrap() > 0 {},
        Read::Chunk => while recv.read_chunk(8).await.unwrap().is_some() {},
        Read::Chunks => {
            let mut chunks = [Bytes::new(), Bytes::new()];
            while recv.read_chunks(&mut chunks).await.unwrap().is_some() {}
        }
        Read::Unordered => while recv.read_unordered(8).await.unwrap().is_some() {},
        Read::All => assert!(!recv.read_to_end(100).await.unwrap().is_empty()),
    }
}

/// Data and end arrive together or apart, and the reader is early or late.
#[test]
fn a_stream_that_was_read_to_its_end_leaves_no_reader() {
    check(Settings::default(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let answerer = server.clone();
        let answers = spawn(async move {
            while let Some((mut send, mut recv)) = answerer.accept_bidi().await.unwrap() {
                pause().await;
                let _ = abandon(recv.received_reset()).await;
                read(&mut recv, Read::All).await;
                send.finish_with(&mut ["an answer".into()]).await.unwrap();
            }
            answerer
        });
        for how in [
            Read::Copied,
            Read::Chunk,
            Read::Chunks,
            Read::Unordered,
            Read::All,
        ] {
            let (mut send, mut recv) = client.open_bidi().await.unwrap();
            send.write_all(b"a question").await.unwrap();
            pause().await;
            send.finish();
            read(&mut recv, how).await;
            assert_eq!(entries(&client), (1, 0), "{how:?}");
        }
        assert_eq!(entries(&client), (0, 0));
        client.close(0, b"");
        assert_eq!(entries(&answers.await.unwrap()), (0, 0));
    });
}

/// Every other way a stream can end, at the end that causes it and at the end that learns of it.
#[test]
fn a_stream_that_ends_otherwise_leaves_nothing() {
    type Half = (SendStream, RecvStream);
    check(Settings::default(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let ends: [fn(Half); 5] = [
            |half| drop(half),
            |(mut send, recv)| {
                send.reset(7);
                drop((recv, send));
            },
            |(mut send, mut recv)| {
                recv.stop(7);
                send.finish();
            },
            |(mut send, _)| send.finish(),
            |(_, mut recv)| recv.stop(7),
        ];
        for end in ends {
            let (mut send, recv) = client.open_bidi().await.unwrap();
            send.write_all(b"more than is wanted").await.unwrap();
            let (answer, mut request) = server.accept_bidi().await.unwrap().unwrap();
            assert_eq!(entries(&server).0, 1);
            let asked = spawn(async move {
                // Whatever the result, and whether or not somebody waited.
                let _ = abandon(request.received_reset()).await;
                let _ = request.read_to_end(3).await;
                drop((answer, request));
            });
            let watcher = client.clone();
            let id = send.id();
            let watched = spawn(async move { watcher.stream_stopped(id).await });
            pause().await;
            end((send, recv));
            asked.await.unwrap();
            let _ = watched.await.unwrap();
            assert_eq!((entries(&client), entries(&server)), ((0, 0), (0, 0)));
        }
        client.close(0, b"");
        server.closed().await;
    });
}

/// The task waits for the end of the stream by its number, and the handle is dropped.
#[test]
fn a_task_that_waits_for_the_end_of_a_stream_learns_that_its_handle_is_gone() {
    check(Settings::default(), |world: Arc<World>| async move {
        let (server, client) = world.connect().await;
        let send = client.open_uni().await.unwrap();
        let (watcher, id) = (client.clone(), send.id());
        let watched = spawn(async move { watcher.stream_stopped(id).await });
        pause().await;
        drop(send);
        assert_eq!(watched.await.unwrap(), Ok(None));
        assert_eq!(entries(&client), (0, 0));
        drop(server);
    });
}
