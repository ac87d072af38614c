//! Post-quantum groups whose first share is accompanied by a classical one, for servers that
//! probably want that.
//!
//! rustls sends one share, and also the classical half of a hybrid if that costs nothing. Here the
//! classical share replaces that half, without rustls noticing.

use ::rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};
use ::rustls::ffdhe_groups::FfdheGroup;
use ::rustls::{Error, NamedGroup, ProtocolVersion};

use crate::Group;
use crate::providers::rustls::{
    crypto::groups,
    locals::{key_shares, ticket_facts},
};

/// Groups in the order of their code points.
static POST_QUANTUM: [WithSecondShare; 5] = [
    WithSecondShare(Group::MLKEM768),
    WithSecondShare(Group::MLKEM1024),
    WithSecondShare(Group::SECP256R1MLKEM768),
    WithSecondShare(Group::X25519MLKEM768),
    WithSecondShare(Group::SECP384R1MLKEM1024),
];

/// Returns a client's group, which follows the predictions of the transport.
pub(in crate::providers::rustls) fn of_client(
    group: &'static dyn SupportedKxGroup,
) -> &'static dyn SupportedKxGroup {
    let named = Group(group.name().into());
    match POST_QUANTUM.iter().find(|known| known.0 == named) {
        Some(known) => known,
        None => group,
    }
}

/// A post-quantum group.
#[derive(Debug)]
struct WithSecondShare(Group);

impl WithSecondShare {
    fn inner(&self) -> Result<&'static dyn SupportedKxGroup, Error> {
        groups::implementation(self.0)
            .ok_or_else(|| Error::General(format!("{} is not implemented", self.0)))
    }
}

impl SupportedKxGroup for WithSecondShare {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let main = key_shares::start(self.inner()?)?;
        let classical = ticket_facts::shares().beside.filter(|group| {
            let half = main.hybrid_component();
            half.is_none_or(|(half, _)| half != NamedGroup::from(group.0))
        });
        match classical.and_then(groups::implementation) {
            None => Ok(main),
            Some(classical) => Ok(Box::new(Active {
                main,
                classical: classical.start()?,
            })),
        }
    }

    fn start_and_complete(&self, peer: &[u8]) -> Result<CompletedKeyExchange, Error> {
        self.inner()?.start_and_complete(peer)
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        self.0.0.into()
    }

    fn fips(&self) -> bool {
        self.inner().is_ok_and(SupportedKxGroup::fips)
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

/// The shares of a first flight.
struct Active {
    main: Box<dyn ActiveKeyExchange>,
    classical: Box<dyn ActiveKeyExchange>,
}

impl ActiveKeyExchange for Active {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        self.main.complete(peer)
    }

    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.classical.group(), self.classical.pub_key()))
    }

    fn complete_hybrid_component(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        self.classical.complete(peer)
    }

    fn pub_key(&self) -> &[u8] {
        self.main.pub_key()
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        self.main.group()
    }
}
