//! Transport parameters: as bytes, and as a list of the parameters of RFC 9000.

use hybriq_proto::wire::params::Params;
use hybriq_tls::Side;

/// Checks that accepted parameters are accepted again, with the same meaning, after we encoded
/// them.
fn check(bytes: &[u8]) {
    for from in [Side::Client, Side::Server] {
        if let Ok(mut params) = Params::decode(bytes, from) {
            keep_chosen(&mut params);
            let mut again = Vec::new();
            params.encode(from, &mut again);
            assert_eq!(
                Params::decode(&again, from).map(comparable),
                Ok(comparable(params))
            );
        }
    }
}

/// Lists the Chosen Version, which may stand behind the versions that are kept.
fn keep_chosen(params: &mut Params) {
    if let Some(information) = &mut params.version_information {
        let (chosen, available) = (information.chosen, &mut information.available);
        if available.is_full() && !available.contains(&chosen) {
            available.pop();
            available.push(chosen);
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

/// Proves: security 1 arbitrary-bytes-are-errors-or-frames
#[test]
fn transport_params_of_arbitrary_bytes() {
    bolero::check!().with_iterations(50_000).for_each(check);
}

/// Ids on the wire of the known parameters above 0x11.
const EXTENSIONS: &[&[u8]] = &[
    &[0x1d],
    &[0x20],
    &[0x6a, 0xb2],
    &[0xc0, 0x17, 0xf7, 0x58, 0x6d, 0x2c, 0xb5, 0x71],
    &[0xc0, 0, 0, 0, 0xff, 0x04, 0xde, 0x1b],
    &[0xe5, 0xc1, 0x9f, 0x3a, 0x6b, 0xe8, 0x40, 0xd7],
];

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
            let known = id % (0x12 + EXTENSIONS.len() as u8);
            match usize::from(known).checked_sub(0x12) {
                Some(extension) => bytes.extend(EXTENSIONS[extension]),
                None => bytes.push(known),
            }
            bytes.push(len as u8);
            bytes.extend(&value[..len]);
        }
        check(&bytes);
    });
}

/// Found by the run of 2026-11-23: the list is longer than what is kept, and its last is the chosen one.
#[test]
fn a_chosen_version_at_the_end_of_a_long_list() {
    // The id, and the length as an integer of two bytes.
    let mut bytes = vec![0x11, 0x40, 4 * 20];
    bytes.extend([0, 0, 0, 1]);
    bytes.extend([0, 0, 0, 2].repeat(18));
    bytes.extend([0, 0, 0, 1]);
    assert!(Params::decode(&bytes, Side::Client).is_ok());
    check(&bytes);
}
