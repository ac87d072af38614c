//! The command line of `netbench run handshake-breakdown`.

pub(super) mod document;
pub(super) mod print;

use std::collections::BTreeMap;
use std::path::PathBuf;

use self::document::Gaps;
use super::plan::{Mode, Plan};
use crate::report::outputs::Outputs;
use crate::scenario::axes::{Axes, Resumption};
use crate::system::failure::Failure;

/// Times each TLS message and each operation of handshakes, in this process alone.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Key-exchange groups, or `all`.
    #[arg(
        long,
        visible_alias = "groups",
        default_value = "all",
        value_name = "NAMES"
    )]
    group: String,

    /// Cipher suites, or `all`.
    #[arg(long, default_value = "TLS_AES_128_GCM_SHA256", value_name = "NAMES")]
    suite: String,

    /// Kinds of certificates, or `all`.
    #[arg(long, default_value = "ecdsa-p256", value_name = "NAMES")]
    certificate: String,

    /// Number of certificates that servers send; 1 is the leaf alone.
    #[arg(long, default_value = "1", value_name = "NUMBERS")]
    chain: String,

    /// Kinds of handshakes: `full`, or `psk` for resumption.
    #[arg(long, default_value = "full", value_name = "NAMES")]
    resumption: String,

    /// Time at which key shares are made: `fresh`, in the handshake; `ahead`, before it.
    #[arg(long, default_value = "fresh", value_name = "NAMES")]
    shares: String,

    /// Client certificates: `no`, `yes`.
    #[arg(long, default_value = "no", value_name = "NAMES")]
    client_auth: String,

    /// TLS providers: `rustls`, `s2n-tls`. Single operations are timed with rustls only.
    #[arg(long, default_value = "rustls", value_name = "NAMES")]
    provider: String,

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
    pub(super) fn outputs(&self) -> Outputs {
        Outputs {
            json: self.json.clone(),
            csv: self.csv.clone(),
            html: self.html.clone(),
            charts: self.charts.clone(),
            print_json: false,
        }
    }

    pub(super) fn iterations(&self) -> usize {
        self.iterations as usize
    }

    /// Returns the axes, each with its values.
    fn axes(&self) -> [(&'static str, &String); 7] {
        [
            ("provider", &self.provider),
            ("certificate", &self.certificate),
            ("chain", &self.chain),
            ("client_auth", &self.client_auth),
            ("resumption", &self.resumption),
            ("suite", &self.suite),
            ("group", &self.group),
        ]
    }

    /// Returns whether plans that no library can do may be left out.
    pub(super) fn gaps(&self) -> Gaps {
        let is_all = |text: &String| text.to_ascii_lowercase().contains("all");
        if self.axes().iter().any(|(_, text)| is_all(text)) || is_all(&self.shares) {
            Gaps::Allowed
        } else {
            Gaps::Refused
        }
    }

    /// Returns all combinations.
    pub(super) fn plans(&self) -> Result<Vec<Plan>, Failure> {
        let mut axes = Axes::default();
        for (axis, values) in self.axes() {
            axes.set(axis, values)?;
        }
        let ahead = |text: &str| match text.trim() {
            "fresh" => Ok(vec![false]),
            "ahead" => Ok(vec![true]),
            "all" => Ok(vec![false, true]),
            other => Err(format!(
                "unknown time of shares '{other}'; valid: all, fresh, ahead"
            )),
        };
        let shares = self.shares.split(',').map(ahead);
        let shares = shares.collect::<Result<Vec<_>, _>>()?.concat();
        let mut plans = Vec::new();
        for shares_ahead in shares {
            for cell in axes.cells(&BTreeMap::new()) {
                plans.push(Plan {
                    provider: cell.provider,
                    group: cell.group,
                    suite: cell.suite,
                    certificate: cell.certificate,
                    chain: cell.chain,
                    client_auth: cell.client_auth,
                    mode: Mode {
                        psk: psk(cell.resumption)?,
                        shares_ahead,
                    },
                });
            }
        }
        Ok(plans)
    }
}

fn psk(resumption: Resumption) -> Result<bool, Failure> {
    match resumption {
        Resumption::Full => Ok(false),
        Resumption::Psk => Ok(true),
        Resumption::ZeroRtt => {
            Err("handshakes are timed as full or psk; 0-RTT has no other".into())
        }
    }
}
