//! Results that nobody measured, as JSON: what report, comparison and schema are tested with.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::needless_pass_by_value,
    reason = "each of those that include this file uses a part of it"
)]

use hybriq_sim::Rng;
use serde_json::{Map, Value, json};

/// Properties of a cell. Everything else follows from them.
#[derive(Clone, Copy)]
pub struct Character {
    pub rate: f64,
    pub server_cpu_us: f64,
    pub client_cpu_us: f64,
    pub handshake_up: u64,
    pub handshake_down: u64,
}

/// The eight groups, and about what they cost.
pub const GROUPS: [(&str, Character); 8] = [
    ("X25519", character(2410.0, 148.0, 171.0, 1260, 1620)),
    (
        "X25519MLKEM768",
        character(2188.0, 166.0, 196.0, 2490, 2735),
    ),
    ("secp256r1", character(2322.0, 155.0, 180.0, 1295, 1655)),
    (
        "SecP256r1MLKEM768",
        character(2097.0, 174.0, 205.0, 2525, 2770),
    ),
    ("secp384r1", character(1402.0, 331.0, 352.0, 1330, 1690)),
    (
        "SecP384r1MLKEM1024",
        character(1289.0, 356.0, 381.0, 3000, 3290),
    ),
    ("MLKEM768", character(2355.0, 152.0, 176.0, 2455, 2705)),
    ("MLKEM1024", character(2241.0, 161.0, 186.0, 2840, 3180)),
];

const fn character(rate: f64, server: f64, client: f64, up: u64, down: u64) -> Character {
    Character {
        rate,
        server_cpu_us: server,
        client_cpu_us: client,
        handshake_up: up,
        handshake_down: down,
    }
}

