//! Key-exchange groups and the policies that choose among them.

pub(crate) mod supported;

use std::fmt;

/// A TLS named group by its IANA code point. An unknown code point is a value like any other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group(pub u16);

/// Problem on which the security of a group rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupKind {
    /// Elliptic curves or finite fields only: a quantum computer can read recorded traffic.
    Classical,
    /// ML-KEM and an elliptic curve: an attacker must break both (RFC 10024).
    Hybrid,
    /// ML-KEM alone (draft-ietf-tls-mlkem, which defines the code points).
    PostQuantum,
    /// A code point this build does not know.
    Unknown,
}

struct Facts {
    group: Group,
    name: &'static str,
    kind: GroupKind,
    client_share: u16,
    server_share: u16,
}

const FACTS: [Facts; 9] = {
    const fn facts(
        group: Group,
        name: &'static str,
        kind: GroupKind,
        client_share: u16,
        server_share: u16,
    ) -> Facts {
        Facts {
            group,
            name,
            kind,
            client_share,
            server_share,
        }
    }
    use GroupKind::{Classical, Hybrid, PostQuantum};
    [
        facts(Group::X25519MLKEM768, "X25519MLKEM768", Hybrid, 1216, 1120),
        facts(
            Group::SECP256R1MLKEM768,
            "SecP256r1MLKEM768",
            Hybrid,
            1249,
            1153,
        ),
        facts(
            Group::SECP384R1MLKEM1024,
            "SecP384r1MLKEM1024",
            Hybrid,
            1665,
            1665,
        ),
        facts(Group::MLKEM768, "MLKEM768", PostQuantum, 1184, 1088),
        facts(Group::MLKEM1024, "MLKEM1024", PostQuantum, 1568, 1568),
        facts(Group::X25519, "X25519", Classical, 32, 32),
        facts(Group::SECP256R1, "secp256r1", Classical, 65, 65),
        facts(Group::SECP384R1, "secp384r1", Classical, 97, 97),
        facts(Group::SECP521R1, "secp521r1", Classical, 133, 133),
    ]
};

impl Group {
    /// secp256r1 (NIST P-256).
    pub const SECP256R1: Self = Self(0x0017);
    /// secp384r1 (NIST P-384).
    pub const SECP384R1: Self = Self(0x0018);
    /// secp521r1 (NIST P-521). Named for reports; no provider here offers it alone.
    pub const SECP521R1: Self = Self(0x0019);
    /// X25519.
    pub const X25519: Self = Self(0x001d);
    /// ML-KEM-768 alone.
    pub const MLKEM768: Self = Self(0x0201);
    /// ML-KEM-1024 alone.
    pub const MLKEM1024: Self = Self(0x0202);
    /// P-256 with ML-KEM-768.
    pub const SECP256R1MLKEM768: Self = Self(0x11eb);
    /// X25519 with ML-KEM-768: the default of hybriq.
    pub const X25519MLKEM768: Self = Self(0x11ec);
    /// P-384 with ML-KEM-1024.
    pub const SECP384R1MLKEM1024: Self = Self(0x11ed);

    /// The eight groups that hybriq negotiates, first preference first.
    pub const ALL: [Self; 8] = [
        Self::X25519MLKEM768,
        Self::SECP256R1MLKEM768,
        Self::SECP384R1MLKEM1024,
        Self::MLKEM768,
        Self::MLKEM1024,
        Self::X25519,
        Self::SECP256R1,
        Self::SECP384R1,
    ];

    fn facts(self) -> Option<&'static Facts> {
        FACTS.iter().find(|facts| facts.group == self)
    }

    /// Returns the IANA name, or `None` for an unknown code point.
    pub fn name(self) -> Option<&'static str> {
        self.facts().map(|facts| facts.name)
    }

    /// Finds the group with an IANA name, ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        FACTS
            .iter()
            .find(|facts| facts.name.eq_ignore_ascii_case(name))
            .map(|facts| facts.group)
    }

    /// Returns the kind of problem that its security rests on.
    pub fn kind(self) -> GroupKind {
        self.facts().map_or(GroupKind::Unknown, |facts| facts.kind)
    }

    /// Returns true if the group is hybrid or pure ML-KEM, so that traffic recorded under it stays secret from a quantum
    /// computer.
    pub fn is_post_quantum(self) -> bool {
        matches!(self.kind(), GroupKind::Hybrid | GroupKind::PostQuantum)
    }

    /// Returns the sizes of both ends' key shares; `None` if the group is unknown.
    pub fn share_sizes(self) -> Option<ShareSizes> {
        self.facts().map(|facts| ShareSizes {
            client: facts.client_share.into(),
            server: facts.server_share.into(),
        })
    }
}

