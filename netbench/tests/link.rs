//! `netbench link` measured against its own settings, over real sockets.
//!
//! The tests assert of times only that nothing is too early or too fast; the rest is printed
//! (`--nocapture`). No test sends more at once than the smallest default socket buffer holds.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod relay;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use quinn_udp::EcnCodepoint::{Ce, Ect0, Ect1};
use serde_json::Value;

use relay::{PATIENCE, Relay, numbered, receive, socket};

/// Datagrams that fit the smallest default buffer, whoever reads them how late.
const COUNT: u64 = 200;
/// The same for datagrams of 1000 bytes.
const LARGE: u64 = 80;

#[test]
fn no_datagram_is_faster_than_the_delay() {
    let server = socket("127.0.0.1:0");
    let relay = Relay::start(&server, &["--up", "delay=30ms", "--down", "delay=10ms"]);
    let client = socket("127.0.0.1:0");
    let mut slowest = [Duration::ZERO; 2];
    for n in 0..20 {
        let start = Instant::now();
        client.send_to(&numbered(n, 100), relay.address).unwrap();
        let (_, from) = receive(&server).unwrap();
        let up = start.elapsed();
        let start = Instant::now();
        server.send_to(&numbered(n, 100), from).unwrap();
        let (bytes, from) = receive(&client).unwrap();
        let down = start.elapsed();
        assert_eq!((bytes, from), (numbered(n, 100), relay.address));
        assert!(up >= Duration::from_millis(30), "{up:?}");
        assert!(down >= Duration::from_millis(10), "{down:?}");
        slowest = [slowest[0].max(up), slowest[1].max(down)];
    }
    let summary = relay.stop();
    assert_eq!(summary["up"]["datagrams_out"], 20);
    assert_eq!(summary["down"]["datagrams_out"], 20);
    println!(
        "30 ms took at most {:?}, 10 ms {:?}",
        slowest[0], slowest[1]
    );
    println!("late in the relay: {}", summary["up"]["max_late_us"]);
}

