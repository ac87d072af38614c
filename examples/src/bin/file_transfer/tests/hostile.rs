//! Ends that do not keep to the protocol.

use std::sync::Arc;

use hybriq::{Connection, ConnectionError, PostQuantum, ReadError};

use super::{Place, Running, accept, ask, noise, remote, rules::file, tree};
use crate::{
    checksum::Checksum,
    endpoint::PROTOCOL,
    error::Error,
    manifest::{Contents, Kind, ManifestError, RawEntry},
    message::{Answer, Hello, Listed, Piece, Reader, Reason, Refusal, Writer},
    progress::{Progress, Show},
    receiver::Receiver,
    root::Root,
    sender::{NOT_LISTED, PIECE, PRESENT},
};

/// Pushes a list to a server by hand.
async fn push(
    connection: &PostQuantum<Connection>,
    entries: impl IntoIterator<Item = RawEntry>,
) -> (Writer, Reader) {
    push_into(connection, None, entries).await
}

/// Pushes a list into a folder of a server by hand.
pub(super) async fn push_into(
    connection: &PostQuantum<Connection>,
    path: Option<String>,
    entries: impl IntoIterator<Item = RawEntry>,
) -> (Writer, Reader) {
    let (mut writer, reader) = ask(connection, &Hello::Push { path }).await;
    for entry in entries {
        // A server that refuses stops reading.
        let _ = writer.write(&Listed::Entry(entry)).await;
    }
    let _ = writer.write(&Listed::End).await;
    (writer, reader)
}

