use std::{collections::BTreeMap, os::unix::net::UnixDatagram};

use super::*;

type Announced = Result<Option<(u16, Vec<String>)>, ListenFdsError>;

/// Reads the variables as process 7 would.
fn read(variables: &[(&str, &str)]) -> Announced {
    let variables: BTreeMap<_, _> = variables.iter().copied().collect();
    announced(|name| variables.get(name).map(OsString::from), 7)
}

#[test]
fn sockets_are_announced_to_one_process() {
    assert!(read(&[]).unwrap().is_none());
    assert!(read(&[("LISTEN_PID", "7")]).unwrap().is_none());
    assert!(read(&[("LISTEN_FDS", "2")]).unwrap().is_none());
    let to = |pid, count| [("LISTEN_PID", pid), ("LISTEN_FDS", count)];
    assert!(read(&to("8", "2")).unwrap().is_none(), "those of a parent");
    assert!(read(&to("7", "0")).unwrap().is_none());
    let (count, names) = read(&to("7", "2")).unwrap().unwrap();
    assert_eq!((count, names), (2, vec![String::new()]));
    let named = [
        ("LISTEN_PID", "7"),
        ("LISTEN_FDS", "2"),
        ("LISTEN_FDNAMES", "quic:health"),
    ];
    assert_eq!(read(&named).unwrap().unwrap().1, ["quic", "health"]);
}

#[test]
fn variables_that_make_no_sense_are_errors() {
    for wrong in ["", "two", "-1", "1.5", "99999999999"] {
        let error = read(&[("LISTEN_PID", "7"), ("LISTEN_FDS", wrong)]).unwrap_err();
        assert!(
            matches!(&error, ListenFdsError::NoNumber { name: "LISTEN_FDS", value } if value == wrong),
            "{error}"
        );
        let error = read(&[("LISTEN_PID", wrong), ("LISTEN_FDS", "1")]).unwrap_err();
        assert!(error.to_string().contains("LISTEN_PID"), "{error}");
    }
    for many in ["1025", "70000"] {
        let error = read(&[("LISTEN_PID", "7"), ("LISTEN_FDS", many)]).unwrap_err();
        assert!(matches!(error, ListenFdsError::TooMany(_)), "{error}");
    }
}

fn shared(address: &str) -> Socket {
    let address: SocketAddr = address.parse().unwrap();
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None).unwrap();
    socket.set_reuse_port(true).unwrap();
    socket.bind(&address.into()).unwrap();
    socket
}

fn alone() -> OwnedFd {
    UdpSocket::bind("127.0.0.1:0").unwrap().into()
}

fn given(sockets: Vec<OwnedFd>) -> ListenFds {
    let count = sockets.len();
    ListenFds::of(sockets, count, &["a".to_owned(), "b".to_owned()]).unwrap()
}

#[test]
fn sockets_are_sorted_by_kind_and_name() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let local = UnixDatagram::unbound().unwrap();
    let mut all = given(vec![alone(), alone(), tcp.into()]);
    assert_eq!(all.names().collect::<Vec<_>>(), ["a", "b", ""]);
    let of_b = all.udp_named("b").unwrap();
    assert_eq!((of_b.workers(), of_b.into_iter().count()), (1, 1));
    assert_eq!(all.tcp().unwrap().len(), 1);
    assert!(!all.is_empty());
    assert_eq!(all.udp().unwrap().workers(), 1);
    assert!(all.is_empty() && all.udp().unwrap().is_empty());

    let web = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
    let mut all = given(vec![web(), web()]);
    assert_eq!(all.tcp_named("b").unwrap().len(), 1);
    let left = all.finish().unwrap_err();
    assert!(
        matches!(&left, ListenFdsError::Left { place: 0, name } if name == "a"),
        "{left}"
    );
    assert!(given(Vec::new()).finish().is_ok());

    let error = given(vec![local.into()]).udp().unwrap_err();
    assert!(
        matches!(error, ListenFdsError::Address { place: 0 }),
        "{error}"
    );
    let unbound = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    let error = given(vec![alone(), unbound.into()]).udp().unwrap_err();
    assert!(
        matches!(error, ListenFdsError::Address { place: 1 }),
        "{error}"
    );
}

#[test]
fn every_address_has_a_socket_for_each_worker() {
    let first = shared("127.0.0.1:0");
    let address = first.local_addr().unwrap().as_socket().unwrap().to_string();
    let both = vec![first.into(), shared(&address).into()];
    assert_eq!(given(both).udp().unwrap().workers(), 2);

    let (first, other) = (shared("127.0.0.1:0"), alone());
    let address = first.local_addr().unwrap().as_socket().unwrap().to_string();
    let uneven = vec![first.into(), shared(&address).into(), other];
    let error = given(uneven).udp().unwrap_err();
    assert!(
        matches!(
            error,
            ListenFdsError::Uneven {
                sockets: 1,
                workers: 2,
                ..
            }
        ),
        "{error}"
    );

    // The same socket twice, as from a unit without ReusePort.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let again = socket.try_clone().unwrap();
    let error = given(vec![socket.into(), again.into()]).udp().unwrap_err();
    assert!(matches!(error, ListenFdsError::NotShared(_)), "{error}");
    assert!(error.to_string().contains("ReusePort=yes"), "{error}");
}

#[test]
fn what_is_no_socket_is_an_error() {
    let file = std::fs::File::open("/dev/null").unwrap();
    let error = ListenFds::of(vec![file.into()], 1, &[]).unwrap_err();
    assert!(matches!(error, ListenFdsError::NoSocket { .. }), "{error}");
    let error = ListenFds::of(vec![alone()], 2, &[]).unwrap_err();
    assert!(
        matches!(
            error,
            ListenFdsError::Missing {
                announced: 2,
                open: 1
            }
        ),
        "{error}"
    );
}