/// Sizes of the key shares of a group (RFC 8446 §4.2.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ShareSizes {
    /// Bytes of the client's key share.
    pub client: usize,
    /// Bytes of the server's key share.
    pub server: usize,
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "group {:#06x}", self.0),
        }
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Policy for the key-exchange groups that an endpoint offers and accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyExchange {
    /// X25519MLKEM768 first, then the other hybrids, pure ML-KEM, and the classical groups.
    ///
    /// Everything that [`RequirePostQuantum`](Self::RequirePostQuantum) accepts is accepted here,
    /// too.
    ///
    /// A server asks for a post-quantum share with a HelloRetryRequest when the client supports one
    /// but sent only a classical share. A classical-only peer still connects.
    #[default]
    PreferPostQuantum,
    /// Hybrids and pure ML-KEM only. A peer without any is refused.
    RequirePostQuantum,
    /// X25519, secp256r1 and secp384r1 only.
    OnlyClassical,
    /// Exactly these groups, first preference first, each once.
    Exactly(Vec<Group>),
}

impl KeyExchange {
    /// Returns the groups of the policy in order of preference.
    pub fn groups(&self) -> Vec<Group> {
        self.list().to_vec()
    }

    /// Returns true if the policy has this group.
    pub fn has(&self, group: Group) -> bool {
        self.list().contains(&group)
    }

    fn list(&self) -> &[Group] {
        match self {
            Self::PreferPostQuantum => &[
                Group::X25519MLKEM768,
                Group::SECP256R1MLKEM768,
                Group::SECP384R1MLKEM1024,
                Group::MLKEM1024,
                Group::MLKEM768,
                Group::X25519,
                Group::SECP256R1,
                Group::SECP384R1,
            ],
            Self::RequirePostQuantum => &[
                Group::X25519MLKEM768,
                Group::SECP256R1MLKEM768,
                Group::SECP384R1MLKEM1024,
                Group::MLKEM1024,
                Group::MLKEM768,
            ],
            Self::OnlyClassical => &[Group::X25519, Group::SECP256R1, Group::SECP384R1],
            Self::Exactly(groups) => groups,
        }
    }

    /// Describes why no library can follow the policy, if that is so.
    #[cfg(any(feature = "rustls", all(unix, feature = "s2n-tls")))]
    pub(crate) fn problem(&self) -> Option<String> {
        let groups = self.list();
        let mut places = groups.iter().enumerate();
        let repeated = places.find(|(at, group)| groups.iter().take(*at).any(|it| it == *group));
        match repeated {
            Some((_, group)) => Some(format!("the list has {group} twice; give each group once")),
            None if groups.is_empty() => Some("the list of groups is empty; give some".to_owned()),
            None => None,
        }
    }

    /// Returns the groups whose shares a client sends first if a server will probably choose the
    /// predicted group. A post-quantum group's share stays, whatever is predicted.
    #[cfg(feature = "rustls")]
    pub(crate) fn first_shares(&self, predicted: Option<Group>) -> FirstShares {
        let usual = FirstShares::default();
        let Some(group) = predicted.filter(|group| self.has(*group)) else {
            return usual;
        };
        let begins = self.list().first().copied();
        let is_stronger = begins.is_some_and(Group::is_post_quantum);
        match (is_stronger, group.is_post_quantum()) {
            (true, false) => FirstShares {
                beside: Some(group),
                ..usual
            },
            _ => FirstShares {
                first: Some(group),
                ..usual
            },
        }
    }

    /// Returns true if every group of the policy is post-quantum, so that a classical peer is refused.
    pub fn requires_post_quantum(&self) -> bool {
        match self {
            Self::PreferPostQuantum | Self::OnlyClassical => false,
            Self::RequirePostQuantum => true,
            Self::Exactly(groups) => {
                !groups.is_empty() && groups.iter().all(|group| group.is_post_quantum())
            }
        }
    }
}

/// Groups of the shares in a first flight, if they differ from the usual ones.
#[cfg(feature = "rustls")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FirstShares {
    /// Group instead of the first one of the policy.
    pub(crate) first: Option<Group>,
    /// Classical group in addition to the first one.
    pub(crate) beside: Option<Group>,
}

/// Largest number of the peer's groups that are kept: no honest list is longer.
const KEPT: usize = 32;

/// The key-exchange groups of two ends that have none in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupMismatch {
    /// Groups that this end accepts, first preference first.
    pub ours: Vec<Group>,
    /// Groups that the peer accepts, or the one that it chose; at most the first 32. Empty if the
    /// peer did not say.
    pub peers: Vec<Group>,
}

impl GroupMismatch {
    /// Creates it from the groups of both ends.
    pub fn new(
        ours: impl IntoIterator<Item = Group>,
        peers: impl IntoIterator<Item = Group>,
    ) -> Self {
        Self {
            ours: ours.into_iter().collect(),
            peers: peers.into_iter().take(KEPT).collect(),
        }
    }
}

/// Returns the names of groups with commas between them.
pub(crate) fn names(groups: &[Group]) -> String {
    if groups.is_empty() {
        return "none".to_owned();
    }
    let names: Vec<String> = groups.iter().map(Group::to_string).collect();
    names.join(", ")
}

impl std::fmt::Display for GroupMismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "this end takes {}", names(&self.ours))?;
        if self.peers.is_empty() {
            return Ok(());
        }
        write!(f, ", the peer {}", names(&self.peers))
    }
}