#[test]
fn no_rate_is_above_the_one_set() {
    let server = socket("127.0.0.1:0");
    let relay = Relay::start(&server, &["--rate", "8mbit", "--queue", "1MiB"]);
    let client = socket("127.0.0.1:0");
    let start = Instant::now();
    for n in 0..LARGE {
        client.send_to(&numbered(n, 1000), relay.address).unwrap();
    }
    for n in 0..LARGE {
        assert_eq!(receive(&server).unwrap().0, numbered(n, 1000));
        // A millisecond each.
        let least = Duration::from_millis(n + 1);
        assert!(start.elapsed() >= least, "{n}: {:?}", start.elapsed());
    }
    println!("80 ms of bytes took {:?}", start.elapsed());
    let summary = relay.stop();
    let rate = summary["up"]["rate_mbit"].as_f64().unwrap();
    assert!(rate > 0.0 && rate <= 8.0, "{rate}");
    assert!(summary["up"]["max_queue_delay_us"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_full_queue_drops_its_tail() {
    let server = socket("127.0.0.1:0");
    // A datagram takes a minute, so that none leaves during the test: nine wait behind the first.
    let args = ["--rate", "133bit", "--queue", "9000B"];
    let relay = Relay::start(&server, &args);
    let client = socket("127.0.0.1:0");
    for n in 0..LARGE {
        client.send_to(&numbered(n, 1000), relay.address).unwrap();
    }
    let summary = relay.stop();
    assert_eq!(summary["up"]["lost"]["queue"], LARGE - 10);
    assert_eq!(summary["up"]["held"], 10);
}

/// Sends [`COUNT`] numbered datagrams. Returns the number of times that each arrived, and, under
/// the number `COUNT`, the number of those in which a bit was flipped.
fn fortune(seed: &str, args: &[&str]) -> (BTreeMap<u64, u64>, Value) {
    let server = socket("127.0.0.1:0");
    let relay = Relay::start(&server, &[&["--seed", seed], args].concat());
    let client = socket("127.0.0.1:0");
    for n in 0..COUNT {
        client.send_to(&numbered(n, 20), relay.address).unwrap();
    }
    let summary = relay.stop();
    let mut counts = BTreeMap::new();
    for _ in 0..summary["up"]["datagrams_out"].as_u64().unwrap() {
        *counts
            .entry(number(&receive(&server).unwrap().0))
            .or_default() += 1;
    }
    (counts, summary)
}

/// Which datagram it is; `COUNT` for none that was sent.
fn number(bytes: &[u8]) -> u64 {
    (0..COUNT)
        .find(|n| numbered(*n, 20) == bytes)
        .unwrap_or(COUNT)
}

#[test]
fn what_the_summary_says_is_what_arrives_and_the_seed_repeats_it() {
    let args = [
        "--loss",
        "10%",
        "--burst-loss",
        "10%x4",
        "--duplicate",
        "10%",
    ];
    let args = [&args[..], &["--corrupt", "5%"]].concat();
    let (counts, summary) = fortune("5", &args);
    let up = &summary["up"];
    let count = |field: &str| up[field].as_u64().unwrap();
    let lost = up["lost"]["random"].as_u64().unwrap() + up["lost"]["burst"].as_u64().unwrap();
    assert!((20..60).contains(&lost), "{up}");
    assert!((5..40).contains(&count("duplicated")), "{up}");
    assert!((2..25).contains(&count("corrupted")), "{up}");
    assert_eq!(count("datagrams_out"), COUNT - lost + count("duplicated"));
    let whole: u64 = counts.range(..COUNT).map(|(_, count)| count).sum();
    let broken = counts.get(&COUNT).copied().unwrap_or(0);
    assert_eq!(whole + broken, count("datagrams_out"));
    assert!(broken >= count("corrupted"), "{up}");

    let (again, _) = fortune("5", &args);
    assert_eq!(counts, again);
    let (other, _) = fortune("8", &args);
    assert_ne!(counts, other);
}

#[test]
fn datagrams_that_are_held_back_are_overtaken() {
    let server = socket("127.0.0.1:0");
    let relay = Relay::start(&server, &["--reorder", "10%,100ms"]);
    let client = socket("127.0.0.1:0");
    let start = Instant::now();
    for n in 0..COUNT {
        client.send_to(&numbered(n, 20), relay.address).unwrap();
    }
    let sent = start.elapsed();
    let order: Vec<_> = (0..COUNT)
        .map(|_| number(&receive(&server).unwrap().0))
        .collect();
    assert!((0..COUNT).all(|n| order.contains(&n)));
    let held = relay.stop()["up"]["reordered"].as_u64().unwrap() as usize;
    assert!((8..40).contains(&held), "{held}");
    println!("{held} held back of what took {sent:?} to send");
    // A sender that is slower than those that are held back shows nothing.
    if sent < Duration::from_millis(100) {
        let (first, last) = order.split_at(order.len() - held);
        assert!(first.is_sorted() && last.is_sorted() && !order.is_sorted());
    }
}

#[test]
fn a_blackout_ends_when_it_should_and_no_earlier() {
    let server = socket("127.0.0.1:0");
    let relay = Relay::start(&server, &["--blackout", "0s,60ms"]);
    let client = socket("127.0.0.1:0");
    server
        .set_read_timeout(Some(Duration::from_millis(2)))
        .unwrap();
    let start = Instant::now();
    let mut sent = 0;
    let arrived = loop {
        client.send_to(&numbered(sent, 20), relay.address).unwrap();
        sent += 1;
        if let Some((bytes, _)) = receive(&server) {
            break bytes;
        }
        assert!(start.elapsed() < PATIENCE);
    };
    assert!(start.elapsed() >= Duration::from_millis(60));
    println!("60 ms of blackout ended after {:?}", start.elapsed());
    assert_ne!(arrived, numbered(0, 20));
    let summary = relay.stop();
    assert!(summary["up"]["lost"]["blackout"].as_u64().unwrap() > 0);
}

#[test]
fn ecn_marks_pass_both_ways_and_trains_are_taken_apart() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        if UdpSocket::bind(address).is_err() {
            test_summary::skip(format!("this machine cannot bind {address}: enable IPv6"));
            continue;
        }
        let (server, client) = (
            relay::EcnSocket::bind(address),
            relay::EcnSocket::bind(address),
        );
        let relay = Relay::start(&server.io, &["--listen", address]);
        for ecn in [None, Some(Ect0), Some(Ect1), Some(Ce)] {
            client.send(relay.address, ecn, &numbered(1, 1000), None);
            let (bytes, from, seen) = server.receive();
            assert_eq!((bytes, seen), (numbered(1, 1000), ecn));
            server.send(from, ecn, &numbered(2, 1000), None);
            let (bytes, from, seen) = client.receive();
            assert_eq!((bytes, from, seen), (numbered(2, 1000), relay.address, ecn));
        }
        client.send(relay.address, Some(Ect0), &numbered(3, 1050), Some(100));
        let mut received = Vec::new();
        while received.len() < 1050 {
            received.extend(server.receive().0);
        }
        assert_eq!(received, numbered(3, 1050));
        let summary = relay.stop();
        assert_eq!(summary["up"]["datagrams_in"], 4 + 11);
        assert_eq!(summary["up"]["datagrams_out"], 4 + 11);
    }
}

#[test]
fn datagrams_that_wait_too_long_are_marked() {
    let (server, client) = ("127.0.0.1:0", "127.0.0.1:0");
    let (server, client) = (
        relay::EcnSocket::bind(server),
        relay::EcnSocket::bind(client),
    );
    let args = ["--rate", "8mbit", "--queue", "1MiB", "--ecn-mark", "5ms"];
    let relay = Relay::start(&server.io, &args);
    // One message: all of it comes at once, and takes 20 ms.
    client.send(relay.address, Some(Ect1), &numbered(1, 20_000), Some(1000));
    let (mut seen, mut arrived) = (Vec::new(), 0);
    while arrived < 20_000 {
        let (bytes, _, ecn) = server.receive();
        arrived += bytes.len();
        seen.push(ecn);
    }
    // `None`: several that left together, of which this socket is not told the mark.
    let seen: Vec<_> = seen.into_iter().flatten().collect();
    assert!(seen.is_sorted_by_key(|ecn| *ecn == Ce), "{seen:?}");
    let summary = relay.stop();
    // Those behind the first 5 ms, and the one that was at the line then.
    assert_eq!(summary["up"]["marked"], 14);
}

#[test]
fn rebinding_changes_the_port_and_the_way_back_follows() {
    let server = socket("127.0.0.1:0");
    let relay = Relay::start(&server, &["--rebind", "30ms"]);
    let client = socket("127.0.0.1:0");
    let start = Instant::now();
    let ask = |n| {
        client.send_to(&numbered(n, 20), relay.address).unwrap();
        receive(&server).unwrap().1
    };
    let first = ask(0);
    let (mut n, mut port) = (1, first);
    while port == first {
        port = ask(n);
        n += 1;
        assert!(start.elapsed() < PATIENCE);
    }
    assert!(start.elapsed() >= Duration::from_millis(30));
    let summary = relay.stop();
    assert!(summary["rebinds"].as_u64().unwrap() > 0);
    assert_eq!(summary["clients"], 1);
}

#[test]
fn the_way_back_leads_to_the_new_port() {
    let server = socket("127.0.0.1:0");
    let relay = Relay::start(&server, &["--rebind", "20ms"]);
    let client = socket("127.0.0.1:0");
    client
        .set_read_timeout(Some(Duration::from_millis(10)))
        .unwrap();
    let mut ports = std::collections::BTreeSet::new();
    let start = Instant::now();
    // An answer to a port that was just given up is lost, as it is with a NAT.
    while ports.len() < 3 {
        client.send_to(&numbered(0, 20), relay.address).unwrap();
        let (_, from) = receive(&server).unwrap();
        server.send_to(&numbered(1, 20), from).unwrap();
        if receive(&client).is_some() {
            ports.insert(from.port());
        }
        assert!(start.elapsed() < PATIENCE);
    }
    relay.stop();
}

#[test]
fn many_clients_have_a_way_back_each() {
    let server = socket("127.0.0.1:0");
    let relay = Relay::start(&server, &["--delay", "1ms", "--clients", "20"]);
    let clients: Vec<_> = (0..20).map(|_| socket("127.0.0.1:0")).collect();
    for (n, client) in (0..).zip(&clients) {
        client.send_to(&numbered(n, 20), relay.address).unwrap();
    }
    for _ in &clients {
        let (bytes, from) = receive(&server).unwrap();
        server.send_to(&bytes, from).unwrap();
    }
    for (n, client) in (0..).zip(&clients) {
        assert_eq!(receive(client).unwrap().0, numbered(n, 20));
    }
    let one_too_many = socket("127.0.0.1:0");
    one_too_many.send_to(b"?", relay.address).unwrap();
    clients[0].send_to(b"!", relay.address).unwrap();
    assert_eq!(receive(&server).unwrap().0, b"!");
    let summary = relay.stop();
    assert_eq!(
        (&summary["clients"], &summary["turned_away"]),
        (&20.into(), &1.into())
    );
}

#[test]
fn a_signal_ends_it_and_it_says_what_it_did() {
    for signal in ["-INT", "-TERM"] {
        let server = socket("127.0.0.1:0");
        let mut relay = Relay::start_in_words(&server, &["--loss", "100%"]);
        let client = socket("127.0.0.1:0");
        client.send_to(b"lost", relay.address).unwrap();
        let pid = relay.child.id().to_string();
        let kill = std::process::Command::new("kill")
            .args([signal, &pid])
            .status();
        assert!(kill.unwrap().success());
        let mut text = String::new();
        relay.stdout.read_to_string(&mut text).unwrap();
        assert!(relay.child.wait().unwrap().success());
        assert!(
            text.contains("lost 1: random 1,") && text.contains("seed 1"),
            "{text}"
        );
    }
}

#[test]
fn bad_input_is_told_in_one_line() {
    for (args, reason) in [
        (&["--to", "127.0.0.1:1", "--loss", "2"][..], "0% to 100%"),
        (
            &["--to", "127.0.0.1:1", "--delay", "5"],
            "300us, 50ms or 2s",
        ),
        (&["--to", "127.0.0.1:1", "--queue", "1bdp"], "need a --rate"),
        (&["--to", "127.0.0.1:1", "--up", "colour=red"], "colour"),
        (
            &["--to", "127.0.0.1:1", "--listen", "192.0.2.1:0"],
            "192.0.2.1",
        ),
    ] {
        let output = relay::netbench().args(args).output().unwrap();
        assert!(!output.status.success());
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(reason) && text.lines().count() == 1, "{text}");
    }
}

