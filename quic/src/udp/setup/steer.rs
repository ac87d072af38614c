//! The program with which Linux finds the worker of a datagram by its connection id.

use hybriq_proto::owners::cids::Steering;

/// An instruction of the packet filter (classic BPF).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::udp) struct Instruction {
    pub(in crate::udp) code: u16,
    pub(in crate::udp) jump_true: u8,
    pub(in crate::udp) jump_false: u8,
    pub(in crate::udp) operand: u32,
}

// Operation codes of linux/bpf_common.h.
const LOAD_BYTE: u16 = 0x30;
const LOAD_BYTE_AT_X: u16 = 0x50;
const LOAD_WORD_AT_X: u16 = 0x40;
const LOAD_X: u16 = 0x01;
const LOAD_MEMORY: u16 = 0x60;
const STORE_MEMORY: u16 = 0x02;
const JUMP_IF_SET: u16 = 0x45;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const JUMP: u16 = 0x05;
const XOR: u16 = 0xa4;
const XOR_X: u16 = 0xac;
const MULTIPLY: u16 = 0x24;
const SHIFT_RIGHT: u16 = 0x74;
const MODULO: u16 = 0x94;
const COPY_TO_X: u16 = 0x07;
const RETURN: u16 = 0x06;
const RETURN_A: u16 = 0x16;

/// First bit of a long header (RFC 8999 §5.1).
const LONG: u32 = 0x80;
/// Position of the length of the destination connection id in a long header.
const LONG_LEN: u32 = 5;
/// Shortest id with a worker.
const SHORTEST: u32 = 8;
/// Answer that leaves the choice to the system, which chooses by the addresses.
const NO_WORKER: u32 = u32::MAX;

const fn instruction(code: u16, operand: u32) -> Instruction {
    Instruction {
        code,
        jump_true: 0,
        jump_false: 0,
        operand,
    }
}

const fn branch(code: u16, operand: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction {
        code,
        jump_true,
        jump_false,
        operand,
    }
}

/// Returns the program. It reads the destination connection id of the first packet of a datagram
/// and returns the worker: for an id of ours, the worker that it names; for an id that a client
/// chose, always the same one. A datagram that is too short for an id goes to the first worker.
pub(in crate::udp) fn program(steering: Steering, workers: u8) -> Vec<Instruction> {
    let [start, factor] = steering.key();
    vec![
        // X: position of the id.
        instruction(LOAD_BYTE, 0),
        branch(JUMP_IF_SET, LONG, 2, 0),
        instruction(LOAD_X, 1),
        instruction(JUMP, 4),
        instruction(LOAD_BYTE, LONG_LEN),
        branch(JUMP_IF_AT_LEAST, SHORTEST, 1, 0),
        instruction(RETURN, NO_WORKER),
        instruction(LOAD_X, LONG_LEN + 1),
        // The first byte, and the mask derived from the next four.
        instruction(LOAD_BYTE_AT_X, 0),
        instruction(STORE_MEMORY, 0),
        instruction(LOAD_WORD_AT_X, 1),
        instruction(XOR, start),
        instruction(MULTIPLY, Steering::FACTOR),
        instruction(COPY_TO_X, 0),
        instruction(SHIFT_RIGHT, Steering::FIRST_SHIFT),
        instruction(XOR_X, 0),
        instruction(MULTIPLY, factor),
        instruction(COPY_TO_X, 0),
        instruction(SHIFT_RIGHT, Steering::SECOND_SHIFT),
        instruction(XOR_X, 0),
        instruction(SHIFT_RIGHT, 24),
        instruction(COPY_TO_X, 0),
        instruction(LOAD_MEMORY, 0),
        instruction(XOR_X, 0),
        instruction(MODULO, workers.max(1).into()),
        instruction(RETURN_A, 0),
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs a program as the kernel does; a read past the end returns 0.
    fn run(program: &[Instruction], datagram: &[u8]) -> u32 {
        let (mut a, mut x, mut memory) = (0_u32, 0_u32, 0_u32);
        let byte = |at: u32| datagram.get(at as usize).copied().map(u32::from);
        let mut next = 0;
        while let Some(it) = program.get(next) {
            next += 1;
            match it.code {
                LOAD_BYTE | LOAD_BYTE_AT_X => {
                    let base = if it.code == LOAD_BYTE { 0 } else { x };
                    match byte(base + it.operand) {
                        Some(value) => a = value,
                        None => return 0,
                    }
                }
                LOAD_WORD_AT_X => {
                    let bytes: Option<Vec<_>> =
                        (0..4).map(|place| byte(x + it.operand + place)).collect();
                    match bytes {
                        Some(bytes) => a = bytes.iter().fold(0, |word, byte| word << 8 | byte),
                        None => return 0,
                    }
                }
                LOAD_X => x = it.operand,
                LOAD_MEMORY => a = memory,
                STORE_MEMORY => memory = a,
                JUMP_IF_SET | JUMP_IF_AT_LEAST => {
                    let jump = if it.code == JUMP_IF_SET {
                        a & it.operand != 0
                    } else {
                        a >= it.operand
                    };
                    next += usize::from(if jump { it.jump_true } else { it.jump_false });
                }
                JUMP => next += it.operand as usize,
                XOR => a ^= it.operand,
                XOR_X => a ^= x,
                MULTIPLY => a = a.wrapping_mul(it.operand),
                SHIFT_RIGHT => a >>= it.operand,
                MODULO => a %= it.operand,
                COPY_TO_X => x = a,
                RETURN => return it.operand,
                RETURN_A => return a,
                other => panic!("instruction {other:#x}"),
            }
        }
        panic!("the program has no end");
    }

    proptest! {
        /// The program finds the worker for which the id was created, in short and long headers.
        #[test]
        fn ids_of_ours_lead_to_their_worker(
            key in any::<[u32; 2]>(),
            workers in 1..=128_u8,
            cid in any::<[u8; 8]>(),
            choice in any::<u8>(),
        ) {
            let steering = Steering::new(key);
            let worker = choice % workers;
            let mut cid = cid;
            cid[0] = worker ^ steering.mask(&cid);
            let program = program(steering, workers);
            let short = [&[0x41], &cid[..], &[0; 30]].concat();
            prop_assert_eq!(run(&program, &short), u32::from(worker));
            let long = [&[0xe1, 0, 0, 0, 1, 8], &cid[..], &[0; 30]].concat();
            prop_assert_eq!(run(&program, &long), u32::from(worker));
        }

        /// Whatever arrives, the answer is a worker or none.
        #[test]
        fn anything_else_leads_to_one_of_them_or_none(
            key in any::<[u32; 2]>(),
            workers in 1..=128_u8,
            datagram in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let answer = run(&program(Steering::new(key), workers), &datagram);
            prop_assert!(answer < u32::from(workers) || answer == NO_WORKER);
        }
    }
}
