//! The command line of `netbench link`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Parser};
use hybriq_sim::link::{Blackouts, Line, Marking, Settings};

use super::server::Server;
use crate::scenario::units::{Blackout, Burst, Queue, Rate, Reorder, Share, time};
use crate::system::failure::Failure;

/// Flags of `netbench link`; their help ends with [`UNITS`].
#[derive(Args)]
pub(crate) struct LinkArgs {
    /// Address to which clients send. Port 0 takes a free one, which is printed.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,

    /// Address of the server, or its host name with a port. Of several addresses the first that answers
    /// over QUIC counts, so the server must run; IPv6 and IPv4 alternate (RFC 8305).
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) to: Server,

    #[command(flatten)]
    pub(crate) conditions: Conditions,

    /// Sets one of the conditions above for the direction from clients to the server alone, for
    /// example `--up rate=1mbit`. Repeatable.
    #[arg(long, value_name = "KEY=VALUE", value_parser = condition)]
    pub(crate) up: Vec<Conditions>,

    /// Sets a condition for the direction from the server to clients alone.
    #[arg(long, value_name = "KEY=VALUE", value_parser = condition)]
    pub(crate) down: Vec<Conditions>,

    /// Gives every client a new port towards the server at this interval, like a NAT that forgets
    /// its mappings. Datagrams that the server still sends to the old port are lost.
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub(crate) rebind: Option<Duration>,

    /// Maximum number of clients at once. Others get no answer.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) clients: u32,

    /// Seed of the random choices. The same seed makes the same choice for the n-th datagram of a
    /// direction.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Prints the address and the summary as one line of JSON each.
    #[arg(long)]
    pub(crate) json: bool,

    /// Ends when standard input ends, for a program that starts this one over a pipe.
    #[arg(long)]
    pub(crate) until_eof: bool,
}

/// Below the options.
pub(crate) const UNITS: &str = "\
Times are written 300us, 50ms or 2s; shares 0.5%; rates 500kbit, 10mbit or 1gbit (10^3, 10^6, 10^9
bits a second); sizes 64KiB or 9000B. Rates, queues and sizes count UDP payload bytes. All clients
share one link. A signal (INT, TERM) ends it; then it prints what it did.

Example, 20 Mbit/s and 100 ms there and back, a shallow buffer, 1% lost on the way down:
  netbench link --listen 127.0.0.1:4433 --to 192.0.2.7:4433 --rate 20mbit --delay 50ms
                --queue 0.25bdp --down loss=1%";

/// Conditions of one direction; a condition that is not given does not apply.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Conditions {
    /// Delay in one direction.
    #[arg(long, value_name = "TIME", value_parser = time)]
    delay: Option<Duration>,

    /// Random time from 0 to this that is added to the delay. Keeps the order.
    #[arg(long, value_name = "TIME", value_parser = time)]
    jitter: Option<Duration>,

    /// Rate of the bottleneck in each direction.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,

    /// Size of the queue of the bottleneck, without the datagram being sent: bytes (`64KiB`), the
    /// bytes that it sends in a time (`100ms`), or a multiple of its rate times both delays
    /// (`0.5bdp`, at least 15000 bytes). Datagrams beyond it are dropped. Default with `--rate`: `1bdp`.
    #[arg(long, value_name = "QUEUE")]
    queue: Option<Queue>,

    /// Marks ECN-capable datagrams that waited longer than this for the bottleneck (CE).
    #[arg(long, value_name = "TIME", value_parser = time)]
    ecn_mark: Option<Duration>,

    /// Loses each datagram with this probability. Like all losses except those of the queue, it
    /// happens behind the bottleneck, so that a lost datagram has used its share of the rate.
    #[arg(long, value_name = "SHARE")]
    loss: Option<Share>,

    /// Loses datagrams in bursts (Gilbert-Elliott): `1%x8` loses 1% of all, 8 in a row on average.
    #[arg(long, value_name = "SHARExLENGTH")]
    burst_loss: Option<Burst>,

    /// Loses all datagrams for a time: `5s,2s` starts 5 s after the first datagram of the link and
    /// lasts 2 s. Repeatable.
    #[arg(long, value_name = "START,DURATION")]
    blackout: Vec<Blackout>,

    /// Delays this share of the datagrams further, so that later ones overtake them: `1%,5ms`.
    #[arg(long, value_name = "SHARE,TIME")]
    reorder: Option<Reorder>,

    /// Sends this share of the datagrams twice.
    #[arg(long, value_name = "SHARE")]
    duplicate: Option<Share>,

    /// Flips one bit in this share of the datagrams.
    #[arg(long, value_name = "SHARE")]
    corrupt: Option<Share>,

    /// Drops datagrams that are larger than this number of bytes.
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u64>,
}

/// One of the [`Conditions`] alone, so that `--up` and `--down` take the same as the options.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Alone {
    #[command(flatten)]
    conditions: Conditions,
}

