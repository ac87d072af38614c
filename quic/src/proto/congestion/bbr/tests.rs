mod link;

use link::{Link, World, mbit, ms, secs};

use super::*;

#[test]
fn a_clean_link_is_filled() {
    let mut world = World::new(Link::new(mbit(10), ms(30), 100), 1, 1);
    assert!(world.measure(0, secs(10)) >= 90);
    assert!(world.measure(0, secs(10)) >= 95);
}