/// Numbers that look random and are the same every time.
pub struct Dice(Rng);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }

    /// From 0 to below 1.
    pub fn roll(&mut self) -> f64 {
        (self.0.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Around 1, mostly within a share of it.
    fn about(&mut self, share: f64) -> f64 {
        1.0 + share * (self.roll() + self.roll() + self.roll() - 1.5)
    }
}

/// One run with these cells.
pub fn results(name: &str, cells: Vec<Value>) -> Value {
    json!({
        "netbench_results": 1,
        "complete": true,
        "problems": [],
        "about": {
            "netbench": "0.1.0",
            "build": "release",
            "git": "d6c7de1bf762",
            "command": ["netbench", "run", "request-response", "--group", "all", "--json", "out.json"],
            "started": "2026-11-22T08:40:00Z",
            "machine": {
                "cpu": "Example CPU @ 2.50GHz", "kernel": "6.1.0-13-amd64", "load": 0.31,
                "cores": 2, "server_core": 0, "client_core": 1
            },
            "crates": {"hybriq": "0.1.0", "aws-lc-rs": "1.19.0", "rustls": "0.23.46"}
        },
        "scenario": {
            "netbench": 1,
            "name": name,
            "description": "Each connection sends a byte, reads a byte and closes.",
            "clients": [{"name": "client", "ops": [{"connect": {
                "connections": 10000,
                "ops": [{"open_bidi": {"peer": [{"receive": 1}, {"send": 1}]}}, {"send": 1}, {"receive": 1}]
            }}]}]
        },
        "scenario_id": "5c1f0f6a",
        "cells": cells
    })
}

/// A cell with so many repetitions.
pub fn cell(cell: Value, name: &str, of: Character, repetitions: usize, seed: u64) -> Value {
    let mut dice = Dice::new(seed);
    let repetitions: Vec<Value> = (0..repetitions)
        .map(|index| repetition(&cell, of, index, &mut dice))
        .collect();
    json!({"cell": cell, "name": name, "summary": summaries(&repetitions), "repetitions": repetitions})
}

fn repetition(cell: &Value, of: Character, index: usize, dice: &mut Dice) -> Value {
    let slow = dice.about(0.02);
    let seconds = 10;
    let rates: Vec<f64> = (0..seconds)
        .map(|_| of.rate / slow * dice.about(0.03))
        .collect();
    let connections: u64 = rates.iter().map(|rate| *rate as u64).sum();
    let wall = 1e6 / of.rate * slow;
    let samples: Vec<Value> = rates
        .iter()
        .enumerate()
        .map(|(second, rate)| {
            json!({
                "at_ms": (second + 1) as f64 * 1e3, "lasted_ms": 1e3, "connections": *rate as u64,
                "requests": *rate as u64, "failures": 0, "bytes_sent": *rate as u64,
                "bytes_received": *rate as u64, "cpu_us": 4e5
            })
        })
        .collect();
    let handshake = histogram(wall * 0.72, connections, dice);
    let first_byte = histogram(wall * 0.86, connections, dice);
    let connection = histogram(wall * 0.97, connections, dice);
    let server = of.server_cpu_us * slow * dice.about(0.01);
    let client = of.client_cpu_us * slow * dice.about(0.01);
    let process = |cpu: f64| {
        json!({
            "user_us": cpu * 0.7 * connections as f64, "system_us": cpu * 0.3 * connections as f64,
            "voluntary_switches": connections * 2, "involuntary_switches": 12,
            "rss_at_start_kib": 9000, "rss_at_end_kib": 9400, "peak_rss_kib": 9600,
            "traffic": null, "completed": connections, "failed": 0
        })
    };
    let traffic = |up: u64, down: u64| {
        json!({
            "sent_datagrams": connections * 4, "sent_bytes": connections * up,
            "received_datagrams": connections * 4, "received_bytes": connections * down
        })
    };
    json!({
        "started_ms": index as f64 * 12e3,
        "unix_ms": 1.8e12 + index as f64 * 12e3,
        "elapsed_us": f64::from(seconds) * 1e6,
        "negotiated": {
            "group": cell["group"], "hello_retry": false, "suite": "TLS_AES_128_GCM_SHA256",
            "signature": "ECDSA_NISTP256_SHA256", "resumed": false, "early_data": null
        },
        "metrics": {
            "connections_per_second": connections as f64 / f64::from(seconds),
            "handshake_mean_us": handshake["mean_us"], "handshake_p50_us": handshake["p50_us"],
            "handshake_p90_us": handshake["p90_us"], "handshake_p99_us": handshake["p99_us"],
            "first_byte_p50_us": first_byte["p50_us"], "first_byte_p99_us": first_byte["p99_us"],
            "connection_p50_us": connection["p50_us"], "connection_p99_us": connection["p99_us"],
            "server_cpu_us": server, "client_cpu_us": client,
            "server_switches": 2.0, "client_switches": 2.1,
            "server_peak_rss_kib": 9600.0, "client_peak_rss_kib": 9600.0,
            "bytes_to_server": (of.handshake_up + 182) as f64,
            "bytes_to_client": (of.handshake_down + 240) as f64,
            "datagrams_to_server": 5.0, "datagrams_to_client": 4.0,
            "handshake_bytes_to_server": of.handshake_up as f64,
            "handshake_bytes_to_client": of.handshake_down as f64,
            "failed_percent": 0.0
        },
        "kinds": {"": {
            "outcomes": {"ok": connections}, "details": {},
            "handshake": handshake, "first_byte": first_byte, "connection": connection,
            "requests": {}, "datagrams": empty_histogram(), "datagrams_lost": 0,
            "stream_bytes_sent": connections, "stream_bytes_received": connections
        }},
        "samples": samples,
        "client": process(client), "server": process(server),
        "handshake_traffic": traffic(of.handshake_up, of.handshake_down),
        "data_traffic": traffic(182, 240),
        "packets_lost": 0, "timeouts": 0
    })
}

pub fn empty_histogram() -> Value {
    json!({
        "count": 0, "mean_us": 0.0, "p01_us": 0.0, "p50_us": 0.0, "p90_us": 0.0, "p99_us": 0.0,
        "p999_us": 0.0, "max_us": 0.0, "buckets_ns": []
    })
}

/// Latencies around a median, with a tail as they have.
fn histogram(median_us: f64, count: u64, dice: &mut Dice) -> Value {
    let buckets = 400;
    let mut values: Vec<(u64, u64)> = Vec::new();
    let mut left = count;
    for index in 0..buckets {
        let quantile = 1.0 - 10_f64.powf(-4.3 * f64::from(index + 1) / f64::from(buckets));
        let below = (quantile * count as f64) as u64;
        let here = below.saturating_sub(count - left).min(left);
        let tail = 1.0 + 0.05 * (1.0 / (1.0 - quantile)).ln() + 0.002 / (1.0 - quantile);
        let value = median_us * (0.93 + tail - 1.0) * dice.about(0.002);
        if here > 0 {
            values.push(((value * 1e3) as u64, here));
            left -= here;
        }
    }
    if left > 0 {
        values.push(((median_us * 21e3) as u64, left));
    }
    values.sort_unstable();
    let at = |quantile: f64| {
        let rank = (quantile * count as f64) as u64;
        let mut sum = 0;
        let found = values.iter().find(|(_, here)| {
            sum += here;
            sum > rank
        });
        found
            .or(values.last())
            .map_or(0.0, |(value, _)| *value as f64 / 1e3)
    };
    let sum: f64 = values
        .iter()
        .map(|(value, here)| *value as f64 * *here as f64)
        .sum();
    json!({
        "count": count, "mean_us": sum / count.max(1) as f64 / 1e3, "p01_us": at(0.01),
        "p50_us": at(0.5), "p90_us": at(0.9), "p99_us": at(0.99), "p999_us": at(0.999),
        "max_us": at(1.0), "buckets_ns": values
    })
}

/// Medians, and from the lowest to the highest as the interval.
pub fn summaries(repetitions: &[Value]) -> Value {
    let mut summary = Map::new();
    let Some(Value::Object(first)) = repetitions.first().map(|r| &r["metrics"]) else {
        return Value::Object(summary);
    };
    for metric in first.keys() {
        let of = |repetition: &Value| repetition["metrics"][metric].as_f64().unwrap_or(f64::NAN);
        let mut values: Vec<f64> = repetitions.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (values[0], values[values.len() - 1]);
        let median = values[values.len() / 2];
        let text = json!({"median": median, "low": low, "high": high, "n": values.len()});
        summary.insert(metric.clone(), text);
    }
    Value::Object(summary)
}

/// The values of a cell; what is not named is as it is by default.
pub fn axes(driver: &str, group: &str) -> Value {
    let provider = if driver == "s2n-quic" {
        "s2n-tls"
    } else {
        "rustls"
    };
    json!({
        "driver": driver, "client": driver, "provider": provider, "group": group,
        "hello_retry": false, "certificate": "ecdsa-p256", "chain": 1, "workers": 1, "congestion": "",
        "suite": "TLS_AES_128_GCM_SHA256", "resumption": "full", "client_auth": false,
        "link": "", "params": {}
    })
}

/// All eight groups on one stack, five times each.
pub fn groups() -> Value {
    groups_at(5, 1)
}

pub fn groups_at(repetitions: usize, seed: u64) -> Value {
    let cells = GROUPS.iter().zip(seed..).map(|((group, character), seed)| {
        cell(axes("hybriq", group), group, *character, repetitions, seed)
    });
    let mut results = results("request-response", cells.collect());
    results["breakdowns"] = breakdowns();
    results
}

/// Four stacks with two groups each.
pub fn stacks() -> Value {
    let stacks = [
        ("hybriq", 1.0),
        ("s2n-quic", 1.31),
        ("quinn", 1.12),
        ("quiche", 1.24),
    ];
    let mut cells = Vec::new();
    for (stack, slower) in stacks {
        for (group, mut character) in GROUPS.into_iter().take(2) {
            character.rate /= slower;
            character.server_cpu_us *= slower;
            character.client_cpu_us *= slower;
            let name = format!("{stack} {group}");
            cells.push(cell(
                axes(stack, group),
                &name,
                character,
                5,
                cells.len() as u64 + 70,
            ));
        }
    }
    results("request-response", cells)
}

/// Sixty cells: five stacks, six groups, full and resumed.
pub fn sixty() -> Value {
    let mut cells = Vec::new();
    for (slower, stack) in ["hybriq", "s2n-quic", "quinn", "quiche", "tcp-tls"]
        .iter()
        .enumerate()
    {
        for resumption in ["full", "psk"] {
            for (group, mut character) in GROUPS.into_iter().take(6) {
                character.rate /= 1.0 + slower as f64 / 5.0;
                let mut axes = axes(stack, group);
                axes["resumption"] = json!(resumption);
                let name = format!("{stack} {group} {resumption}");
                cells.push(cell(axes, &name, character, 3, cells.len() as u64 + 170));
            }
        }
    }
    results("everything-at-once", cells)
}

/// Both sides of a handshake, classical and hybrid, full and resumed.
pub fn breakdowns() -> Value {
    let summary = |us: f64| json!({"median": us, "low": us * 0.97, "high": us * 1.04, "n": 5});
    let mut all = Vec::new();
    for (group, kem) in [("X25519", 0.0), ("X25519MLKEM768", 21.0)] {
        for (mode, signs) in [("full", 1.0), ("psk", 0.0)] {
            for side in ["client", "server"] {
                let part = |name: &str, bytes: u64, us: f64| json!({"name": name, "count": 1.0, "bytes": bytes, "us": summary(us)});
                let mut messages = vec![
                    part("ClientHello", 290, 24.0 + kem),
                    part("ServerHello", 122, 39.0 + kem * 1.3),
                    part("EncryptedExtensions", 98, 3.1),
                ];
                if signs > 0.0 {
                    messages.push(part("Certificate", 480, 14.0));
                    messages.push(part("CertificateVerify", 80, 41.0));
                }
                messages.push(part("Finished", 52, 7.5));
                let operations = vec![
                    part("ECDH", 0, 38.0),
                    part("KEM", 0, kem * 2.0),
                    part("sign and verify", 0, 43.0 * signs),
                    part("key schedule", 0, 9.0),
                ];
                all.push(json!({
                    "side": side, "provider": "rustls", "group": group,
                    "suite": "TLS_AES_128_GCM_SHA256", "certificate": "ecdsa-p256", "mode": mode,
                    "messages": messages, "operations": operations,
                    "total_us": summary(96.0 + kem * 2.3 + 55.0 * signs)
                }));
            }
        }
    }
    Value::Array(all)
}
