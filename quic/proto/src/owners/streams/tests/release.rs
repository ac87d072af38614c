use super::{
    Direction, StreamEvent, Streams, client_uni, events, exchange_all, pair, read_all, receive,
    send_all, stream,
};
use crate::owners::streams::{ClosedStream, ReadError, StreamId, WriteError};

fn halves(streams: &Streams) -> usize {
    streams.sends.len() + streams.recvs.len()
}

/// A stream of the client that the server accepted.
fn accepted(client: &mut Streams, server: &mut Streams) -> StreamId {
    let id = client.open(Direction::Bidi).unwrap();
    client.write(id, b"hello").unwrap();
    send_all(client, server);
    assert_eq!(server.accept(Direction::Bidi), Some(id));
    id
}

#[test]
fn a_sender_dropped_unfinished_resets_the_stream() {
    let (mut client, mut server) = pair();
    let id = accepted(&mut client, &mut server);
    client.forget_send(id, 7);
    exchange_all(&mut client, &mut server);
    assert_eq!(server.read(id, &mut [0; 10]), Err(ReadError::Reset(7)));
    assert_eq!(events(&mut client), [], "nobody is there to be told");
}

#[test]
fn a_sender_dropped_finished_delivers_everything() {
    let (mut client, mut server) = pair();
    let id = client.open(Direction::Uni).unwrap();
    client.write(id, b"hello").unwrap();
    client.finish(id).unwrap();
    client.forget_send(id, 0);
    exchange_all(&mut client, &mut server);
    server.accept(Direction::Uni);
    assert_eq!(read_all(&mut server, id), b"hello");
    assert_eq!((halves(&client), halves(&server)), (0, 0));
}

#[test]
fn a_sender_dropped_unused_still_closes_its_number() {
    let (mut client, mut server) = pair();
    let id = client.open(Direction::Uni).unwrap();
    client.forget_send(id, 0);
    exchange_all(&mut client, &mut server);
    assert_eq!(server.accept(Direction::Uni), Some(id));
    assert_eq!(server.read(id, &mut [0; 1]), Err(ReadError::Reset(0)));
    assert_eq!((halves(&client), halves(&server)), (0, 0));
}

#[test]
fn a_receiver_dropped_unread_stops_the_sender() {
    let (mut client, mut server) = pair();
    let id = accepted(&mut client, &mut server);
    server.forget_recv(id, 8);
    exchange_all(&mut client, &mut server);
    assert_eq!(events(&mut client)[0], StreamEvent::Stopped { id, code: 8 });
    assert_eq!(client.write(id, b"more"), Err(WriteError::Stopped(8)));
}

#[test]
fn a_receiver_dropped_after_all_arrived_stops_nobody() {
    let (mut client, mut server) = pair();
    let id = client_uni(0);
    receive(&mut server, &stream(id, 0, b"hello", true)).unwrap();
    server.accept(Direction::Uni);
    server.forget_recv(id, 0);
    assert_eq!(halves(&server), 0);
    assert_eq!(send_all(&mut server, &mut client), [""; 0]);
}

/// The table is made smaller, so that streams take other places in it.
#[test]
fn released_memory_is_not_that_of_open_streams() {
    let (mut client, mut server) = pair();
    let ids = [(); 3].map(|()| accepted(&mut client, &mut server));
    for id in ids {
        assert_eq!(server.read(id, &mut [0; 10]), Ok(5));
    }
    for streams in [&mut client, &mut server] {
        streams.forget_send(ids[0], 0);
        streams.forget_recv(ids[0], 0);
    }
    exchange_all(&mut client, &mut server);
    assert_eq!((halves(&client), halves(&server)), (4, 4));
    client.release_memory();
    server.release_memory();
    for id in &ids[1..] {
        client.write(*id, b"again").unwrap();
        exchange_all(&mut client, &mut server);
        assert_eq!(server.read(*id, &mut [0; 10]), Ok(5), "{id:?}");
    }
}

