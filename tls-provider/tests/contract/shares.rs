//! Key shares that are wrong, in both directions: typed errors, the alerts of the RFCs, nothing sent and
//! nothing kept.
//!
//! The peer of the end under test is rustls, which does every group; its messages are changed on the way.

use bytes::BytesMut;
use hybriq_tls::{Alert, ClientHello, Error, Group, KeyExchange, PerLevel, Status};

use crate::support::{CONTENDERS, Contender, End, Pair, Slices, exactly, options_for};

const ILLEGAL: Alert = Alert::ILLEGAL_PARAMETER;
const KEY_SHARE: u16 = 51;
const SUPPORTED_GROUPS: u16 = 10;

/// FIPS 203's modulus.
const Q: u16 = 3329;

fn rustls() -> &'static Contender {
    let mut all = CONTENDERS.iter();
    all.find(|it| it.name == "rustls").expect("rustls")
}

/// The policy with which a contender has a group: alone if it can, or among others.
fn policy_with(contender: &Contender, group: Group) -> Option<KeyExchange> {
    if contender.groups.contains(&group) {
        return Some(exactly(group));
    }
    // The named policies of s2n-tls: MLKEM1024 is in none of the other two.
    let policies = [
        KeyExchange::RequirePostQuantum,
        KeyExchange::PreferPostQuantum,
    ];
    let position = usize::from(!group.is_post_quantum());
    (group != Group::MLKEM768).then(|| policies[position].clone())
}

/// A contender and a group that it has.
fn cases() -> impl Iterator<Item = (&'static Contender, Group, KeyExchange)> {
    CONTENDERS.iter().flat_map(|contender| {
        let groups = Group::ALL.into_iter();
        groups.filter_map(move |group| Some((contender, group, policy_with(contender, group)?)))
    })
}

/// Places of the parts in a share.
struct Layout {
    kem: Option<(usize, usize)>,
    curve: Option<(usize, usize)>,
}

impl Layout {
    fn of(group: Group, share: &[u8]) -> Self {
        let (kem, curve) = match group {
            Group::X25519MLKEM768 => (Some(0), Some((share.len() - 32, share.len()))),
            Group::SECP256R1MLKEM768 => (Some(65), Some((0, 65))),
            Group::SECP384R1MLKEM1024 => (Some(97), Some((0, 97))),
            Group::MLKEM768 | Group::MLKEM1024 => (Some(0), None),
            _ => (None, Some((0, share.len()))),
        };
        let end = match group {
            Group::X25519MLKEM768 => share.len() - 32,
            _ => share.len(),
        };
        Self {
            kem: kem.map(|start| (start, end)),
            curve,
        }
    }
}

/// Two coefficients of 12 bits are three bytes (FIPS 203 §4.2.1).
fn set_coefficient(key: &mut [u8], index: usize, value: u16) {
    let at = index / 2 * 3;
    if index % 2 == 0 {
        key[at] = value as u8;
        key[at + 1] = (key[at + 1] & 0xf0) | (value >> 8) as u8;
    } else {
        key[at + 1] = (key[at + 1] & 0x0f) | ((value & 0x0f) << 4) as u8;
        key[at + 2] = (value >> 4) as u8;
    }
}

