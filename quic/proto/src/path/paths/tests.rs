use super::*;

fn path(port: u16, role: Role) -> Path {
    let mut path = Path::new(([192, 0, 2, 1], port).into(), Local::default(), 1200);
    path.role = role;
    path
}

#[test]
fn the_path_to_return_to_outlives_any_number_of_others() {
    let mut paths = Paths::new(1);
    assert!(paths.add(path(1, Role::Fallback)).is_none());
    for port in 2..100 {
        paths.add(path(port, Role::Heard));
        assert!(paths.iter().count() <= limits::OTHER_PATHS);
        let kept = paths.position_of(Role::Fallback).unwrap();
        assert_eq!(paths.get_mut(kept).unwrap().peer().port(), 1);
    }
}

#[test]
fn a_path_that_was_only_heard_of_gives_way_first() {
    let mut paths = Paths::new(1);
    paths.add(path(1, Role::Candidate));
    let mut validated = path(2, Role::Heard);
    validated.on_validated();
    paths.add(validated);
    paths.add(path(3, Role::Heard));
    let ports = |path: Option<Path>| path.map(|path| path.peer().port());
    assert_eq!(ports(paths.add(path(4, Role::Heard))), Some(3));
    assert_eq!(ports(paths.add(path(5, Role::Candidate))), Some(4));
    assert_eq!(ports(paths.add(path(6, Role::Candidate))), Some(2));
}

/// Proves: rfc9000 8.2.1 challenges-are-unpredictable
#[test]
fn no_challenge_is_like_another() {
    let (mut paths, mut others) = (Paths::new(1), Paths::new(2));
    let drawn: std::collections::HashSet<u64> = (0..1000)
        .flat_map(|_| [paths.draw(), others.draw()])
        .collect();
    assert_eq!(drawn.len(), 2000);
}
