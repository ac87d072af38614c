//! Links over which stacks are compared.

use serde::Serialize;

/// A link, with its arguments of `netbench link`.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Description; round trips are those without queues.
    pub(crate) about: &'static str,
    pub(crate) args: &'static [&'static str],
}

/// Payload of an Ethernet frame over IPv4. Peers search for the largest datagram that passes; ours
/// is set to 1452.
pub(crate) const MTU: &str = "1472";

pub(crate) const CASES: [Case; 9] = [
    Case {
        name: "clean",
        about: "20 Mbit/s, 50 ms round trip, 1 BDP of buffer",
        args: &["--rate", "20mbit", "--delay", "25ms"],
    },
    Case {
        name: "fast",
        about: "100 Mbit/s, 100 ms, 1 BDP",
        args: &["--rate", "100mbit", "--delay", "50ms"],
    },
    Case {
        name: "lossy",
        about: "100 Mbit/s, 50 ms, 1 BDP, 1% lost at random each way",
        args: &["--rate", "100mbit", "--delay", "25ms", "--loss", "1%"],
    },
    Case {
        name: "shallow",
        about: "50 Mbit/s, 30 ms, 0.2 BDP",
        args: &["--rate", "50mbit", "--delay", "15ms", "--queue", "0.2bdp"],
    },
    Case {
        name: "bursts",
        about: "50 Mbit/s, 50 ms, 1 BDP, 0.5% lost, 8 in a row on average",
        args: &[
            "--rate",
            "50mbit",
            "--delay",
            "25ms",
            "--burst-loss",
            "0.5%x8",
        ],
    },
    Case {
        name: "reordered",
        about: "50 Mbit/s, 50 ms, 1 BDP, 2% late by 10 ms, some 50 datagrams",
        args: &[
            "--rate",
            "50mbit",
            "--delay",
            "25ms",
            "--reorder",
            "2%,10ms",
        ],
    },
    Case {
        name: "blackout",
        about: "50 Mbit/s, 50 ms, 1 BDP, nothing passes from 4 s to 6 s",
        args: &["--rate", "50mbit", "--delay", "25ms", "--blackout", "4s,2s"],
    },
    Case {
        name: "long",
        about: "200 Mbit/s, 250 ms, 1 BDP",
        args: &["--rate", "200mbit", "--delay", "125ms"],
    },
    Case {
        name: "marked",
        about: "50 Mbit/s, 20 ms, 2 BDP, CE above 1 ms of queue, as of L4S",
        args: &[
            "--rate",
            "50mbit",
            "--delay",
            "10ms",
            "--queue",
            "2bdp",
            "--ecn-mark",
            "1ms",
        ],
    },
];

/// Returns the cases of these names, separated by commas, or all.
pub(crate) fn parse(names: &str) -> Result<Vec<Case>, String> {
    if names == "all" {
        return Ok(CASES.to_vec());
    }
    let find = |name: &str| {
        let case = CASES.into_iter().find(|case| case.name == name);
        case.ok_or_else(|| {
            let known = CASES.map(|case| case.name).join(", ");
            format!("unknown link '{name}'; valid: all, {known}")
        })
    };
    names.split(',').map(find).collect()
}

/// Returns the cases of these names for downloads of this length. A blackout after their end would
/// be scored as none.
pub(crate) fn lasting(names: &str, seconds: u64) -> Result<Vec<Case>, String> {
    let mut cases = parse(names)?;
    if seconds >= BLACKOUT_NEEDS {
        return Ok(cases);
    }
    if names == "all" {
        cases.retain(|case| !case.args.contains(&"--blackout"));
    } else if let Some(case) = cases.iter().find(|case| case.args.contains(&"--blackout")) {
        let name = case.name;
        return Err(format!(
            "the link '{name}' needs --seconds {BLACKOUT_NEEDS} or more: nothing passes from 4 s to 6 s"
        ));
    }
    Ok(cases)
}

/// Least seconds of a download that also shows the time after the blackout.
const BLACKOUT_NEEDS: u64 = 8;

#[cfg(test)]
mod tests {
    use super::{CASES, lasting, parse};

    #[test]
    fn a_blackout_is_not_scored_by_downloads_that_end_before_it() {
        assert!(
            lasting("all", 2)
                .unwrap()
                .iter()
                .all(|case| case.name != "blackout")
        );
        assert_eq!(lasting("all", 10).unwrap().len(), CASES.len());
        let refused = lasting("clean,blackout", 2).unwrap_err();
        assert!(refused.contains("--seconds 8"), "{refused}");
        assert_eq!(lasting("clean", 1).unwrap().len(), 1);
    }

    #[test]
    fn cases_are_found_by_name() {
        assert_eq!(parse("all").unwrap().len(), CASES.len());
        let names = parse("long,clean").unwrap();
        assert_eq!(
            names.iter().map(|case| case.name).collect::<Vec<_>>(),
            ["long", "clean"]
        );
        assert!(
            parse("clean,lunar")
                .unwrap_err()
                .contains("unknown link 'lunar'; valid: all, clean")
        );
    }
}
