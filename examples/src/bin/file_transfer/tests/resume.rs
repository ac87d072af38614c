//! Transfers that were cut.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{FileExt as _, PermissionsExt as _, symlink},
    sync::Arc,
};

use hybriq::{Connection, PostQuantum};

use super::{Place, accept, ask, noise, remote, tree};
use crate::{
    client::Client,
    error::Error,
    manifest::Manifest,
    message::{Answer, Hello, Piece, Reader, Reason, Writer},
    path::WORK,
    scan::Scan,
    sender::{PIECE, PRESENT},
};

const SIZE: usize = (9 << 20) + 77;
/// Bytes that are asked for on one stream.
const JOB: usize = 4 << 20;

/// Answers one request and closes at the next. The receiver, which has one stream at a time, has written all
/// of the first then.
async fn answer_once(connection: &PostQuantum<Connection>, contents: &[u8]) {
    let (mut send, recv) = connection.accept_bidi().await.unwrap().unwrap();
    let request: Vec<Piece> = Reader::new(recv).read().await.unwrap();
    for piece in request {
        let start = piece.offset as usize;
        let end = start + piece.len as usize;
        send.write_all(&[PRESENT]).await.unwrap();
        send.write_all(contents.get(start..end).unwrap())
            .await
            .unwrap();
    }
    send.finish();
    let next = connection.accept_bidi().await.unwrap();
    connection.close(9, b"cut");
    drop(next);
}

/// Begins to push to a server by hand.
async fn begin_push(connection: &PostQuantum<Connection>, manifest: &Manifest) -> (Writer, Reader) {
    let (mut writer, mut reader) = ask(connection, &Hello::Push { path: None }).await;
    writer.list(manifest).await.unwrap();
    let Answer::Wanted(_) = reader.read().await.unwrap() else {
        panic!("no request");
    };
    (writer, reader)
}

/// Cuts a push after the first request. Returns once the server has let go of the folder.
async fn cut_push(place: &Place) {
    place.authorize("client");
    let settings = crate::server::Settings {
        streams: 1,
        ..place.settings()
    };
    let server = place.serve_with(settings);
    let scan = Scan::of(&place.at("source")).unwrap();
    let (endpoint, connection) = place.connect(&server).await;
    let _streams = begin_push(&connection, &scan.manifest).await;
    answer_once(&connection, &noise(SIZE)).await;
    endpoint.idle().await;
}

/// Returns the files of unfinished transfers with this ending.
fn unfinished(place: &Place, folder: &str, ending: &str) -> Vec<std::path::PathBuf> {
    let work = fs::read_dir(place.at(folder).join(WORK)).unwrap();
    let paths = work.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .collect()
}

