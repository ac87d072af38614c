//! A page for Prometheus with the metrics of this process.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::Failure;

/// Bounds of a worker's turn, in seconds: 10 µs to 0.5 s.
const TURNS: [f64; 11] = [
    0.000_01, 0.000_03, 0.000_1, 0.000_3, 0.001, 0.002, 0.005, 0.01, 0.03, 0.1, 0.5,
];

/// Bounds of handshakes and round trips, in seconds: 0.1 ms to 10 s.
const TIMES: [f64; 14] = [
    0.000_1, 0.000_3, 0.001, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0, 10.0,
];

/// Bounds of lifetimes, in seconds: 0.1 s to a day.
const LIFETIMES: [f64; 9] = [
    0.1, 1.0, 5.0, 30.0, 120.0, 600.0, 3_600.0, 21_600.0, 86_400.0,
];

/// Bounds of the messages that a worker finds.
const DEPTHS: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 25.0, 100.0, 250.0, 1_000.0, 5_000.0];

/// Time between two clean-ups of the recorder, which holds each sample until then.
const UPKEEP: Duration = Duration::from_secs(5);

/// Time that a request may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Longest request that is read, its headers included.
const REQUEST: u64 = 8 * 1024;

/// Installs the recorder of the process.
///
/// # Errors
/// The process has a recorder already.
pub fn install() -> Result<PrometheusHandle, Failure> {
    let buckets: [(&str, &[f64]); 6] = [
        ("hybriq_turn_seconds", &TURNS),
        ("hybriq_yield_seconds", &TURNS),
        ("hybriq_handshake_seconds", &TIMES),
        ("hybriq_connection_rtt_seconds", &TIMES),
        ("hybriq_connection_seconds", &LIFETIMES),
        ("hybriq_queue_depth", &DEPTHS),
    ];
    let mut builder = PrometheusBuilder::new();
    for (name, bounds) in buckets {
        builder = builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), bounds)?;
    }
    Ok(builder.install_recorder()?)
}

/// Answers `GET /metrics`, on the runtime of the caller. Returns the address.
///
/// # Errors
/// The address cannot be used.
pub async fn answer(address: SocketAddr, metrics: PrometheusHandle) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    tokio::spawn(keep_up(metrics.clone()));
    tokio::spawn(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of file descriptors, perhaps not for long.
                tokio::time::sleep(TIMEOUT).await;
                continue;
            };
            // One at a time: a request that dawdles delays only other scrapes.
            let _ = tokio::time::timeout(TIMEOUT, reply(stream, &metrics)).await;
        }
    });
    Ok(address)
}

async fn keep_up(metrics: PrometheusHandle) {
    loop {
        tokio::time::sleep(UPKEEP).await;
        metrics.run_upkeep();
    }
}

async fn reply(mut stream: TcpStream, metrics: &PrometheusHandle) -> io::Result<()> {
    let (read, mut write) = stream.split();
    let mut request = BufReader::new(read.take(REQUEST));
    let mut first = String::new();
    request.read_line(&mut first).await?;
    // Data that nobody read would reset the connection before the answer arrives.
    let mut header = String::new();
    while request.read_line(&mut header).await? > 2 {
        header.clear();
    }
    let (status, text) = if first.starts_with("GET /metrics ") {
        ("200 OK", metrics.render())
    } else {
        ("404 Not Found", "try /metrics\n".to_owned())
    };
    let length = text.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    write.write_all(head.as_bytes()).await?;
    write.write_all(text.as_bytes()).await?;
    write.shutdown().await
}
