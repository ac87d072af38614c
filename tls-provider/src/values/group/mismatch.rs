//! Two ends that have no key-exchange group in common.

use crate::Group;

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
