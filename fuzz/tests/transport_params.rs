//! Transport parameters: as bytes, and as a list of the parameters of RFC 9000.

use hybriq_proto::params::Params;
use hybriq_tls::Side;

/// Checks that accepted parameters are accepted again, with the same meaning, after we encoded
/// them.
fn check(bytes: &[u8]) {
    for from in [Side::Client, Side::Server] {
        if let Ok(params) = Params::decode(bytes, from) {
            let mut again = Vec::new();
            params.encode(from, &mut again);
            assert_eq!(
                Params::decode(&again, from).map(comparable),
                Ok(comparable(params))
            );
        }
    }
}

/// Removes the version that we add and nobody speaks (RFC 9368 §3).
fn comparable(mut params: Params) -> Params {
    if let Some(information) = &mut params.version_information {
        information.available.clear();
    }
    params
}

#[test]
fn transport_params_of_arbitrary_bytes() {
    bolero::check!().with_iterations(50_000).for_each(check);
}

#[test]
fn transport_params_of_known_ids() {
    let list = bolero::check!()
        .with_iterations(50_000)
        .with_type::<Vec<(u8, [u8; 8])>>();
    list.for_each(|list| {
        let mut bytes = Vec::new();
        for (id, value) in list {
            // The first two bits of an integer encode its length, and make it fill the parameter.
            let len = match id & 0x20 {
                0 => 1 << (value[0] >> 6),
                _ => usize::from(id >> 6),
            };
            bytes.extend([id % 0x12, len as u8]);
            bytes.extend(&value[..len]);
        }
        check(&bytes);
    });
}
