//! Which stacks there are.

use super::Driver;
use super::hybriq::Hybriq;
#[cfg(feature = "quiche")]
use super::quiche::Quiche;
use super::tcp_tls::TcpTls;
use crate::Failure;

/// Every stack there is, and the feature that builds it in.
pub(crate) const NAMES: [(&str, Option<&str>); 5] = [
    ("hybriq", None),
    ("quiche", Some("quiche")),
    ("quinn", Some("quinn")),
    ("s2n-quic", Some("s2n-quic")),
    ("tcp-tls", None),
];

/// The driver of that name.
pub(crate) fn driver(name: &str) -> Result<Box<dyn Driver>, Failure> {
    match name {
        "hybriq" => Ok(Box::new(Hybriq)),
        #[cfg(feature = "quinn")]
        "quinn" => Ok(Box::new(super::quinn::Quinn)),
        #[cfg(feature = "s2n-quic")]
        "s2n-quic" => Ok(Box::new(super::s2n_quic::S2nQuic)),
        #[cfg(feature = "quiche")]
        "quiche" => Ok(Box::new(Quiche)),
        "tcp-tls" => Ok(Box::new(TcpTls)),
        _ => Err(missing(name).into()),
    }
}

/// The names of those that are built in.
pub(crate) fn built_in() -> impl Iterator<Item = &'static str> {
    NAMES
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| driver(name).is_ok())
}

pub(super) fn missing(name: &str) -> String {
    let known = NAMES.iter().find(|known| known.0 == name);
    if let Some((_, Some(feature))) = known {
        return format!("{name} is not built in: build with `--features {feature}`");
    }
    let names = NAMES.map(|(name, _)| name).join(", ");
    format!("unknown stack '{name}'; valid: {names}")
}

/// The version that the lock file names.
pub(crate) fn version(name: &str) -> &'static str {
    let heading = format!("name = \"{name}\"");
    include_str!("../../../Cargo.lock")
        .lines()
        .skip_while(|line| *line != heading)
        .find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
        .unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_built_in_is_told_with_the_way_to_get_it() {
        for (name, feature) in NAMES {
            match (driver(name), feature) {
                (Ok(driver), _) => assert_eq!(driver.name(), name),
                (Err(failure), Some(feature)) => {
                    let help = format!("--features {feature}");
                    assert!(failure.to_string().contains(&help), "{failure}");
                }
                (Err(failure), None) => panic!("{failure}"),
            }
        }
        let failure = driver("quicr").err().unwrap().to_string();
        assert!(
            failure.contains("valid: hybriq, quiche, quinn"),
            "{failure}"
        );
    }

    #[test]
    fn versions_are_those_of_the_lock_file() {
        for name in ["hybriq", "quinn", "rustls", "s2n-quic", "s2n-tls"] {
            assert_eq!(version(name).split('.').count(), 3, "{}", version(name));
        }
        assert_eq!(version("no-such-crate"), "?");
    }
}