#[test]
fn the_link_of_the_readme_can_be_made() {
    let readme = include_str!("../../README.md");
    let command = "cargo run --release -p hybriq-netbench -- link ";
    let command = readme.lines().find_map(|line| line.strip_prefix(command));
    let mut child = relay::netbench()
        .args(command.unwrap().split(' '))
        .arg("--until-eof")
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert!(text.starts_with("listening on 127.0.0.1:"), "{text}");
    assert!(text.contains("relaying to 127.0.0.1:4433"), "{text}");
}

/// `cargo test --release -p hybriq-netbench --test link -- --ignored --nocapture`
#[test]
#[ignore = "a measurement: its figures are of the machine"]
fn how_much_it_carries() {
    for args in [
        &["--delay", "5ms"][..],
        &["--rate", "2gbit", "--delay", "5ms"],
    ] {
        let server = relay::EcnSocket::bind("127.0.0.1:0");
        let relay = Relay::start(&server.io, args);
        let address = relay.address;
        let start = Instant::now();
        let sender = std::thread::spawn(move || {
            let client = relay::EcnSocket::bind("127.0.0.1:0");
            let train = numbered(0, 12_000);
            while start.elapsed() < Duration::from_secs(3) {
                client.send(address, Some(Ect0), &train, Some(1200));
                // 2 Gbit/s.
                let next = Instant::now() + Duration::from_micros(48);
                while Instant::now() < next {
                    std::hint::spin_loop();
                }
            }
        });
        let mut received = 0;
        while start.elapsed() < Duration::from_secs(3) {
            received += server.receive().0.len();
        }
        let rate = received as f64 * 8.0 / start.elapsed().as_secs_f64() / 1e6;
        sender.join().unwrap();
        let summary = relay.stop();
        let carried = summary["up"]["bytes_out"].as_f64().unwrap() * 8.0;
        let busy = summary["cpu_s"].as_f64().unwrap();
        println!("{args:?}: {rate:.0} Mbit/s arrived; {}", summary["up"]);
        println!(
            "{busy:.2} s of CPU, {:.0} Mbit per second of it",
            carried / busy / 1e6
        );
    }
}
