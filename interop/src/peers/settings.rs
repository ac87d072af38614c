//! Settings of a test as netbench's stacks take them.

use hybriq::Group;
use hybriq_netbench::stacks::{Identity, Tickets, Tls, Transport, Windows};

use crate::{ALPN, Groups, NARROW_CONNECTION, NARROW_STREAM, Role, Setup};

/// Returns the TLS settings of one end.
pub(super) fn tls(setup: &Setup, role: Role) -> Tls<'_> {
    let certificate = &setup.certificate;
    let identity = Identity {
        chain: certificate.pem(),
        key: certificate.key_pem(),
    };
    Tls {
        alpn: ALPN,
        groups: groups(setup.groups),
        suite: None,
        identity: (role == Role::Server).then_some(identity),
        roots: (role == Role::Client).then_some(certificate.pem()),
        tickets: if setup.early_data.is_on() {
            Tickets::EarlyData
        } else {
            Tickets::Resume
        },
    }
}

fn groups(groups: Groups) -> Vec<Group> {
    use Group as G;
    match groups {
        Groups::PreferPostQuantum => {
            vec![G::X25519MLKEM768, G::X25519, G::SECP256R1, G::SECP384R1]
        }
        Groups::RequirePostQuantum => vec![G::X25519MLKEM768, G::SECP256R1MLKEM768],
        Groups::OnlyClassical => vec![G::X25519, G::SECP256R1, G::SECP384R1],
        Groups::ClassicalShareFirst => vec![G::X25519, G::X25519MLKEM768],
        Groups::OnlySecp384r1 => vec![G::SECP384R1],
    }
}

/// Returns the transport settings of both ends.
pub(super) fn transport(setup: &Setup) -> Transport<'static> {
    Transport {
        windows: (setup.windows == crate::Windows::Narrow).then_some(Windows {
            stream: NARROW_STREAM,
            // Narrower than the peer's, so that mixing the two up shows.
            local_stream: NARROW_STREAM / 2,
            connection: NARROW_CONNECTION,
        }),
        ..Transport::default()
    }
}
