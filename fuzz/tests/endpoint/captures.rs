//! Recorded datagrams of other implementations' clients.

use std::sync::OnceLock;

/// The files of `fuzz/corpus`: a flags byte, then datagrams, each after its length.
const FILES: [&[u8]; 4] = [
    include_bytes!("../../corpus/quinn"),
    include_bytes!("../../corpus/s2n-quic"),
    include_bytes!("../../corpus/quiche"),
    include_bytes!("../../corpus/hybriq"),
];

/// Returns every recorded datagram.
pub(crate) fn all() -> &'static [&'static [u8]] {
    static ALL: OnceLock<Vec<&'static [u8]>> = OnceLock::new();
    ALL.get_or_init(|| FILES.iter().flat_map(|file| split(&file[1..])).collect())
}

/// Splits bytes into datagrams, each after two bytes with its length. The last one takes what is
/// left.
pub(crate) fn split(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (len, rest) = bytes.split_first_chunk::<2>()?;
        let len = usize::from(u16::from_be_bytes(*len)).min(rest.len());
        let (datagram, rest) = rest.split_at(len);
        bytes = rest;
        Some(datagram)
    })
}
