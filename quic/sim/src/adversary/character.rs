//! Preferences of a hostile peer.

use std::time::Duration;

use hybriq_proto::wire::params::Params;

use crate::{Chance, Rng, one_in, per_mille};

/// Something that a hostile peer may put into a datagram, or send instead of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Move {
    /// A PING.
    Ping,
    /// A PATH_CHALLENGE.
    Challenge,
    /// Three PATH_CHALLENGE frames.
    Challenges,
    /// A PATH_RESPONSE that answers nothing.
    Response,
    /// STREAM frames of one byte, each after a gap, as many as fit.
    Pieces,
    /// A STREAM frame that fills the packet, on a stream of its choice.
    Data,
    /// The last byte of a stream.
    Fin,
    /// The first byte of the stream with the largest number.
    FarStream,
    /// `RESET_STREAM`.
    Reset,
    /// `STOP_SENDING`.
    Stop,
    /// `MAX_DATA`, `MAX_STREAM_DATA` and `MAX_STREAMS`.
    Credit,
    /// `DATA_BLOCKED`, `STREAM_DATA_BLOCKED` and `STREAMS_BLOCKED`.
    Blocked,
    /// `NEW_CONNECTION_ID`.
    NewId,
    /// `RETIRE_CONNECTION_ID`.
    RetireId,
    /// A CRYPTO frame after a gap.
    Crypto,
    /// `ACK_FREQUENCY`.
    AckFrequency,
    /// `IMMEDIATE_ACK`.
    ImmediateAck,
    /// DATAGRAM frames, many of them empty.
    Datagrams,
    /// A frame that a client must not send, or random bytes. It ends the connection.
    Rude,
    /// No packet of the connection, but a 0-RTT packet from a spoofed address.
    EarlyPacket,
    /// No packet of the connection, but noise from a spoofed address.
    Noise,
    /// `RESET_STREAM_AT`.
    ResetAt,
    /// The next byte of a stream, in a separate frame.
    Drip,
    /// A key update, if the victim followed the last one.
    UpdateKeys,
    /// Frames that only servers send: repeated `HANDSHAKE_DONE`, tokens, an endless session ticket.
    Tell,
}

impl Move {
    /// All moves.
    pub const ALL: [Self; 25] = [
        Self::Ping,
        Self::Challenge,
        Self::Challenges,
        Self::Response,
        Self::Pieces,
        Self::Data,
        Self::Fin,
        Self::FarStream,
        Self::Reset,
        Self::Stop,
        Self::Credit,
        Self::Blocked,
        Self::NewId,
        Self::RetireId,
        Self::Crypto,
        Self::AckFrequency,
        Self::ImmediateAck,
        Self::Datagrams,
        Self::Rude,
        Self::EarlyPacket,
        Self::Noise,
        Self::ResetAt,
        Self::Drip,
        Self::UpdateKeys,
        Self::Tell,
    ];

    /// Number of moves from which [`Character::of_seed`] draws, the first of [`Move::ALL`]: with
    /// more moves, the seeds that found a fault would draw another peer.
    const OF_SEEDS: usize = 21;
}

/// Places that a hostile peer sends from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Addresses {
    /// The address of the handshake.
    Own,
    /// One other address.
    Other,
    /// Two ports of its machine, in turn.
    TwoPorts,
    /// An endless series of ports.
    Ports,
    /// Everything: its own, other ports, other machines.
    Any,
}

/// Preferences of a hostile peer. A peer that does everything hides what another would show, so
/// there are several.
#[derive(Clone, Debug)]
pub struct Character {
    /// Name, for reports.
    pub name: &'static str,
    /// Moves that it draws from. A move that is listed twice is drawn twice as often.
    pub moves: Vec<Move>,
    /// Largest number of moves in one datagram.
    pub moves_at_once: u64,
    /// Probability that a datagram acknowledges what arrived.
    pub acknowledges: Chance,
    /// Probability that a challenge is answered.
    pub answers: Chance,
    /// True if it answers no challenge that fills a datagram.
    pub answers_short_ones: bool,
    /// Places that it sends from.
    pub addresses: Addresses,
    /// Probability of a gap in the packet numbers before a packet.
    pub gaps: Chance,
    /// Probability that a packet is padded to a full datagram.
    pub pads: Chance,
    /// Longest time between two datagrams.
    pub pause: Duration,
    /// Probability of a long silence before a datagram.
    pub silence: Chance,
    /// Probability that the victim's application reads everything before a datagram.
    pub read: Chance,
    /// Transport parameters.
    pub extremes: Extremes,
}

