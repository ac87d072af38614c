//! Names of the values of axes, and of cells.

use std::fmt;

use super::{Axes, Cell, Certificate, Resumption};

impl Certificate {
    /// All kinds.
    pub(crate) const ALL: [Self; 7] = [
        Self::EcdsaP256,
        Self::EcdsaP384,
        Self::Rsa2048,
        Self::Ed25519,
        Self::MlDsa44,
        Self::MlDsa65,
        Self::MlDsa87,
    ];

    /// Returns its name on the command line and in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::EcdsaP256 => "ecdsa-p256",
            Self::EcdsaP384 => "ecdsa-p384",
            Self::Rsa2048 => "rsa-2048",
            Self::Ed25519 => "ed25519",
            Self::MlDsa44 => "ml-dsa-44",
            Self::MlDsa65 => "ml-dsa-65",
            Self::MlDsa87 => "ml-dsa-87",
        }
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Resumption {
    /// All ways.
    pub(crate) const ALL: [Self; 3] = [Self::Full, Self::Psk, Self::ZeroRtt];

    /// Returns its name on the command line and in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Psk => "psk",
            Self::ZeroRtt => "0-rtt",
        }
    }
}

impl fmt::Display for Resumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Cell {
    /// Returns the value of an axis or a parameter as text, the same for equal values.
    pub(crate) fn value(&self, axis: &str) -> String {
        match axis {
            "driver" => self.driver.to_string(),
            "client" => self.client.to_string(),
            "provider" => self.provider.to_string(),
            "group" => self.group.to_string(),
            "hello_retry" => self.hello_retry.to_string(),
            "certificate" => self.certificate.to_string(),
            "chain" => self.chain.to_string(),
            "workers" => self.workers.to_string(),
            "suite" => self.suite.to_string(),
            "resumption" => self.resumption.to_string(),
            "client_auth" => self.client_auth.to_string(),
            "congestion" => self.congestion.clone(),
            "link" => self.link.clone(),
            param => self.params.get(param).map_or(String::new(), u64::to_string),
        }
    }
}

impl Axes {
    /// Returns the name of a cell: the values of the axes that vary, or its group if none does.
    pub(crate) fn cell_name(&self, cell: &Cell) -> String {
        let flag = |on: bool, name: &str| {
            if on {
                name.to_owned()
            } else {
                format!("no {name}")
            }
        };
        let clients = if self.client.is_empty() {
            String::new()
        } else {
            format!("{} client", cell.client)
        };
        let link = match cell.link.as_str() {
            "" => "no link",
            link => link,
        };
        let congestion = match cell.congestion.as_str() {
            "" => "default congestion",
            name => name,
        };
        let fixed = [
            (self.driver.len(), cell.driver.to_string()),
            (self.client.len(), clients),
            (self.provider.len(), cell.provider.to_string()),
            (self.group.len(), cell.group.to_string()),
            (
                self.hello_retry.len(),
                flag(cell.hello_retry, "hello retry"),
            ),
            (self.certificate.len(), cell.certificate.to_string()),
            (self.chain.len(), format!("chain of {}", cell.chain)),
            (self.workers.len(), format!("workers {}", cell.workers)),
            (self.suite.len(), cell.suite.to_string()),
            (self.resumption.len(), cell.resumption.to_string()),
            (
                self.client_auth.len(),
                flag(cell.client_auth, "client auth"),
            ),
            (self.congestion.len(), congestion.to_owned()),
            (self.link.len(), link.to_owned()),
        ];
        let params = self.params.iter().map(|(name, values)| {
            let value = cell.params.get(name).copied().unwrap_or_default();
            (values.len(), format!("{name} {value}"))
        });
        let varied: Vec<String> = (fixed.into_iter().chain(params))
            .filter(|(values, _)| *values > 1)
            .map(|(_, name)| name)
            .collect();
        if varied.is_empty() {
            cell.group.to_string()
        } else {
            varied.join(", ")
        }
    }
}
