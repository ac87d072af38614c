use std::{
    future::poll_fn,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use hybriq_proto::{
    connection::RefusalCause,
    endpoint::{Arrival, Local, Transmit},
    wire::udp::{Ecn, canonical},
};

use super::{Buffers, Options, can_reach, cause_of, socket::system::Socket};

fn socket(address: &str) -> Socket {
    Socket::bind(address.parse().unwrap(), Options::default()).unwrap()
}

fn transmit(peer: SocketAddr, size: usize) -> Transmit {
    Transmit {
        peer,
        local: Local::default(),
        ecn: None,
        size,
        segment_size: None,
    }
}

async fn send(socket: &Socket, transmit: &Transmit, contents: &[u8]) {
    loop {
        match socket.send(transmit, contents) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll_fn(|cx| socket.poll_writable(cx)).await;
            }
            result => return result.unwrap(),
        }
    }
}

/// Receives `count` datagrams, however the system coalesces them.
async fn receive(socket: &Socket, count: usize) -> Vec<(Arrival, Vec<u8>)> {
    let mut buffers = Buffers::new();
    let mut received = Vec::new();
    while received.len() < count {
        poll_fn(|cx| socket.poll_readable(cx)).await;
        let messages = match socket.receive(&mut buffers) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            result => result.unwrap(),
        };
        for message in buffers.messages(messages) {
            let datagrams = message.bytes.chunks(message.stride);
            received.extend(datagrams.map(|datagram| (message.arrival, datagram.to_vec())));
        }
    }
    received
}

#[tokio::test]
async fn a_train_arrives_as_the_datagrams_it_was_made_of() {
    let (one, two) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
    let bytes: Vec<u8> = (0..3100_u32).map(|i| (i / 1000) as u8).collect();
    let mut train = transmit(two.local_address(), bytes.len());
    train.ecn = Some(Ecn::Ect0);
    if one.max_datagrams() >= 4 {
        train.segment_size = Some(1000);
        send(&one, &train, &bytes).await;
    } else {
        for chunk in bytes.chunks(1000) {
            send(&one, &train, chunk).await;
        }
    }
    let received = receive(&two, 4).await;
    let sizes: Vec<_> = received
        .iter()
        .map(|(_, datagram)| datagram.len())
        .collect();
    assert_eq!(sizes, [1000, 1000, 1000, 100]);
    for (number, (arrival, datagram)) in received.iter().enumerate() {
        assert!(datagram.iter().all(|&byte| usize::from(byte) == number));
        assert_eq!(arrival.peer, one.local_address());
        assert_eq!(
            arrival.ecn,
            Some(Ecn::Ect0),
            "each has the mark of the train"
        );
    }
}

#[tokio::test]
async fn a_dual_stack_socket_speaks_ipv4_as_ipv4() {
    let (dual, v4) = (socket("[::]:0"), socket("127.0.0.1:0"));
    let to_dual = SocketAddr::from((Ipv4Addr::LOCALHOST, dual.local_address().port()));
    send(&v4, &transmit(to_dual, 2), b"hi").await;
    let (arrival, _) = receive(&dual, 1).await.remove(0);
    assert_eq!(arrival.peer, v4.local_address());
    assert_eq!(arrival.local.ip, Some(IpAddr::from(Ipv4Addr::LOCALHOST)));

    send(&dual, &transmit(arrival.peer, 2), b"ho").await;
    assert_eq!(receive(&v4, 1).await.remove(0).0.peer, to_dual);
}

/// Linux accepts all of 127.0.0.0/8.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_answer_leaves_from_the_address_that_was_asked() {
    for server in ["[::]:0", "0.0.0.0:0"] {
        let (server, client) = (socket(server), socket("127.0.0.1:0"));
        let second = SocketAddr::from(([127, 0, 0, 2], server.local_address().port()));
        send(&client, &transmit(second, 2), b"hi").await;
        let (arrival, _) = receive(&server, 1).await.remove(0);
        assert_eq!(arrival.local.ip, Some(second.ip()));

        let answer = Transmit {
            local: arrival.local,
            ..transmit(arrival.peer, 2)
        };
        send(&server, &answer, b"ho").await;
        assert_eq!(receive(&client, 1).await.remove(0).0.peer, second);
    }
}

#[tokio::test]
async fn a_train_has_its_ecn_codepoint_on_every_datagram() {
    for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
        let (one, two) = (socket(address), socket(address));
        if one.max_datagrams() < 3 {
            return;
        }
        let mut peer = two.local_address();
        if peer.ip().is_unspecified() {
            peer.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        let train = Transmit {
            ecn: Some(Ecn::Ect1),
            segment_size: Some(1000),
            ..transmit(peer, 3000)
        };
        send(&one, &train, &[7; 3000]).await;
        for (arrival, _) in receive(&two, 3).await {
            assert_eq!(arrival.ecn, Some(Ecn::Ect1), "{address}");
        }
    }
}

#[tokio::test]
async fn ecn_codepoints_pass_both_ways() {
    for (one, two) in [("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:0", "[::1]:0")] {
        let (one, two) = (socket(one), socket(two));
        for ecn in [None, Some(Ecn::Ect0), Some(Ecn::Ect1), Some(Ecn::Ce)] {
            send(
                &one,
                &Transmit {
                    ecn,
                    ..transmit(two.local_address(), 1)
                },
                b"x",
            )
            .await;
            assert_eq!(receive(&two, 1).await.remove(0).0.ecn, ecn);
        }
    }
}

