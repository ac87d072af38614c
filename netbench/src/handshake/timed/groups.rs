//! Timed key-exchange groups. Hybrids are composed again from their two parts, so that each part is
//! timed alone and shares can be generated ahead of time.

use std::cell::RefCell;
use std::collections::BTreeMap;

use rustls::crypto::aws_lc_rs::kx_group;
use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

use super::recorder::{Operation, timed};
use hybriq::Group;

/// Returns the timed form of a group; an unknown one is returned as it is.
pub(super) fn group(plain: &'static dyn SupportedKxGroup) -> &'static dyn SupportedKxGroup {
    match Group(u16::from(plain.name())) {
        Group::X25519MLKEM768 => &X25519MLKEM768,
        Group::SECP256R1MLKEM768 => &SECP256R1MLKEM768,
        Group::SECP384R1MLKEM1024 => &SECP384R1MLKEM1024,
        Group::MLKEM768 => &MLKEM768,
        Group::MLKEM1024 => &MLKEM1024,
        Group::X25519 => &X25519,
        Group::SECP256R1 => &SECP256R1,
        Group::SECP384R1 => &SECP384R1,
        _ => plain,
    }
}

/// An elliptic curve, or ML-KEM.
#[derive(Debug)]
struct Single {
    inner: &'static dyn SupportedKxGroup,
    is_kem: bool,
}

const fn curve(inner: &'static dyn SupportedKxGroup) -> Single {
    Single {
        inner,
        is_kem: false,
    }
}

const fn kem(inner: &'static dyn SupportedKxGroup) -> Single {
    Single {
        inner,
        is_kem: true,
    }
}

static X25519: Single = curve(kx_group::X25519);
static SECP256R1: Single = curve(kx_group::SECP256R1);
static SECP384R1: Single = curve(kx_group::SECP384R1);
static MLKEM768: Single = kem(kx_group::MLKEM768);
static MLKEM1024: Single = kem(kx_group::MLKEM1024);

/// Combination of the two (RFC 10024).
#[derive(Clone, Copy, Debug)]
struct Hybrid {
    group: Group,
    curve: &'static Single,
    kem: &'static Single,
    /// Length of the first part, in the client's share and in the server's.
    split_at: (usize, usize),
    /// True if ML-KEM comes first, in shares and in the secret.
    kem_first: bool,
}

static X25519MLKEM768: Hybrid = Hybrid {
    group: Group::X25519MLKEM768,
    curve: &X25519,
    kem: &MLKEM768,
    split_at: (1184, 1088),
    kem_first: true,
};
static SECP256R1MLKEM768: Hybrid = Hybrid {
    group: Group::SECP256R1MLKEM768,
    curve: &SECP256R1,
    kem: &MLKEM768,
    split_at: (65, 65),
    kem_first: false,
};
static SECP384R1MLKEM1024: Hybrid = Hybrid {
    group: Group::SECP384R1MLKEM1024,
    curve: &SECP384R1,
    kem: &MLKEM1024,
    split_at: (97, 97),
    kem_first: false,
};

thread_local! {
    /// Shares made ahead, by code point.
    static AHEAD: RefCell<BTreeMap<u16, Vec<Box<dyn ActiveKeyExchange>>>> = RefCell::default();
}

/// Makes the shares for one handshake with this group: the client's, and the server's if it does
/// not depend on the client's, as an encapsulation does.
pub(in super::super) fn make_ahead(group: Group) -> Result<(), Error> {
    let (curve, kem) = match group {
        Group::X25519MLKEM768 => (Some(&X25519), Some(&MLKEM768)),
        Group::SECP256R1MLKEM768 => (Some(&SECP256R1), Some(&MLKEM768)),
        Group::SECP384R1MLKEM1024 => (Some(&SECP384R1), Some(&MLKEM1024)),
        Group::MLKEM768 => (None, Some(&MLKEM768)),
        Group::MLKEM1024 => (None, Some(&MLKEM1024)),
        Group::X25519 => (Some(&X25519), None),
        Group::SECP256R1 => (Some(&SECP256R1), None),
        Group::SECP384R1 => (Some(&SECP384R1), None),
        _ => (None, None),
    };
    for part in curve.into_iter().chain(curve).chain(kem) {
        let share = part.inner.start()?;
        AHEAD.with_borrow_mut(|ahead| ahead.entry(part.code_point()).or_default().push(share));
    }
    Ok(())
}

/// Drops unused shares.
pub(in super::super) fn forget_ahead() {
    AHEAD.take();
}

impl Single {
    fn code_point(&self) -> u16 {
        self.inner.name().into()
    }

    fn begin(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let ready = AHEAD.with_borrow_mut(|ahead| ahead.get_mut(&self.code_point())?.pop());
        if let Some(ready) = ready {
            return Ok(ready);
        }
        let operation = if self.is_kem {
            Operation::KemKeyGeneration
        } else {
            Operation::EcdhKeyGeneration
        };
        timed(operation, || self.inner.start())
    }
}

impl SupportedKxGroup for Single {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let (inner, is_kem) = (self.begin()?, self.is_kem);
        Ok(Box::new(ActiveSingle { inner, is_kem }))
    }

    fn start_and_complete(&self, peer: &[u8]) -> Result<CompletedKeyExchange, Error> {
        if self.is_kem {
            return timed(Operation::KemEncapsulation, || {
                self.inner.start_and_complete(peer)
            });
        }
        let started = self.start()?;
        Ok(CompletedKeyExchange {
            group: self.inner.name(),
            pub_key: started.pub_key().to_vec(),
            secret: started.complete(peer)?,
        })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        self.inner.name()
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        self.inner.usable_for_version(version)
    }
}