/// What is wrong, and the share with it.
type Wrong = (&'static str, Vec<u8>);

/// Shares of a wrong length.
fn wrong_lengths(share: &[u8]) -> Vec<Wrong> {
    vec![
        ("one byte", share[..1].to_vec()),
        ("half", share[..share.len() / 2].to_vec()),
        ("a byte short", share[..share.len() - 1].to_vec()),
        ("a byte long", [share, &[0]].concat()),
        ("twice", [share, share].concat()),
    ]
}

/// Shares whose part on a curve is no point, or one of low order.
fn wrong_points(group: Group, share: &[u8]) -> Vec<Wrong> {
    let Some((start, end)) = Layout::of(group, share).curve else {
        return Vec::new();
    };
    let with = |point: &[u8]| {
        let mut share = share.to_vec();
        share[start..end].copy_from_slice(point);
        share
    };
    if end - start == 32 {
        let mut one = [0; 32];
        one[0] = 1;
        let mut minus_one = [0xff; 32];
        (minus_one[0], minus_one[31]) = (0xec, 0x7f);
        return vec![
            ("the point 0", with(&[0; 32])),
            ("the point 1", with(&one)),
            ("the point p - 1", with(&minus_one)),
        ];
    }
    let point = &share[start..end];
    let mut off = point.to_vec();
    off[5] ^= 1;
    let mut format = point.to_vec();
    format[0] = 5;
    let mut compressed = point.to_vec();
    compressed[0] = 2;
    let mut beyond = vec![0xff; point.len()];
    beyond[0] = 4;
    vec![
        ("off the curve", with(&off)),
        ("an unknown format", with(&format)),
        ("a compressed point", with(&compressed)),
        ("coordinates beyond the field", with(&beyond)),
        ("the point at infinity", with(&vec![0; point.len()])),
    ]
}

/// Encapsulation keys that fail the modulus check (FIPS 203 §7.2).
fn wrong_coefficients(group: Group, share: &[u8]) -> Vec<Wrong> {
    let Some((start, end)) = Layout::of(group, share).kem else {
        return Vec::new();
    };
    // Behind the coefficients is a seed of 32 bytes.
    let last = (end - start - 32) / 3 * 2 - 1;
    let with = |index, value| {
        let mut share = share.to_vec();
        set_coefficient(&mut share[start..end], index, value);
        share
    };
    vec![
        ("the first coefficient is q", with(0, Q)),
        ("the second one is 4095", with(1, 4095)),
        ("the last coefficient is q", with(last, Q)),
    ]
}

/// A hello whose extensions can be replaced.
struct Hello {
    /// Everything in front of the length of the extensions, without the 4 bytes of the header.
    front: Vec<u8>,
    kind: u8,
    extensions: Vec<(u16, Vec<u8>)>,
}

impl Hello {
    fn parse(message: &[u8]) -> Self {
        let length = |at: usize| usize::from(u16::from_be_bytes([message[at], message[at + 1]]));
        let mut at = 4 + 2 + 32;
        at += 1 + usize::from(message[at]);
        at += match message[0] {
            1 => {
                let suites = 2 + length(at);
                suites + 1 + usize::from(message[at + suites])
            }
            _ => 2 + 1,
        };
        let mut hello = Self {
            front: message[4..at].to_vec(),
            kind: message[0],
            extensions: Vec::new(),
        };
        at += 2;
        while at < message.len() {
            let len = length(at + 2);
            let kind = u16::from_be_bytes([message[at], message[at + 1]]);
            let body = message[at + 4..at + 4 + len].to_vec();
            hello.extensions.push((kind, body));
            at += 4 + len;
        }
        hello
    }

    fn extension(&mut self, kind: u16) -> &mut Vec<u8> {
        let mut all = self.extensions.iter_mut();
        &mut all.find(|(it, _)| *it == kind).expect("there").1
    }

    fn write(&self) -> BytesMut {
        let mut extensions = Vec::new();
        for (kind, body) in &self.extensions {
            extensions.extend_from_slice(&kind.to_be_bytes());
            extensions.extend_from_slice(&vector(body));
        }
        let body = [&self.front[..], &vector(&extensions)].concat();
        let mut message = vec![self.kind];
        message.extend_from_slice(&(body.len() as u32).to_be_bytes()[1..]);
        message.extend_from_slice(&body);
        BytesMut::from(&message[..])
    }

    /// Replaces the shares of a ClientHello.
    fn set_shares(&mut self, shares: &[(Group, &[u8])]) {
        let entries: Vec<u8> = shares.iter().flat_map(|it| entry(*it)).collect();
        *self.extension(KEY_SHARE) = vector(&entries);
    }

    fn set_groups(&mut self, groups: &[Group]) {
        let numbers: Vec<u8> = groups.iter().flat_map(|it| it.0.to_be_bytes()).collect();
        *self.extension(SUPPORTED_GROUPS) = vector(&numbers);
    }
}

fn vector(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u16).to_be_bytes()[..], body].concat()
}

