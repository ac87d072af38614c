//! Address validation tokens: arbitrary bytes, and real tokens that were changed.

use std::net::SocketAddr;

use hybriq_proto::{
    remembered::token::{Binding, Ring},
    wire::packet::Cid,
};

fn bindings() -> [Binding; 2] {
    let peer = SocketAddr::from(([192, 0, 2, 1], 443));
    let retry = Binding::retry(peer, Cid::from(*b"retry id"), 1);
    [retry, Binding::new_token(peer.ip(), 1)]
}

#[test]
fn tokens_of_arbitrary_bytes() {
    let ring = Ring::new(&[7; 32]);
    let tokens = bolero::check!().with_iterations(100_000);
    tokens.for_each(|token| assert!(bindings().iter().all(|it| ring.open(it, token).is_none())));
}

#[test]
fn true_tokens_that_were_changed() {
    let ring = Ring::new(&[7; 32]);
    let changes = bolero::check!()
        .with_iterations(50_000)
        .with_type::<(bool, [u8; 16], Vec<(u8, u8)>)>();
    changes.for_each(|(new, seed, changes)| {
        let binding = bindings()[usize::from(*new)];
        let token = ring.seal(&binding, *seed, 5, &Cid::from([1; 8])).unwrap();
        let mut changed = token.clone();
        for (at, flip) in changes {
            changed[usize::from(*at) % token.len()] ^= flip;
        }
        assert_eq!(ring.open(&binding, &changed).is_some(), changed == token);
    });
}
