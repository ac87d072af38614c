//! Refused key exchanges: what the peer is told, and what the peer reports.

use hybriq_tls::{Group, GroupMismatch, KeyExchange, Lineage, Negotiated};

use crate::wire::limits;

/// Reason if no group of a policy is classical.
const POST_QUANTUM_REQUIRED: &str = "a post-quantum key exchange is required";
/// Reason if the lists of both ends have nothing in common.
pub(crate) const NONE_IN_COMMON: &str = "no key-exchange group in common";
/// Words before the groups that the sender accepts.
const ACCEPTED: &str = "; accepted: ";

/// Reason why a key exchange was refused, with the groups of both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Description for this end.
    pub(crate) reason: String,
    /// Groups of both ends.
    pub(crate) groups: Box<GroupMismatch>,
}

impl Refusal {
    pub(crate) fn new(reason: impl Into<String>, groups: GroupMismatch) -> Self {
        Self {
            reason: reason.into(),
            groups: Box::new(groups),
        }
    }
}

/// Refuses whatever violates a policy that requires post-quantum groups. Providers do not choose
/// classical groups or resume classical sessions under such a policy; this catches those that do.
pub(crate) fn require_post_quantum(
    policy: &KeyExchange,
    negotiated: &Negotiated,
    complete: bool,
) -> Result<(), Refusal> {
    let refused = |reason: String, group: Option<Group>| {
        Err(Refusal::new(
            reason,
            GroupMismatch::new(policy.groups(), group),
        ))
    };
    let classical = negotiated.group.filter(|group| !group.is_post_quantum());
    if let Some(group) = classical {
        let reason = format!("{group} was chosen, a post-quantum group is required");
        return refused(reason, Some(group));
    }
    let lineage = negotiated.lineage;
    if complete && negotiated.resumed && lineage != Some(Lineage::PostQuantum) {
        let reason = "the session that was resumed began without a post-quantum group";
        return refused(reason.to_owned(), None);
    }
    Ok(())
}

/// Returns the reason that is sent to the peer by an end that accepts these groups.
pub(crate) fn told(ours: &[Group]) -> String {
    let required = ours.iter().all(|group| group.is_post_quantum());
    let reason = if required {
        POST_QUANTUM_REQUIRED
    } else {
        NONE_IN_COMMON
    };
    if ours.is_empty() {
        return reason.to_owned();
    }
    let mut told = format!("{reason}{ACCEPTED}");
    for (at, group) in ours.iter().enumerate() {
        let name = format!("{}{group}", if at == 0 { "" } else { ", " });
        if told.len() + name.len() > limits::CLOSE_REASON {
            break;
        }
        told.push_str(&name);
    }
    told
}

/// Returns true if [`told`] produces such a reason.
pub(crate) fn is_told(reason: &[u8]) -> bool {
    [POST_QUANTUM_REQUIRED, NONE_IN_COMMON]
        .iter()
        .any(|start| reason.starts_with(start.as_bytes()))
}

/// Returns true if a reason mentions cipher suites or signatures, so that the groups are not at
/// fault. Each TLS library words it differently.
pub(crate) fn is_about_others(reason: &[u8]) -> bool {
    let reason = reason.to_ascii_lowercase();
    let names = |word: &[u8]| reason.windows(word.len()).any(|part| part == word);
    names(b"cipher") || names(b"signature")
}

/// Returns the groups of both ends when the peer refused for a reason. The peer's are those that
/// the reason names.
pub(crate) fn heard(policy: &KeyExchange, reason: &str) -> GroupMismatch {
    let named = reason.split_once(ACCEPTED).map_or("", |(_, names)| names);
    let peers = named.split(", ").filter_map(Group::from_name);
    GroupMismatch::new(policy.groups(), peers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_hears_the_groups_that_were_told() {
        for policy in [
            KeyExchange::RequirePostQuantum,
            KeyExchange::OnlyClassical,
            KeyExchange::PreferPostQuantum,
        ] {
            let reason = told(&policy.groups());
            assert!(reason.len() <= limits::CLOSE_REASON, "{reason}");
            assert!(is_told(reason.as_bytes()));
            let heard = heard(&KeyExchange::Exactly(vec![Group::MLKEM1024]), &reason);
            assert_eq!(heard.peers, policy.groups());
            assert_eq!(heard.ours, [Group::MLKEM1024]);
        }
    }

    #[test]
    fn a_long_list_is_cut_between_names() {
        let many: Vec<Group> = (0x100..0x180).map(Group).collect();
        let reason = told(&many);
        assert!(reason.len() <= limits::CLOSE_REASON, "{reason}");
        let last = reason.rsplit(", ").next();
        assert_eq!(last.map(str::len), Some("group 0x0100".len()), "{reason}");
    }

    #[test]
    fn other_parameters_than_groups_are_told_apart() {
        for reason in [
            "no cipher suite in common: the server takes x",
            "peer is incompatible: NoCipherSuitesInCommon",
            "peer is incompatible: NoSignatureSchemesInCommon",
        ] {
            assert!(is_about_others(reason.as_bytes()), "{reason}");
        }
        for reason in [
            "",
            "handshake failure",
            "peer is incompatible: NoKxGroupsInCommon",
        ] {
            assert!(!is_about_others(reason.as_bytes()), "{reason}");
        }
    }

    #[test]
    fn reasons_of_others_name_no_groups() {
        for reason in ["", "handshake failure", "; accepted: ", "; accepted: x, y"] {
            assert!(!is_told(reason.as_bytes()));
            assert_eq!(heard(&KeyExchange::OnlyClassical, reason).peers, []);
        }
        assert!(is_told(told(&[]).as_bytes()));
    }
}
