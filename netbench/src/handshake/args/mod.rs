//! The command line of `netbench run handshake-breakdown`.

pub(super) mod document;
pub(super) mod print;

use std::path::PathBuf;

use hybriq::{Backend, Group};

use self::document::Gaps;
use super::plan::{Mode, Plan, SUITES};
use crate::report::outputs::Outputs;
use crate::scenario::axes::{Certificate, Resumption};
use crate::system::failure::Failure;

/// Times each TLS message and each operation of handshakes, in this process alone.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Key-exchange groups, or `all`.
    #[arg(
        long,
        visible_alias = "groups",
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

    /// Number of certificates that servers send; 1 is the leaf alone.
    #[arg(
        long,
        default_value = "1",
        value_name = "NUMBERS",
        value_delimiter = ','
    )]
    chain: Vec<u8>,

    /// Kinds of handshakes: `full`, or `psk` for resumption.
    #[arg(
        long,
        default_value = "full",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    resumption: Vec<String>,

    /// Time at which key shares are made: `fresh`, in the handshake; `ahead`, before it.
    #[arg(
        long,
        default_value = "fresh",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    shares: Vec<String>,

    /// Client certificates: `no`, `yes`.
    #[arg(
        long,
        default_value = "no",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    client_auth: Vec<String>,

    /// TLS providers: `rustls`, `s2n-tls`. Single operations are timed with rustls only.
    #[arg(
        long,
        default_value = "rustls",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    provider: Vec<String>,

    /// Number of handshakes of each kind, after a tenth as many for warm-up.
    #[arg(long, visible_aliases = ["connections", "repetitions"], default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    iterations: u32,

    /// Also writes all results to this file as JSON.
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    json: Option<PathBuf>,

    /// Also writes the figures to this file as CSV.
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    csv: Option<PathBuf>,

    /// Also writes a report with charts to this file.
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    html: Option<PathBuf>,

    /// Also writes each chart to this folder, as SVG and PNG.
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    charts: Option<PathBuf>,
}

impl Args {
    pub(super) fn iterations(&self) -> usize {
        self.iterations as usize
    }

    pub(super) fn outputs(&self) -> Outputs {
        Outputs {
            json: self.json.clone(),
            csv: self.csv.clone(),
            html: self.html.clone(),
            charts: self.charts.clone(),
            print_json: false,
        }
    }

    /// Returns whether plans that no library can do may be left out.
    pub(super) fn gaps(&self) -> Gaps {
        let axes = [
            &self.group,
            &self.suite,
            &self.certificate,
            &self.resumption,
            &self.shares,
            &self.provider,
        ];
        let mut names = axes.into_iter().flatten();
        if names.any(|name| name.eq_ignore_ascii_case("all")) {
            Gaps::Allowed
        } else {
            Gaps::Refused
        }
    }

    /// Returns all combinations.
    pub(super) fn plans(&self) -> Result<Vec<Plan>, Failure> {
        let groups = choose("group", &self.group, &Group::ALL, ToString::to_string)?;
        let suites = choose("cipher suite", &self.suite, &SUITES, ToString::to_string)?;
        let certificates = choose("certificate", &self.certificate, &Certificate::ALL, |it| {
            it.to_string()
        })?;
        let providers = choose("TLS provider", &self.provider, &Backend::ALL, |it| {
            it.name().to_owned()
        })?;
        let beginnings = [Resumption::Full, Resumption::Psk];
        let resumption = choose("resumption", &self.resumption, &beginnings, |it| {
            it.to_string()
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

/// Returns the values of these names without repetitions.
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