fn entry((group, share): (Group, &[u8])) -> Vec<u8> {
    [&group.0.to_be_bytes()[..], &vector(share)].concat()
}

/// A ClientHello of rustls with a share of this group alone, and the share.
fn client_hello(group: Group) -> (Hello, Vec<u8>) {
    let options = options_for(exactly(group), exactly(group));
    let mut pair = Pair::of((rustls(), rustls()), &options);
    pair.client.drive().expect("a ClientHello");
    let mut hello = Hello::parse(&pair.client.outbox.crypto.initial);
    // The classical half of a hybrid stands in no list with one group.
    let share = hello.extension(KEY_SHARE)[6..].to_vec();
    assert_eq!(
        Some(share.len()),
        group.share_sizes().map(|sizes| sizes.client)
    );
    (hello, share)
}

fn server(contender: &Contender, policy: &KeyExchange) -> End {
    let options = options_for(KeyExchange::default(), policy.clone());
    let pair = Pair::of((rustls(), contender), &options);
    pair.server
}

/// The server refuses a hello before it has sent or kept anything.
#[track_caller]
fn refused(end: &mut End, hello: &Hello, what: &str) -> Error {
    end.inbox.initial = hello.write();
    let Err(error) = end.drive() else {
        panic!("{what}: accepted");
    };
    assert_eq!(end.sent, PerLevel::default(), "{what}");
    assert!(end.secrets.is_empty() && end.exporter.is_none(), "{what}");
    assert!(!error.detail.is_empty(), "{what}");
    let again = end.drive().expect_err("still refused");
    assert_eq!(again, error, "{what}");
    error
}

#[test]
fn a_server_refuses_wrong_shares_of_every_group() {
    for (contender, group, policy) in cases() {
        let (mut hello, share) = client_hello(group);
        let wrong = wrong_lengths(&share)
            .into_iter()
            .chain(wrong_points(group, &share))
            .chain(wrong_coefficients(group, &share));
        for (what, share) in wrong {
            let what = format!("{group} at {}: {what}", contender.name);
            hello.set_shares(&[(group, &share)]);
            let error = refused(&mut server(contender, &policy), &hello, &what);
            assert_eq!(error.alert, ILLEGAL, "{what}: {error}");
        }
    }
}

#[test]
fn a_server_refuses_an_empty_share_and_lists_that_do_not_add_up() {
    for (contender, group, policy) in cases() {
        let (mut hello, share) = client_hello(group);
        hello.set_shares(&[(group, &[])]);
        let error = refused(&mut server(contender, &policy), &hello, "empty");
        assert!([Alert::DECODE_ERROR, ILLEGAL].contains(&error.alert));
        // The entry, the list and the extension are each cut short or too long.
        let entry = entry((group, &share));
        let bodies = [
            vector(&entry[..entry.len() - 1]),
            vector(&[&entry[..], &[0]].concat()),
            [&vector(&entry)[..], &[0]].concat(),
            vector(&entry)[..entry.len()].to_vec(),
            vec![0],
            vec![],
        ];
        for body in bodies {
            *hello.extension(KEY_SHARE) = body;
            let error = refused(&mut server(contender, &policy), &hello, "lists");
            assert_eq!(error.alert, Alert::DECODE_ERROR, "{error}");
        }
    }
}

/// RFC 8446 §4.2.8: one share for a group, and only for groups that are offered.
#[test]
fn a_server_refuses_two_shares_of_a_group_and_a_share_of_a_group_that_is_not_offered() {
    for (contender, group, policy) in cases() {
        let (mut hello, share) = client_hello(group);
        hello.set_shares(&[(group, &share), (group, &share)]);
        let error = refused(&mut server(contender, &policy), &hello, "two shares");
        assert_eq!(error.alert, ILLEGAL, "{error}");

        hello.set_shares(&[(group, &share), (Group(0x6a6a), &[0])]);
        let error = refused(&mut server(contender, &policy), &hello, "not offered");
        assert_eq!(error.alert, ILLEGAL, "{error}");
    }
}

