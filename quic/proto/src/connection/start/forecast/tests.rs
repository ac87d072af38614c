use super::{
    model::{Bounds, Crypto, Model, Outcome},
    *,
};

fn run(initial: usize, handshake: usize, bounds: Bounds) -> Outcome {
    let model = Model {
        peer_cid: 8,
        local_cid: 8,
        ack: 5,
        bounds,
    };
    model.run(&Crypto {
        initial: 0..initial,
        handshake: 0..handshake,
    })
}

const UNBOUNDED: Bounds = Bounds {
    credit: None,
    window: u64::MAX,
};

fn amplified(received: u64) -> Bounds {
    Bounds {
        credit: Some(3 * received),
        window: initial_window(1200),
    }
}

#[test]
fn a_datagram_is_filled_to_its_last_byte() {
    // 26 + 1 + 16 bytes around the frames of the Initial, 5 of ACK, 4 of the CRYPTO header.
    let full = 1200 - 43 - 5 - 4;
    assert_eq!(run(full, 0, UNBOUNDED).datagrams, 1);
    assert_eq!(run(full + 1, 0, UNBOUNDED).datagrams, 2);
    assert_eq!(
        run(100, 10, UNBOUNDED).bytes,
        1200,
        "an Initial fills its datagram"
    );
}

#[test]
fn the_amplification_limit_stops_the_flight() {
    let small = run(90, 2000, amplified(1200));
    assert_eq!((small.rounds, small.limit), (1, None));
    let large = run(90, 5000, amplified(1200));
    assert_eq!((large.rounds, large.at_once), (2, 3));
    assert_eq!(large.limit, Some(FlightLimit::Amplification));
    assert_eq!(run(90, 5000, amplified(2400)).rounds, 1);
}

#[test]
fn the_initial_window_stops_the_flight() {
    let validated = Bounds {
        credit: None,
        window: initial_window(1200),
    };
    let large = run(1200, 20_000, validated);
    assert_eq!((large.rounds, large.at_once), (2, 10));
    assert_eq!(large.limit, Some(FlightLimit::Window));
    assert_eq!(run(1200, 9_000, validated).limit, None);
}

#[test]
fn no_flight_is_counted_forever() {
    let nothing = Bounds {
        credit: Some(0),
        window: 0,
    };
    let outcome = run(100, 100, nothing);
    assert!(outcome.rounds <= 16, "{outcome:?}");
}
