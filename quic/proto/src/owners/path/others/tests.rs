use super::*;
use crate::wire::udp::Local;

fn path(port: u16, state: State) -> Path<()> {
    let peer = ([192, 0, 2, 1], port).into();
    let mut path = Path::new(
        Address {
            peer,
            local: Local::default(),
        },
        1200,
    );
    path.state = state;
    path
}

#[test]
fn the_path_to_return_to_outlives_any_number_of_others() {
    let mut paths = Others::default();
    assert!(paths.add(path(1, State::Fallback)).is_none());
    for port in 2..100 {
        paths.add(path(port, State::Heard));
        assert!(paths.iter().count() <= limits::OTHER_PATHS);
        let kept = paths.position_of(State::Fallback).unwrap();
        assert_eq!(paths.get_mut(kept).unwrap().peer().port(), 1);
    }
}

#[test]
fn a_path_that_was_only_heard_of_gives_way_first() {
    let mut paths = Others::default();
    paths.add(path(1, State::Candidate));
    let until = Instant::now();
    let mut validated = path(2, State::Left { until });
    validated.on_validated();
    paths.add(validated);
    paths.add(path(3, State::Heard));
    let ports = |path: Option<Path<()>>| path.map(|path| path.peer().port());
    assert_eq!(ports(paths.add(path(4, State::Heard))), Some(3));
    assert_eq!(ports(paths.add(path(5, State::Candidate))), Some(4));
    assert_eq!(ports(paths.add(path(6, State::Candidate))), Some(2));
}
