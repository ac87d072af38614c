use std::{future::poll_fn, net::SocketAddr};

use hybriq_proto::{
    endpoint::{Local, Transmit},
    stats::EndpointStats,
};

use super::{ENOUGH, Flushed, SendBatch, TRAIN};
use crate::{
    udp::{Buffers, Options, Socket},
    worker::sockets::Sockets,
};

fn sockets() -> Sockets {
    Sockets::new(vec![socket()], Options::default())
}

fn socket() -> Socket {
    Socket::bind(([127, 0, 0, 1], 0).into(), Options::default()).unwrap()
}

fn transmit(peer: SocketAddr, size: usize, segment_size: Option<usize>) -> Transmit {
    Transmit {
        peer,
        local: Local::default(),
        ecn: None,
        size,
        segment_size,
    }
}

async fn flush(batch: &mut SendBatch, sockets: &Sockets, stats: &mut EndpointStats) {
    while batch.flush(sockets, stats) == Flushed::Blocked {
        let id = batch.waits_for().unwrap();
        poll_fn(|cx| sockets.poll_writable(id, cx)).await;
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[tokio::test]
async fn what_the_socket_does_not_take_stays_and_is_sent_later() {
    let (mut sockets, peer) = (sockets(), socket());
    let (mut batch, mut stats) = (SendBatch::new(), EndpointStats::default());
    sockets.give_away();
    batch.space()[..3].copy_from_slice(b"one");
    batch.push(None, transmit(peer.local_address(), 3, None));
    // The runtime has not seen yet that the socket is writable.
    assert_eq!(batch.flush(&sockets, &mut stats), Flushed::Blocked);
    assert_eq!((batch.is_empty(), stats.send_calls), (false, 0));
    batch.space()[..3].copy_from_slice(b"two");
    batch.push(None, transmit(peer.local_address(), 3, None));
    flush(&mut batch, &sockets, &mut stats).await;
    assert!(batch.is_empty());
    assert_eq!((stats.datagrams_sent, stats.bytes_sent), (2, 6));

    let (mut buffers, mut received) = (Buffers::new(), Vec::new());
    while received.len() < 6 {
        poll_fn(|cx| peer.poll_readable(cx)).await;
        let Ok(count) = peer.receive(&mut buffers) else {
            continue;
        };
        buffers
            .messages(count)
            .for_each(|message| received.extend_from_slice(message.bytes));
    }
    assert_eq!(received, b"onetwo");
}

#[tokio::test]
async fn a_datagram_the_system_refuses_is_dropped_and_counted() {
    let sockets = sockets();
    let (mut batch, mut stats) = (SendBatch::new(), EndpointStats::default());
    // No socket of one family can send to the other.
    batch.push(None, transmit("[2001:db8::1]:9".parse().unwrap(), 10, None));
    flush(&mut batch, &sockets, &mut stats).await;
    assert!(batch.is_empty());
    assert_eq!((stats.send_errors, stats.datagrams_sent), (1, 0));
}

#[tokio::test]
async fn a_train_the_system_refuses_is_sent_in_single_datagrams() {
    let sockets = sockets();
    let (mut batch, mut stats) = (SendBatch::new(), EndpointStats::default());
    batch.push(
        None,
        transmit("[2001:db8::1]:9".parse().unwrap(), 35, Some(10)),
    );
    flush(&mut batch, &sockets, &mut stats).await;
    assert_eq!(stats.send_errors, 4);
}

/// A train from an address that no longer exists costs two calls, not one for each of its
/// datagrams, and the connection learns why.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[tokio::test]
async fn a_train_from_an_address_that_is_gone_is_given_up_at_its_first_datagram() {
    use hybriq_proto::{connection::RefusalCause, endpoint::Slot};

    let (sockets, peer) = (sockets(), socket());
    let (mut batch, mut stats) = (SendBatch::new(), EndpointStats::default());
    let mut train = transmit(peer.local_address(), 40_000, Some(1000));
    train.local.ip = Some([192, 0, 2, 77].into());
    batch.push(Some(Slot(7)), train);
    batch.push(
        Some(Slot(8)),
        transmit(peer.local_address(), 2000, Some(1000)),
    );
    flush(&mut batch, &sockets, &mut stats).await;
    assert_eq!((stats.send_errors, stats.datagrams_sent), (40, 2));
    assert_eq!(stats.send_calls, 1, "the other train stays one");
    let refused = batch.take_refused();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0].0, Slot(7));
    assert_eq!(refused[0].1.cause, RefusalCause::OwnAddress);
    assert!(!batch.has_refused());
}

#[test]
fn there_is_room_for_the_longest_train_until_it_is_full() {
    let mut batch = SendBatch::new();
    while !batch.is_full() {
        assert_eq!(batch.space().len(), TRAIN);
        batch.push(None, transmit(([127, 0, 0, 1], 9).into(), ENOUGH / 3, None));
    }
    assert_eq!(batch.filled, ENOUGH / 3 * 4);
}
