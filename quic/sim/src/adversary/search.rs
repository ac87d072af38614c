//! Search for an attack that fails, and for the few of its datagrams that are needed.

use std::{error::Error, fmt};

use super::{Arrived, Attack};
use crate::invariants::Violation;

/// Maximum number of repetitions of an attack that fails.
const REPETITIONS: usize = 500;

/// An attack that breaks an invariant, with few datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// Violation when all datagrams arrive.
    pub violation: Violation,
    /// Violation when only the datagrams of [`arrived`](Self::arrived) arrive.
    pub shortest: Violation,
    /// Datagrams that are needed: if one of them is lost, the invariant holds, unless the search
    /// ended early. Those of all other steps may be lost.
    pub arrived: Vec<Arrived>,
    /// Number of steps until the violation, including lost ones.
    pub steps: u64,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (needed, steps) = (self.arrived.len(), self.steps);
        writeln!(f, "{}", self.violation)?;
        write!(
            f,
            "{needed} of the datagrams of {steps} steps are enough ({})",
            self.shortest.details
        )?;
        for arrived in &self.arrived {
            write!(f, "\n  {arrived}")?;
        }
        Ok(())
    }
}

impl Error for Found {}

/// Takes this many steps of an attack that `make` creates. If an invariant does not hold, repeats
/// the attack with fewer and fewer datagrams arriving, as long as the same invariant is broken.
///
/// # Errors
/// An invariant does not hold.
///
/// # Examples
/// ```
/// use hybriq_sim::adversary::{Attack, Character, search};
/// # use std::sync::Arc;
/// # use hybriq_proto::{TransportConfig, endpoint::Setup};
/// # use hybriq_tls::{Backend, ClientOptions, Identity, PrivateKeyDer, ServerOptions, Trust};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
/// # let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
/// # let root = made.cert.der().clone();
/// # let trust = Trust::roots_pem(made.cert.pem().as_bytes())?;
/// # let client = Backend::Rustls.client(&ClientOptions::new().trust(trust).alpn(["x"]))?;
/// # let identity = Identity::from_der(vec![root], key);
/// # let provider = Backend::Rustls.server(&ServerOptions::new(identity).alpn(["x"]))?;
/// # let server = Setup { provider, transport: Arc::new(TransportConfig::new()) };
/// let seed = 7;
/// let attack = search(50, || {
///     let character = Character::of_seed(seed);
///     Attack::new(seed, character, &client, server.clone()).expect("TLS is configured")
/// })?;
/// assert!(attack.steps() <= 50);
/// # Ok(())
/// # }
/// ```
pub fn search(steps: u64, make: impl Fn() -> Attack) -> Result<Attack, Box<Found>> {
    let mut attack = make();
    let Err(violation) = attack.run(steps) else {
        return Ok(attack);
    };
    let last = attack.steps();
    let mut found = Found {
        shortest: violation.clone(),
        violation,
        arrived: attack.take_arrived(),
        steps: last,
    };
    let all: Vec<u64> = found.arrived.iter().map(|it| it.step).collect();
    needed(&all, REPETITIONS, |kept| {
        let mut attack = make();
        attack.lose((1..=last).filter(|step| !kept.contains(step)));
        let Err(violation) = attack.run(last) else {
            return false;
        };
        let is_same = violation.invariant == found.violation.invariant;
        if is_same {
            found.shortest = violation;
            found.arrived = attack.take_arrived();
            found.steps = attack.steps();
        }
        is_same
    });
    Err(Box::new(found))
}

/// Drops items, many at once first, as long as the remaining ones still fail. Returns those that
/// are needed.
fn needed(all: &[u64], repetitions: usize, mut fails: impl FnMut(&[u64]) -> bool) -> Vec<u64> {
    let mut kept = all.to_vec();
    let mut size = kept.len();
    let mut left = repetitions;
    while size > 0 {
        let mut is_shorter = false;
        // The last ones first: they depend on those before them, not the other way round.
        let mut end = kept.len();
        while end > 0 && left > 0 {
            let start = end.saturating_sub(size);
            let mut fewer = kept.clone();
            fewer.drain(start..end);
            left -= 1;
            if fails(&fewer) {
                kept = fewer;
                is_shorter = true;
            }
            end = start;
        }
        if left == 0 {
            break;
        }
        // An item that was needed before may no longer be.
        if size > 1 {
            size = size.div_ceil(2);
        } else if !is_shorter {
            break;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::needed;

    fn all() -> Vec<u64> {
        (1..=300).collect()
    }

    #[test]
    fn of_many_steps_the_few_that_are_needed_remain() {
        let fails = |kept: &[u64]| [7, 23, 24, 299].iter().all(|it| kept.contains(it));
        assert_eq!(needed(&all(), 500, fails), [7, 23, 24, 299]);
        assert_eq!(needed(&all(), 500, |_| true), []);
        assert_eq!(needed(&all(), 500, |kept| kept.len() == 300), all());
    }

    #[test]
    fn a_number_of_steps_remains_whichever_they_are() {
        assert_eq!(needed(&all(), 500, |kept| kept.len() >= 20).len(), 20);
    }

    #[test]
    fn the_search_ends_when_it_takes_too_long() {
        let mut runs = 0;
        let kept = needed(&all(), 10, |kept| {
            runs += 1;
            kept.contains(&300)
        });
        assert_eq!(runs, 10);
        assert!(kept.contains(&300) && kept.len() < 300);
    }
}
