//! Versions of the crates that are measured, as the build script reads them from the lock file.

/// Returns the name and the version of each crate that matters to results and is built in.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    env!("NETBENCH_CRATES")
        .split_whitespace()
        .filter_map(|entry| entry.split_once('='))
}

/// Returns the version of a crate; `?` if it is not built in, or the lock file was missing.
pub(crate) fn version(name: &str) -> &'static str {
    all()
        .find(|(known, _)| *known == name)
        .map_or("?", |(_, version)| version)
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn versions_are_those_of_the_lock_file() {
        for name in ["hybriq", "rustls", "s2n-tls"] {
            assert_eq!(version(name).split('.').count(), 3, "{}", version(name));
        }
        assert_eq!(version("quinn") != "?", cfg!(feature = "quinn"));
        assert_eq!(version("s2n-quic") != "?", cfg!(feature = "s2n-quic"));
        assert_eq!(version("no-such-crate"), "?");
    }
}
