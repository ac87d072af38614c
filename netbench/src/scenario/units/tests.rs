//! Tests of values with units.

use std::time::Duration;

use super::{Blackout, Burst, Queue, Rate, Reorder, Share, size, time};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn values_are_read_as_they_are_documented() {
    assert_eq!(time("300us"), Ok(Duration::from_micros(300)));
    assert_eq!(time("1.5ms"), Ok(Duration::from_micros(1500)));
    assert_eq!(time("2s"), Ok(ms(2000)));
    assert_eq!("10mbit".parse(), Ok(Rate(10_000_000)));
    assert_eq!("2.5Gbit".parse(), Ok(Rate(2_500_000_000)));
    assert_eq!("64KiB".parse(), Ok(Queue::Bytes(65_536)));
    assert_eq!("100ms".parse(), Ok(Queue::Time(ms(100))));
    assert_eq!("0.5bdp".parse(), Ok(Queue::Bdp(0.5)));
    let reorder: Reorder = "1%,5ms".parse().unwrap();
    assert_eq!((reorder.share.0, reorder.wait), (0.01, ms(5)));
    let blackout: Blackout = "5s,2s".parse().unwrap();
    assert_eq!(blackout.span(), (ms(5000), ms(7000)));
}

#[test]
fn values_without_a_meaning_are_refused() {
    for text in [
        "50", "ms", "-1ms", "1e3s", "infs", "nans", "4000s", "1.2.3s",
    ] {
        assert!(time(text).is_err(), "{text}");
    }
    for text in ["1", "101%", "-1%", "%", "nan%"] {
        assert!(text.parse::<Share>().is_err(), "{text}");
    }
    for text in ["10", "0mbit", "10mbyte", "99999gbit"] {
        assert!(text.parse::<Rate>().is_err(), "{text}");
    }
    for text in ["1%", "1%x0.5", "100%x8", "99%x2", "x8"] {
        assert!(text.parse::<Burst>().is_err(), "{text}");
    }
    for text in ["bdp", "12parsecs", ""] {
        assert!(text.parse::<Queue>().is_err(), "{text}");
    }
    assert!("1%".parse::<Reorder>().is_err());
    assert!("5s".parse::<Blackout>().is_err());
}

#[test]
fn shares_and_rates_are_shown_as_they_are_written() {
    for text in ["1%", "0.25%", "0%", "100%"] {
        assert_eq!(text.parse::<Share>().unwrap().to_string(), text);
    }
    for text in ["500kbit", "10mbit", "1.5gbit", "7bit"] {
        assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
    }
}

#[test]
fn a_queue_in_time_or_products_is_so_many_bytes() {
    let rate: Rate = "8mbit".parse().unwrap();
    assert_eq!(Queue::Time(ms(100)).bytes(rate, ms(0)), 100_000);
    assert_eq!(Queue::Bdp(2.0).bytes(rate, ms(50)), 100_000);
    assert_eq!(Queue::Bdp(1.0).bytes(rate, ms(0)), Queue::FLOOR);
    assert_eq!(Queue::Bytes(7).bytes(rate, ms(50)), 7);
}

#[test]
fn sizes_are_read_with_and_without_a_unit() {
    assert_eq!(size("0"), Ok(0));
    assert_eq!(size("17B"), Ok(17));
    assert_eq!(size("1GiB"), Ok(1 << 30));
    assert!(size("1GB").is_err());
    assert!(size("GiB").is_err());
    assert!(size("-1").is_err());
    assert!(size("99999999999GiB").is_err());
}
