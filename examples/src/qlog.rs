//! A small qlog writer: writes each event of a connection as one JSON record (RFC 7464).

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use hybriq::PathStats;
use hybriq::events::{Event, LossTimer, Meta, Packet, PacketKind, Subscriber, TimerKind};
use serde_json::{Value, json};

/// Writes the events of one connection to a qlog file.
#[derive(Debug)]
pub struct Qlog<W> {
    inner: Mutex<Inner<W>>,
}

#[derive(Debug)]
struct Inner<W> {
    out: W,
    began: Option<Instant>,
    failed: Option<io::Error>,
}

impl<W: Write + Send> Qlog<W> {
    /// Makes a writer; the header is written with the first event.
    pub const fn new(out: W) -> Self {
        Self {
            inner: Mutex::new(Inner {
                out,
                began: None,
                failed: None,
            }),
        }
    }

    /// Writes everything that is buffered to the file.
    ///
    /// # Errors
    /// The first error of a write.
    pub fn finish(&self) -> io::Result<()> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        match inner.failed.take() {
            Some(error) => Err(error),
            None => inner.out.flush(),
        }
    }
}

impl<W: Write + Send> Subscriber for Qlog<W> {
    fn on_event(&self, meta: &Meta, event: &Event<'_>) {
        let Some((name, data)) = record(event) else {
            return;
        };
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.write(meta, name, &data);
    }
}

impl<W: Write> Inner<W> {
    fn write(&mut self, meta: &Meta, name: &str, data: &Value) {
        let began = *self.began.get_or_insert(meta.time);
        if self.failed.is_some() {
            return;
        }
        let time = meta.time.saturating_duration_since(began).as_secs_f64() * 1e3;
        let event = json!({ "time": time, "name": name, "data": data });
        let written = match name {
            "quic:connection_started" => self.put(&header(meta)).and_then(|()| self.put(&event)),
            _ => self.put(&event),
        };
        self.failed = written.err();
    }

    fn put(&mut self, record: &Value) -> io::Result<()> {
        // RFC 7464: a record separator, the text, a line feed.
        writeln!(self.out, "\u{1e}{record}")
    }
}

fn header(meta: &Meta) -> Value {
    let vantage_point = if meta.side.is_client() {
        "client"
    } else {
        "server"
    };
    let mut dcid = String::new();
    for byte in meta.original_dcid.as_bytes() {
        let _ = write!(dcid, "{byte:02x}");
    }
    json!({
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "trace": {
            "common_fields": { "group_id": dcid, "time_format": "relative_to_epoch" },
            "event_schemas": ["urn:ietf:params:qlog:events:quic"],
            "vantage_point": { "type": vantage_point },
        },
    })
}

/// Returns the name and the data of an event, or `None` for events that are not logged.
fn record(event: &Event<'_>) -> Option<(&'static str, Value)> {
    Some(match event {
        Event::ConnectionStarted(peer) => (
            "quic:connection_started",
            json!({ "remote": { "ip": peer.ip().to_string(), "port": peer.port() } }),
        ),
        Event::ConnectionStateUpdated(change) => {
            let state = |state| format!("{state:?}").to_lowercase();
            let data = json!({ "old": state(change.old), "new": state(change.new) });
            ("quic:connection_state_updated", data)
        }
        Event::ConnectionClosed(reason) => (
            "quic:connection_closed",
            json!({ "reason": reason.to_string() }),
        ),
        Event::PacketSent(sent) => ("quic:packet_sent", packet(sent)),
        Event::PacketReceived(received) => ("quic:packet_received", packet(received)),
        Event::PacketLost(lost) => (
            "quic:packet_lost",
            json!({
                "header": { "packet_number": lost.number.get() },
                "trigger": snake_case(&format!("{:?}", lost.trigger)),
            }),
        ),
        Event::PacketDropped(dropped) => (
            "quic:packet_dropped",
            json!({
                "raw": { "length": dropped.size },
                "trigger": snake_case(&format!("{:?}", dropped.trigger)),
            }),
        ),
        Event::MetricsUpdated(path) => ("quic:recovery_metrics_updated", metrics(path)),
        Event::CongestionStateUpdated(change) => {
            let state = |state| snake_case(&format!("{state:?}"));
            let data = json!({ "old": state(change.old), "new": state(change.new) });
            ("quic:congestion_state_updated", data)
        }
        Event::LossTimerUpdated(timer) => ("quic:timer_updated", loss_timer(timer)),
        _ => return None,
    })
}

fn packet(packet: &Packet<'_>) -> Value {
    let kind = match packet.kind {
        PacketKind::Initial => "initial",
        PacketKind::ZeroRtt => "0RTT",
        PacketKind::Handshake => "handshake",
        PacketKind::OneRtt => "1RTT",
    };
    let frames: Vec<_> = packet
        .frames
        .iter()
        .map(|frame| json!({ "frame_type": frame.name, "raw": { "length": frame.size } }))
        .collect();
    json!({
        "header": { "packet_type": kind, "packet_number": packet.number.get() },
        "raw": { "length": packet.size },
        "frames": frames,
    })
}

fn metrics(path: &PathStats) -> Value {
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    json!({
        "latest_rtt": ms(path.latest_rtt),
        "min_rtt": ms(path.min_rtt),
        "smoothed_rtt": ms(path.smoothed_rtt),
        "rtt_variance": ms(path.rtt_variance),
        "congestion_window": path.congestion_window,
        "bytes_in_flight": path.bytes_in_flight,
        "ssthresh": path.slow_start_threshold,
        "pacing_rate": path.pacing_rate.map(|bytes| bytes.saturating_mul(8)),
        "pto_count": path.pto_count,
    })
}

fn loss_timer(timer: &LossTimer) -> Value {
    let kind = |kind: &TimerKind| match kind {
        TimerKind::Loss => "loss_timeout",
        TimerKind::Probe => "pto",
    };
    match timer {
        LossTimer::Set { kind: of, after } => json!({
            "event_type": "set",
            "timer_type": kind(of),
            "delta": after.as_secs_f64() * 1e3,
        }),
        LossTimer::Expired(of) => json!({ "event_type": "expired", "timer_type": kind(of) }),
        _ => json!({ "event_type": "cancelled" }),
    }
}

/// Converts `ReorderingThreshold` to `reordering_threshold`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}