impl Character {
    /// Acknowledges nothing and stays where it is; draws no move that ends the connection.
    pub fn new(name: &'static str, moves: impl IntoIterator<Item = Move>) -> Self {
        Self {
            name,
            moves: moves.into_iter().collect(),
            moves_at_once: 1,
            acknowledges: one_in(0),
            answers: one_in(0),
            answers_short_ones: false,
            addresses: Addresses::Own,
            gaps: one_in(0),
            pads: one_in(0),
            pause: Duration::from_millis(2),
            silence: one_in(0),
            read: one_in(0),
            extremes: Extremes::default(),
        }
    }

    /// Returns the peer that asks for its path again and again, without an acknowledgement.
    pub fn asks() -> Self {
        Self::new("asks", [Move::Challenge, Move::Challenges])
    }

    /// Returns the peer that asks for a path from another address, which it validates.
    pub fn asks_elsewhere() -> Self {
        Self {
            addresses: Addresses::Other,
            answers: one_in(1),
            ..Self::new("asks elsewhere", [Move::Challenge])
        }
    }

    /// Returns the peer that moves from port to port, and answers short challenges.
    pub fn hops() -> Self {
        Self {
            addresses: Addresses::Ports,
            answers: one_in(1),
            answers_short_ones: true,
            ..Self::new("hops", [Move::Ping])
        }
    }

    /// Returns the peer that moves between two ports, both validated, without an acknowledgement.
    pub fn commutes() -> Self {
        Self {
            addresses: Addresses::TwoPorts,
            answers: one_in(1),
            pads: one_in(2),
            pause: Duration::from_millis(40),
            ..Self::new("commutes", [Move::Ping])
        }
    }

    /// Returns the peer that leaves wide gaps between tiny packets.
    pub fn leaves_gaps() -> Self {
        Self {
            gaps: one_in(1),
            ..Self::new("leaves gaps", [Move::Ping])
        }
    }

    /// Returns the peer that sends one-byte pieces with gaps on all streams.
    pub fn tears() -> Self {
        Self::new("tears", [Move::Pieces])
    }

    /// Returns the peer that announces an idle timeout of one millisecond.
    pub fn is_impatient() -> Self {
        Self {
            acknowledges: one_in(2),
            pause: Duration::from_millis(80),
            extremes: Extremes {
                max_idle_timeout: Some(Duration::from_millis(1)),
                ..Extremes::default()
            },
            ..Self::new("is impatient", [Move::Ping])
        }
    }

    /// Returns the peer that spoofs 0-RTT packets of connections that never start, and is silent at
    /// times.
    pub fn comes_early() -> Self {
        Self {
            silence: one_in(40),
            ..Self::new("comes early", [Move::EarlyPacket])
        }
    }

    /// Draws a peer that does everything, within its preferences; one in eight does only one thing.
    pub fn of_seed(seed: u64) -> Self {
        let (moves, _) = Move::ALL.split_at(Move::OF_SEEDS);
        Self::drawn(&mut Rng::nth(seed, 0xc4a2), moves)
    }

    /// Draws a peer as [`of_seed`](Self::of_seed) does, from all moves.
    pub fn of_seed_with_all(seed: u64) -> Self {
        Self::drawn(&mut Rng::nth(seed, 0xa113), &Move::ALL)
    }

    fn drawn(rng: &mut Rng, all: &[Move]) -> Self {
        let mut moves: Vec<Move> = (0..2 + rng.below(12))
            .filter_map(|_| all.get(rng.below(all.len() as u64) as usize))
            .copied()
            .collect();
        // A single rude frame ends the connection, so it must not come at once.
        moves.retain(|it| *it != Move::Rude || rng.below(4) == 0);
        moves.push(Move::Ping);
        let mut chance = || match rng.below(4) {
            0 => one_in(0),
            1 => per_mille(50),
            2 => one_in(3),
            _ => one_in(1),
        };
        let (acknowledges, answers, gaps) = (chance(), chance(), chance());
        let (pads, read) = (chance(), chance());
        let addresses = [
            Addresses::Own,
            Addresses::Own,
            Addresses::Other,
            Addresses::TwoPorts,
            Addresses::Ports,
            Addresses::Any,
        ];
        let drawn = Self {
            moves,
            moves_at_once: 1 + rng.below(4),
            acknowledges,
            answers,
            answers_short_ones: rng.below(4) == 0,
            addresses: addresses[rng.below(addresses.len() as u64) as usize],
            gaps,
            pads,
            pause: Duration::from_millis([1, 10, 100][rng.below(3) as usize]),
            silence: [one_in(0), one_in(100)][rng.below(2) as usize],
            read,
            extremes: Extremes::of(rng),
            ..Self::new("is of its seed", [])
        };
        if rng.below(8) == 0 {
            drawn.alone(rng)
        } else {
            drawn
        }
    }

