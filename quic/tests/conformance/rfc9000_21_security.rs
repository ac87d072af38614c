//! RFC 9000 §21: attacks that are answered by a rule.

use std::collections::BTreeSet;

use hybriq::{Direction, events::PacketKind, tls::Side};
use hybriq_proto::wire::packet::PacketNumber;
use hybriq_sim::ms;

use crate::{
    duo::{Duo, Verdict},
    wiretap::tapped,
};

/// Proves: rfc9000 21.4 skipped-numbers-catch-optimists
#[test]
fn an_acknowledgement_of_what_was_never_sent() {
    let (tap, config) = tapped();
    let mut duo = Duo::with(config.clone(), config);
    let streams = duo.connection(Side::Server).streams();
    let id = streams.open(Direction::Uni).unwrap();
    let _ = streams.write(id, &vec![7; 800_000]);
    duo.world.run_for(ms(3000));
    let sent: BTreeSet<PacketNumber> = tap
        .packets()
        .iter()
        .filter(|packet| packet.sent && packet.side.is_server())
        .filter(|packet| packet.kind == PacketKind::OneRtt)
        .map(|packet| packet.number)
        .collect();
    let largest = *sent.last().unwrap();
    let skipped = (0..largest.get())
        .rev()
        .map(PacketNumber::saturating)
        .find(|number| !sent.contains(number));
    let skipped = skipped.expect("a number that was skipped");
    duo.send(Side::Client, |out| {
        assert!(
            out.ack(0, std::iter::once(skipped..=skipped), None)
                .is_some()
        );
    });
    let verdict = duo.verdict(Side::Server);
    assert_eq!(
        verdict,
        Some(Verdict {
            code: 0x0a,
            frame: 0x02
        })
    );
}
