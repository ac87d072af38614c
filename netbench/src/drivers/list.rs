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
        #[cfg(feature = "quiche")]
        "quiche" => Ok(Box::new(Quiche)),
        "tcp-tls" => Ok(Box::new(TcpTls)),
        _ => Err(missing(name).into()),
    }
}

fn missing(name: &str) -> String {
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
