//! Tests that an owner that wants to send is also asked to write.

use bytes::Bytes;

use super::{Pair, forged::pair};
use crate::{connection::Connection, owners::streams::Direction, wire::packet::Kind};

/// Asserts that `change` makes a server want to send, and that one datagram satisfies it.
fn satisfied(pair: &mut Pair, change: impl FnOnce(&mut Connection)) {
    pair.run();
    let wants = |pair: &mut Pair| {
        let owners = pair.server.connection().owners();
        owners.want_to_send(Kind::OneRtt)
    };
    assert!(!wants(pair), "it is silent");
    change(pair.server.connection());
    assert!(wants(pair));
    assert_eq!(pair.server.transmit(pair.now).len(), 1);
    assert!(!wants(pair), "all of it was written");
}

#[test]
fn what_an_owner_wants_to_send_is_written() {
    let mut pair = pair();
    satisfied(&mut pair, |server| {
        let id = server.streams().open(Direction::Uni).unwrap();
        server.streams().write(id, b"data").unwrap();
    });
    satisfied(&mut pair, |server| {
        server.send_datagram(Bytes::from_static(b"data")).unwrap();
    });
    satisfied(&mut pair, |server| {
        server.issue_token([192, 0, 2, 77].into(), Some([7; 50].into_iter().collect()));
    });
    let now = pair.now;
    satisfied(&mut pair, |server| {
        server.rotate_cids(now);
    });
}
