//! Cases of the runner: what passes over which link, and what the capture must show.

mod links;
mod list;

use std::time::Duration;

use self::list::CASES;
use super::{Failure, find_each, link::Conditions, verdict::Check};

/// A case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    /// Letters of the public matrix.
    pub(super) letters: &'static str,
    /// `TESTCASE` of each end.
    pub(super) client: &'static str,
    pub(super) server: &'static str,
    /// Groups that each end may use, by name, the preferred one first; empty for its default.
    pub(super) client_groups: &'static str,
    pub(super) server_groups: &'static str,
    /// Sizes of the files.
    pub(super) files: Files,
    /// Name by which the client finds the server.
    pub(super) host: &'static str,
    pub(super) link: fn() -> Conditions,
    /// Datagrams that are lost, counted from 0 over both ends.
    pub(super) losses: &'static [usize],
    /// True if a download over TCP runs at the same time.
    pub(super) cross_traffic: bool,
    /// True if the server has the chain that is too long for its first flight.
    pub(super) long_chain: bool,
    /// Time after which the run has failed.
    pub(super) deadline: Duration,
    pub(super) check: Check,
}

/// Files of a case.
#[derive(Clone, Copy, Debug)]
pub(super) enum Files {
    /// Of these sizes.
    Sizes(&'static [usize]),
    /// So many of the same size.
    Many(usize, usize),
    /// This many files of the same size, with names of this many letters.
    LongNames(usize, usize, usize),
}

/// Cases that show most in a short time: for CI.
const QUICK: [&str; 14] = [
    "handshake",
    "transfer",
    "multiplexing",
    "retry",
    "resumption",
    "zerortt",
    "http3",
    "v2",
    "postquantum-reordered",
    "postquantum-retry",
    "group-secp384r1mlkem1024",
    "helloretry-x25519mlkem768",
    "lost-1",
    "lost-2-3",
];

impl Case {
    /// Returns true for a case of the quick set.
    fn is_quick(&self) -> bool {
        QUICK.contains(&self.name)
    }

    /// Returns the conditions of the link.
    pub(super) fn conditions(&self) -> Conditions {
        Conditions {
            losses: self.losses.to_vec(),
            ..(self.link)()
        }
    }
}

/// Returns the names of all cases.
pub fn names() -> Vec<&'static str> {
    CASES.iter().map(|case| case.name).collect()
}

/// Returns the position of a case among all.
pub(super) fn position(name: &str) -> usize {
    let found = CASES.iter().position(|case| case.name == name);
    found.unwrap_or(CASES.len())
}

/// Returns the cases of these names, or all, or all of the quick set.
pub(super) fn select(wanted: &[String], quick: bool) -> Result<Vec<&'static Case>, Failure> {
    if wanted.is_empty() {
        let chosen = CASES.iter().filter(|case| !quick || case.is_quick());
        return Ok(chosen.collect());
    }
    let find = |name: &String| {
        let found = CASES
            .iter()
            .find(|case| case.name == name || case.letters == name);
        found.ok_or_else(|| {
            let names = names().join(", ");
            format!("there is no case '{name}'; there are {names}").into()
        })
    };
    find_each(wanted, find, |case| case.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::TestCase;

    #[test]
    fn every_case_is_one_that_the_endpoint_knows() {
        for case in &CASES {
            for name in [case.client, case.server] {
                assert!(TestCase::from_name(name).is_some(), "{name}");
            }
        }
        let mut letters: Vec<_> = CASES.iter().map(|case| case.letters).collect();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), CASES.len());
    }

    #[test]
    fn cases_are_found_by_name_and_letters() {
        let found = select(&["retry".to_owned(), "V2".to_owned()], false).expect("two cases");
        assert_eq!(found.len(), 2);
        let twice = ["retry".to_owned(), "S".to_owned()];
        assert_eq!(select(&twice, false).expect("one case").len(), 1);
        let quick = select(&[], true).expect("the quick set");
        assert_eq!(quick.len(), QUICK.len());
        let error = select(&["nonsense".to_owned()], false).expect_err("no case");
        assert!(error.to_string().contains("handshake"), "{error}");
    }
}
