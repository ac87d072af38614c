//! Transfers between ends that keep to the protocol.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
};

use super::{Place, noise, tree};
use crate::{
    error::Error,
    message::{Reason, Refusal},
    server::Pushes,
};

fn fill(place: &Place) {
    place.write("source/empty", "");
    place.write("source/größe 漢字/ünï — 🦀.txt", "names");
    place.write("source/a/b/c/deep", "deep");
    place.write("source/large", noise((5 << 20) + 123));
    place.write("source/one piece", noise(1 << 20));
    fs::create_dir_all(place.at("source/no files/none here")).unwrap();
    for number in 0..300 {
        place.write(&format!("source/many/{number}"), format!("file {number}"));
    }
    place.write("source/tool", "#!/bin/sh");
    let only_mine = Permissions::from_mode(0o700);
    fs::set_permissions(place.at("source/tool"), only_mine.clone()).unwrap();
    fs::set_permissions(place.at("source/no files"), only_mine).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_comes_back_as_it_was() {
    let place = Place::new("round-trip");
    fill(&place);
    let server = place.serve();
    let client = place.client();
    let files = 306;
    let done = client
        .push(&place.at("source"), &server.at("/backup/today"))
        .await
        .unwrap();
    assert_eq!(done.report.written, files);
    assert_eq!(
        tree(&place.at("served/backup/today")),
        tree(&place.at("source"))
    );

    let done = client
        .pull(&server.at("/backup/today/"), &place.at("pulled"))
        .await
        .unwrap();
    assert_eq!(done.report.written, files);
    assert_eq!(tree(&place.at("pulled")), tree(&place.at("source")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_already_is_not_sent_again() {
    let place = Place::new("unchanged");
    fill(&place);
    let server = place.serve();
    let client = place.client();
    client
        .push(&place.at("source"), &server.at(""))
        .await
        .unwrap();
    place.write("source/a/b/c/deep", "else");
    fs::remove_file(place.at("served/empty")).unwrap();
    let done = client
        .push(&place.at("source"), &server.at(""))
        .await
        .unwrap();
    let report = done.report;
    assert_eq!(
        (report.written, report.unchanged, report.bytes),
        (2, 304, 4)
    );
    assert_eq!(tree(&place.at("served")), tree(&place.at("source")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_file_is_pushed_and_pulled() {
    let place = Place::new("single");
    place.write("source/it", "one file");
    let server = place.serve();
    let client = place.client();
    client
        .push(&place.at("source/it"), &server.at("/box"))
        .await
        .unwrap();
    client
        .pull(&server.at("/box/it"), &place.at("pulled"))
        .await
        .unwrap();
    assert_eq!(fs::read(place.at("pulled/it")).unwrap(), b"one file");
}

#[tokio::test(flavor = "multi_thread")]
async fn symbolic_links_and_pipes_are_left_out() {
    let place = Place::new("links");
    place.write("secret/key", "not for you");
    place.write("source/file", "for you");
    symlink(place.at("secret/key"), place.at("source/link")).unwrap();
    symlink(place.at("secret"), place.at("source/folder")).unwrap();
    let server = place.serve();
    let done = place
        .client()
        .push(&place.at("source"), &server.at(""))
        .await
        .unwrap();
    assert_eq!((done.skipped, done.report.written), (2, 1));
    assert_eq!(tree(&place.at("served")).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_the_served_folder_leads_nowhere() {
    let place = Place::new("link-out");
    place.write("secret/key", "not for you");
    place.write("source/key", "mine");
    symlink(place.at("secret"), place.at("served/out")).unwrap();
    symlink(place.at("secret/key"), place.at("served/file")).unwrap();
    let server = place.serve();
    let client = place.client();
    for path in ["/out", "/out/key", "/file"] {
        let pulled = client.pull(&server.at(path), &place.at("pulled")).await;
        assert!(matches!(pulled, Err(Error::Refused(_))), "{pulled:?}");
    }
    let pushed = client.push(&place.at("source"), &server.at("/out")).await;
    assert!(matches!(pushed, Err(Error::Refused(_))), "{pushed:?}");
    assert!(tree(&place.at("pulled")).is_empty());
    // A link in the place of a file is replaced, and what it leads to is left alone.
    symlink(place.at("secret/key"), place.at("served/key")).unwrap();
    client
        .push(&place.at("source"), &server.at(""))
        .await
        .unwrap();
    assert_eq!(fs::read(place.at("served/key")).unwrap(), b"mine");
    assert_eq!(fs::read(place.at("secret/key")).unwrap(), b"not for you");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_may_refuse_pushes_or_large_ones() {
    let place = Place::new("refusals");
    place.authorize("client");
    place.write("source/file", "12345");
    let client = place.client();
    for (pushes, reason) in [
        (Pushes::Refused, Reason::ReadOnly),
        (Pushes::UpTo(4), Reason::Manifest),
    ] {
        let settings = crate::server::Settings {
            pushes,
            ..place.settings()
        };
        let server = place.serve_with(settings);
        let pushed = client.push(&place.at("source"), &server.at("")).await;
        let Err(Error::Refused(Refusal { reason: given, .. })) = pushed else {
            panic!("{pushed:?}");
        };
        assert_eq!(given, reason);
        assert!(tree(&place.at("served")).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_is_not_there_is_told() {
    let place = Place::new("absent");
    let server = place.serve();
    let pulled = place
        .client()
        .pull(&server.at("/nothing"), &place.at("pulled"))
        .await;
    let Err(Error::Refused(refusal)) = pulled else {
        panic!("{pulled:?}");
    };
    assert_eq!(refusal.reason, Reason::Path);
    assert!(refusal.text.contains("nothing"), "{refusal}");
}
