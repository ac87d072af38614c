use bytes::Bytes;

use super::{MemoryTokenStore, SERVERS, TOKENS, TokenStore as _};

fn token(number: usize) -> Bytes {
    Bytes::from(number.to_be_bytes().to_vec())
}

/// Proves: rfc9000 8.1.4 replay-is-limited
#[test]
fn a_token_is_given_out_once() {
    let store = MemoryTokenStore::new();
    store.put("a", 1, token(1));
    store.put("a", 1, token(1));
    assert_eq!(store.take("b", 1), None);
    assert_eq!(store.take("a", 2), None, "of another version");
    assert_eq!(store.take("a", 1), Some(token(1)));
    assert_eq!(store.take("a", 1), None);
}

#[test]
fn the_newest_tokens_are_kept() {
    let store = MemoryTokenStore::new();
    for number in 0..10 {
        store.put("a", 1, token(number));
    }
    let kept: Vec<_> = std::iter::from_fn(|| store.take("a", 1)).collect();
    assert_eq!(kept, [9, 8, 7, 6].map(token));
    assert_eq!(kept.len(), TOKENS);
}

#[test]
fn servers_are_bounded_and_the_least_recent_one_goes() {
    let store = MemoryTokenStore::new();
    for server in 0..SERVERS {
        store.put(&server.to_string(), 1, token(server));
    }
    store.put("0", 1, token(1000));
    store.put("one more", 1, token(1));
    assert_eq!(store.with(|memory| memory.servers.len()), SERVERS);
    assert_eq!(store.take("1", 1), None);
    assert_eq!(store.take("0", 1), Some(token(1000)));
    assert_eq!(store.take("one more", 1), Some(token(1)));
}
