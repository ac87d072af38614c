use hybriq_tls::Side;

use super::{Negotiation, Stage};
use crate::wire::{
    packet::{Version, Versions},
    params::VersionInformation,
};

const RESERVED: u32 = 0x1a2a_3a4a;

fn after(original: Version, reacts: bool) -> Negotiation {
    Negotiation {
        original,
        reacts,
        stage: Stage::Settled,
    }
}

/// The negotiation of a client's first connection.
fn first(original: Version) -> Negotiation {
    after(original, false)
}

fn second(original: Version) -> Negotiation {
    after(original, true)
}

fn info(chosen: u32, available: &[u32]) -> VersionInformation {
    VersionInformation {
        chosen,
        available: available.iter().copied().collect(),
    }
}

fn client_takes(
    negotiation: &Negotiation,
    in_use: Version,
    info: Option<&VersionInformation>,
) -> bool {
    negotiation
        .confirm(Side::Client, Versions::DEFAULT, in_use, info)
        .is_ok()
}

fn server_takes(original: Version, info: Option<&VersionInformation>) -> bool {
    first(original)
        .confirm(Side::Server, Versions::DEFAULT, Version::V2, info)
        .is_ok()
}

const V1: u32 = Version::V1.number();
const V2: u32 = Version::V2.number();

/// Proves: rfc9368 4 server-checks-chosen-version
#[test]
fn a_client_must_have_chosen_the_version_of_its_first_flight() {
    assert!(server_takes(Version::V1, Some(&info(V1, &[V2, V1]))));
    assert!(server_takes(Version::V2, Some(&info(V2, &[V2, V1]))));
    assert!(!server_takes(Version::V2, Some(&info(V1, &[V2, V1]))));
    assert!(!server_takes(Version::V1, Some(&info(V2, &[V2, V1]))));
    assert!(!server_takes(
        Version::V1,
        Some(&info(RESERVED, &[RESERVED, V1]))
    ));
}

#[test]
fn a_client_may_know_nothing_of_versions() {
    assert!(server_takes(Version::V1, None));
}

/// Proves: rfc9368 4 client-checks-negotiated-version
#[test]
fn a_server_must_have_chosen_the_version_of_its_packets() {
    let chose = |chosen| info(chosen, &[V1, V2, RESERVED]);
    for original in Version::ALL {
        for in_use in Version::ALL {
            let attempt = first(original);
            assert!(client_takes(
                &attempt,
                in_use,
                Some(&chose(in_use.number()))
            ));
            for other in [V1, V2, RESERVED] {
                let fits = other == in_use.number();
                assert_eq!(client_takes(&attempt, in_use, Some(&chose(other))), fits);
            }
        }
    }
}

/// Proves: rfc9369 4 version-information-is-checked
#[test]
fn a_server_that_changed_the_version_must_say_so() {
    for version in Version::ALL {
        assert!(client_takes(&first(version), version, None));
    }
    assert!(!client_takes(&first(Version::V1), Version::V2, None));
    assert!(!client_takes(&first(Version::V2), Version::V1, None));
}

/// Proves: rfc9368 4 missing-information-after-negotiation-closes
#[test]
fn after_version_negotiation_a_server_must_name_its_versions_unless_it_is_of_version_1() {
    assert!(!client_takes(&second(Version::V2), Version::V2, None));
    assert!(client_takes(&second(Version::V1), Version::V1, None));
}

/// Proves: rfc9368 4 missing-information-after-negotiation-closes
#[test]
fn after_version_negotiation_the_list_of_versions_is_not_empty() {
    assert!(!client_takes(
        &second(Version::V1),
        Version::V1,
        Some(&info(V1, &[]))
    ));
    assert!(client_takes(
        &first(Version::V1),
        Version::V1,
        Some(&info(V1, &[]))
    ));
}

/// Proves: rfc9368 4 client-checks-what-it-would-have-chosen
#[test]
fn version_negotiation_that_left_out_a_better_version_is_a_downgrade() {
    let (only_v1, both) = (info(V1, &[RESERVED, V1]), info(V1, &[V1, V2]));
    assert!(client_takes(
        &second(Version::V1),
        Version::V1,
        Some(&only_v1)
    ));
    assert!(!client_takes(
        &second(Version::V1),
        Version::V1,
        Some(&both)
    ));
    // Even if the server led us back to it: a genuine packet would have listed it.
    let back = info(V2, &[V1, V2]);
    assert!(!client_takes(
        &second(Version::V1),
        Version::V2,
        Some(&back)
    ));
    assert!(client_takes(&second(Version::V2), Version::V2, Some(&back)));
    let leaving = info(V2, &[V1]);
    assert!(client_takes(
        &second(Version::V2),
        Version::V2,
        Some(&leaving)
    ));
}
