//! Tests of relays.

use std::net::SocketAddr;

use hybriq_proto::{
    endpoint::{Arrival, Local, Place, SocketId},
    owners::acks::Ecn,
};

use super::{Inlet, Letter, Reason, Relays, Unsent, pair};

fn letters() -> Vec<Letter> {
    let peers = ["192.0.2.7:4433", "[2001:db8::1%3]:1", "[fe80::1%7]:65535"];
    let ips = [None, Some("192.0.2.1"), Some("2001:db8::2")];
    let marks = [None, Some(Ecn::Ect0), Some(Ecn::Ect1), Some(Ecn::Ce)];
    let mut letters = Vec::new();
    for (peer, ip) in peers.iter().zip(ips) {
        for (socket, ecn) in marks.into_iter().enumerate() {
            letters.push(Letter {
                arrival: Arrival {
                    peer: peer.parse().expect("an address"),
                    local: Local {
                        socket: SocketId(socket as u8),
                        ip: ip.map(|ip| ip.parse().expect("an address")),
                    },
                    ecn,
                },
                reason: if socket == 0 {
                    Reason::Stray
                } else {
                    Reason::Id
                },
                stride: 1200 + socket as u16,
            });
        }
    }
    letters
}

#[tokio::test]
async fn what_is_forwarded_arrives_as_it_was() {
    let (to, from) = pair().unwrap();
    let mut relays = Relays::default();
    relays.add(3, vec![to]);
    assert!(relays.generations().contains(3));
    let place = relays.places().next().unwrap();
    let mut inlet = Inlet::register(from).unwrap();
    let mut memory = inlet.take_memory();
    for letter in letters() {
        relays.send(place, letter, b"datagram").unwrap();
        std::future::poll_fn(|cx| inlet.poll_readable(cx)).await;
        let (read, datagram) = inlet.receive(&mut memory).unwrap().unwrap();
        assert_eq!(datagram, b"datagram");
        assert_eq!(format!("{read:?}"), format!("{letter:?}"));
    }
    let full = std::iter::repeat_with(|| relays.send(place, letters()[0], &[0; 1200]));
    assert_eq!(full.take(1 << 20).find_map(Result::err), Some(Unsent::Full));
    drop(inlet);
    let sent = relays.send(place, letters()[0], b"");
    assert_eq!(sent, Err(Unsent::Gone));
    assert!(relays.generations().is_empty());
    let nobody = Place {
        generation: 4,
        worker: 0,
    };
    let sent = relays.send(nobody, letters()[0], b"");
    assert_eq!(sent, Err(Unsent::Gone));
}

#[tokio::test]
async fn a_worker_learns_that_its_successors_have_ended() {
    let (to, from) = pair().unwrap();
    let again = to.try_clone().unwrap();
    let mut inlet = Inlet::register(from).unwrap();
    let mut memory = inlet.take_memory();
    let mut kind = || inlet.receive(&mut memory).unwrap_err().kind();
    assert_eq!(kind(), std::io::ErrorKind::WouldBlock);
    drop(to);
    assert_eq!(kind(), std::io::ErrorKind::WouldBlock);
    drop(again);
    tokio::task::yield_now().await;
    std::future::poll_fn(|cx| inlet.poll_readable(cx)).await;
    let ended = inlet.receive(&mut memory).unwrap_err().kind();
    assert_eq!(ended, std::io::ErrorKind::UnexpectedEof);
}

#[test]
fn nonsense_is_no_letter() {
    assert!(Letter::read(&mut []).is_none());
    assert!(Letter::read(&mut [0; Letter::LEN]).is_none(), "no size");
    let peer: SocketAddr = "192.0.2.7:1".parse().unwrap();
    let mut message = letters()[0].to_bytes().to_vec();
    let (letter, rest) = Letter::read(&mut message).unwrap();
    assert_eq!(
        (letter.arrival.peer.is_ipv4(), rest.len()),
        (peer.is_ipv4(), 0)
    );
}
