//! A ClientHello in pieces of any size and order, overlapping and repeated: the server has a
//! connection exactly when every byte has arrived.
#![expect(clippy::unwrap_used, reason = "a target that cannot go on has failed")]

mod support;

use std::{panic::AssertUnwindSafe, time::Duration};

use hybriq::tls::Side;
use hybriq_proto::{
    endpoint::Setup,
    wire::packet::{Cid, PacketNumber},
};
use hybriq_sim::{Datagram, InitialFrame, Network, SERVER_ADDRESS, World, build_initial, join};

#[test]
fn crypto_reassembly() {
    let server = AssertUnwindSafe(support::server());
    let (origin, _) = support::world(&server);
    let source = origin.client_host(0).address;
    let sent = origin.trace().initials(Side::Client, source);
    let hello = join(sent.iter().map(|(_, initial)| initial));
    let scid = sent[0].1.scid;
    let dcid = Cid::from([9; 8]);
    bolero::check!()
        .with_iterations(2_000)
        .with_type::<(Vec<(u16, u16)>, bool)>()
        .for_each(|(pieces, rest)| {
            let mut world = World::new(Network::new(1), Setup::clone(&server));
            let mut came = vec![false; hello.len()];
            // At the end everything is sent again, to fill holes.
            let all = (0..hello.len())
                .step_by(1000)
                .map(|at| (at as u16, 1000))
                .rev();
            let all = all.filter(|_| *rest);
            for (number, (offset, len)) in pieces.iter().copied().take(50).chain(all).enumerate() {
                let from = usize::from(offset) % hello.len();
                let to = (from + usize::from(len) % 1001).min(hello.len());
                let data = hello[from..to].to_vec();
                let frames = if data.is_empty() {
                    vec![InitialFrame::Ping]
                } else {
                    vec![InitialFrame::Crypto {
                        offset: from as u64,
                        data,
                    }]
                };
                let payload =
                    build_initial(dcid, scid, PacketNumber::saturating(number as u64), &frames);
                let destination = SERVER_ADDRESS;
                world.deliver(Datagram::new(source, destination, payload));
                came[from..to].fill(true);
                let whole = came.iter().all(|came| *came);
                assert_eq!(world.server().peers().len(), usize::from(whole));
                assert_eq!(world.server().stats().partial_hellos, u64::from(!whole));
            }
            world.run_for(Duration::from_secs(1));
        });
}
