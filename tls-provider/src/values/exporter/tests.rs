use super::*;
use crate::{Level, Side};

fn exporter(suite: Suite) -> Exporter {
    let len = match suite {
        Suite::Aes256GcmSha384 => 48,
        _ => 32,
    };
    let secret: Vec<u8> = (0..len).collect();
    Exporter::new(Secret::new(Level::OneRtt, Side::Client, suite, &secret).expect("a secret"))
}

fn export(suite: Suite, context: &[u8], len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    exporter(suite)
        .export(b"EXPORTER-test", context, &mut out)
        .expect("keying material");
    out
}

/// Values computed by another HKDF from the formula of RFC 8446 §7.5.
#[test]
fn known_answers() {
    for (suite, context, expected) in [
        (
            Suite::Aes128GcmSha256,
            &b""[..],
            "89f1c4dd6d6b0e77aee89d336259ddf7b44fed9fe4be5754",
        ),
        (
            Suite::ChaCha20Poly1305Sha256,
            &b"context"[..],
            "ddd878325ab978f04489c4def7d45e862f7fd27e10373f78",
        ),
        (
            Suite::Aes256GcmSha384,
            &b"context"[..],
            "aaadc661328b45f4c2606b6b892f24ca96d62015257557a6",
        ),
    ] {
        let bytes = (0..expected.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&expected[at..at + 2], 16).expect("hex"));
        let expected: Vec<u8> = bytes.collect();
        assert_eq!(export(suite, context, 24), expected, "{suite}");
    }
}

#[test]
fn label_and_length_are_bounded() {
    let exporter = exporter(Suite::Aes128GcmSha256);
    let mut out = [0; 16];
    for label in [&[][..], &[b'a'; 250]] {
        let refused = exporter.export(label, b"", &mut out);
        assert_eq!(refused, Err(ExportError::Label));
    }
    assert_eq!(exporter.export(&[b'a'; 249], b"", &mut out), Ok(()));
    let mut long = vec![0; 255 * 32 + 1];
    let refused = exporter.export(b"a", b"", &mut long);
    assert_eq!(refused, Err(ExportError::Length));
    assert!(long.iter().all(|byte| *byte == 0));
    assert_eq!(exporter.export(b"a", b"", &mut long[1..]), Ok(()));
    assert_eq!(
        exporter.export(b"a", b"", &mut vec![0; 70_000]),
        Err(ExportError::Length)
    );
    assert_eq!(exporter.export(b"a", b"", &mut []), Ok(()));
}

#[test]
fn debug_output_shows_no_secret() {
    let shown = format!("{:?}", exporter(Suite::Aes128GcmSha256));
    assert_eq!(shown, "Exporter { .. }");
}
