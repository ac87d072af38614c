//! Records between a process and its successor.
//!
//! | from | record | files |
//! |---|---|---|
//! | successor | [`Hello`]: its properties | |
//! | predecessor | [`Answer`]: its generation and sockets, or the reason for a refusal | |
//! | predecessor | [`Record::Files`], repeated: its sockets, its TCP listeners, then relays to earlier processes | at
//! most 64 |
//! | successor | [`Record::Ready`]: it can start at once | |
//! | predecessor | [`Record::Claims`], repeated: clients whose handshakes it finishes | |
//! | predecessor | [`Record::Files`], repeated: relays to its workers, which no longer receive | at
//! most 64 |
//! | predecessor | [`Record::Go`]: the successor may receive | |
//! | successor | [`Record::Done`]: it receives | |

use std::{
    io,
    net::{Ipv6Addr, SocketAddr, SocketAddrV6},
    time::Duration,
};

use hybriq_proto::{
    endpoint::{Claim, Place},
    owners::cids::ResetKey,
    remembered::token::Keys as _,
    wire::{Reader, packet::Cid},
};

use super::Claimed;
use crate::{
    config::{Ids, TokenKeys},
    errors::RestartError,
};

/// First bytes of a hello: the name and version of this protocol.
const MAGIC: &[u8; 16] = b"hybriq restart 2";

/// Number of ids that a successor must be able to read.
const SAMPLES: u8 = 4;

/// Largest number of clients in one record.
pub(crate) const CLAIMS: usize = 4096;

/// Properties on which both processes must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) workers: u8,
    /// Fingerprint of the key of resets.
    pub(crate) resets: [u8; 16],
    /// Name of the key of tokens.
    pub(crate) tokens: [u8; 8],
}

impl Hello {
    pub(crate) fn new(workers: u8, ids: &Ids, tokens: &TokenKeys) -> Self {
        let resets = ids.reset_key.as_ref().map(ResetKey::fingerprint);
        Self {
            workers,
            resets: resets.unwrap_or_default(),
            tokens: tokens.ring().sealing_key(),
        }
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [&MAGIC[..], &[self.workers], &self.resets, &self.tokens].concat()
    }

    pub(crate) fn read(record: &[u8]) -> Result<Self, RestartError> {
        let mut reader = Reader::new(record);
        let mut read = || {
            let magic = reader.array::<16>()?;
            Ok((magic, reader.u8()?, reader.array()?, reader.array()?))
        };
        match read().map_err(|_: hybriq_proto::wire::Eof| RestartError::Release)? {
            (magic, workers, resets, tokens) if magic == *MAGIC => Ok(Self {
                workers,
                resets,
                tokens,
            }),
            _ => Err(RestartError::Release),
        }
    }

    /// Checks that a process with these properties may succeed one with the properties `other`.
    pub(crate) fn check(self, other: Self) -> Result<(), RestartError> {
        if self.workers != other.workers {
            return Err(RestartError::Workers {
                other: other.workers,
                own: self.workers,
            });
        }
        if self != other {
            return Err(RestartError::Keys);
        }
        Ok(())
    }
}

/// Offer of a process to its successor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Generation of the predecessor.
    pub(crate) generation: u8,
    /// Generation of the successor.
    pub(crate) next: u8,
    /// Number of sockets of each worker.
    pub(crate) sockets: u8,
    /// Number of TCP listeners.
    pub(crate) listeners: u8,
    /// Generations of earlier processes that have not ended.
    pub(crate) earlier: Vec<u8>,
    /// Ids of the predecessor, each with the number in it.
    pub(crate) samples: Vec<(u8, Vec<u8>)>,
}

/// Answer of a process to a would-be successor.
pub(crate) enum Answer {
    Offer(Offer),
    Refusal(RestartError),
}

impl Answer {
    /// Returns the numbers for which the predecessor sends ids.
    pub(crate) fn sampled(offset: u8) -> impl Iterator<Item = u8> {
        (0..SAMPLES).map(move |step| step.wrapping_mul(67).wrapping_add(offset))
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        match self {
            Self::Refusal(error) => bytes.extend(match error {
                RestartError::Workers { own, .. } => [1, *own],
                RestartError::Keys => [2, 0],
                RestartError::Generations => [3, 0],
                RestartError::Moved => [4, 0],
                RestartError::User => [5, 0],
                RestartError::Release => [6, 0],
                _ => [7, 0],
            }),
            Self::Offer(offer) => {
                bytes.extend([0, offer.generation, offer.next]);
                bytes.extend([offer.sockets, offer.listeners]);
                bytes.push(offer.earlier.len() as u8);
                bytes.extend(&offer.earlier);
                for (number, cid) in &offer.samples {
                    bytes.extend([*number, cid.len() as u8]);
                    bytes.extend(cid);
                }
            }
        }
        bytes
    }

