use super::*;

type Read = Result<Option<Addresses>, ProxyError>;

/// Reads a header from a trusted proxy. Returns what is left for TLS, too.
async fn read(mut bytes: &[u8]) -> (Read, Vec<u8>) {
    let proxies = ProxyProtocol::from_networks(["10.0.0.0/8"]).expect("a network");
    let proxy = "10.1.2.3:4000".parse().expect("an address");
    let read = proxies.read(proxy, &mut bytes).await;
    (read, bytes.to_vec())
}

fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let len = (rest.len() as u16).to_be_bytes();
    [&SIGNATURE[..], &[command, family], &len, rest].concat()
}

#[tokio::test]
async fn both_versions_name_the_client_and_leave_the_rest() {
    let v4: &[u8] = &[192, 0, 2, 1, 198, 51, 100, 1, 0x10, 0, 1, 0xbb];
    let mut v6 = [[0x20; 16], [0x30; 16]].concat();
    v6.extend([0, 7, 0, 8]);
    let cases: [(Vec<u8>, Option<&str>); 8] = [
        (
            b"PROXY TCP4 192.0.2.1 198.51.100.1 4096 443\r\n".to_vec(),
            Some("192.0.2.1:4096 198.51.100.1:443"),
        ),
        (
            b"PROXY TCP6 2001:db8::1 ::2 1 2\r\n".to_vec(),
            Some("[2001:db8::1]:1 [::2]:2"),
        ),
        (b"PROXY UNKNOWN\r\n".to_vec(), None),
        (b"PROXY UNKNOWN whatever it says\r\n".to_vec(), None),
        (v2(0x21, 0x11, v4), Some("192.0.2.1:4096 198.51.100.1:443")),
        (
            v2(0x21, 0x11, &[v4, b"extensions"].concat()),
            Some("192.0.2.1:4096 198.51.100.1:443"),
        ),
        (v2(0x20, 0x11, v4), None),
        (
            v2(0x21, 0x21, &v6),
            Some(
                "[2020:2020:2020:2020:2020:2020:2020:2020]:7 [3030:3030:3030:3030:3030:3030:3030:3030]:8",
            ),
        ),
    ];
    for (header, expected) in cases {
        let (read, rest) = read(&[&header[..], b"hello"].concat()).await;
        let read = read
            .expect("a header")
            .map(|it| format!("{} {}", it.client, it.server));
        assert_eq!((read.as_deref(), &*rest), (expected, &b"hello"[..]));
    }
}

#[tokio::test]
async fn headers_that_lie_are_errors() {
    type Is = fn(&ProxyError) -> bool;
    let long = [&b"PROXY TCP4 "[..], &[b'1'; 200]].concat();
    let cases: [(Vec<u8>, Is); 12] = [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), |it| {
            matches!(it, ProxyError::Missing)
        }),
        (vec![22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 9], |it| {
            matches!(it, ProxyError::Missing)
        }),
        (b"PROXY TCP4 1.1.1.1".to_vec(), |it| {
            matches!(it, ProxyError::Cut(_))
        }),
        (b"PROXY TCP4 2001:db8::1 ::2 1 2\r\n".to_vec(), |it| {
            matches!(it, ProxyError::Malformed)
        }),
        (b"PROXY TCP4 1.1.1.1 2.2.2.2 +1 2\r\n".to_vec(), |it| {
            matches!(it, ProxyError::Malformed)
        }),
        (b"PROXY TCP4 1.1.1.1 2.2.2.2 1 65536\r\n".to_vec(), |it| {
            matches!(it, ProxyError::Malformed)
        }),
        (b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2 3\r\n".to_vec(), |it| {
            matches!(it, ProxyError::Malformed)
        }),
        (b"PROXY SCTP 1.1.1.1 2.2.2.2 1 2\r\n".to_vec(), |it| {
            matches!(it, ProxyError::Family)
        }),
        (long, |it| matches!(it, ProxyError::TooLong)),
        (v2(0x21, 0x11, &[1; 11]), |it| {
            matches!(it, ProxyError::Malformed)
        }),
        (v2(0x21, 0x31, &[0; 216]), |it| {
            matches!(it, ProxyError::Family)
        }),
        (v2(0x11, 0x11, &[0; 12]), |it| {
            matches!(it, ProxyError::Malformed)
        }),
    ];
    for (header, is_expected) in cases {
        let error = read(&header).await.0.expect_err("a lie");
        assert!(is_expected(&error), "{error}: {}", header.escape_ascii());
    }
    let error = read(&v2(0x21, 0x11, &[0; LONGEST_V2 + 1])).await.0;
    assert!(matches!(error, Err(ProxyError::TooLong)));
}

#[tokio::test]
async fn only_proxies_of_the_networks_are_trusted() {
    let trusts = async |networks: &[&str], proxy: &str| {
        let proxies = ProxyProtocol::from_networks(networks).expect("networks");
        let proxy = SocketAddr::new(proxy.parse().expect("an address"), 1);
        let read = proxies.read(proxy, &mut &b"PROXY UNKNOWN\r\n"[..]).await;
        !matches!(read, Err(ProxyError::Untrusted))
    };
    assert!(trusts(&["10.0.0.0/8"], "10.255.0.1").await);
    assert!(
        trusts(&["10.0.0.0/8"], "::ffff:10.0.0.1").await,
        "a socket of both families"
    );
    assert!(!trusts(&["10.0.0.0/8"], "11.0.0.1").await);
    assert!(!trusts(&["10.0.0.0/8"], "::1").await);
    assert!(trusts(&["192.0.2.1", "2001:db8::/32"], "2001:db8:1::1").await);
    assert!(!trusts(&["192.0.2.1"], "192.0.2.2").await);
    assert!(trusts(&["0.0.0.0/0"], "192.0.2.2").await);
    assert!(!trusts(&["0.0.0.0/0"], "2001:db8::1").await);
    assert!(trusts(&["::/0"], "192.0.2.2").await);
    for wrong in [
        "",
        "10.0.0.0/33",
        "::/129",
        "10.0.0.0/",
        "host/8",
        "10.0.0.0/-1",
    ] {
        let error = ProxyProtocol::from_networks([wrong]).expect_err(wrong);
        assert_eq!(error, ProxyNetworkError::NotANetwork(wrong.to_owned()));
    }
    let none = ProxyProtocol::from_networks([""; 0]).expect_err("none");
    assert_eq!(none, ProxyNetworkError::Empty);
}
