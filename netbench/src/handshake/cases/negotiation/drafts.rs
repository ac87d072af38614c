//! Clients from before the ML-KEM standard: groups of Kyber drafts, whose code points nobody
//! accepts any longer.

use hybriq::Group;
use hybriq_tls::rustls::CryptoProvider;
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::crypto::{ActiveKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

/// X25519Kyber768Draft00 and SecP256r1Kyber768Draft00 (draft-tls-westerbaan-xyber768d00,
/// draft-kwiatkowski-tls-ecdhe-kyber), and the experimental X25519Kyber512Draft00.
pub(super) const KYBER_DRAFTS: [u16; 3] = [0x6399, 0x639a, 0xfe30];

/// Key shares of a client that offers drafts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shares {
    DraftAndClassical,
    DraftAlone,
}

impl Shares {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::DraftAndClassical => "with shares of both",
            Self::DraftAlone => "with a share of the draft alone",
        }
    }
}

/// Lists the drafts before the other groups. The first draft has the share.
pub(super) fn offer(mut crypto: CryptoProvider, shares: Shares) -> CryptoProvider {
    let drafts: [&'static dyn SupportedKxGroup; 3] = match shares {
        Shares::DraftAndClassical => [&BOTH[0], &BOTH[1], &BOTH[2]],
        Shares::DraftAlone => [&ALONE[0], &ALONE[1], &ALONE[2]],
    };
    crypto.kx_groups.splice(0..0, drafts);
    crypto
}

static BOTH: [Draft; 3] = drafts(Shares::DraftAndClassical);
static ALONE: [Draft; 3] = drafts(Shares::DraftAlone);

const fn drafts(shares: Shares) -> [Draft; 3] {
    let with_classical = matches!(shares, Shares::DraftAndClassical);
    let [first, second, third] = KYBER_DRAFTS;
    [
        Draft {
            code_point: first,
            with_classical,
        },
        Draft {
            code_point: second,
            with_classical,
        },
        Draft {
            code_point: third,
            with_classical,
        },
    ]
}

/// A share with the size and form of X25519Kyber768Draft00, X25519 first. No server can complete
/// it.
#[derive(Debug)]
struct Draft {
    code_point: u16,
    with_classical: bool,
}

impl SupportedKxGroup for Draft {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let curve = kx_group::X25519.start()?;
        let kem = kx_group::MLKEM768.start()?;
        Ok(Box::new(Started {
            code_point: self.code_point,
            with_classical: self.with_classical,
            share: [curve.pub_key(), kem.pub_key()].concat(),
            curve,
        }))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        self.code_point.into()
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

struct Started {
    code_point: u16,
    with_classical: bool,
    share: Vec<u8>,
    curve: Box<dyn ActiveKeyExchange>,
}

impl ActiveKeyExchange for Started {
    fn complete(self: Box<Self>, _: &[u8]) -> Result<SharedSecret, Error> {
        Err(PeerMisbehaved::InvalidKeyShare.into())
    }

    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        let component = (Group::X25519.0.into(), self.curve.pub_key());
        self.with_classical.then_some(component)
    }

    fn complete_hybrid_component(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        self.curve.complete(peer)
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        self.code_point.into()
    }
}
