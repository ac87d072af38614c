//! Space of the disk that several transfers want.

use std::sync::Arc;

use super::{Place, Running, hostile::push_into, rules::file};
use crate::{
    error::Error,
    message::{Answer, Reader, Reason, Writer},
    room::{Reserved, Room},
    root::Root,
};

fn reserve(room: &Arc<Room>, device: u64, needed: u64, free: u64) -> Result<Reserved, (u64, u64)> {
    match room.reserve(device, needed, || Ok(free)).unwrap() {
        Ok(reserved) => Ok(reserved),
        Err(Error::NoSpace { needed, free }) => Err((needed, free)),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn what_one_transfer_needs_is_not_free_for_another() {
    let room = Arc::default();
    let first = reserve(&room, 1, 60, 100).unwrap();
    assert_eq!(reserve(&room, 1, 41, 100).unwrap_err(), (41, 40));
    // Another file system has room of its own.
    let other = reserve(&room, 2, 41, 100).unwrap();
    let second = reserve(&room, 1, 40, 100).unwrap();
    assert_eq!(reserve(&room, 1, 1, 100).unwrap_err(), (1, 0));
    drop((first, other));
    assert_eq!(reserve(&room, 1, 61, 100).unwrap_err(), (61, 60));
    drop(second);
    assert!(reserve(&room, 1, 100, 100).is_ok());
}

#[test]
fn bytes_that_were_written_are_not_counted_twice() {
    let room = Arc::default();
    let first = reserve(&room, 1, 60, 100).unwrap();
    first.on_written(50);
    // The system knows of these 50.
    assert_eq!(reserve(&room, 1, 41, 50).unwrap_err(), (41, 40));
    // The file is damaged, and comes again.
    first.again(50);
    assert_eq!(reserve(&room, 1, 41, 100).unwrap_err(), (41, 40));
    first.on_written(1000);
    let all = reserve(&room, 1, 40, 40).unwrap();
    drop(first);
    assert_eq!(reserve(&room, 1, 1, 40).unwrap_err(), (1, 0));
    drop(all);
    assert!(reserve(&room, 1, 40, 40).is_ok());
}

#[test]
fn a_disk_that_cannot_be_asked_reserves_nothing() {
    let room = Arc::default();
    let failed = Room::reserve(&room, 1, 60, || Err(std::io::ErrorKind::Other.into()));
    assert!(failed.is_err());
    assert!(reserve(&room, 1, 100, 100).is_ok());
}

/// Two thirds of what is free: one push of them fits, two do not.
fn much(place: &Place) -> u64 {
    Root::open(&place.at("served")).unwrap().free().unwrap() / 3 * 2
}

/// Begins a push of a file of this size. Returns the answer, and what keeps the push going.
async fn begin(
    place: &Place,
    server: &Running,
    folder: &str,
    size: u64,
) -> (Answer, impl Sized + use<>) {
    let (endpoint, connection) = place.connect(server).await;
    let into = Some(folder.to_owned());
    let (writer, mut reader): (Writer, Reader) =
        push_into(&connection, into, [file("huge", size)]).await;
    let answer = reader.read().await.unwrap();
    (answer, (endpoint, connection, writer, reader))
}

#[tokio::test(flavor = "multi_thread")]
async fn pushes_at_a_time_cannot_have_the_same_space() {
    let place = Place::new("room");
    let server = place.serve();
    let size = much(&place);
    let (answer, first) = begin(&place, &server, "a", size).await;
    assert!(matches!(answer, Answer::Wanted(wanted) if wanted == size));
    let (answer, _second) = begin(&place, &server, "b", size).await;
    assert!(
        matches!(&answer, Answer::Refused(refused) if refused.reason == Reason::NoSpace),
        "{answer:?}"
    );
    // The space is free again once the server notices that the first is gone.
    drop(first);
    loop {
        match begin(&place, &server, "b", size).await.0 {
            Answer::Wanted(_) => break,
            Answer::Refused(refused) => assert_eq!(refused.reason, Reason::NoSpace),
            Answer::Report(report) => panic!("{report:?}"),
        }
    }
}