struct ActiveSingle {
    inner: Box<dyn ActiveKeyExchange>,
    is_kem: bool,
}

impl ActiveKeyExchange for ActiveSingle {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let operation = if self.is_kem {
            Operation::KemDecapsulation
        } else {
            Operation::EcdhAgreement
        };
        timed(operation, || self.inner.complete(peer))
    }

    fn pub_key(&self) -> &[u8] {
        self.inner.pub_key()
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        self.inner.group()
    }
}

impl Hybrid {
    /// Splits a share into the curve's part and that of ML-KEM.
    fn split<'a>(&self, share: &'a [u8], at: usize) -> Result<(&'a [u8], &'a [u8]), Error> {
        let (first, second) = share
            .split_at_checked(at)
            .ok_or(Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare))?;
        Ok(if self.kem_first {
            (second, first)
        } else {
            (first, second)
        })
    }

    fn join(&self, curve: &[u8], kem: &[u8]) -> Vec<u8> {
        if self.kem_first {
            [kem, curve].concat()
        } else {
            [curve, kem].concat()
        }
    }
}

impl SupportedKxGroup for Hybrid {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let (curve, kem) = (self.curve.start()?, self.kem.start()?);
        let share = self.join(curve.pub_key(), kem.pub_key());
        Ok(Box::new(ActiveHybrid {
            hybrid: *self,
            curve,
            kem,
            share,
        }))
    }

    fn start_and_complete(&self, peer: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (point, key) = self.split(peer, self.split_at.0)?;
        let curve = self.curve.start_and_complete(point)?;
        let kem = self.kem.start_and_complete(key)?;
        let secret = self.join(curve.secret.secret_bytes(), kem.secret.secret_bytes());
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: self.join(&curve.pub_key, &kem.pub_key),
            secret: secret.into(),
        })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        self.group.0.into()
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

struct ActiveHybrid {
    hybrid: Hybrid,
    curve: Box<dyn ActiveKeyExchange>,
    kem: Box<dyn ActiveKeyExchange>,
    share: Vec<u8>,
}

impl ActiveKeyExchange for ActiveHybrid {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let (point, ciphertext) = self.hybrid.split(peer, self.hybrid.split_at.1)?;
        let curve = self.curve.complete(point)?;
        let kem = self.kem.complete(ciphertext)?;
        let secret = self.hybrid.join(curve.secret_bytes(), kem.secret_bytes());
        Ok(secret.into())
    }

    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.curve.group(), self.curve.pub_key()))
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
        self.hybrid.group.0.into()
    }
}
