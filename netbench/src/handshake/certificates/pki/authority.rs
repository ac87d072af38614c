//! The hierarchy itself: who signs whom, and which extensions say so (RFC 5280 §4.2).

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use crate::handshake::certificates::{key, mark};
use crate::scenario::axes::Certificate;
use crate::system::failure::Failure;

const DAY: Duration = Duration::from_hours(24);

/// Time for which authorities are valid.
const TEN_YEARS: Duration = Duration::from_hours(3_652 * 24);

/// Time before now from which certificates are valid, for peers whose clock is behind.
const HOUR: Duration = Duration::from_hours(1);

/// `id-kp-documentSigning` (RFC 9336).
const DOCUMENT_SIGNING: [u64; 9] = [1, 3, 6, 1, 5, 5, 7, 3, 36];

/// A hierarchy to make.
pub(crate) struct Plan {
    pub(crate) root: Certificate,
    pub(crate) intermediate: Certificate,
    pub(crate) leaf: Certificate,
    pub(crate) intermediates: u8,
    /// Host names and addresses of the server.
    pub(crate) names: Vec<String>,
    /// Days for which leaves are valid.
    pub(crate) days: u16,
    pub(crate) now: SystemTime,
}

/// A file to write.
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) content: String,
    pub(crate) is_secret: bool,
}

impl File {
    fn public(owner: &str, content: String) -> Self {
        Self {
            name: format!("{owner}.pem"),
            content,
            is_secret: false,
        }
    }

    fn key(owner: &str, key: &KeyPair) -> Self {
        Self {
            name: format!("{owner}-key.pem"),
            content: key.serialize_pem(),
            is_secret: true,
        }
    }
}

/// Makes the files of a hierarchy.
pub(crate) fn make(plan: &Plan) -> Result<Vec<File>, Failure> {
    let root_key = key(plan.root)?;
    let mark = mark(&root_key);
    let mut params = plan.authority(&format!("netbench root {mark}"), plan.intermediates);
    // Nobody above it has a key to name.
    params.use_authority_key_identifier_extension = false;
    let mut issuer = CertifiedIssuer::self_signed(params, root_key)?;
    let mut files = vec![
        File::public("root", issuer.pem()),
        File::key("root", issuer.key()),
    ];

    let mut intermediates = String::new();
    for level in 1..=plan.intermediates {
        let name = format!("netbench intermediate {level} {mark}");
        let params = plan.authority(&name, plan.intermediates - level);
        issuer = CertifiedIssuer::signed_by(params, key(plan.intermediate)?, &issuer)?;
        intermediates.insert_str(0, &issuer.pem());
    }
    if plan.intermediates > 0 {
        files.push(File::public("intermediate", intermediates.clone()));
        files.push(File::key("intermediate", issuer.key()));
    }

    for leaf in Leaf::ALL {
        let key = key(plan.leaf)?;
        let certificate = plan.leaf(leaf)?.signed_by(&key, &issuer)?;
        files.push(File::public(
            leaf.name(),
            certificate.pem() + &intermediates,
        ));
        files.push(File::key(leaf.name(), &key));
    }
    Ok(files)
}

/// Owner of a certificate that signs no others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaf {
    Server,
    Client,
    Signer,
}

impl Leaf {
    const ALL: [Self; 3] = [Self::Server, Self::Client, Self::Signer];

    const fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::Signer => "signer",
        }
    }

    fn purposes(self) -> Vec<ExtendedKeyUsagePurpose> {
        match self {
            Self::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Self::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
            // `openssl cms -verify` asks for the second unless it is told another purpose.
            Self::Signer => vec![
                ExtendedKeyUsagePurpose::Other(DOCUMENT_SIGNING.into()),
                ExtendedKeyUsagePurpose::EmailProtection,
            ],
        }
    }
}

impl Plan {
    /// Returns the parameters of an authority with at most this many authorities below it.
    fn authority(&self, name: &str, below: u8) -> CertificateParams {
        let mut params = self.params(name, TEN_YEARS);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(below));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params
    }

    fn leaf(&self, leaf: Leaf) -> Result<CertificateParams, Failure> {
        let name = match (leaf, self.names.first()) {
            (Leaf::Server, Some(name)) => name,
            (Leaf::Server, None) => return Err("a server needs a name: --name localhost".into()),
            _ => leaf.name(),
        };
        let mut params = self.params(name, DAY * u32::from(self.days));
        if leaf == Leaf::Server {
            let named = CertificateParams::new(self.names.clone()).map_err(|error| {
                let names = self.names.join(",");
                format!("--name {names}: {error}; give host names and IP addresses")
            })?;
            params.subject_alt_names = named.subject_alt_names;
        }
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = leaf.purposes();
        Ok(params)
    }

    fn params(&self, name: &str, valid: Duration) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = (self.now - HOUR).into();
        params.not_after = (self.now + valid).into();
        params.use_authority_key_identifier_extension = true;
        params
    }
}
