//! RFC 9001 §6: keys are updated by QUIC, not by TLS.

use hybriq::tls::Side;

use crate::{
    duo::{Duo, Verdict, verdict_on},
    rfc9001_04_tls::{crypto, ticket},
};

/// Proves: rfc9001 6 tls-key-update-closes
#[test]
fn a_tls_key_update() {
    for asks in [0, 1] {
        let message = [24, 0, 0, 1, asks];
        for from in [Side::Client, Side::Server] {
            let expected = Verdict {
                code: 0x010a,
                frame: 0x06,
            };
            assert_eq!(verdict_on(from, &crypto(0, &message)), Some(expected));
        }
        // TLS is gone with the ticket, the rule is not.
        let mut duo = Duo::new();
        let before = ticket(None);
        duo.send_raw(Side::Server, &crypto(0, &before));
        let offset = u16::try_from(before.len()).unwrap();
        for (at, byte) in (offset..).zip(message) {
            duo.assert_alive();
            duo.send_raw(Side::Server, &crypto(at, &[byte]));
        }
        let code = duo.verdict(Side::Client).map(|verdict| verdict.code);
        assert_eq!(code, Some(0x010a));
    }
}
