use super::*;
use crate::udp::Options;

fn socket() -> Socket {
    Socket::bind(([127, 0, 0, 1], 0).into(), Options::default()).unwrap()
}

fn bound(sockets: &Sockets) -> usize {
    sockets.bound.iter().flatten().count()
}

#[tokio::test]
async fn a_socket_is_closed_when_the_last_connection_leaves_it() {
    let mut sockets = Sockets::new(vec![socket(), socket()], Options::default());
    let id = sockets.add(socket()).ok().unwrap();
    assert_eq!(id, SocketId(2));
    let (mut one, mut two) = (Used::default(), Used::default());
    sockets.recount(&mut one, |socket| socket == id);
    sockets.recount(&mut two, |_| true);
    sockets.close_unused(id);
    assert!(sockets.get(id).is_some());
    sockets.recount(&mut one, |_| false);
    sockets.recount(&mut one, |_| false);
    assert!(sockets.get(id).is_some(), "the other one is still there");
    sockets.recount(&mut two, |_| false);
    assert!(sockets.get(id).is_none());
    assert_eq!(bound(&sockets), 2, "those of the endpoint stay");
    assert_eq!(
        sockets.add(socket()).ok().unwrap(),
        id,
        "the place is free again"
    );
}

#[tokio::test]
async fn connections_have_no_more_sockets_than_there_are_places() {
    let mut sockets = Sockets::new(vec![socket()], Options::default());
    for _ in 1..limits::SOCKETS {
        assert!(sockets.add(socket()).is_ok());
    }
    assert!(sockets.add(socket()).is_err());
    let old = sockets.set_primary(socket());
    assert_eq!(old, SocketId(0));
    assert_ne!(sockets.primary(), old);
    assert_eq!(bound(&sockets), limits::SOCKETS, "one gave way");
}

#[tokio::test]
async fn the_socket_before_is_kept_while_it_is_used() {
    let mut sockets = Sockets::new(vec![socket()], Options::default());
    let first = sockets.addresses();
    let mut used = Used::default();
    let old = sockets.set_primary(socket());
    sockets.recount(&mut used, |socket| socket == old);
    sockets.release(old);
    assert!(sockets.get(old).is_some());
    assert_eq!(sockets.addresses().len(), 1);
    assert_ne!(sockets.addresses(), first);
    sockets.recount(&mut used, |socket| socket != old);
    assert!(sockets.get(old).is_none());
    let again = sockets.set_primary(socket());
    sockets.release(again);
    assert!(sockets.get(again).is_some(), "somebody uses it");
}

#[tokio::test]
async fn every_socket_has_its_turn_first() {
    let mut sockets = Sockets::new(vec![socket(), socket(), socket()], Options::default());
    let mut turn = || sockets.take_turns().map(|id| id.0).collect::<Vec<_>>();
    assert_eq!(turn(), [0, 1, 2]);
    assert_eq!(turn(), [1, 2, 0]);
    assert_eq!(turn(), [2, 0, 1]);
    assert_eq!(turn(), [0, 1, 2]);
}
