use super::*;

#[test]
fn the_family_in_use_decides() {
    let preferred = Preferred {
        v4: Some("192.0.2.7:4".parse().unwrap()),
        v6: Some("[2001:db8::7]:6".parse().unwrap()),
    };
    let chosen = |in_use: &str| {
        let chosen = preferred.of_family(in_use.parse().unwrap());
        chosen.map(|address| address.to_string())
    };
    assert_eq!(chosen("198.51.100.1:1").unwrap(), "192.0.2.7:4");
    assert_eq!(chosen("[2001:db8::1]:1").unwrap(), "[2001:db8::7]:6");
    let mapped = chosen("[::ffff:198.51.100.1]:1").unwrap();
    assert_eq!(mapped, "[::ffff:192.0.2.7]:4");
    let only_v6 = Preferred {
        v4: None,
        ..preferred
    };
    assert_eq!(only_v6.of_family("198.51.100.1:1".parse().unwrap()), None);
}
