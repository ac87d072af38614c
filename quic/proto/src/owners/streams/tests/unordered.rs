//! Unordered reads of streams.

use super::*;
use crate::{
    owners::streams::{Chunk, ReadError},
    wire::frame::{Owner as _, ResetStream, ResetStreamAt},
};

fn data(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

/// Reads everything that is there, as (offset, length).
fn read_there(streams: &mut Streams, id: StreamId, all: &[u8]) -> (Vec<(u64, usize)>, bool) {
    let mut read = Vec::new();
    loop {
        match streams.read_unordered(id, usize::MAX) {
            Ok(Some(Chunk { offset, bytes })) => {
                assert_eq!(bytes[..], all[offset as usize..][..bytes.len()]);
                read.push((offset, bytes.len()));
            }
            Ok(None) => return (read, true),
            Err(error) => {
                assert_eq!(error, ReadError::Blocked);
                return (read, false);
            }
        }
    }
}

#[test]
fn data_behind_a_loss_is_read_at_once_and_the_loss_later() {
    let (mut client, mut server) = pair();
    let id = client.open(Direction::Uni).unwrap();
    let all = data(20_000);
    client.write(id, &all).unwrap();
    client.finish(id).unwrap();
    let sent = packets(&mut client);
    let mut total = 0;
    for (index, (payload, _)) in sent.iter().enumerate() {
        if index % 3 != 0 {
            deliver(payload, &mut server);
            let (read, ended) = read_there(&mut server, id, &all);
            total += read.iter().map(|(_, len)| len).sum::<usize>();
            assert!(!read.is_empty() && !ended);
        }
    }
    assert!(total > 10_000 && total < all.len());
    // A packet that was considered lost arrives twice.
    for (index, (payload, packet)) in sent.iter().enumerate() {
        if index % 3 == 0 || index == 1 {
            client.on_lost(packet);
            if index == 1 {
                deliver(payload, &mut server);
            }
        }
    }
    events(&mut server);
    send_all(&mut client, &mut server);
    assert_eq!(events(&mut server), [StreamEvent::Readable(id)]);
    let (read, ended) = read_there(&mut server, id, &all);
    total += read.iter().map(|(_, len)| len).sum::<usize>();
    assert_eq!((total, ended), (all.len(), true));
    assert_eq!(server.read_unordered(id, 1), Err(ReadError::Closed));
}

#[test]
fn ordered_reads_are_refused_after_unordered_ones() {
    let (_, mut server) = pair();
    let id = client_uni(0);
    receive(&mut server, &stream(id, 0, b"0123", false)).unwrap();
    receive(&mut server, &stream(id, 6, b"67", true)).unwrap();
    assert_eq!(server.read(id, &mut [0; 2]), Ok(2));
    let mut next = || {
        let chunk = server.read_unordered(id, 100).unwrap().unwrap();
        (chunk.offset, chunk.bytes)
    };
    assert_eq!(next(), (2, "23".into()), "what was not read in order");
    assert_eq!(next(), (6, "67".into()));
    assert_eq!(server.read(id, &mut [0; 2]), Err(ReadError::Unordered));
    assert_eq!(server.read_chunk(id, 2), Err(ReadError::Unordered));
    assert_eq!(server.read_unordered(id, 9), Err(ReadError::Blocked));
    receive(&mut server, &stream(id, 3, b"3456", false)).unwrap();
    assert_eq!(server.readable(id), 2);
    let chunk = server.read_unordered(id, 100).unwrap().unwrap();
    assert_eq!((chunk.offset, &chunk.bytes[..]), (4, &b"45"[..]));
    assert_eq!(server.read_unordered(id, 9), Ok(None));
}

#[test]
fn unordered_reads_return_credit() {
    let (mut client, mut server) = pair();
    let id = client.open(Direction::Uni).unwrap();
    let all = data(90_000);
    client.write(id, &all).unwrap();
    client.finish(id).unwrap();
    let mut total = 0;
    for _ in 0..20 {
        send_all(&mut client, &mut server);
        let (read, ended) = read_there(&mut server, id, &all);
        total += read.iter().map(|(_, len)| len).sum::<usize>();
        if ended {
            break;
        }
        send_all(&mut server, &mut client);
    }
    assert_eq!(total, all.len(), "more than the window");
}

#[test]
fn a_reset_follows_the_reliable_bytes_in_any_order() {
    let (_, mut server) = pair();
    let id = client_uni(0);
    let all = data(20);
    receive(&mut server, &stream(id, 6, &all[6..20], false)).unwrap();
    let reset = Frame::ResetStreamAt(ResetStreamAt {
        id,
        code: 7,
        final_size: 20,
        reliable_size: 10,
    });
    receive(&mut server, &reset).unwrap();
    assert_eq!(read_there(&mut server, id, &all), (vec![(6, 4)], false));
    receive(&mut server, &stream(id, 0, &all[..8], false)).unwrap();
    let chunk = server.read_unordered(id, 100).unwrap().unwrap();
    assert_eq!((chunk.offset, chunk.bytes.len()), (0, 6));
    assert_eq!(server.read_unordered(id, 100), Err(ReadError::Reset(7)));
}

#[test]
fn a_plain_reset_ends_unordered_reads_with_its_code() {
    let (_, mut server) = pair();
    let all = data(20);
    for (number, in_order) in [(0, false), (1, true)] {
        let id = client_uni(number);
        // A byte that was read, a gap, and bytes that nobody has read yet.
        receive(&mut server, &stream(id, 0, &all[..1], false)).unwrap();
        assert_eq!(read_there(&mut server, id, &all), (vec![(0, 1)], false));
        events(&mut server);
        receive(&mut server, &stream(id, 6, &all[6..12], false)).unwrap();
        let reset = Frame::ResetStream(ResetStream {
            id,
            code: 7,
            final_size: 20,
        });
        receive(&mut server, &reset).unwrap();
        assert_eq!(events(&mut server), [StreamEvent::Readable(id)]);
        assert_eq!(server.readable(id), 0);
        let error = if in_order {
            server.read(id, &mut [0; 9]).unwrap_err()
        } else {
            server.read_unordered(id, 9).unwrap_err()
        };
        assert_eq!(error, ReadError::Reset(7));
        assert_eq!(server.read_unordered(id, 9), Err(ReadError::Closed));
    }
}