/// RFC 8446 §4.2.7 and RFC 8701: unknown groups are passed over, and so is a group that is named twice.
#[test]
fn a_server_answers_a_client_with_unknown_and_repeated_groups() {
    let unknown = Group(0x6a6a);
    for (contender, group, policy) in cases() {
        let (mut hello, share) = client_hello(group);
        hello.set_groups(&[unknown, group, Group(0xffff), group]);
        hello.set_shares(&[(unknown, &[0]), (group, &share)]);
        let mut end = server(contender, &policy);
        end.inbox.initial = hello.write();
        assert_eq!(end.drive(), Ok(Status::NeedsPeer), "{group}");
        assert!(end.sent.initial > 0);

        hello.set_groups(&[unknown]);
        hello.set_shares(&[(unknown, &[0])]);
        let error = refused(&mut server(contender, &policy), &hello, "unknown alone");
        assert_eq!(error.alert, Alert::HANDSHAKE_FAILURE, "{error}");
        let groups = error.groups().expect("both lists");
        assert_eq!(groups.peers, [unknown]);
    }
}

/// A client with a policy and the ServerHello that answers it with a group.
fn answered(contender: &Contender, group: Group, policy: &KeyExchange) -> (Pair, Hello) {
    let mut pair = Pair::of(
        (contender, rustls()),
        &options_for(policy.clone(), exactly(group)),
    );
    pair.turn(Slices::Whole).expect("a turn");
    if pair.client.inbox.handshake.is_empty() {
        // A HelloRetryRequest came first.
        pair.turn(Slices::Whole).expect("a turn");
    }
    assert!(!pair.client.inbox.handshake.is_empty(), "{group}");
    let hello = Hello::parse(&pair.client.inbox.initial);
    (pair, hello)
}

/// The client refuses a ServerHello, and has no keys from it.
#[track_caller]
fn client_refuses(mut pair: Pair, hello: &Hello, what: &str) -> Error {
    let sent = pair.client.sent;
    pair.client.inbox.initial = hello.write();
    let Err(error) = pair.client.drive() else {
        panic!("{what}: accepted");
    };
    assert_eq!(pair.client.sent, sent, "{what}");
    assert!(pair.client.secrets.is_empty(), "{what}");
    assert_eq!(pair.client.drive().expect_err("still refused"), error);
    error
}

#[test]
fn a_client_refuses_wrong_shares_of_every_group() {
    for (contender, group, policy) in cases() {
        let (_, mut hello) = answered(contender, group, &policy);
        let share = hello.extension(KEY_SHARE)[4..].to_vec();
        let points = wrong_points(group, &share).into_iter();
        for (what, wrong) in wrong_lengths(&share).into_iter().chain(points) {
            let what = format!("{group} at {}: {what}", contender.name);
            let (pair, mut hello) = answered(contender, group, &policy);
            *hello.extension(KEY_SHARE) = entry((group, &wrong));
            let error = client_refuses(pair, &hello, &what);
            assert_eq!(error.alert, ILLEGAL, "{what}: {error}");
        }
    }
}

#[test]
fn a_client_refuses_a_group_that_it_did_not_offer_or_has_no_share_of() {
    for (contender, group, policy) in cases() {
        for other in [Group(0x6a6a), Group::SECP521R1] {
            let (pair, mut hello) = answered(contender, group, &policy);
            let share = hello.extension(KEY_SHARE)[4..].to_vec();
            *hello.extension(KEY_SHARE) = entry((other, &share));
            let error = client_refuses(pair, &hello, "another group");
            // After a HelloRetryRequest s2n-tls calls it malformed.
            let wanted = [ILLEGAL, Alert::DECODE_ERROR];
            assert!(wanted.contains(&error.alert), "{group} as {other}: {error}");
        }
        let (pair, mut hello) = answered(contender, group, &policy);
        let whole = hello.extension(KEY_SHARE).clone();
        *hello.extension(KEY_SHARE) = [&whole[..], &[0]].concat();
        let error = client_refuses(pair, &hello, "a byte behind the share");
        assert!([Alert::DECODE_ERROR, ILLEGAL].contains(&error.alert));
    }
}

