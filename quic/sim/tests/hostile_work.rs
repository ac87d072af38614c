//! Instructions that the victim of a hostile peer needs for each of its datagrams, counted by valgrind: a table that grows, or a search in it, shows here even if its entries are few.
//!
//! ```sh
//! cargo test --release -p hybriq-sim --test hostile_work -- --ignored --nocapture
//! ```
//!
//! Each attack runs in a process of its own, three times with ever more datagrams, so that the
//! handshake is left out: the work of the third part is compared with a bound and with the second.

#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]

use std::{process::Command, sync::Arc};

use hybriq_proto::{TransportConfig, endpoint::Setup};
use hybriq_sim::adversary::{Attack, Character, Move};
use hybriq_tls::{Backend, ClientOptions, Identity, PrivateKeyDer, ServerOptions, Trust};

/// Variable that tells the child process its attack.
const VARIABLE: &str = "HYBRIQ_ATTACK";

/// Datagrams of each part of an attack.
const PART: u64 = 300;

/// Largest number of instructions for one datagram and its answer, on average. Two key updates, ours
/// and the peer's, cost most: 38,000.
const MOST: u64 = 60_000;

/// Peers that do one thing as often as they can, besides the known ones.
fn characters() -> Vec<Character> {
    let single = [
        ("sends pieces", Move::Pieces),
        ("sends data", Move::Data),
        ("drips", Move::Drip),
        ("finishes", Move::Fin),
        ("resets", Move::Reset),
        ("resets late", Move::ResetAt),
        ("stops", Move::Stop),
        ("gives credit", Move::Credit),
        ("is blocked", Move::Blocked),
        ("gives ids", Move::NewId),
        ("retires ids", Move::RetireId),
        ("changes frequencies", Move::AckFrequency),
        ("wants acknowledgements", Move::ImmediateAck),
        ("sends datagrams", Move::Datagrams),
        ("updates keys", Move::UpdateKeys),
        ("tells", Move::Tell),
    ];
    let silent = single.map(|(name, it)| Character::new(name, [it]));
    let known = Character::known().into_iter();
    known.chain(silent).collect()
}

/// Runs one attack. Does nothing unless this is a child process.
#[test]
#[ignore = "part of another test"]
fn one_attack() {
    let Ok(attack) = std::env::var(VARIABLE) else {
        return;
    };
    let words: Vec<&str> = attack.split(' ').collect();
    let [victim, number, steps] = words[..] else {
        panic!("{attack}");
    };
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let root = made.cert.der().clone();
    let client = ClientOptions::new()
        .alpn(["sim"])
        .trust(Trust::roots_der(vec![root.clone()]));
    let client = Backend::Rustls.client(&client).unwrap();
    let server = ServerOptions::new(Identity::from_der(vec![root], key))
        .alpn(["sim"])
        .accept_early_data();
    let server = Backend::Rustls.server(&server).unwrap();
    let character = characters().swap_remove(number.parse().unwrap());
    let setup = |provider| Setup {
        provider,
        transport: Arc::new(TransportConfig::new()),
    };
    let mut attack = if victim == "client" {
        Attack::on_client(1, character, &setup(client), &server).unwrap()
    } else {
        Attack::new(1, character, &client, setup(server)).unwrap()
    };
    // Other tests look at the invariants; here the work counts, whether they hold or not.
    let mut taken = 0;
    while taken < steps.parse().unwrap() && !attack.is_over() {
        let _ = attack.step();
        taken += 1;
    }
    println!("{taken} steps");
}

/// Returns the instructions of an attack, and the number of its steps.
fn count(victim: &str, number: usize, steps: u64) -> (u64, u64) {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*Victim*measured*")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "one_attack", "--ignored", "--nocapture"])
        .env(VARIABLE, format!("{victim} {number} {steps}"))
        .output()
        .unwrap();
    let number_before = |text: &[u8], what: &str| {
        let text = String::from_utf8_lossy(text).into_owned();
        let line = text
            .lines()
            .find(|line| line.contains(what))
            .map(str::to_owned);
        let line = line.unwrap_or_else(|| panic!("no {what:?} in {text}"));
        let mut words = line
            .split_whitespace()
            .filter_map(|word| word.parse::<u64>().ok());
        words.next_back().unwrap()
    };
    let instructions = number_before(&output.stderr, "Collected : ");
    (instructions, number_before(&output.stdout, " steps"))
}

/// Returns the instructions for a datagram in the second and in the third part of an attack; `None`
/// if the connection ends before.
fn cost_of_parts(victim: &str, number: usize) -> Option<[u64; 2]> {
    let [first, second, third] = [1, 2, 3].map(|parts| count(victim, number, parts * PART));
    let each = |more: (u64, u64), less: (u64, u64)| {
        let steps = more.1 - less.1;
        more.0.saturating_sub(less.0).checked_div(steps)
    };
    Some([each(second, first)?, each(third, second)?])
}

/// Proves: security 11 work-is-bounded
#[test]
#[ignore = "takes minutes, and needs valgrind"]
fn no_datagram_costs_more_than_its_bound() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        test_summary::skip("valgrind is not installed: apt-get install valgrind");
        return;
    }
    println!("instructions for a datagram, in the second and the third part of an attack");
    for victim in ["server", "client"] {
        for (number, character) in characters().iter().enumerate() {
            let name = character.name;
            let Some([second, third]) = cost_of_parts(victim, number) else {
                println!("{victim}, {name}: the connection ends");
                continue;
            };
            println!("{victim}, {name}: {second}, {third}");
            assert!(second > 1000, "{victim}, {name}: nothing was counted");
            assert!(third <= MOST, "a {victim} whose peer {name}: {third}");
            assert!(
                third <= second + second / 4,
                "a {victim} whose peer {name}: {second}, then {third}"
            );
        }
    }
}