/// If the system refuses to send to one peer, or from one address, nothing changes for others:
/// neither the number of datagrams in a call, nor their marks.
#[tokio::test]
async fn a_refusal_changes_nothing_for_other_peers() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (one, two) = (socket(address), socket(address));
        let most = one.max_datagrams();
        let nowhere = SocketAddr::new(two.local_address().ip(), 0);
        let foreign: IpAddr = match nowhere {
            SocketAddr::V4(_) => [192, 0, 2, 77].into(),
            SocketAddr::V6(_) => "2001:db8::77".parse().unwrap(),
        };
        let gone = Transmit {
            local: Local {
                ip: Some(foreign),
                ..Local::default()
            },
            ..transmit(two.local_address(), 1)
        };
        let train = Transmit {
            segment_size: Some(1),
            ..transmit(nowhere, 3)
        };
        for _ in 0..10 {
            for refused in [&transmit(nowhere, 1), &gone] {
                one.send(refused, b"x").unwrap_err();
            }
            one.send(&train, b"xxx").unwrap_err();
        }
        assert_eq!(one.max_datagrams(), most, "{address}");
        let marked = Transmit {
            ecn: Some(Ecn::Ect0),
            ..transmit(two.local_address(), 1)
        };
        send(&one, &marked, b"x").await;
        assert_eq!(receive(&two, 1).await.remove(0).0.ecn, Some(Ecn::Ect0));
    }
}

#[test]
fn a_refusal_says_whose_fault_it_is() {
    use io::ErrorKind as Kind;

    let cause = |kind: io::ErrorKind, from| cause_of(&kind.into(), from);
    let (ours, gone) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([192, 0, 2, 77]));
    for kind in [Kind::InvalidInput, Kind::AddrNotAvailable] {
        assert_eq!(cause(kind, Some(gone)), Some(RefusalCause::OwnAddress));
        assert_eq!(cause(kind, None), Some(RefusalCause::Peer));
    }
    for kind in [Kind::NetworkUnreachable, Kind::HostUnreachable] {
        assert_eq!(cause(kind, Some(gone)), Some(RefusalCause::OwnAddress));
        assert_eq!(cause(kind, Some(ours)), Some(RefusalCause::Peer));
        assert_eq!(cause(kind, None), Some(RefusalCause::Peer));
    }
    let denied = cause(Kind::PermissionDenied, Some(gone));
    assert_eq!(denied, Some(RefusalCause::Peer));
    #[cfg(unix)]
    for passing in [libc::ENOBUFS, libc::ENOMEM, libc::EMSGSIZE] {
        assert_eq!(
            cause_of(&io::Error::from_raw_os_error(passing), Some(gone)),
            None
        );
    }
}

#[test]
fn mapped_addresses_are_ipv4_addresses() {
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    assert_eq!(
        canonical(address("[::ffff:192.0.2.1]:5")),
        address("192.0.2.1:5")
    );
    assert_eq!(
        canonical(address("[fe80::1%3]:5")),
        address("[fe80::1%3]:5")
    );
}

#[test]
fn a_socket_reaches_its_own_family_and_both_when_it_is_open_to_all() {
    for (local, peer, reached) in [
        ("127.0.0.1:1", "192.0.2.1:5", true),
        ("127.0.0.1:1", "[::ffff:192.0.2.1]:5", true),
        ("127.0.0.1:1", "[2001:db8::1]:5", false),
        ("[::]:1", "192.0.2.1:5", true),
        ("[::]:1", "[2001:db8::1]:5", true),
        ("[::1]:1", "192.0.2.1:5", false),
        ("[::]:1", "192.0.2.1:0", false),
        ("[::]:1", "0.0.0.0:5", false),
    ] {
        let (from, to) = (local.parse().unwrap(), peer.parse().unwrap());
        assert_eq!(can_reach(from, to), reached, "{local} to {peer}");
    }
}

/// The system is told never to fragment and never to believe routers about the size of packets: an
/// ICMP message can neither shrink nor stop them (CVE-2024-53259).
///
/// Proves: rfc9000 14 no-fragments
/// Proves: security 8 pmtu-injection-is-ignored
#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_router_has_a_say_in_the_size_of_datagrams() {
    use std::os::fd::AsRawFd as _;

    for (address, level, option, probe) in [
        (
            "127.0.0.1:0",
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            libc::IP_PMTUDISC_PROBE,
        ),
        (
            "[::1]:0",
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_PROBE,
        ),
    ] {
        let handle = socket(address).handle().expect("a handle");
        let mut value: libc::c_int = 0;
        let mut len = size_of_val(&value) as libc::socklen_t;
        // SAFETY: both pointers are valid for the size given, and the system writes no more.
        #[expect(unsafe_code, reason = "this socket option has no safe interface")]
        let result = unsafe {
            libc::getsockopt(
                handle.as_raw_fd(),
                level,
                option,
                (&raw mut value).cast(),
                &raw mut len,
            )
        };
        assert_eq!((result, value), (0, probe), "{address}");
    }
}
