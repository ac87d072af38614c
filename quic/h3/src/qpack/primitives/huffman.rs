//! The Huffman code of strings (RFC 7541 §5.2 and Appendix B).

/// Lengths of the codes of all bytes, in bits, and of the end of the string. The code is canonical: codes of
/// the same length follow each other, in the order of the bytes.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// Number of the symbol that ends a string. It is never sent.
const END: usize = 256;

/// Longest code, in bits.
const LONGEST: u8 = 30;

/// Longest padding, in bits.
const LONGEST_PADDING: u8 = 7;

/// Codes of all bytes, each before its length in the last eight bits.
static CODES: [u64; 257] = codes();

/// Steps of the decoder. A state is an inner node of the tree of codes, and a step takes four bits: it stands at
/// sixteen times the state, plus those bits. It has the place of the next state in its upper half, and below it
/// [`ENDS`], [`COMPLETES`] and the byte that it completes.
static STEPS: [u32; 256 * 16] = steps();

/// Bit of a step that completes a byte.
const COMPLETES: u32 = 1 << 8;

/// Bit of a step that completes the end of the string, which must not be in it.
const ENDS: u32 = 1 << 9;

/// Position of the place of the next state.
const NEXT: u32 = 16;

/// Error of a string: it has the code of the end, or its padding is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::qpack) struct Malformed;

