//! The congestion matrix as a Markdown document.

use std::{fmt::Write, time::Duration};

use super::{BUFFERS, Buffer, CONTROLLERS, LOSSES, Lossy, Outcome, Path, ROUND_TRIPS};

/// Results of every controller on one path, in the order of [`CONTROLLERS`].
pub type Row = (Path, [Outcome; CONTROLLERS.len()]);

const HEAD: &str = "\
# Congestion control in the simulated network

One bulk transfer over every combination of rate, round trip, loss and buffer, by every controller.
Generated, and the same on every run:

```text
cargo run --release -p hybriq --example congestion_table
```

A cell reads **goodput · sent again · queue delay**:

- goodput: bytes of data that arrived, each counted once, in percent of what the link carries in that time;
- sent again: bytes declared lost, in percent of the bytes sent;
- queue delay in milliseconds before the bottleneck: mean over time / what it stayed below for 95 % of the time.

How it is measured:

- Loss detection, controllers, pacing and the policy of acknowledgements are those of the library, over the
  same simulated network as its tests, in virtual time; handshake, encryption and flow control are left out
  (`quic/sim/src/flow`, `quic/sim/src/matrix`).
- A run lasts 200 round trips, at least 3 s, but no longer than the link takes for 1,500,000 datagrams: that cuts
  10 Gbit/s to 107 round trips of 100 ms and 35 of 300 ms. Its first third, the start, is not counted.
- Datagrams have 1200 bytes, from 1 Gbit/s on 8952 (jumbo frames).
- Acknowledgements cross the same link the other way; only datagrams with data are lost, behind the bottleneck,
  so that x % of loss leaves at most 100 − x % of goodput. Bursts lose 1 % of a full link, ten datagrams in a row on
  average, none for longer than the link takes for 30.
- Shallow is a tenth of the bandwidth-delay product and at least 5 datagrams, deep four times and at least 40;
  one BDP is at least 10. The queue drops at its end and marks nothing, but for the last table.
";

/// Returns the whole document.
pub fn document(rows: &[Row]) -> String {
    let mut text = HEAD.to_owned();
    summary(&mut text, rows);
    for loss in LOSSES {
        let _ = write!(text, "\n## {}\n", loss_name(loss));
        for buffer in BUFFERS {
            let _ = write!(
                text,
                "\n### {}: {}\n\n",
                loss_name(loss),
                buffer_name(buffer)
            );
            table(&mut text, rows, |path| {
                path.loss == loss && path.buffer == buffer
            });
        }
    }
    let _ = write!(
        text,
        "\n## {}\n\n\
         The coupled AQM of RFC 9332 (DualPI2): ECT(1) waits in the L queue, everything else in the C queue.\n\
         The delay is that of the queue the controller's datagrams wait in.\n\n",
        buffer_name(Buffer::Dual)
    );
    table(&mut text, rows, |path| path.buffer == Buffer::Dual);
    text
}

/// Returns the line of one path.
pub fn row(path: Path, outcomes: &[Outcome]) -> String {
    let mut line = format!(
        "| {}, {} ms |",
        rate(path.rate),
        path.round_trip.as_millis()
    );
    for outcome in outcomes {
        let _ = write!(
            line,
            " {} · {} · {}/{} |",
            short(100.0 * outcome.goodput),
            short(100.0 * outcome.retransmitted),
            short(millis(outcome.mean_delay)),
            short(millis(outcome.p95_delay)),
        );
    }
    line
}

/// Returns the title of the table that contains a path.
pub fn title(path: Path) -> String {
    if path.buffer == Buffer::Dual {
        return format!("\n## {}\n", buffer_name(path.buffer));
    }
    let (loss, buffer) = (loss_name(path.loss), buffer_name(path.buffer));
    format!("\n### {loss}: {buffer}\n")
}

fn table(text: &mut String, rows: &[Row], belongs: impl Fn(&Path) -> bool) {
    header(text, "link");
    for (path, outcomes) in rows.iter().filter(|(path, _)| belongs(path)) {
        let _ = writeln!(text, "{}", row(*path, outcomes));
    }
}

fn header(text: &mut String, first: &str) {
    let _ = write!(text, "| {first} |");
    for (name, _) in CONTROLLERS {
        let _ = write!(text, " {name} |");
    }
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(CONTROLLERS.len()));
}

fn summary(text: &mut String, rows: &[Row]) {
    let links = |loss, buffer| {
        rows.iter()
            .filter(move |(path, _)| path.loss == loss && path.buffer == buffer)
    };
    text.push_str(
        "\n## Summary: goodput in percent, mean over all rates and round trips (worst)\n\n",
    );
    header(text, "loss, buffer");
    for loss in LOSSES {
        for buffer in BUFFERS {
            let _ = write!(text, "| {}, {} |", loss_name(loss), buffer_name(buffer));
            for controller in 0..CONTROLLERS.len() {
                let goodputs = links(loss, buffer).map(|(_, all)| 100.0 * all[controller].goodput);
                let worst = goodputs.clone().fold(f64::INFINITY, f64::min);
                let _ = write!(text, " {} ({}) |", short(mean(goodputs)), short(worst));
            }
            text.push('\n');
        }
    }
    text.push_str(
        "\n## Summary: mean queue delay without loss, in percent of the round trip, mean over all links of \
         30 ms and more\n\n",
    );
    header(text, "buffer");
    for buffer in BUFFERS {
        let _ = write!(text, "| {} |", buffer_name(buffer));
        for controller in 0..CONTROLLERS.len() {
            let shares = links(Lossy::Never, buffer)
                .filter(|(path, _)| path.round_trip > ROUND_TRIPS[0])
                .map(|(path, all)| {
                    let delay = all[controller].mean_delay;
                    100.0 * delay.as_secs_f64() / path.round_trip.as_secs_f64()
                });
            let _ = write!(text, " {} |", short(mean(shares)));
        }
        text.push('\n');
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0_f64), |(sum, count), value| {
        (sum + value, count + 1.0)
    });
    sum / count.max(1.0)
}

const fn loss_name(loss: Lossy) -> &'static str {
    match loss {
        Lossy::Never => "No loss",
        Lossy::PerMille(1) => "0.1 % random loss",
        Lossy::PerMille(10) => "1 % random loss",
        Lossy::PerMille(50) => "5 % random loss",
        Lossy::PerMille(_) => "random loss",
        Lossy::Bursts => "1 % loss in bursts",
    }
}

const fn buffer_name(buffer: Buffer) -> &'static str {
    match buffer {
        Buffer::Shallow => "shallow buffer",
        Buffer::Bdp => "one BDP",
        Buffer::Deep => "deep buffer",
        Buffer::Dual => "Behind a dual-queue AQM",
    }
}

fn rate(bits_per_second: u64) -> String {
    if bits_per_second >= 1_000_000_000 {
        format!("{} Gbit/s", bits_per_second / 1_000_000_000)
    } else {
        format!("{} Mbit/s", bits_per_second / 1_000_000)
    }
}

fn millis(delay: Duration) -> f64 {
    delay.as_secs_f64() * 1e3
}

/// Formats two digits, at most one of them after the decimal point.
fn short(value: f64) -> String {
    if value >= 9.95 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}
