//! The command line of `netbench run handshake-breakdown`.

use hybriq::{Backend, Group};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::plan::{Mode, Plan, SUITES};
use crate::Failure;
use crate::axes::Resumption;
use crate::certificates::KINDS;

/// Times each TLS message and each operation of handshakes, in this process alone.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Key-exchange groups, or `all`.
    #[arg(
        long,
        default_value = "all",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    group: Vec<String>,

    /// Cipher suites, or `all`.
    #[arg(
        long,
        default_value = "TLS_AES_128_GCM_SHA256",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    suite: Vec<String>,

    /// Kinds of certificates, or `all`.
    #[arg(
        long,
        default_value = "ecdsa-p256",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    certificate: Vec<String>,

    /// Certificates that servers send: 1 is the leaf alone.
    #[arg(
        long,
        default_value = "1",
        value_name = "NUMBERS",
        value_delimiter = ','
    )]
    chain: Vec<u8>,

    /// How handshakes begin: `full`, `psk`.
    #[arg(
        long,
        default_value = "full",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    resumption: Vec<String>,

    /// When key shares are made: `fresh`, in the handshake; `ahead`, before it.
    #[arg(
        long,
        default_value = "fresh",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    shares: Vec<String>,

    /// Whether clients show a certificate: `no`, `yes`.
    #[arg(
        long,
        default_value = "no",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    client_auth: Vec<String>,

    /// TLS providers: `rustls`, `s2n-tls`. Operations inside of messages are rustls' alone.
    #[arg(
        long,
        default_value = "rustls",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    provider: Vec<String>,

    /// Handshakes of each kind. A tenth as many come before, and are not counted.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    iterations: u32,
}

impl Args {
    pub(super) fn iterations(&self) -> usize {
        self.iterations as usize
    }

    /// Whether something may be left out because not everything can do everything.
    pub(super) fn allows_gaps(&self) -> bool {
        let axes = [
            &self.group,
            &self.suite,
            &self.certificate,
            &self.resumption,
            &self.shares,
            &self.provider,
        ];
        axes.into_iter()
            .flatten()
            .any(|name| name.eq_ignore_ascii_case("all"))
    }

    /// Every combination.
    pub(super) fn plans(&self) -> Result<Vec<Plan>, Failure> {
        let groups = choose("group", &self.group, &Group::ALL, ToString::to_string)?;
        let suites = choose("cipher suite", &self.suite, &SUITES, ToString::to_string)?;
        let certificates = choose("certificate", &self.certificate, &KINDS, |it| name_of(*it))?;
        let providers = choose("TLS provider", &self.provider, &Backend::ALL, |it| {
            it.name().to_owned()
        })?;
        let beginnings = [Resumption::Full, Resumption::Psk];
        let resumption = choose("resumption", &self.resumption, &beginnings, |it| {
            name_of(*it)
        })?;
        let shares = choose("time of shares", &self.shares, &[false, true], |ahead| {
            if *ahead { "ahead" } else { "fresh" }.to_owned()
        })?;
        let client_auth = choose("client auth", &self.client_auth, &[false, true], |shown| {
            if *shown { "yes" } else { "no" }.to_owned()
        })?;

        let mut plans = Vec::new();
        for &provider in &providers {
            for &certificate in &certificates {
                for &chain in &self.chain {
                    for &client_auth in &client_auth {
                        for &resumption in &resumption {
                            for &shares_ahead in &shares {
                                for &suite in &suites {
                                    plans.extend(groups.iter().map(|&group| Plan {
                                        provider,
                                        group,
                                        suite,
                                        certificate,
                                        chain,
                                        client_auth,
                                        mode: Mode {
                                            psk: resumption == Resumption::Psk,
                                            shares_ahead,
                                        },
                                    }));
                                }
                            }
                        }
                    }
                }
            }
        }
        Ok(plans)
    }
}

/// The values of these names, each once.
fn choose<T: Copy + PartialEq>(
    what: &str,
    names: &[String],
    valid: &[T],
    name_of: impl Fn(&T) -> String,
) -> Result<Vec<T>, Failure> {
    let mut chosen = Vec::new();
    for name in names {
        let mut found: Vec<T> = if name.eq_ignore_ascii_case("all") {
            valid.to_vec()
        } else {
            let mut named = valid
                .iter()
                .filter(|it| name_of(it).eq_ignore_ascii_case(name));
            named.next().into_iter().copied().collect()
        };
        if found.is_empty() {
            let valid: Vec<_> = valid.iter().map(&name_of).collect();
            return Err(
                format!("unknown {what} '{name}'; valid: all, {}", valid.join(", ")).into(),
            );
        }
        found.retain(|it| !chosen.contains(it));
        chosen.append(&mut found);
    }
    Ok(chosen)
}

/// The name of a value in files.
pub(super) fn name_of<T: Serialize + DeserializeOwned>(value: T) -> String {
    let text = serde_json::to_value(value).ok();
    text.and_then(|text| text.as_str().map(str::to_owned))
        .unwrap_or_default()
}
