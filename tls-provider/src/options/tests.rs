use super::*;

#[test]
fn debug_output_shows_no_key() {
    let key = vec![0x5a_u8; 64];
    let identity = Identity::from_der(Vec::new(), crate::PrivateKeyDer::Pkcs8(key.into()));
    let options = ServerOptions::new(identity).key_log(KeyLog::Callback(Arc::new(|_| {})));
    let shown = format!("{options:?}");
    assert!(
        !shown.contains("90, 90") && !shown.contains("5a5a"),
        "{shown}"
    );
    assert!(shown.contains("Callback"), "{shown}");
}

#[test]
fn protocol_names_are_checked() {
    let list = |names: &[&[u8]]| protocol_list(names);
    assert!(check_alpn("x", &list(&[b"h3", &[b'a'; 255]])).is_ok());
    assert!(check_alpn("x", &list(&[b""])).is_err());
    assert!(check_alpn("x", &list(&[&[b'a'; 256]])).is_err());
}
