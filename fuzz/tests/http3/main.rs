//! HTTP/3 without I/O: streams of a hostile peer however they are cut, messages of our own whose parts come late, whole
//! exchanges over a simulated network, and sessions of WebTransport.
#![expect(clippy::unwrap_used, reason = "a target that cannot go on has failed")]

mod cuts;
mod exchange;
mod messages;
mod sessions;
#[path = "../support/setups.rs"]
mod setups;

use std::{
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicU64, Ordering},
};

use cuts::{Cut, Piece, Victim};
use exchange::{Path, exchange};
use http::{Request, Response};
use hybriq::tls::KeyLog;
use messages::{Pair, Step};

/// No bytes make an end panic or hold more than its settings allow, and what it makes of them does not depend on the
/// packets in which they arrive.
#[test]
fn streams_however_they_are_cut() {
    bolero::check!()
        .with_iterations(6_000)
        .with_type::<(u8, Vec<Piece>)>()
        .for_each(|(choice, pieces)| {
            if choice % 2 == 0 {
                let whole = Victim::<Request<()>>::server(*choice).play(pieces, Cut::Whole);
                let parts = Victim::<Request<()>>::server(*choice).play(pieces, Cut::Parts);
                whole.check_same(&parts);
            } else {
                let whole = Victim::<Response<()>>::client(*choice).play(pieces, Cut::Whole);
                let parts = Victim::<Response<()>>::client(*choice).play(pieces, Cut::Parts);
                whole.check_same(&parts);
            }
        });
}

/// What one end writes is what the other reads, whatever comes late, in pieces, or not at all.
#[test]
fn messages_survive_late_streams() {
    let blocked = AssertUnwindSafe(AtomicU64::new(0));
    bolero::check!()
        .with_iterations(500)
        .with_type::<(u8, Vec<Step>)>()
        .for_each(|(choice, steps)| {
            let mut pair = Pair::new(*choice);
            for step in steps {
                pair.step(step);
            }
            pair.finish();
            blocked.fetch_add(pair.blocked, Ordering::Relaxed);
        });
    // Only random inputs get here.
    assert!(
        blocked.load(Ordering::Relaxed) > 0,
        "no section ever waited"
    );
}

/// No capsules make a session panic, hold more than the longest, or answer without end; what it makes of them does not
/// depend on the packets in which they arrive.
#[test]
fn capsules_however_they_are_cut() {
    bolero::check!()
        .with_iterations(10_000)
        .with_type::<(u8, u8, Vec<sessions::Part>)>()
        .for_each(|(choice, piece, parts)| {
            let bytes = sessions::encode(parts);
            let whole = sessions::play(*choice, &bytes, bytes.len());
            let cut = sessions::play(*choice, &bytes, usize::from(*piece));
            assert_eq!(whole, cut);
        });
}

/// Two ends of a session keep to the limits that they tell each other, and lose no credit, whenever capsules arrive.
#[test]
fn sessions_survive_late_capsules() {
    bolero::check!()
        .with_iterations(5_000)
        .with_type::<(u8, Vec<sessions::Step>)>()
        .for_each(|(choice, steps)| {
            let mut pair = sessions::Pair::new(*choice);
            for step in steps {
                pair.step(*step);
            }
            pair.finish();
        });
}

/// Requests of one connection over a network that loses and reorders: all of them end, and nothing is left.
#[test]
fn exchanges_over_a_simulated_network() {
    let setups = AssertUnwindSafe((setups::server(["fuzz"]), setups::client(KeyLog::Off)));
    let blocked = AssertUnwindSafe(AtomicU64::new(0));
    let inserted = AssertUnwindSafe(AtomicU64::new(0));
    bolero::check!()
        .with_iterations(60)
        .with_type::<Path>()
        .for_each(|path| {
            let (server, client) = &*setups;
            let outcome = exchange(*path, server, client);
            blocked.fetch_add(outcome.blocked, Ordering::Relaxed);
            inserted.fetch_add(outcome.inserted, Ordering::Relaxed);
        });
    // Only random inputs get here.
    assert!(
        blocked.load(Ordering::Relaxed) > 0,
        "no section ever waited"
    );
    assert!(inserted.load(Ordering::Relaxed) > 0, "no table was used");
}
