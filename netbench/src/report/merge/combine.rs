//! Combination of several processes' reports.

use crate::drivers::Traffic;
use crate::report::results::{KindResult, Process, Repetition, Sample};

/// Maximum number of samples, as many as a chart can show. More are merged.
const MOST_SAMPLES: usize = 1200;

/// Combines the reports of all clients and all servers for one repetition.
pub(crate) fn combine(clients: Vec<Repetition>, servers: Vec<Process>) -> Repetition {
    let mut clients = clients.into_iter();
    let mut all = clients.next().unwrap_or_default();
    for client in clients {
        add_client(&mut all, client);
    }
    let mut servers = servers.into_iter();
    all.server = servers.next().unwrap_or_default();
    for server in servers {
        add_process(&mut all.server, &server);
    }
    coarsen(&mut all.samples);
    all
}

fn add_client(all: &mut Repetition, more: Repetition) {
    all.elapsed_us = all.elapsed_us.max(more.elapsed_us);
    if all.error.is_none() {
        all.error = more.error;
    }
    for (label, kind) in more.kinds {
        add_kind(all.kinds.entry(label).or_default(), kind);
    }
    for (index, sample) in more.samples.into_iter().enumerate() {
        match all.samples.get_mut(index) {
            Some(known) => add_simultaneous(known, &sample),
            None => all.samples.push(sample),
        }
    }
    add_process(&mut all.client, &more.client);
    add_traffic(&mut all.handshake_traffic, more.handshake_traffic);
    add_traffic(&mut all.data_traffic, more.data_traffic);
    all.other_cores = match (all.other_cores, more.other_cores) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    };
    all.packets_lost += more.packets_lost;
    all.timeouts += more.timeouts;
}

fn add_kind(all: &mut KindResult, more: KindResult) {
    for (outcome, count) in more.outcomes {
        *all.outcomes.entry(outcome).or_default() += count;
    }
    for (outcome, detail) in more.details {
        all.details.entry(outcome).or_insert(detail);
    }
    all.handshake.add(&more.handshake);
    all.first_byte.add(&more.first_byte);
    all.connection.add(&more.connection);
    for (label, requests) in more.requests {
        all.requests.entry(label).or_default().add(&requests);
    }
    all.datagrams.add(&more.datagrams);
    all.datagrams_lost += more.datagrams_lost;
    all.stream_bytes_sent += more.stream_bytes_sent;
    all.stream_bytes_received += more.stream_bytes_received;
}

/// Adds CPU and traffic, and keeps the larger memory, because processes share most of their code.
fn add_process(all: &mut Process, more: &Process) {
    all.user_us += more.user_us;
    all.system_us += more.system_us;
    all.voluntary_switches += more.voluntary_switches;
    all.involuntary_switches += more.involuntary_switches;
    all.rss_at_start_kib = all.rss_at_start_kib.max(more.rss_at_start_kib);
    all.rss_at_end_kib = all.rss_at_end_kib.max(more.rss_at_end_kib);
    all.peak_rss_kib = all.peak_rss_kib.max(more.peak_rss_kib);
    all.traffic = match (all.traffic, more.traffic) {
        (Some(mut sum), Some(traffic)) => {
            add_traffic(&mut sum, traffic);
            Some(sum)
        }
        _ => None,
    };
    all.completed += more.completed;
    all.failed += more.failed;
}

fn add_traffic(all: &mut Traffic, more: Traffic) {
    all.sent_datagrams += more.sent_datagrams;
    all.sent_bytes += more.sent_bytes;
    all.received_datagrams += more.received_datagrams;
    all.received_bytes += more.received_bytes;
}

/// Adds two processes' samples of the same time.
pub(crate) fn add_simultaneous(all: &mut Sample, more: &Sample) {
    all.connections += more.connections;
    all.requests += more.requests;
    all.failures += more.failures;
    all.bytes_sent += more.bytes_sent;
    all.bytes_received += more.bytes_received;
    all.cpu_us += more.cpu_us;
}

/// Merges neighbours until there are few enough.
fn coarsen(samples: &mut Vec<Sample>) {
    let together = samples.len().div_ceil(MOST_SAMPLES).max(1);
    *samples = samples
        .chunks(together)
        .filter_map(|neighbours| {
            let mut merged = *neighbours.first()?;
            for sample in neighbours.iter().skip(1) {
                add_simultaneous(&mut merged, sample);
                merged.lasted_ms += sample.lasted_ms;
                merged.at_ms = sample.at_ms;
            }
            Some(merged)
        })
        .collect();
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Sample, coarsen, combine};
    use crate::drivers::Traffic;
    use crate::report::results::{Process, Repetition};

    fn client(ok: u64, elapsed_us: f64) -> Repetition {
        let mut client = Repetition {
            elapsed_us,
            client: Process {
                user_us: 10.0,
                peak_rss_kib: 100 * ok,
                traffic: Some(Traffic {
                    sent_bytes: 1000,
                    ..Traffic::default()
                }),
                ..Process::default()
            },
            ..Repetition::default()
        };
        let kind = client.kinds.entry(String::new()).or_default();
        kind.outcomes.insert("ok".to_owned(), ok);
        kind.handshake.record(Duration::from_millis(ok));
        client.samples = vec![Sample {
            connections: ok,
            ..Sample::default()
        }];
        client
    }

    #[test]
    fn clients_add_up_and_the_slowest_decides_how_long_it_took() {
        let all = combine(
            vec![client(3, 5.0), client(4, 9.0)],
            vec![Process::default()],
        );
        assert_eq!(all.completed(), 7);
        assert!((all.elapsed_us - 9.0).abs() < f64::EPSILON);
        assert!((all.client.cpu_us() - 20.0).abs() < f64::EPSILON);
        assert_eq!(all.client.peak_rss_kib, 400);
        assert_eq!(all.client.traffic.unwrap().sent_bytes, 2000);
        assert_eq!(all.kinds[""].handshake.count(), 2);
        assert_eq!(all.samples.len(), 1);
        assert_eq!(all.samples[0].connections, 7);
    }

    #[test]
    fn a_stack_that_does_not_tell_leaves_the_sum_unknown() {
        let mut silent = client(1, 1.0);
        silent.client.traffic = None;
        let all = combine(vec![client(1, 1.0), silent], Vec::new());
        assert_eq!(all.client.traffic, None);
    }

    #[test]
    fn long_runs_keep_fewer_samples_that_add_up_to_the_same() {
        let mut samples: Vec<Sample> = (1..=5000)
            .map(|index| Sample {
                at_ms: f64::from(index) * 100.0,
                lasted_ms: 100.0,
                connections: 2,
                ..Sample::default()
            })
            .collect();
        coarsen(&mut samples);
        assert_eq!(samples.len(), 1000);
        let connections: u64 = samples.iter().map(|sample| sample.connections).sum();
        assert_eq!(connections, 10_000);
        assert!((samples[0].lasted_ms - 500.0).abs() < 1e-6);
        assert!((samples[999].at_ms - 500_000.0).abs() < 1e-6);
    }
}
