//! The reading side of QUIC-LB (draft-ietf-quic-load-balancers-21), written from the draft and apart
//! from the library: a balancer finds the server of a datagram in its destination connection id.

use aws_lc_rs::cipher::{
    AES_128, DecryptingKey, DecryptionContext, EncryptingKey, UnboundCipherKey,
};

/// Configuration of a load balancer: that of the servers, without the ids of servers.
pub(crate) struct Balancer {
    pub(crate) rotation: u8,
    pub(crate) server_id: usize,
    pub(crate) nonce: usize,
    pub(crate) key: Option<[u8; 16]>,
}

impl Balancer {
    /// Returns the destination connection id of a datagram, as far as a balancer can know it: a short
    /// header does not contain its length.
    fn destination<'a>(&self, datagram: &'a [u8]) -> Option<&'a [u8]> {
        if datagram.first()? & 0x80 == 0 {
            return datagram.get(1..=1 + self.server_id + self.nonce);
        }
        let length = usize::from(*datagram.get(5)?);
        datagram.get(6..6 + length)
    }

    /// Returns the server id in a datagram. Ids that no server made give random ones, or none.
    pub(crate) fn server(&self, datagram: &[u8]) -> Option<Vec<u8>> {
        let (first, behind) = self.destination(datagram)?.split_first()?;
        if first >> 5 != self.rotation {
            return None;
        }
        let behind = behind.get(..self.server_id + self.nonce)?;
        let mut plain = match self.key {
            None => behind.to_vec(),
            Some(key) if behind.len() == 16 => one_pass(key, behind),
            Some(key) => four_passes(key, behind),
        };
        plain.truncate(self.server_id);
        Some(plain)
    }
}

fn cipher(key: [u8; 16]) -> UnboundCipherKey {
    UnboundCipherKey::new(&AES_128, &key).unwrap()
}

fn one_pass(key: [u8; 16], block: &[u8]) -> Vec<u8> {
    let mut block = block.to_vec();
    let key = DecryptingKey::ecb(cipher(key)).unwrap();
    key.decrypt(&mut block, DecryptionContext::None).unwrap();
    block
}

/// Undoes the Feistel network of section 5.4.2. The halves are numbers of as many half bytes as the
/// text has bytes, aligned as the draft aligns them: left to the left, right to the right.
fn four_passes(key: [u8; 16], text: &[u8]) -> Vec<u8> {
    let (length, half) = (text.len(), text.len().div_ceil(2));
    let is_odd = length % 2 == 1;
    let mut left = text[..half].to_vec();
    let mut right = text[length - half..].to_vec();
    let key = EncryptingKey::ecb(cipher(key)).unwrap();
    let scramble = |pass: u8, from: &[u8], to: &mut [u8]| {
        let mut block = [0; 16];
        block[..half].copy_from_slice(from);
        block[14] = length as u8;
        block[15] = pass;
        key.encrypt(&mut block).unwrap();
        for (to, byte) in to.iter_mut().zip(block) {
            *to ^= byte;
        }
    };
    // The middle byte of an odd number is shared: its upper half belongs to the left.
    let trim = |left: &mut [u8], right: &mut [u8]| {
        if is_odd {
            left[half - 1] &= 0xf0;
            right[0] &= 0x0f;
        }
    };
    trim(&mut left, &mut right);
    for pass in [4, 3, 2, 1] {
        if pass % 2 == 0 {
            scramble(pass, &right, &mut left);
        } else {
            scramble(pass, &left, &mut right);
        }
        trim(&mut left, &mut right);
    }
    let mut plain = left;
    if is_odd {
        plain[half - 1] |= right.remove(0);
    }
    plain.extend(right);
    plain
}

#[cfg(test)]
mod tests {
    use super::Balancer;

    /// The key of the draft's appendix B.2.
    const KEY: [u8; 16] = [
        0x8f, 0x95, 0xf0, 0x92, 0x45, 0x76, 0x5f, 0x80, 0x25, 0x69, 0x34, 0xe5, 0x0c, 0x66, 0x20,
        0x7f,
    ];

    fn hex(text: &str) -> Vec<u8> {
        let digits = (0..text.len()).step_by(2);
        digits
            .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
            .collect()
    }

    #[test]
    fn the_router_reads_the_test_vectors_of_the_draft() {
        let vectors = [
            (None, 0, "c4605e", 4, "07c4605e4504cc4f"),
            (Some(KEY), 0, "ed793a", 4, "0720b1d07b359d3c"),
            (
                Some(KEY),
                1,
                "ed793a51d49b8f5fab65",
                5,
                "2fcc381bc74cb4fbad2823a3d1f8fed2",
            ),
            (
                Some(KEY),
                2,
                "ed793a51d49b8f5f",
                8,
                "504dd2d05a7b0de9b2b9907afb5ecf8cc3",
            ),
            (
                Some(KEY),
                0,
                "ed793a51d49b8f5fab",
                9,
                "125779c9cc86beb3a3a4a3ca96fce4bfe0cdbc",
            ),
        ];
        for (key, rotation, server, nonce, cid) in vectors {
            let server = hex(server);
            let balancer = Balancer {
                rotation,
                server_id: server.len(),
                nonce,
                key,
            };
            let cid = hex(cid);
            let short = [&[0x40], &cid[..], &[0xff; 30]].concat();
            assert_eq!(balancer.server(&short), Some(server.clone()));
            let long = [&[0xc0, 0, 0, 0, 1, cid.len() as u8], &cid[..], &[0xff; 30]].concat();
            assert_eq!(balancer.server(&long), Some(server));
            let other = Balancer {
                rotation: 6,
                ..balancer
            };
            assert_eq!(other.server(&long), None);
        }
    }
}
