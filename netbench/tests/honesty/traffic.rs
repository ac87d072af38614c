//! Datagrams and bytes, against the kernel's counters of a network that nobody else uses.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::instrument::{ALL_MEASURED, command, count, figure, kind, only, read};

/// Counters of a kernel for a network, by names such as `Udp.InDatagrams`.
struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Reads `/proc/net/snmp`: lines of names, each with a line of numbers below.
    fn parse(text: &str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let pairs = lines.chunks_exact(2).flat_map(|pair| {
            let protocol = pair[0].split(':').next().unwrap();
            let names = pair[0].split_whitespace().skip(1);
            let numbers = pair[1].split_whitespace().skip(1);
            names
                .zip(numbers)
                .map(move |(name, number)| (format!("{protocol}.{name}"), number))
        });
        // One of them is -1, which stands for "no limit".
        Self(
            pairs
                .map(|(name, number)| (name, number.parse().unwrap_or(0)))
                .collect(),
        )
    }

    fn get(&self, name: &str) -> u64 {
        self.0[name]
    }

    /// Bytes of all packets of this network behind so many bytes of headers each.
    fn bytes_behind(&self, headers: u64) -> u64 {
        self.get("IpExt.InOctets") - headers * self.get("Ip.InReceives")
    }
}

/// Runs in a network of its own, whose counters begin at 0. `None`, and a reason is printed: that
/// is not permitted here. Its kernel splits trains of datagrams before it counts them.
fn alone(name: &str, args: &[&str]) -> Option<(Value, Counters)> {
    const SHELL: &str = "ip link set lo gso_max_segs 1 up || exit 77; echo ready; \
                         \"$@\" > /dev/null && cat /proc/net/snmp /proc/net/netstat";
    let (run, path) = command(name, args);
    let output = Command::new("unshare")
        .args(["-rn", "sh", "-c", SHELL, "sh"])
        .arg(run.get_program())
        .args(run.get_args())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            test_summary::skip(format!("a network of its own needs util-linux: {error}"));
            return None;
        }
    };
    let out = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let Some(counters) = out.strip_prefix("ready\n") else {
        test_summary::skip(format!(
            "a network of its own needs root or user namespaces: {said}"
        ));
        return None;
    };
    assert!(output.status.success(), "{said}");
    Some((read(&path), Counters::parse(counters)))
}

/// One of the counters of `client` or `server`, or of another object with a `traffic`.
fn both(repetition: &Value, counter: &str) -> u64 {
    ["client", "server"]
        .iter()
        .map(|side| count(&repetition[side]["traffic"][counter]))
        .sum()
}

const CONNECTIONS: u64 = 20;

#[test]
fn datagrams_and_bytes_are_those_that_the_kernel_counted() {
    let sizes = ["--request-size", "3000", "--response-size", "20KiB"];
    let run = ["request-response", "--connections", "20"];
    let Some((results, counters)) = alone("udp", &[&run[..], &sizes, &ALL_MEASURED].concat())
    else {
        return;
    };
    let repetition = only(&results);
    assert_eq!(count(&kind(repetition)["outcomes"]["ok"]), CONNECTIONS);
    // Headers of IPv4 and UDP.
    let bytes = counters.bytes_behind(20 + 8);
    assert_eq!(
        both(repetition, "sent_datagrams"),
        counters.get("Ip.InReceives")
    );
    assert_eq!(both(repetition, "sent_bytes"), bytes);
    // The client may have reported before it reads what answers its last close.
    let received = both(repetition, "received_datagrams");
    let read = counters.get("Udp.InDatagrams");
    assert!(
        (received..=received + CONNECTIONS).contains(&read),
        "{received} of {read}"
    );

    let figures = ["bytes_to_server", "bytes_to_client"];
    let each: f64 = figures.iter().map(|name| figure(repetition, name)).sum();
    assert!((each * CONNECTIONS as f64 - bytes as f64).abs() < 1e-3);
    let figures = ["datagrams_to_server", "datagrams_to_client"];
    let each: f64 = figures.iter().map(|name| figure(repetition, name)).sum();
    assert!((each * CONNECTIONS as f64 - counters.get("Ip.InReceives") as f64).abs() < 1e-3);
}