async fn refusal(server: &Running, place: &Place, entries: Vec<RawEntry>) -> Refusal {
    let (_endpoint, connection) = place.connect(server).await;
    let (_writer, mut reader) = push(&connection, entries).await;
    match reader.read().await.unwrap() {
        Answer::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

fn of(path: &str, contents: &[u8]) -> RawEntry {
    let sha256 = Checksum::of(contents);
    let size = contents.len() as u64;
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

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_leads_out_of_the_folder_is_refused() {
    let place = Place::new("out");
    let server = place.serve();
    for path in ["../out", "/tmp/out", "a/../../out", "a\\..\\out", "out\0"] {
        let refused = refusal(&server, &place, vec![file("fine", 0), file(path, 0)]).await;
        assert_eq!(refused.reason, Reason::Manifest, "{path}");
    }
    let twice = refusal(&server, &place, vec![file("a", 0), file("a", 0)]).await;
    assert_eq!(twice.reason, Reason::Manifest);
    assert!(tree(&place.at("served")).is_empty());
    assert!(!place.at("out").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_refuses_such_a_list_too() {
    let place = Place::new("out-of-client");
    let listener = place.listen();
    let serving = async {
        let connection = accept(&listener).await;
        let (send, recv) = connection.accept_bidi().await.unwrap().unwrap();
        let (mut writer, mut reader) = (Writer::new(send), Reader::new(recv));
        let _: Hello = reader.read().await.unwrap();
        writer
            .write(&Listed::Entry(file("../../.ssh/authorized_keys", 0)))
            .await
            .unwrap();
        writer.write(&Listed::End).await.unwrap();
        connection.closed().await
    };
    let from = remote(listener.local_address(), "");
    let client = place.client();
    let to = place.at("pulled");
    let (pulled, closed) = tokio::join!(client.pull(&from, &to), serving);
    assert!(
        matches!(&pulled, Err(Error::Manifest(ManifestError::Path { .. }))),
        "{pulled:?}"
    );
    assert!(
        matches!(closed, ConnectionError::Application { code: PROTOCOL, .. }),
        "{closed}"
    );
    assert!(tree(&place.at("pulled")).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_larger_than_the_disk_is_refused_before_it_is_made() {
    let place = Place::new("huge");
    let server = place.serve();
    let refused = refusal(&server, &place, vec![file("huge", 1 << 60)]).await;
    assert_eq!(refused.reason, Reason::NoSpace);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_out_of_the_served_folder_cannot_be_named() {
    let place = Place::new("named");
    place.write("secret", "not for you");
    let server = place.serve();
    let (_endpoint, connection) = place.connect(&server).await;
    let path = Some("../secret".to_owned());
    let (_writer, mut reader) = ask(&connection, &Hello::Pull { path }).await;
    let answer: Listed = reader.read().await.unwrap();
    assert!(matches!(answer, Listed::Refused(_)), "{answer:?}");
}

/// Answers every request with these bytes, whatever was asked for.
async fn answer(connection: &PostQuantum<Connection>, bytes: &[u8]) {
    while let Ok(Some((mut send, recv))) = connection.accept_bidi().await {
        let _: Vec<Piece> = Reader::new(recv).read().await.unwrap();
        // The receiver may have had enough.
        let _ = send.write_all(bytes).await;
        send.finish();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn contents_that_were_not_listed_never_get_a_name() {
    let place = Place::new("contents");
    let server = place.serve();
    for size in [100, 2 * PIECE as usize] {
        let (_endpoint, connection) = place.connect(&server).await;
        let (_writer, mut reader) = push(&connection, [of("file", &noise(size))]).await;
        let report = async {
            loop {
                match reader.read().await.unwrap() {
                    Answer::Wanted(bytes) => assert_eq!(bytes, size as u64),
                    Answer::Report(report) => return report,
                    Answer::Refused(refusal) => panic!("{refusal}"),
                }
            }
        };
        // With the bytes before the pieces.
        let zeros = vec![0; size + size.div_ceil(PIECE as usize)];
        let report = tokio::select! {
            report = report => report,
            () = answer(&connection, &zeros) => panic!("closed"),
        };
        assert_eq!((report.written, report.failed), (0, 1));
        assert!(report.first_failed.clone().unwrap().starts_with("file "));
        assert!(matches!(
            report.complete(),
            Err(Error::Incomplete { count: 1, .. })
        ));
        assert!(tree(&place.at("served")).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pieces_of_another_size_than_asked_for_end_the_connection() {
    let place = Place::new("sizes");
    let server = place.serve();
    for sent in [99, 101] {
        let (_endpoint, connection) = place.connect(&server).await;
        let _streams = push(&connection, [of("file", &noise(100))]).await;
        let bytes = [&[PRESENT][..], &noise(100), &[7]].concat();
        answer(&connection, bytes.get(..=sent).unwrap()).await;
        let closed = connection.closed().await;
        assert!(
            matches!(closed, ConnectionError::Application { code: PROTOCOL, .. }),
            "{closed}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pieces_that_are_not_listed_are_not_read() {
    let place = Place::new("not-listed");
    place.write("served/folder/file", noise(PIECE as usize * 2));
    let server = place.serve();
    let (_endpoint, connection) = place.connect(&server).await;
    let (_writer, mut reader) = ask(&connection, &Hello::Pull { path: None }).await;
    let manifest = reader.list(u64::MAX).await.unwrap();
    assert_eq!(manifest.entries().len(), 2);
    let piece = |file, offset, len| Piece { file, offset, len };
    for wanted in [
        piece(0, 0, 0),
        piece(2, 0, 1),
        piece(1, u64::from(PIECE) * 2, 1),
        piece(1, u64::MAX, 1),
        piece(1, 0, PIECE + 1),
    ] {
        let (send, mut recv) = connection.open_bidi().await.unwrap();
        let mut writer = Writer::new(send);
        writer.write(&[wanted]).await.unwrap();
        let read = recv.read_to_end(100).await;
        assert_eq!(read, Err(ReadError::Reset(NOT_LISTED)), "{wanted:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_claims_a_gigabyte_ends_the_connection() {
    let place = Place::new("gigabyte");
    let server = place.serve();
    let (_endpoint, connection) = place.connect(&server).await;
    let (mut send, _recv) = connection.open_bidi().await.unwrap();
    send.write_all(&(1_u32 << 30).to_be_bytes()).await.unwrap();
    let closed = connection.closed().await;
    assert!(
        matches!(closed, ConnectionError::Application { code: PROTOCOL, .. }),
        "{closed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_shrinks_costs_its_file_only() {
    let place = Place::new("shrinks");
    for (name, size) in [("a", 100), ("b", 3 * PIECE as usize), ("c", 100)] {
        place.write(&format!("served/{name}"), noise(size));
    }
    let server = place.serve();
    let (_endpoint, connection) = place.connect(&server).await;
    let (_writer, mut reader) = ask(&connection, &Hello::Pull { path: None }).await;
    let manifest = reader.list(u64::MAX).await.unwrap();
    place.write("served/b", "short");
    let root = Root::open(&place.at("pulled")).unwrap();
    let receiver = Receiver::prepare(root, manifest, &Arc::default())
        .await
        .unwrap();
    let progress = Progress::begin(Show::Nothing, "");
    let report = receiver.run(&connection, 2, &progress).await.unwrap();
    assert_eq!((report.written, report.failed), (2, 1));
    assert!(report.first_failed.unwrap().starts_with("b "));
    let names: Vec<_> = tree(&place.at("pulled")).into_keys().collect();
    assert_eq!(names, ["a", "c"].map(std::path::PathBuf::from));
}
