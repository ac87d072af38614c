//! RFC 9000 §2: streams carry the same bytes at the same place, however often.

use std::collections::BTreeMap;

use hybriq_sim::{Network, one_in};

use crate::wiretap::{Seen, exchange};

/// Proves: rfc9000 2.2 data-at-an-offset-stays-the-same
#[test]
fn what_is_sent_again_is_the_same() {
    let mut bytes: BTreeMap<(bool, u64, u64), u8> = BTreeMap::new();
    let mut again = 0;
    for packet in exchange(Network::new(3).loss(one_in(8))) {
        for frame in packet.frames.iter().filter(|_| packet.sent) {
            let Seen::Stream {
                id, offset, data, ..
            } = frame
            else {
                continue;
            };
            for (at, byte) in (*offset..).zip(data) {
                let side = packet.side.is_server();
                if let Some(before) = bytes.insert((side, *id, at), *byte) {
                    assert_eq!(before, *byte, "stream {id} at {at}");
                    again += 1;
                }
            }
        }
    }
    assert!(again > 10_000, "{again} bytes were sent again");
}