fn condition(text: &str) -> Result<Conditions, String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| "expected KEY=VALUE, as loss=1%".to_owned())?;
    match Alone::try_parse_from([format!("--{key}"), value.to_owned()]) {
        Ok(alone) => Ok(alone.conditions),
        Err(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            Err(first.trim_start_matches("error: ").to_owned())
        }
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    time(text).and_then(|interval| match interval {
        Duration::ZERO => Err("more than 0".to_owned()),
        interval => Ok(interval),
    })
}

impl LinkArgs {
    /// Returns the settings of both directions, up first.
    pub(crate) fn settings(&self) -> Result<[Settings; 2], Failure> {
        let [up, down] = [&self.up, &self.down].map(|own| {
            own.iter()
                .fold(self.conditions.clone(), |both, own| own.clone().over(both))
        });
        let round_trip = up.delay.unwrap_or_default() + down.delay.unwrap_or_default();
        Ok([up.settings(round_trip)?, down.settings(round_trip)?])
    }
}

impl Conditions {
    /// Returns these conditions, completed by the others.
    fn over(self, others: Self) -> Self {
        Self {
            delay: self.delay.or(others.delay),
            jitter: self.jitter.or(others.jitter),
            rate: self.rate.or(others.rate),
            queue: self.queue.or(others.queue),
            ecn_mark: self.ecn_mark.or(others.ecn_mark),
            loss: self.loss.or(others.loss),
            burst_loss: self.burst_loss.or(others.burst_loss),
            blackout: [others.blackout, self.blackout].concat(),
            reorder: self.reorder.or(others.reorder),
            duplicate: self.duplicate.or(others.duplicate),
            corrupt: self.corrupt.or(others.corrupt),
            mtu: self.mtu.or(others.mtu),
        }
    }

    fn settings(self, round_trip: Duration) -> Result<Settings, Failure> {
        if self.rate.is_none() && (self.queue.is_some() || self.ecn_mark.is_some()) {
            return Err("--queue and --ecn-mark need a --rate: without one nothing waits".into());
        }
        let queue = self.queue.unwrap_or(Queue::Bdp(1.0));
        Ok(Settings {
            delay: self.delay.unwrap_or_default(),
            jitter: self.jitter.unwrap_or_default(),
            mtu: self.mtu,
            line: self.rate.map(|rate| {
                let marking = self.ecn_mark.map_or(Marking::Never, Marking::Above);
                Line::new(rate.bits(), queue.bytes(rate, round_trip)).marking(marking)
            }),
            loss: self.loss.unwrap_or_default().chance(),
            bursts: self.burst_loss.map(Burst::model),
            reorder: self.reorder.map(Reorder::model),
            duplicate: self.duplicate.unwrap_or_default().chance(),
            corrupt: self.corrupt.unwrap_or_default().chance(),
            blackouts: Blackouts::new(self.blackout.iter().map(Blackout::span)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;
    use hybriq_sim::link::{Line, Settings};

    use super::LinkArgs;

    #[derive(Parser)]
    #[command(no_binary_name = true)]
    struct Flags {
        #[command(flatten)]
        link: LinkArgs,
    }

    fn settings(args: &[&str]) -> Result<[Settings; 2], String> {
        let to = ["--to", "127.0.0.1:1"];
        let line =
            Flags::try_parse_from([&to, args].concat()).map_err(|error| error.to_string())?;
        line.link.settings().map_err(|error| error.to_string())
    }

    #[test]
    fn a_direction_of_its_own_replaces_what_is_said_of_both() {
        let args = ["--delay", "50ms", "--rate", "8mbit", "--blackout", "1s,1s"];
        let own = [
            "--up",
            "rate=1mbit",
            "--down",
            "delay=30ms",
            "--down",
            "blackout=5s,1s",
        ];
        let [up, down] = settings(&[&args[..], &own].concat()).unwrap();
        assert_eq!((up.delay, down.delay).0, Duration::from_millis(50));
        assert_eq!(down.delay, Duration::from_millis(30));
        let lines = [&up, &down].map(|settings| settings.line.clone().unwrap());
        assert_eq!(
            lines.each_ref().map(Line::bits_per_second),
            [1_000_000, 8_000_000]
        );
        // One product of the rate and 80 ms, or ten frames.
        assert_eq!(lines.each_ref().map(Line::queue_bytes), [15_000, 80_000]);
        assert_eq!((up.blackouts.count(), down.blackouts.count()), (1, 2));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_reason() {
        let complaint = |args: &[&str]| settings(args).unwrap_err();
        assert!(complaint(&["--queue", "1bdp"]).contains("need a --rate"));
        assert!(complaint(&["--up", "loss"]).contains("KEY=VALUE"));
        assert!(complaint(&["--up", "loss=2"]).contains("0% to 100%"));
        assert!(complaint(&["--down", "colour=red"]).contains("colour"));
        assert!(complaint(&["--rebind", "0s"]).contains("more than 0"));
    }
}