    pub(crate) fn read(record: &[u8], own: u8) -> io::Result<Self> {
        let mut reader = Reader::new(record);
        if reader.array().map_err(nonsense)? != *MAGIC {
            return Ok(Self::Refusal(RestartError::Release));
        }
        let kind = reader.u8().map_err(nonsense)?;
        let first = reader.u8().map_err(nonsense)?;
        let error = match kind {
            0 => return Ok(Self::Offer(read_offer(first, reader).map_err(nonsense)?)),
            1 => RestartError::Workers { other: first, own },
            2 => RestartError::Keys,
            3 => RestartError::Generations,
            4 => RestartError::Moved,
            5 => RestartError::User,
            6 => RestartError::Release,
            _ => RestartError::Closed,
        };
        Ok(Self::Refusal(error))
    }
}

fn read_offer(generation: u8, mut reader: Reader<'_>) -> Result<Offer, hybriq_proto::wire::Eof> {
    let (next, sockets, listeners) = (reader.u8()?, reader.u8()?, reader.u8()?);
    let earlier = reader.u8()?;
    let earlier = reader.bytes(earlier.into())?.to_vec();
    let mut samples = Vec::new();
    while !reader.is_empty() {
        let (number, len) = (reader.u8()?, reader.u8()?);
        samples.push((number, reader.bytes(len.into())?.to_vec()));
    }
    Ok(Offer {
        generation,
        next,
        sockets,
        listeners,
        earlier,
        samples,
    })
}

/// Records after the offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// Files accompany the record.
    Files,
    /// The successor can start at once.
    Ready,
    /// Clients whose handshakes earlier processes finish.
    Claims(Vec<Claimed>),
    /// The successor may receive.
    Go,
    /// The successor receives.
    Done,
}

impl Record {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Files => vec![0],
            Self::Ready => vec![1],
            Self::Claims(claims) => {
                let mut bytes = vec![2];
                for claim in claims {
                    write_claim(&mut bytes, claim);
                }
                bytes
            }
            Self::Go => vec![3],
            Self::Done => vec![4],
        }
    }

    pub(crate) fn read(record: &[u8]) -> io::Result<Self> {
        let mut reader = Reader::new(record);
        Ok(match reader.u8().map_err(nonsense)? {
            0 => Self::Files,
            1 => Self::Ready,
            2 => {
                let mut claims = Vec::new();
                while !reader.is_empty() {
                    claims.push(read_claim(&mut reader).map_err(nonsense)?);
                }
                Self::Claims(claims)
            }
            3 => Self::Go,
            4 => Self::Done,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        })
    }
}

fn write_claim(bytes: &mut Vec<u8>, claimed: &Claimed) {
    let Claimed {
        claim,
        place,
        lifetime,
    } = claimed;
    bytes.push(claim.dcid.len() as u8);
    bytes.extend(claim.dcid.as_bytes());
    bytes.extend([place.generation, place.worker]);
    bytes.extend((lifetime.as_millis() as u32).to_be_bytes());
    match claim.peer {
        None => bytes.push(0),
        Some(SocketAddr::V4(peer)) => {
            bytes.push(4);
            bytes.extend(peer.ip().octets());
            bytes.extend(peer.port().to_be_bytes());
        }
        Some(SocketAddr::V6(peer)) => {
            bytes.push(6);
            bytes.extend(peer.ip().octets());
            bytes.extend(peer.port().to_be_bytes());
            bytes.extend(peer.flowinfo().to_be_bytes());
            bytes.extend(peer.scope_id().to_be_bytes());
        }
    }
}

fn read_claim(reader: &mut Reader<'_>) -> Result<Claimed, hybriq_proto::wire::Eof> {
    let len = reader.u8()?;
    let dcid = Cid::new(reader.bytes(len.into())?).unwrap_or(Cid::EMPTY);
    let place = Place {
        generation: reader.u8()?,
        worker: reader.u8()?,
    };
    let lifetime = Duration::from_millis(reader.u32()?.into());
    let peer = match reader.u8()? {
        0 => None,
        4 => Some((reader.array::<4>()?, reader.u16()?).into()),
        _ => {
            let (ip, port) = (Ipv6Addr::from(reader.array::<16>()?), reader.u16()?);
            let (flow, scope) = (reader.u32()?, reader.u32()?);
            Some(SocketAddrV6::new(ip, port, flow, scope).into())
        }
    };
    Ok(Claimed {
        claim: Claim { dcid, peer },
        place,
        lifetime,
    })
}

fn nonsense(_: hybriq_proto::wire::Eof) -> io::Error {
    io::ErrorKind::InvalidData.into()
}
