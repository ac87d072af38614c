//! Dialects of WebTransport, which the settings of both ends negotiate.

use hybriq_proto::Side;

use super::Windows;
use crate::wire::settings::Settings;

/// SETTINGS_ENABLE_WEBTRANSPORT of draft 02.
const ENABLE_WEBTRANSPORT: u64 = 0x2b60_3742;
/// SETTINGS_WEBTRANSPORT_MAX_SESSIONS of drafts 07 to 12.
const WEBTRANSPORT_MAX_SESSIONS: u64 = 0xc671_706a;
/// SETTINGS_WT_MAX_SESSIONS of drafts 13 and 14.
const WT_MAX_SESSIONS: u64 = 0x14e9_cd29;
/// SETTINGS_WT_ENABLED of draft 15.
const WT_ENABLED: u64 = 0x2c7c_f000;
/// SETTINGS_WT_INITIAL_MAX_DATA.
const WT_INITIAL_MAX_DATA: u64 = 0x2b61;
/// SETTINGS_WT_INITIAL_MAX_STREAMS_UNI.
const WT_INITIAL_MAX_STREAMS_UNI: u64 = 0x2b64;
/// SETTINGS_WT_INITIAL_MAX_STREAMS_BIDI.
const WT_INITIAL_MAX_STREAMS_BIDI: u64 = 0x2b65;

/// A dialect of WebTransport over HTTP/3: a draft, or several that are the same on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Dialect {
    /// Draft 02, and peers that announce nothing.
    Draft02,
    /// Drafts 07 to 12.
    Draft07,
    /// Drafts 13 and 14, which have flow control of sessions.
    Draft13,
    /// Draft 15.
    Draft15,
}

/// What two ends have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terms {
    /// The highest dialect that both speak.
    pub dialect: Dialect,
    /// The windows, if sessions have flow control.
    pub flow: Option<FlowControl>,
}

/// What each end lets the other open and send, at the start of a session.
///
/// Exhaustive: a connection has two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowControl {
    /// Windows of this end, which the peer may use.
    pub own: Windows,
    /// Windows of the peer.
    pub peer: Windows,
}

/// Reason why a peer has no sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// Its settings announce none.
    #[error("the peer does not announce WebTransport in its SETTINGS")]
    NotAnnounced,
    /// It announces them without what they need: HTTP Datagrams, extended CONNECT at a server, and RESET_STREAM_AT.
    #[error(
        "the peer announces WebTransport without HTTP Datagrams, extended CONNECT or RESET_STREAM_AT"
    )]
    Requirements,
}

impl Dialect {
    /// Returns the protocol that extended CONNECT asks for. Servers take either.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Draft02 | Self::Draft07 | Self::Draft13 => "webtransport",
            Self::Draft15 => "webtransport-h3",
        }
    }

    /// Returns the dialect that settings announce.
    fn of(settings: &Settings) -> Option<Self> {
        let is_on = |id| settings.other(id).is_some_and(|value| value > 0);
        let all = [
            (WT_ENABLED, Self::Draft15),
            (WT_MAX_SESSIONS, Self::Draft13),
            (WEBTRANSPORT_MAX_SESSIONS, Self::Draft07),
            (ENABLE_WEBTRANSPORT, Self::Draft02),
        ];
        let mut on = all.iter().filter(|(id, _)| is_on(*id));
        on.next().map(|(_, dialect)| *dialect)
    }
}

/// Announces all dialects in the settings of one end, with the windows of its sessions. `sessions` is the number that
/// the drafts before 15 announce.
pub fn announce(settings: &mut Settings, sessions: u64, windows: Windows) {
    settings.h3_datagram = true;
    settings.others.extend([
        (ENABLE_WEBTRANSPORT, 1),
        (WEBTRANSPORT_MAX_SESSIONS, sessions),
        (WT_MAX_SESSIONS, sessions),
        (WT_ENABLED, 1),
    ]);
    let initial = [
        (WT_INITIAL_MAX_DATA, windows.data),
        (WT_INITIAL_MAX_STREAMS_UNI, windows.uni),
        (WT_INITIAL_MAX_STREAMS_BIDI, windows.bidi),
    ];
    let declared = initial.iter().filter(|(_, value)| *value > 0);
    settings.others.extend(declared);
}

/// Returns true if settings announce any dialect.
pub(crate) fn is_announced(settings: &Settings) -> bool {
    settings.other(ENABLE_WEBTRANSPORT).is_some()
}

/// Returns true if settings allow at least as much for sessions as earlier ones, on which 0-RTT data relied
/// (draft-ietf-webtrans-http3 §3.2).
pub(crate) fn keeps_windows(settings: &Settings, earlier: &Settings) -> bool {
    [
        WT_INITIAL_MAX_DATA,
        WT_INITIAL_MAX_STREAMS_UNI,
        WT_INITIAL_MAX_STREAMS_BIDI,
    ]
    .iter()
    .all(|id| settings.other(*id) >= earlier.other(*id))
}

impl Terms {
    /// Creates terms without a negotiation: a dialect, and the windows of this end and of the peer, if sessions have
    /// flow control.
    pub const fn new(dialect: Dialect, flow: Option<FlowControl>) -> Self {
        Self { dialect, flow }
    }

    /// Returns the terms negotiated with a peer that sent these settings, if this end [announced](announce) all dialects
    /// with these windows.
    ///
    /// Flow control needs a declaration of both ends: initial limits, or more than one session in drafts 13 and 14. No
    /// peer of an earlier draft has it.
    ///
    /// # Errors
    /// The peer announces no dialect, or lacks what drafts 13 and later require in addition.
    pub fn of(side: Side, own: Windows, peer: &Settings) -> Result<Self, Unsupported> {
        let dialect = Dialect::of(peer).ok_or(Unsupported::NotAnnounced)?;
        let is_late = dialect >= Dialect::Draft13;
        let takes_connect = side.is_server() || peer.enable_connect_protocol;
        if is_late && !(peer.h3_datagram && takes_connect) {
            return Err(Unsupported::Requirements);
        }
        let initial = |id| peer.other(id).unwrap_or(0);
        let windows = Windows {
            bidi: initial(WT_INITIAL_MAX_STREAMS_BIDI),
            uni: initial(WT_INITIAL_MAX_STREAMS_UNI),
            data: initial(WT_INITIAL_MAX_DATA),
        };
        let many = dialect == Dialect::Draft13 && initial(WT_MAX_SESSIONS) > 1;
        let is_declared = own.is_declared() && (windows.is_declared() || many);
        Ok(Self {
            dialect,
            flow: (is_late && is_declared).then_some(FlowControl { own, peer: windows }),
        })
    }

    /// Returns true if the peer must support RESET_STREAM_AT as well (draft-ietf-webtrans-http3 §3.1): sessions are
    /// refused otherwise, as with [`Unsupported::Requirements`]. Browsers speak earlier drafts without it.
    pub fn needs_reset_at(&self) -> bool {
        self.dialect >= Dialect::Draft15
    }

    /// Terms of a client that announces nothing, which is treated as one of draft 02.
    pub const OLDEST: Self = Self {
        dialect: Dialect::Draft02,
        flow: None,
    };

    /// Returns true if the connection may have several sessions at once: without flow control, those of the later
    /// drafts may not (draft-ietf-webtrans-http3 §5.1).
    pub fn allows_pooling(&self) -> bool {
        self.flow.is_some() || self.dialect < Dialect::Draft13
    }
}