/// The end needs no separate read, and is not reported before all data was read.
#[test]
fn the_end_comes_with_the_last_data() {
    let (_, mut server) = pair();
    let id = client_uni(0);
    receive(&mut server, &stream(id, 0, b"hel", false)).unwrap();
    server.accept(Direction::Uni);
    assert!(!server.take_end(id), "unread");
    assert_eq!(server.read_chunk(id, 10).unwrap().unwrap(), "hel");
    assert!(!server.take_end(id), "open");
    receive(&mut server, &stream(id, 5, b"!", true)).unwrap();
    assert!(!server.take_end(id), "a gap");
    receive(&mut server, &stream(id, 3, b"lo", false)).unwrap();
    assert!(!server.take_end(id), "unread");
    assert_eq!(server.read(id, &mut [0; 2]), Ok(2));
    assert!(!server.take_end(id), "one byte is left");
    assert_eq!(server.read(id, &mut [0; 2]), Ok(1));
    assert!(server.take_end(id));
    assert_eq!(halves(&server), 0);
    assert!(!server.take_end(id), "gone");
}

#[test]
fn a_dropped_stream_leaves_nothing_behind_on_either_end() {
    let (mut client, mut server) = pair();
    for _ in 0..100 {
        let id = accepted(&mut client, &mut server);
        server.forget_recv(id, 0);
        server.forget_send(id, 0);
        exchange_all(&mut client, &mut server);
        client.forget_recv(id, 0);
        client.forget_send(id, 0);
        exchange_all(&mut client, &mut server);
        assert_eq!((halves(&client), halves(&server)), (0, 0));
    }
    for streams in [&client, &server] {
        assert!(streams.schedule.controls.is_empty());
        assert!(streams.schedule.free.is_empty() && streams.schedule.fresh.is_empty());
    }
}

#[test]
fn a_stopped_sender_is_kept_until_the_application_knows() {
    let (mut client, mut server) = pair();
    let id = accepted(&mut client, &mut server);
    server.stop(id, 4).unwrap();
    exchange_all(&mut client, &mut server);
    assert!(client.is_send_acknowledged(id));
    assert_eq!(client.write(id, b"more"), Err(WriteError::Stopped(4)));
    assert_eq!(client.finish(id), Err(ClosedStream));
    assert_eq!(
        client.stop_code(id),
        None,
        "it ended the stream and needs no more"
    );
    assert_eq!(client.sends.len(), 0);
}

#[test]
fn calls_for_streams_that_are_gone_or_never_were_are_refused() {
    let (mut client, _) = pair();
    let id = client_uni(5);
    assert_eq!(client.write(id, b"x"), Err(WriteError::Closed));
    assert_eq!(client.finish(id), Err(ClosedStream));
    assert_eq!(client.reset(id, 0), Err(ClosedStream));
    assert_eq!(client.read(id, &mut [0; 1]), Err(ReadError::Closed));
    assert_eq!(client.read_chunk(id, 1), Err(ReadError::Closed));
    assert_eq!(client.stop(id, 0), Err(ClosedStream));
    client.forget_send(id, 0);
    client.forget_recv(id, 0);
    assert!(!client.has_pending());
}

#[test]
fn tables_give_memory_back_after_many_streams() {
    let (mut client, mut server) = pair();
    for _ in 0..5 {
        let ids: Vec<_> = std::iter::from_fn(|| client.open(Direction::Uni)).collect();
        for &id in &ids {
            client.finish(id).unwrap();
            client.forget_send(id, 0);
        }
        exchange_all(&mut client, &mut server);
        while let Some(id) = server.accept(Direction::Uni) {
            assert_eq!(server.read_chunk(id, 10), Ok(None));
        }
        exchange_all(&mut client, &mut server);
        assert_eq!((halves(&client), halves(&server)), (0, 0));
    }
    assert!(client.totals().opened >= 50);
}

#[test]
fn nobody_is_told_that_a_dropped_sender_was_stopped() {
    let (mut client, mut server) = pair();
    let id = accepted(&mut client, &mut server);
    client.finish(id).unwrap();
    client.forget_send(id, 0);
    server.stop(id, 3).unwrap();
    send_all(&mut server, &mut client);
    exchange_all(&mut client, &mut server);
    assert_eq!(events(&mut client), []);
    assert_eq!(client.sends.len(), 0);
}