#[test]
fn handshakes_and_data_are_all_there_is() {
    let run = ["request-response", "--connections", "20", "--requests", "3"];
    let Some((results, counters)) = alone("phases", &[&run[..], &ALL_MEASURED].concat()) else {
        return;
    };
    let repetition = only(&results);
    let phases = |counter: &str| {
        let phases = ["handshake_traffic", "data_traffic"];
        phases.map(|phase| count(&repetition[phase][counter]))
    };
    for counter in ["sent_datagrams", "received_datagrams"] {
        let [handshake, data] = phases(counter);
        let all = count(&repetition["client"]["traffic"][counter]);
        // Datagrams for a connection that is gone belong to none.
        let counted = handshake + data;
        assert!(
            (counted..=counted + CONNECTIONS).contains(&all),
            "{counter}: {counted} of {all}"
        );
        assert!(handshake >= CONNECTIONS && data >= CONNECTIONS, "{counter}");
    }
    let to_client: u64 = phases("received_bytes").iter().sum();
    let to_server: u64 = phases("sent_bytes").iter().sum();
    assert!(to_client + to_server <= counters.bytes_behind(20 + 8));
    // RFC 9000 §14.1: the first flight of a client fills its datagrams, and one of X25519MLKEM768
    // needs two of them.
    assert!(phases("sent_bytes")[0] >= 2 * 1200 * CONNECTIONS);
}

#[test]
fn what_a_warm_up_sends_is_not_counted_and_nothing_else_is_missing() {
    let run = [
        "request-response",
        "--connections",
        "20",
        "--repetitions",
        "1",
        "--retries",
        "0",
    ];
    let Some((results, counters)) = alone("warm", &[&run[..], &["--warm-up", "20"]].concat())
    else {
        return;
    };
    // As many connections before as measured, so that half of it all is measured; acknowledgments
    // and probes for the path's MTU are not the same each time.
    let measured = both(only(&results), "sent_bytes") as f64;
    let half = measured / counters.bytes_behind(20 + 8) as f64;
    assert!((0.4..0.6).contains(&half), "{half}");
}

#[test]
fn a_link_passes_on_what_it_gets_and_every_datagram_travels_twice() {
    let run = [
        "request-response",
        "--connections",
        "20",
        "--link",
        "--delay 1ms",
    ];
    let Some((results, counters)) = alone("link", &[&run[..], &ALL_MEASURED].concat()) else {
        return;
    };
    let repetition = only(&results);
    let sent = both(repetition, "sent_datagrams");
    let received = both(repetition, "received_datagrams");
    // The answer to the client's last close reaches the link alone.
    let sum = counters.get("Ip.InReceives");
    assert!(
        sum <= 2 * sent && sum >= 2 * sent - CONNECTIONS,
        "{sent} of {sum}"
    );
    assert!(
        received <= sent && received >= sent - CONNECTIONS,
        "{received} of {sent}"
    );
}

#[test]
fn segments_and_bytes_of_tcp_are_those_that_the_kernel_counted() {
    let run = [
        "request-response",
        "--connections",
        "20",
        "--driver",
        "tcp-tls",
    ];
    let sizes = ["--request-size", "3000", "--response-size", "20KiB"];
    let Some((results, counters)) = alone("tcp", &[&run[..], &sizes, &ALL_MEASURED].concat())
    else {
        return;
    };
    let repetition = only(&results);
    assert_eq!(count(&kind(repetition)["outcomes"]["ok"]), CONNECTIONS);
    // Headers of IPv4 and of TCP with timestamps. A SYN has 8 bytes more, and a RST 12 fewer; what
    // asks for lost segments (SACK) has up to 36 more, and there are only so many of these.
    let opened = counters.get("Tcp.ActiveOpens");
    assert_eq!(opened, CONNECTIONS);
    let bytes = counters.bytes_behind(20 + 32) - 2 * 8 * opened + 12 * counters.get("Tcp.OutRsts");
    let sent = both(repetition, "sent_bytes");
    let options = 36 * 3 * counters.get("Tcp.RetransSegs");
    assert!(
        (sent..=sent + options).contains(&bytes),
        "{sent} of {bytes}"
    );
    // The kernel has no socket yet, or none any more, that could count the SYN's answer and the
    // last of a close: of each side no more than three.
    let segments = counters.get("Tcp.InSegs");
    let sent = both(repetition, "sent_datagrams");
    let uncounted = 6 * CONNECTIONS + counters.get("Tcp.RetransSegs");
    assert!(
        (sent..=sent + uncounted).contains(&segments),
        "{sent} of {segments}"
    );
}