/// ML-KEM answers a wrong ciphertext with a wrong secret (FIPS 203 §6.3): the client notices where the
/// server proves that it knows the secret, and not before.
#[cfg(feature = "unstable-rustls")]
mod implicit_rejection {
    use hybriq_tls::{Side, rustls::Server};
    use rustls::crypto::{
        ActiveKeyExchange, CompletedKeyExchange, CryptoProvider, SupportedKxGroup,
    };
    use rustls::{Error as TlsError, NamedGroup, ffdhe_groups::FfdheGroup};

    use super::*;

    /// A group whose ends send a share that belongs to other secrets.
    #[derive(Debug)]
    struct Lying(&'static dyn SupportedKxGroup);

    /// Flips a bit of a ciphertext, in its ML-KEM part.
    fn flipped(group: Group, mut share: Vec<u8>) -> Vec<u8> {
        let (start, end) = Layout::of(group, &share).kem.expect("ML-KEM");
        share[usize::midpoint(start, end)] ^= 0x10;
        share
    }

    impl SupportedKxGroup for Lying {
        fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, TlsError> {
            self.0.start()
        }

        fn start_and_complete(&self, peer: &[u8]) -> Result<CompletedKeyExchange, TlsError> {
            let mut done = self.0.start_and_complete(peer)?;
            done.pub_key = flipped(Group(self.name().into()), done.pub_key);
            Ok(done)
        }

        fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
            None
        }

        fn name(&self) -> NamedGroup {
            self.0.name()
        }
    }

    fn lie(crypto: CryptoProvider) -> CryptoProvider {
        let lying = |group: &&'static dyn SupportedKxGroup| -> &'static dyn SupportedKxGroup {
            Box::leak(Box::new(Lying(*group)))
        };
        let kx_groups = crypto.kx_groups.iter().map(lying).collect();
        CryptoProvider {
            kx_groups,
            ..crypto
        }
    }

    #[test]
    fn a_wrong_ciphertext_leads_to_other_secrets_and_a_failed_handshake() {
        for (contender, group, policy) in cases().filter(|it| it.1.is_post_quantum()) {
            let options = options_for(policy, exactly(group));
            let server = Server::with_crypto(&options.1, lie).expect("a server");
            let client = (contender.client)(&options.0).expect("a client");
            let mut pair = Pair::new(&*client, &server);
            let failure = pair.run(Slices::Whole).expect_err("other secrets");
            failure.assert(Side::Client, Alert::DECRYPT_ERROR.0);
            assert_ne!(pair.client.status, Status::Complete);
            // The transport gets the secrets, with which it cannot open a packet of the server.
            let of_server = |end: &End| {
                let secret = end.secret(hybriq_tls::Level::Handshake, Side::Server);
                secret.map(|secret| secret.as_bytes().to_vec())
            };
            assert!(of_server(&pair.client).is_some());
            assert_ne!(of_server(&pair.client), of_server(&pair.server), "{group}");
        }
    }
}

/// What a server read is what it keeps: nothing of a hello that it refused.
#[test]
fn a_hello_with_as_many_shares_as_fit_is_bounded() {
    for contender in CONTENDERS {
        let (mut hello, _) = client_hello(Group::SECP384R1);
        let many: Vec<(Group, &[u8])> = (0..300).map(|n| (Group(0x7000 + n), &[0][..])).collect();
        hello.set_shares(&many);
        let bytes = hello.write();
        let error = ClientHello::parse(&bytes).expect_err("too many shares");
        let error = Error::from(error);
        let refusal = refused(
            &mut server(contender, &KeyExchange::default()),
            &hello,
            "many",
        );
        assert_eq!(refusal.alert, error.alert);
    }
}
