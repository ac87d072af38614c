//! Rules for paths, lists and arguments.

use crate::{
    checksum::Checksum,
    error::Error,
    fingerprint::Fingerprint,
    manifest::{Contents, Draft, Kind, Manifest, ManifestError, RawEntry},
    message::{Hello, Reason, Refusal, Report, parse},
    path::{RelativePath, UnsafePath},
    remote::Remote,
    server::safe,
};

pub(super) fn file(path: &str, size: u64) -> RawEntry {
    let sha256 = Checksum::of(b"");
    let kind = Kind::File(Contents {
        size,
        modified: 0,
        sha256,
    });
    RawEntry {
        path: path.to_owned(),
        mode: 0o644,
        kind,
    }
}

fn folder(path: &str) -> RawEntry {
    RawEntry {
        path: path.to_owned(),
        mode: 0o755,
        kind: Kind::Folder,
    }
}

fn list(entries: Vec<RawEntry>) -> Result<Manifest, ManifestError> {
    let mut draft = Draft::new(1000);
    for entry in entries {
        draft.push(&entry)?;
    }
    draft.finish()
}

#[test]
fn no_path_leads_out_of_the_folder() {
    for (path, rule) in [
        ("", UnsafePath::EmptyName),
        ("/etc/passwd", UnsafePath::EmptyName),
        ("a//b", UnsafePath::EmptyName),
        ("a/", UnsafePath::EmptyName),
        ("..", UnsafePath::Dots),
        ("a/../../b", UnsafePath::Dots),
        ("./a", UnsafePath::Dots),
        ("a\0b", UnsafePath::Nul),
        ("..\\a", UnsafePath::Backslash),
        ("C:\\a", UnsafePath::Backslash),
        (".hybriq-transfer/x.part", UnsafePath::Reserved),
        ("a/.hybriq-transfer", UnsafePath::Reserved),
        (&"a".repeat(256), UnsafePath::TooLong),
        (&"a/".repeat(129), UnsafePath::TooLong),
        (
            &format!(
                "{}b",
                "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz/".repeat(90)
            ),
            UnsafePath::TooLong,
        ),
    ] {
        assert_eq!(path.parse::<RelativePath>(), Err(rule), "{path}");
        let refused = list(vec![file(path, 0)]);
        assert!(matches!(refused, Err(ManifestError::Path { rule: given, .. }) if given == rule));
    }
    for path in ["a", "...", "..a/b..", "ünï/漢字", "a b", "-rf", "a:b"] {
        assert!(path.parse::<RelativePath>().is_ok(), "{path}");
    }
}

#[test]
fn a_name_does_not_steer_the_terminal() {
    let path: RelativePath = "a\u{1b}[2Jb".parse().unwrap();
    assert_eq!(path.to_string(), "a\\u{1b}[2Jb");
}

#[test]
fn entries_of_a_list_do_not_contradict_each_other() {
    assert!(list(vec![folder("a"), file("a/b", 1000), file("ab", 0)]).is_ok());
    for entries in [
        vec![file("a", 0), file("b", 0), file("a", 0)],
        vec![file("a", 0), folder("a")],
    ] {
        assert!(matches!(list(entries), Err(ManifestError::Twice(_))));
    }
    for entries in [
        vec![file("a", 0), file("a/b/c", 0)],
        vec![folder("a/b"), file("a", 0)],
    ] {
        assert!(matches!(list(entries), Err(ManifestError::FileAsFolder(_))));
    }
}

#[test]
fn a_list_is_bounded() {
    for sizes in [vec![1001], vec![500, 501], vec![u64::MAX, u64::MAX]] {
        let entries = sizes
            .into_iter()
            .zip(0..)
            .map(|(size, at)| file(&format!("{at}"), size));
        assert!(matches!(
            list(entries.collect()),
            Err(ManifestError::TooLarge { .. })
        ));
    }
    let mut draft = Draft::new(0);
    let long = "n".repeat(250);
    let names = std::iter::successors(Some(0_u32), |number| Some(number + 1));
    let refused = names.map(|number| draft.push(&file(&format!("{long}/{long}/{number:09}"), 0)));
    let refused = refused.zip(0_u32..).find(|(pushed, _)| pushed.is_err());
    let (refused, count) = refused.unwrap();
    assert_eq!(refused, Err(ManifestError::TooLong));
    assert!(
        count < 500_000,
        "the lengths count, not the number: {count}"
    );
}

#[test]
fn special_bits_of_modes_are_not_taken() {
    let mut entry = file("a", 0);
    entry.mode = 0o106_755;
    assert_eq!(list(vec![entry]).unwrap().entries()[0].mode, 0o755);
}

#[test]
fn a_remote_has_a_port_and_a_safe_path() {
    let remote: Remote = "example.org:4433/a/b/".parse().unwrap();
    assert_eq!(
        (remote.authority.as_str(), remote.host.as_str()),
        ("example.org:4433", "example.org")
    );
    assert_eq!(remote.path.unwrap().as_str(), "a/b");
    let remote: Remote = "[::1]:4433".parse().unwrap();
    assert_eq!((remote.host.as_str(), remote.path), ("::1", None));
    for text in [
        "example.org",
        "example.org/a",
        ":1",
        "a:b",
        "a:1/../b",
        "a:70000",
    ] {
        assert!(text.parse::<Remote>().is_err(), "{text}");
    }
}

#[test]
fn a_fingerprint_is_read_as_it_is_written() {
    let digits = "A".repeat(43);
    let key: Fingerprint = format!("SHA256:{digits}").parse().unwrap();
    assert_eq!(key.to_string(), format!("SHA256:{digits}"));
    for text in [
        digits.clone(),
        format!("SHA256:{digits}A"),
        "SHA256:".to_owned(),
    ] {
        assert!(text.parse::<Fingerprint>().is_err(), "{text}");
    }
}

#[test]
fn what_a_peer_writes_does_not_steer_the_terminal() {
    const HOSTILE: &str = "\u{1b}[2J\nall is well\u{202e}";
    let message = serde_json::json!({ HOSTILE: null }).to_string();
    let unreadable = parse::<Hello>(message.as_bytes()).unwrap_err();
    assert!(
        matches!(&unreadable, Error::Protocol(reason) if reason.contains(HOSTILE)),
        "{unreadable:?}"
    );
    let refused = Error::Refused(Refusal {
        reason: Reason::Other,
        text: HOSTILE.to_owned(),
    });
    let report = Report {
        failed: 1,
        first_failed: Some(HOSTILE.to_owned()),
        ..Report::default()
    };
    let mut draft = Draft::new(u64::MAX);
    let unsafe_path = draft.push(&file(&format!("../{HOSTILE}"), 0)).unwrap_err();
    let twice = list(vec![file(HOSTILE, 0), file(HOSTILE, 0)]).unwrap_err();
    let named = safe(Some(format!("../{HOSTILE}"))).unwrap_err();
    for error in [
        unreadable,
        refused,
        report.complete().unwrap_err(),
        Error::Manifest(unsafe_path),
        Error::Manifest(twice),
        named,
    ] {
        let text = error.to_string();
        assert!(text.contains(r"\u{1b}[2J\nall is well\u{202e}"), "{text}");
        assert!(!text.contains(['\u{1b}', '\n', '\u{202e}']), "{text}");
    }
}