    /// Keeps one of the moves, one in each packet, without anything that pays for it: no padding,
    /// no acknowledgement. It shows what costs more than the bytes that arrive.
    fn alone(mut self, rng: &mut Rng) -> Self {
        let kept = rng.below(self.moves.len() as u64) as usize;
        self.moves = self.moves.get(kept).copied().into_iter().collect();
        self.moves_at_once = 1;
        self.acknowledges = one_in(0);
        self.pads = one_in(0);
        self
    }

    /// Returns the peers that once did harm, each with the preference that revealed it best.
    pub fn known() -> [Self; 8] {
        [
            Self::asks(),
            Self::asks_elsewhere(),
            Self::hops(),
            Self::commutes(),
            Self::leaves_gaps(),
            Self::tears(),
            Self::is_impatient(),
            Self::comes_early(),
        ]
    }
}

/// Transport parameters of a hostile peer; `None` keeps the honest value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extremes {
    /// `max_idle_timeout`.
    pub max_idle_timeout: Option<Duration>,
    /// `max_ack_delay`, less than 2^14 ms.
    pub max_ack_delay: Option<Duration>,
    /// `ack_delay_exponent`, at most 20.
    pub ack_delay_exponent: Option<u8>,
    /// All windows for data, in bytes.
    pub windows: Option<u64>,
    /// Streams that the victim may open, per kind.
    pub streams: Option<u64>,
    /// `active_connection_id_limit`, at least 2.
    pub active_connection_id_limit: Option<u64>,
    /// `max_udp_payload_size`, at least 1200.
    pub max_udp_payload_size: Option<u64>,
    /// `max_datagram_frame_size`.
    pub max_datagram_frame_size: Option<u64>,
    /// `min_ack_delay`.
    pub min_ack_delay: Option<Duration>,
    /// `disable_active_migration`.
    pub disable_active_migration: bool,
}

impl Extremes {
    /// Draws values from both ends of their ranges.
    pub fn of(rng: &mut Rng) -> Self {
        const LARGEST: u64 = (1 << 62) - 1;
        let millis = |values: [u64; 3], drawn: u64| {
            let value = values.get(drawn as usize).copied();
            value.map(Duration::from_millis)
        };
        let number = |values: [u64; 3], drawn: u64| values.get(drawn as usize).copied();
        let mut draw = || rng.below(6);
        Self {
            max_idle_timeout: millis([1, 100, 1 << 40], draw()),
            max_ack_delay: millis([0, 1, (1 << 14) - 1], draw()),
            ack_delay_exponent: number([0, 3, 20], draw()).map(|it| it as u8),
            windows: number([0, 1, LARGEST], draw()),
            streams: number([0, 1, 1 << 60], draw()),
            active_connection_id_limit: number([2, 3, LARGEST], draw()),
            max_udp_payload_size: number([1200, 1201, 65_527], draw()),
            max_datagram_frame_size: number([0, 1, LARGEST], draw()),
            min_ack_delay: millis([0, 0, 1], draw()),
            disable_active_migration: draw() == 0,
        }
    }

    /// Writes the values into parameters.
    pub(super) fn apply(&self, params: &mut Params) {
        fn put<T: Copy>(target: &mut T, value: Option<T>) {
            *target = value.unwrap_or(*target);
        }
        put(&mut params.max_idle_timeout, self.max_idle_timeout);
        put(&mut params.max_ack_delay, self.max_ack_delay);
        put(&mut params.ack_delay_exponent, self.ack_delay_exponent);
        for window in [
            &mut params.initial_max_data,
            &mut params.initial_max_stream_data_bidi_local,
            &mut params.initial_max_stream_data_bidi_remote,
            &mut params.initial_max_stream_data_uni,
        ] {
            put(window, self.windows);
        }
        put(&mut params.initial_max_streams_bidi, self.streams);
        put(&mut params.initial_max_streams_uni, self.streams);
        let ids = self.active_connection_id_limit;
        put(&mut params.active_connection_id_limit, ids);
        put(&mut params.max_udp_payload_size, self.max_udp_payload_size);
        let datagram = self.max_datagram_frame_size;
        put(&mut params.max_datagram_frame_size, datagram);
        if let Some(delay) = self.min_ack_delay {
            params.min_ack_delay = Some(delay.min(params.max_ack_delay));
        }
        params.disable_active_migration |= self.disable_active_migration;
    }
}
