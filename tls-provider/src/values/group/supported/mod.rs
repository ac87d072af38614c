//! Groups that a server announces in the DNS (draft-ietf-tls-key-share-prediction).

use std::{fmt, str::FromStr};

use crate::Group;

#[cfg(test)]
mod tests;

/// Largest number of groups in a value that is accepted. The registry has fewer.
const MOST_GROUPS: usize = 64;

/// Groups that a server accepts, most preferred first: the value of `tls-supported-groups` in an
/// HTTPS or SVCB record (draft-ietf-tls-key-share-prediction), for a client that looks up such
/// records.
///
/// Unknown code points are kept, because servers add some that have no meaning (RFC 8701).
///
/// # Security
/// Whoever can forge the record can choose the key share that is tried first, but not the list of
/// groups that the client offers, and therefore not what an honest server chooses from it.
///
/// # Examples
/// ```
/// use hybriq_tls::{Group, SupportedGroups};
///
/// # fn main() -> Result<(), hybriq_tls::InvalidSupportedGroups> {
/// let from_the_wire = SupportedGroups::from_wire(&[0x11, 0xed, 0x00, 0x1d])?;
/// let from_a_zone_file: SupportedGroups = "4589,29".parse()?;
/// assert_eq!(from_the_wire, from_a_zone_file);
/// assert_eq!(from_the_wire.groups(), [Group::SECP384R1MLKEM1024, Group::X25519]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupportedGroups(Vec<Group>);

/// Reason why a value of `tls-supported-groups` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidSupportedGroups {
    /// It contains no group.
    Empty,
    /// It contains a group twice.
    Repeated(Group),
    /// It contains more than 64 groups.
    TooMany,
    /// Its last group is truncated: a value on the wire has two bytes for each.
    Cut,
    /// An item of its text is not a number from 0 to 65535.
    NoNumber,
}

impl fmt::Display for InvalidSupportedGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tls-supported-groups ")?;
        match self {
            Self::Empty => f.write_str("has no group"),
            Self::Repeated(group) => write!(f, "has {group} twice"),
            Self::TooMany => write!(f, "has more than {MOST_GROUPS} groups"),
            Self::Cut => f.write_str("has an odd number of bytes; each group takes two"),
            Self::NoNumber => f.write_str(
                "has an item that is not a code point; write decimal numbers with commas, `4588,29`",
            ),
        }?;
        f.write_str("; connect without the hint")
    }
}

impl std::error::Error for InvalidSupportedGroups {}

impl SupportedGroups {
    /// Number of the parameter in HTTPS and SVCB records.
    pub const SVC_PARAM_KEY: u16 = 9;

    /// Reads a value in the form it has in a record: two bytes for each group.
    ///
    /// # Errors
    /// The value breaks a rule of the draft, or has more than 64 groups. Connect without it.
    pub fn from_wire(value: &[u8]) -> Result<Self, InvalidSupportedGroups> {
        let groups = value.chunks_exact(2);
        if !groups.remainder().is_empty() {
            return Err(InvalidSupportedGroups::Cut);
        }
        let numbers = groups.filter_map(|group| group.first_chunk().copied());
        Self::new(numbers.map(|number| Ok(u16::from_be_bytes(number))))
    }

    fn new(
        numbers: impl Iterator<Item = Result<u16, InvalidSupportedGroups>>,
    ) -> Result<Self, InvalidSupportedGroups> {
        let mut groups = Vec::new();
        for number in numbers {
            let group = Group(number?);
            if groups.contains(&group) {
                return Err(InvalidSupportedGroups::Repeated(group));
            }
            if groups.len() >= MOST_GROUPS {
                return Err(InvalidSupportedGroups::TooMany);
            }
            groups.push(group);
        }
        if groups.is_empty() {
            return Err(InvalidSupportedGroups::Empty);
        }
        Ok(Self(groups))
    }

    /// Returns the groups, most preferred first.
    pub fn groups(&self) -> &[Group] {
        &self.0
    }
}

impl FromStr for SupportedGroups {
    type Err = InvalidSupportedGroups;

    /// Reads a value in the form it has in a zone file: decimal numbers with commas.
    fn from_str(text: &str) -> Result<Self, InvalidSupportedGroups> {
        if text.is_empty() {
            return Err(InvalidSupportedGroups::Empty);
        }
        Self::new(text.split(',').map(|item| {
            let digits = !item.is_empty() && item.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.then(|| item.parse().ok()).flatten();
            number.ok_or(InvalidSupportedGroups::NoNumber)
        }))
    }
}
