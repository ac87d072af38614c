//! What peers of each dialect announce, and what follows.

use hybriq_proto::Side::{Client, Server};

use crate::{
    webtransport::{Dialect, Terms, Unsupported, Windows, announce, keeps_windows},
    wire::settings::Settings,
};

const OWN: Windows = Windows {
    bidi: 1,
    uni: 2,
    data: 3,
};

/// Settings of a peer with HTTP Datagrams, extended CONNECT, and these.
fn peer(others: &[(u64, u64)]) -> Settings {
    let mut settings = Settings::new();
    settings.h3_datagram = true;
    settings.enable_connect_protocol = true;
    settings.others.extend(others);
    settings
}

fn terms(others: &[(u64, u64)]) -> (Dialect, Option<Windows>) {
    let terms = Terms::of(Server, OWN, &peer(others)).unwrap();
    let flow = terms.flow.map(|windows| {
        assert_eq!(windows.own, OWN);
        windows.peer
    });
    (terms.dialect, flow)
}

#[test]
fn the_highest_dialect_of_both_is_taken() {
    // Firefox, Chromium, Safari, and a peer of draft 15.
    let firefox = [(0x2b60_3742, 1)];
    let chromium = [(0x2b60_3742, 1), (0xc671_706a, 1)];
    let safari = [
        (0x14e9_cd29, 1),
        (0x2b64, 100),
        (0x2b65, 200),
        (0x2b61, 300),
    ];
    let safari_has = Windows {
        bidi: 200,
        uni: 100,
        data: 300,
    };
    assert_eq!(terms(&firefox), (Dialect::Draft02, None));
    assert_eq!(terms(&chromium), (Dialect::Draft07, None));
    assert_eq!(terms(&safari), (Dialect::Draft13, Some(safari_has)));
    let mut own = peer(&[]);
    announce(&mut own, 16, OWN);
    assert_eq!(terms(&own.others), (Dialect::Draft15, Some(OWN)));
    assert_eq!(Dialect::Draft13.token(), "webtransport");
    assert_eq!(Dialect::Draft15.token(), "webtransport-h3");
}

#[test]
fn flow_control_needs_the_declaration_of_both_ends() {
    let of_uni = Windows {
        uni: 5,
        ..Windows::default()
    };
    assert_eq!(terms(&[(0x2c7c_f000, 1)]), (Dialect::Draft15, None));
    assert_eq!(terms(&[(0x2c7c_f000, 1), (0x2b64, 5)]).1, Some(of_uni));
    // More than one session is a declaration in draft 13, but not in earlier ones.
    assert_eq!(terms(&[(0x14e9_cd29, 1)]), (Dialect::Draft13, None));
    assert_eq!(terms(&[(0x14e9_cd29, 2)]).1, Some(Windows::default()));
    assert_eq!(terms(&[(0xc671_706a, 2), (0x2b64, 5)]).1, None);
    let settings = peer(&[(0x2c7c_f000, 1), (0x2b64, 5)]);
    let none = Terms::of(Server, Windows::default(), &settings).unwrap();
    assert_eq!(none.flow, None);
    assert!(!none.allows_pooling());
    assert!(Terms::of(Server, OWN, &settings).unwrap().allows_pooling());
    assert!(Terms::OLDEST.allows_pooling());
}

#[test]
fn sessions_need_what_their_dialect_needs() {
    let none = Terms::of(Server, OWN, &peer(&[]));
    assert_eq!(none, Err(Unsupported::NotAnnounced));
    let off = Terms::of(Server, OWN, &peer(&[(0x2c7c_f000, 0)]));
    assert_eq!(off, Err(Unsupported::NotAnnounced));
    for late in [0x2c7c_f000, 0x14e9_cd29] {
        let mut without = peer(&[(late, 1)]);
        without.enable_connect_protocol = false;
        let unmet = Err(Unsupported::Requirements);
        assert_eq!(Terms::of(Client, OWN, &without), unmet);
        // That of a client says nothing.
        assert!(Terms::of(Server, OWN, &without).is_ok());
        without.enable_connect_protocol = true;
        without.h3_datagram = false;
        assert_eq!(Terms::of(Client, OWN, &without), unmet);
        assert_eq!(Terms::of(Server, OWN, &without), unmet);
    }
    // Earlier drafts did not say so in time for their browsers.
    assert!(
        Terms::of(Client, OWN, &{
            let mut settings = peer(&[(0x2b60_3742, 1)]);
            settings.h3_datagram = false;
            settings
        })
        .is_ok()
    );
}

#[test]
fn windows_are_not_taken_back() {
    let earlier = peer(&[(0x2b64, 5), (0x2b61, 5)]);
    assert!(keeps_windows(&earlier, &earlier));
    assert!(keeps_windows(
        &peer(&[(0x2b64, 6), (0x2b61, 5), (0x2b65, 1)]),
        &earlier
    ));
    assert!(!keeps_windows(&peer(&[(0x2b64, 4), (0x2b61, 5)]), &earlier));
    assert!(!keeps_windows(&peer(&[(0x2b64, 5)]), &earlier));
}
