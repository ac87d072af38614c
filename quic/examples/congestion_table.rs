//! x
use hybriq::sim::matrix::*;
use std::time::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let rate: u64 = args[1].parse::<u64>().unwrap() * 1_000_000;
    for rtt in ROUND_TRIPS {
        for buffer in BUFFERS {
            for loss in [Lossy::Never, Lossy::PerMille(10)] {
                let path = Path {
                    rate,
                    round_trip: rtt,
                    loss,
                    buffer,
                };
                for (name, c) in CONTROLLERS.iter().take(args[2].parse().unwrap()) {
                    #[allow(clippy::disallowed_methods)]
                    let t = Instant::now();
                    let o = path.run(c);
                    let took = t.elapsed();
                    let packets = o.goodput * path.rate as f64 / 8.0
                        * path.duration().as_secs_f64()
                        / path.datagram_size() as f64;
                    println!(
                        "{name:8} {rtt:?} {buffer:?} {loss:?}: {:.1}% retx {:.2}% mean {:?} p95 {:?}  took {took:?} ns/packet {:.0}",
                        o.goodput * 100.0,
                        o.retransmitted * 100.0,
                        o.mean_delay,
                        o.p95_delay,
                        took.as_nanos() as f64 / packets
                    );
                }
            }
        }
    }
}
