use InvalidSupportedGroups::{Cut, Empty, NoNumber, Repeated, TooMany};
use proptest::prelude::*;

use super::*;

#[test]
fn the_example_of_the_draft_is_read() {
    let expected = Ok(SupportedGroups(vec![Group::X25519, Group::SECP256R1]));
    assert_eq!(SupportedGroups::from_wire(&[0, 0x1d, 0, 0x17]), expected);
    assert_eq!("29,23".parse(), expected);
}

#[test]
fn what_the_draft_forbids_is_refused() {
    assert_eq!(SupportedGroups::from_wire(&[]), Err(Empty));
    assert_eq!(SupportedGroups::from_wire(&[0, 29, 0]), Err(Cut));
    let twice = Err(Repeated(Group::X25519));
    assert_eq!(SupportedGroups::from_wire(&[0, 29, 0, 29]), twice);
    assert_eq!("".parse::<SupportedGroups>(), Err(Empty));
    assert_eq!("29,29".parse::<SupportedGroups>(), twice);
    for text in ["29,", ",29", "x", "+29", "29 ", "65536", "-1", "29\\,23"] {
        assert_eq!(text.parse::<SupportedGroups>(), Err(NoNumber), "{text}");
    }
}

#[test]
fn the_number_of_groups_is_bounded() {
    let value = |groups: u16| -> Vec<u8> { (0..groups).flat_map(u16::to_be_bytes).collect() };
    assert_eq!(SupportedGroups::from_wire(&value(65)), Err(TooMany));
    let most = SupportedGroups::from_wire(&value(64)).expect("64 groups");
    assert_eq!(most.groups().len(), 64);
}

proptest! {
    #[test]
    fn both_forms_agree(value in prop::collection::vec(any::<u8>(), 0..300)) {
        let wire = SupportedGroups::from_wire(&value);
        if let Ok(groups) = &wire {
            let text: Vec<String> = groups.groups().iter().map(|group| group.0.to_string()).collect();
            prop_assert_eq!(&text.join(",").parse::<SupportedGroups>(), &wire);
        }
    }
}