/// Pushes until the server has noticed that the first connection is over.
async fn push_again(place: &Place, client: &Client) -> crate::message::Report {
    let server = place.serve_with(place.settings());
    loop {
        match client.push(&place.at("source"), &server.at("")).await {
            Ok(done) => return done.report,
            Err(Error::Refused(refusal)) if refusal.reason == Reason::Busy => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_goes_on_where_it_was_cut() {
    let place = Place::new("cut-push");
    place.write("source/large", noise(SIZE));
    cut_push(&place).await;
    assert!(
        !place.at("served/large").exists(),
        "an unfinished file has no name"
    );
    let report = push_again(&place, &place.client()).await;
    assert_eq!((report.written, report.bytes), (1, (SIZE - JOB) as u64));
    // Nothing else is left.
    assert_eq!(tree(&place.at("served")), tree(&place.at("source")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_goes_on_where_it_was_cut() {
    let place = Place::new("cut-pull");
    place.write("served/large", noise(SIZE));
    let listener = place.listen();
    let client = Client {
        streams: 1,
        ..place.client()
    };
    let cutting = async {
        let connection = accept(&listener).await;
        let (send, recv) = connection.accept_bidi().await.unwrap().unwrap();
        let (mut writer, mut reader) = (Writer::new(send), Reader::new(recv));
        let Hello::Pull { path: None } = reader.read().await.unwrap() else {
            panic!("no pull");
        };
        let scan = Scan::of(&place.at("served")).unwrap();
        writer.list(&scan.manifest).await.unwrap();
        answer_once(&connection, &noise(SIZE)).await;
    };
    let (from, to) = (remote(listener.local_address(), ""), place.at("pulled"));
    let (pulled, ()) = tokio::join!(client.pull(&from, &to), cutting);
    let Err(error @ Error::Lost(_)) = pulled else {
        panic!("{pulled:?}");
    };
    assert!(error.to_string().contains("run the same command again"));
    let server = place.serve_with(place.settings());
    let report = client.pull(&server.at(""), &to).await.unwrap().report;
    assert_eq!((report.written, report.bytes), (1, (SIZE - JOB) as u64));
    assert_eq!(tree(&to), tree(&place.at("served")));
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_an_unfinished_file_is_noticed_and_mended() {
    let place = Place::new("damage");
    place.write("source/large", noise(SIZE));
    cut_push(&place).await;
    for path in unfinished(&place, "served", "part") {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.write_all_at(b"damage", 1234).unwrap();
    }
    let report = push_again(&place, &place.client()).await;
    assert_eq!(
        (report.written, report.bytes),
        (1, (SIZE - JOB + SIZE) as u64)
    );
    assert_eq!(tree(&place.at("served")), tree(&place.at("source")));
}

/// A file in the work folder that cannot be written is replaced. Root may write any file but one behind a
/// symbolic link.
#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_file_that_cannot_be_opened_begins_anew() {
    let place = Place::new("not-opened");
    place.write("source/large", noise(SIZE));
    place.write("elsewhere", "stays");
    cut_push(&place).await;
    for path in unfinished(&place, "served", "part") {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        if fs::File::options().write(true).open(&path).is_ok() {
            fs::remove_file(&path).unwrap();
            symlink(place.at("elsewhere"), &path).unwrap();
        }
    }
    let report = push_again(&place, &place.client()).await;
    assert_eq!((report.written, report.bytes), (1, SIZE as u64));
    assert_eq!(tree(&place.at("served")), tree(&place.at("source")));
    assert_eq!(fs::read(place.at("elsewhere")).unwrap(), b"stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_in_the_place_of_a_file_is_named_with_the_remedy() {
    let place = Place::new("folder-in-place");
    place.write("source/name", "a file");
    fs::create_dir_all(place.at("served/name")).unwrap();
    let server = place.serve();
    let pushed = place
        .client()
        .push(&place.at("source"), &server.at(""))
        .await;
    let error = pushed.unwrap_err().to_string();
    assert!(error.contains("name: a folder is there; remove"), "{error}");
    fs::remove_dir(place.at("served/name")).unwrap();
    push_again(&place, &place.client()).await;
    assert_eq!(tree(&place.at("served")), tree(&place.at("source")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_of_nonsense_does_no_harm() {
    let place = Place::new("journal");
    place.write("source/large", noise(SIZE));
    cut_push(&place).await;
    for path in unfinished(&place, "served", "journal") {
        let mut file = fs::File::options().append(true).open(path).unwrap();
        // A piece that is not there, one that cannot be, one twice, and half a number.
        let numbers = [9_u32, u32::MAX, 0].map(u32::to_be_bytes).concat();
        file.write_all(&[&numbers[..], &[0, 0]].concat()).unwrap();
    }
    push_again(&place, &place.client()).await;
    assert_eq!(tree(&place.at("served")), tree(&place.at("source")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_changed_meanwhile_begins_anew() {
    let place = Place::new("changed-source");
    place.write("source/large", noise(SIZE));
    cut_push(&place).await;
    place.write("source/large", noise(SIZE + 1));
    let report = push_again(&place, &place.client()).await;
    assert_eq!((report.written, report.bytes), (1, (SIZE + 1) as u64));
    assert_eq!(tree(&place.at("served")), tree(&place.at("source")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_keeps_the_unfinished_files_of_another() {
    let place = Place::new("another");
    place.write("source/large", noise(SIZE));
    cut_push(&place).await;
    place.write("other/small", b"small");
    let server = place.serve_with(place.settings());
    let other = loop {
        match place
            .client()
            .push(&place.at("other"), &server.at(""))
            .await
        {
            Err(Error::Refused(refusal)) if refusal.reason == Reason::Busy => {}
            done => break done.unwrap().report,
        }
    };
    assert_eq!(other.written, 1);
    let report = push_again(&place, &place.client()).await;
    assert_eq!((report.written, report.bytes), (1, (SIZE - JOB) as u64));
    assert!(!place.at("served").join(WORK).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_transfers_do_not_write_into_one_folder() {
    let place = Place::new("busy");
    place.write("source/large", noise(2 * PIECE as usize));
    let server = place.serve();
    let scan = Arc::new(Scan::of(&place.at("source")).unwrap());
    let (_endpoint, connection) = place.connect(&server).await;
    let _streams = begin_push(&connection, &scan.manifest).await;
    let second = place
        .client()
        .push(&place.at("source"), &server.at(""))
        .await;
    let Err(Error::Refused(refusal)) = second else {
        panic!("{second:?}");
    };
    assert_eq!(refusal.reason, Reason::Busy);
    place
        .client()
        .push(&place.at("source"), &server.at("/beside"))
        .await
        .unwrap();
}
