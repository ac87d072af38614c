//! Tests of bursts, blackouts, reordering by position, ordered jitter and changed ECN marks.

use hybriq_tls::Side;

use super::{Datagram, deliver, numbered, numbers, run};
use crate::{Bursts, Mangle, Network, ms, one_in, per_mille};
use hybriq_proto::owners::acks::Ecn;

#[test]
fn bursts_have_their_frequency_and_length() {
    let network = || Network::new(7).bursts(per_mille(1), 10);
    let came = numbers(&run(network(), Side::Server, 200_000));
    let gaps: Vec<_> = came
        .windows(2)
        .map(|pair| pair[1] - pair[0] - 1)
        .filter(|&gap| gap > 0)
        .collect();
    let lost = 200_000 - came.len();
    assert!((1500..2500).contains(&lost), "{lost}");
    assert!((150..250).contains(&gaps.len()), "{} bursts", gaps.len());
    assert_eq!(came, numbers(&run(network(), Side::Server, 200_000)));
}

#[test]
fn a_burst_may_let_some_pass() {
    let node = Bursts::new(one_in(1), 1_000_000).lost_within(one_in(2));
    let came = run(Network::new(7).node(node), Side::Server, 1000).len();
    assert!((430..570).contains(&came), "{came}");
}

#[test]
fn a_burst_ends_with_its_time() {
    // One datagram per millisecond, and no burst ends on its own.
    let node = Bursts::new(one_in(5), 1_000_000).longest(ms(3));
    let came = numbers(&run(Network::new(7).node(node), Side::Server, 1000));
    let gaps = came.windows(2).map(|pair| pair[1] - pair[0] - 1);
    assert!(gaps.filter(|&gap| gap > 0).all(|gap| gap == 4));
    assert!((400..700).contains(&came.len()), "{}", came.len());
}

#[test]
fn a_blackout_has_a_beginning_and_an_end() {
    let network = Network::new(1).blackout([(ms(2), ms(4)), (ms(7), ms(8))]);
    assert_eq!(
        numbers(&run(network, Side::Server, 10)),
        [0, 1, 4, 5, 6, 8, 9]
    );
}

#[test]
fn an_overtaken_datagram_falls_back_by_as_many_places_as_may_be() {
    let came = numbers(&run(
        Network::new(3).overtake(per_mille(20), 50),
        Side::Server,
        10_000,
    ));
    let mut largest = 0;
    let (mut late, mut furthest) = (0, 0);
    for (place, &number) in came.iter().enumerate() {
        let overtaken_by = came[..place].iter().rev().take(200);
        let behind = overtaken_by.filter(|&&before| before > number).count();
        late += usize::from(number < largest);
        furthest = furthest.max(behind);
        largest = largest.max(number);
    }
    assert!((150..250).contains(&late), "{late}");
    assert!((45..=51).contains(&furthest), "{furthest}");
    let mut sorted = came;
    sorted.sort_unstable();
    assert_eq!(sorted, (0..10_000).collect::<Vec<_>>());
}

#[test]
fn a_datagram_that_nobody_overtakes_waits_a_while() {
    let came = run(Network::new(3).overtake(one_in(1), 50), Side::Client, 2);
    assert_eq!(came, [(ms(100), 0), (ms(101), 1)]);
}

#[test]
fn ordered_jitter_keeps_the_order() {
    let came = run(Network::new(3).ordered_jitter(ms(10)), Side::Server, 1000);
    assert_eq!(numbers(&came), (0..1000).collect::<Vec<_>>());
    let wait = |&(at, number): &(std::time::Duration, u32)| at.abs_diff(ms(number.into()));
    assert!(came.iter().all(|one| wait(one) <= ms(10)));
    assert!(came.iter().any(|one| wait(one) > ms(9)));
    assert!(came.iter().any(|one| wait(one) < ms(5)));
}

#[test]
fn mangled_marks_are_what_they_should_not_be() {
    let all = [None, Some(Ecn::Ect0), Some(Ecn::Ect1), Some(Ecn::Ce)];
    let through = |node: Mangle| {
        let sent = all.map(|ecn| {
            let datagram = numbered(Side::Server, 0, 100);
            (ms(0), Datagram { ecn, ..datagram })
        });
        let came = deliver(Network::new(1).node(node), Side::Server, sent);
        came.iter().map(|(_, one)| one.ecn).collect::<Vec<_>>()
    };
    let [none, ect0, ect1, ce] = all;
    assert_eq!(through(Mangle::Bleach), [none; 4]);
    assert_eq!(through(Mangle::AllCe), [ce; 4]);
    assert_eq!(through(Mangle::Ect0ToEct1), [none, ect1, ect1, ce]);
    assert_eq!(through(Mangle::Ect1ToEct0), [none, ect0, ect0, ce]);
}