/// Returns the length of a string in this code, in bytes.
pub(super) fn encoded_len(string: &[u8]) -> usize {
    let bits: usize = string
        .iter()
        .map(|&byte| usize::from(LENGTHS[usize::from(byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Encodes a string.
pub(super) fn encode(string: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0_u64, 0_u32);
    for &byte in string {
        let code = CODES[usize::from(byte)];
        let len = (code & 0xff) as u32;
        bits = bits << len | code >> 8;
        count += len;
        if count >= u32::BITS {
            count -= u32::BITS;
            out.extend_from_slice(&((bits >> count) as u32).to_be_bytes());
        }
    }
    // The end of the string begins with ones.
    let padding = count.next_multiple_of(8) - count;
    bits = bits << padding | ((1 << padding) - 1);
    count += padding;
    let rest = ((bits << (u32::BITS - count)) as u32).to_be_bytes();
    let (rest, _) = rest.split_at(count as usize / 8);
    out.extend_from_slice(rest);
}

/// Decodes a string behind what is there. It takes the same number of steps for each byte.
///
/// # Errors
/// The string is malformed.
pub(in crate::qpack) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let (mut step, mut all) = (0, 0);
    for part in coded.chunks(PART) {
        // Codes have five bits at least.
        let mut room = [0; PART * 8 / 5 + 1];
        let mut len = 0;
        for &byte in part {
            for half in [byte >> 4, byte & 0xf] {
                let place = (step >> NEXT | u32::from(half)) as usize;
                step = STEPS[place % STEPS.len()];
                all |= step;
                if let Some(room) = room.get_mut(len) {
                    *room = step as u8;
                }
                len += usize::from(step & COMPLETES != 0);
            }
        }
        out.extend_from_slice(room.get(..len).unwrap_or_default());
    }
    let state = step >> NEXT >> 4;
    if all & ENDS == 0 && PADDING[usize::from(state as u8)] {
        Ok(())
    } else {
        Err(Malformed)
    }
}

/// Coded bytes that are decoded before what they give is stored.
const PART: usize = 32;

/// States in which a string may end: at most seven ones behind the last code.
static PADDING: [bool; 256] = padding();

/// An inner node of the tree: what follows a zero and a one. Leaves are symbols beyond the nodes.
const NODES: [[u16; 2]; 256] = nodes();

/// Number from which on a child is a symbol.
const LEAF: u16 = 256;

const fn codes() -> [u64; 257] {
    let mut codes = [0; 257];
    let (mut code, mut len) = (0_u64, 1);
    while len <= LONGEST {
        let mut symbol = 0;
        while symbol <= END {
            if LENGTHS[symbol] == len {
                codes[symbol] = code << 8 | len as u64;
                code += 1;
            }
            symbol += 1;
        }
        code <<= 1;
        len += 1;
    }
    codes
}

const fn nodes() -> [[u16; 2]; 256] {
    let codes = codes();
    let mut nodes = [[0_u16; 2]; 256];
    let (mut count, mut symbol) = (1, 0);
    while symbol <= END {
        let mut left = LENGTHS[symbol];
        let mut node = 0;
        while left > 1 {
            left -= 1;
            let bit = (codes[symbol] >> 8 >> left & 1) as usize;
            if nodes[node][bit] == 0 {
                nodes[node][bit] = count;
                count += 1;
            }
            node = nodes[node][bit] as usize;
        }
        let bit = (codes[symbol] >> 8 & 1) as usize;
        nodes[node][bit] = LEAF + symbol as u16;
        symbol += 1;
    }
    nodes
}

const fn steps() -> [u32; 256 * 16] {
    let mut steps = [0; 256 * 16];
    let mut place = 0;
    while place < steps.len() {
        steps[place] = step(place / 16, place % 16);
        place += 1;
    }
    steps
}

const fn step(state: usize, half: usize) -> u32 {
    let (mut node, mut completed) = (state, 0);
    let mut left = 4;
    while left > 0 {
        left -= 1;
        let child = NODES[node][half >> left & 1];
        node = 0;
        if child < LEAF {
            node = child as usize;
        } else if child == LEAF + END as u16 {
            completed = ENDS;
        } else {
            // Codes have five bits at least: a step completes one at most.
            completed = COMPLETES | (child - LEAF) as u32;
        }
    }
    (node as u32 * 16) << NEXT | completed
}

const fn padding() -> [bool; 256] {
    let mut padding = [false; 256];
    let (mut node, mut ones) = (0, 0);
    while ones <= LONGEST_PADDING {
        padding[node] = true;
        node = NODES[node][1] as usize;
        ones += 1;
    }
    padding
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(coded: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut out = Vec::new();
        decode(coded, &mut out).map(|()| out)
    }

    /// RFC 7541 §C.4 and §C.6.
    #[test]
    fn examples_of_the_rfc() {
        let examples: [(&str, &[u8]); 4] = [
            (
                "www.example.com",
                &[
                    0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
                ],
            ),
            ("no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            (
                "custom-value",
                &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf],
            ),
            ("private", &[0xae, 0xc3, 0x77, 0x1a, 0x4b]),
        ];
        for (string, coded) in examples {
            let mut out = Vec::new();
            encode(string.as_bytes(), &mut out);
            assert_eq!(out, coded);
            assert_eq!(encoded_len(string.as_bytes()), coded.len());
            assert_eq!(decoded(coded).unwrap(), string.as_bytes());
        }
    }

    #[test]
    fn every_byte_and_pair_comes_back() {
        for first in 0..=255 {
            for second in 0..=255 {
                let mut out = Vec::new();
                encode(&[first, second], &mut out);
                assert_eq!(decoded(&out).unwrap(), [first, second]);
            }
        }
    }

    #[test]
    fn the_end_and_wrong_padding_are_errors() {
        assert_eq!(
            decoded(&[0xff, 0xff, 0xff, 0xfc]),
            Err(Malformed),
            "the end of the string"
        );
        assert_eq!(decoded(&[0xff]), Err(Malformed), "eight bits of padding");
        assert_eq!(
            decoded(&[0x1f, 0xff]),
            Err(Malformed),
            "a byte of padding behind a code"
        );
        assert_eq!(decoded(&[0x18]), Err(Malformed), "padding with zeros");
        assert_eq!(decoded(&[0x1f]).unwrap(), b"a");
        assert_eq!(decoded(&[]).unwrap(), b"");
    }
}
