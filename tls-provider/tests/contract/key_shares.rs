//! Key shares made ahead of time: what a client offers with them, and what they save.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hybriq_tls::{Backend, ClientOptions, Group, KeyExchange, Provider};

use crate::support::{Pair, Slices, exactly, options, options_for, pairings};

fn fill(provider: &dyn Provider) -> usize {
    let mut made = 0;
    while provider.may_prepare() {
        provider.prepare();
        made += 1;
    }
    made
}

fn rustls(options: &ClientOptions) -> Arc<dyn Provider> {
    Backend::Rustls.client(options).expect("a client")
}

#[test]
fn nothing_is_made_ahead_by_default() {
    for (contender, _) in pairings() {
        let (client, server) = options();
        let client = (contender.client)(&client).expect("a client");
        let server = (contender.server)(&server).expect("a server");
        assert!(!client.may_prepare() && !server.may_prepare());
        client.prepare();
        server.prepare();
        assert!(!client.may_prepare() && !server.may_prepare());
    }
}

#[test]
fn a_client_uses_what_it_made_and_asks_for_more() {
    let (client, server) = options();
    let client = rustls(&client.key_shares_ahead(2));
    let server = Backend::Rustls.server(&server).expect("a server");
    assert_eq!(fill(&*client), 2);
    for used in [1, 2, 2] {
        for _ in 0..3.min(used) {
            Pair::new(&*client, &*server).complete();
        }
        assert_eq!(fill(&*client), used, "as many as were used");
    }
}

/// Whatever the server chooses: the group, its classical half, another group after a HelloRetryRequest.
#[test]
fn every_answer_of_the_server_works_with_a_share_made_ahead() {
    let answers = [
        KeyExchange::PreferPostQuantum,
        KeyExchange::OnlyClassical,
        exactly(Group::SECP384R1),
    ];
    for (of_client, of_server) in pairings().filter(|it| it.0.name == "rustls") {
        for answer in &answers {
            let options = options_for(KeyExchange::PreferPostQuantum, answer.clone());
            let client = rustls(&options.0.key_shares_ahead(4));
            let server = (of_server.server)(&options.1).expect("a server");
            fill(&*client);
            println!("{} to {}: {answer:?}", of_client.name, of_server.name);
            // The second one knows what the server wanted last time.
            for _ in 0..2 {
                let pair = Pair::new(&*client, &*server).complete();
                let group = pair.server.session.negotiated().group.expect("a group");
                assert!(answer.groups().contains(&group));
            }
        }
    }
}

#[cfg(all(unix, feature = "s2n-tls"))]
#[test]
fn a_library_that_makes_its_own_shares_says_so() {
    let (client, _) = options();
    let client = client.key_shares_ahead(1);
    let error = Backend::S2nTls.client(&client).err().expect("an error");
    assert!(
        matches!(error, hybriq_tls::ConfigError::Unsupported { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("key_shares_ahead"), "{error}");
    let now = std::time::SystemTime::now();
    let errors = Backend::S2nTls.check_client(&client, now);
    assert!(
        errors
            .expect_err("a problem")
            .to_string()
            .contains("use rustls")
    );
}

/// Median of many runs.
fn median(mut run: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<Duration> = (0..400).map(|_| run()).collect();
    times.sort();
    times[times.len() / 2]
}

/// What a share made ahead saves. Run it alone, optimised:
/// `cargo test --release -p hybriq-tls --test contract ahead -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn time_saved_by_a_share_made_ahead() {
    println!(
        "| group | ClientHello | with a share ahead | handshake, both ends | with a share ahead |"
    );
    println!("|---|---|---|---|---|");
    for group in Group::ALL {
        let (client, server) = options_for(exactly(group), exactly(group));
        let client = client.without_resumption();
        let server = Backend::Rustls.server(&server).expect("a server");
        let times = [0, 1].map(|pairs| {
            let client = rustls(&client.clone().key_shares_ahead(pairs));
            let hello = median(|| {
                client.prepare();
                let start = Instant::now();
                let name = crate::support::HOST;
                let session = client.session(crate::support::client_start(name).into());
                let mut end = crate::support::End::new(session.expect("a session"));
                end.drive().expect("a ClientHello");
                start.elapsed()
            });
            let whole = median(|| {
                client.prepare();
                let start = Instant::now();
                let mut pair = Pair::new(&*client, &*server);
                pair.run(Slices::Whole).expect("a handshake");
                start.elapsed()
            });
            [hello, whole].map(|it| it.as_nanos() / 100)
        });
        let [[hello, whole], [hello_ahead, whole_ahead]] = times;
        let shown = |tenths: u128| format!("{}.{} µs", tenths / 10, tenths % 10);
        println!(
            "| {group} | {} | {} | {} | {} |",
            shown(hello),
            shown(hello_ahead),
            shown(whole),
            shown(whole_ahead)
        );
    }
}
