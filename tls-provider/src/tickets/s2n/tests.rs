use super::*;

impl Keys {
    /// Makes the current keys older.
    pub(crate) fn age(&self, by: Duration) {
        let mut slot = self.generation.lock().expect("the keys");
        let generation = slot.as_ref().expect("made");
        *slot = Some(Arc::new(Generation {
            made: generation.made - by,
            changes: generation.changes,
            current: generation.current.clone(),
            previous: generation.previous.clone(),
        }));
    }
}

fn ticket(key: &Key) -> Vec<u8> {
    [&[VERSION][..], &key.name, b"sealed"].concat()
}

#[test]
fn keys_are_replaced_in_time_and_the_ones_before_are_known() {
    let (keys, now) = (Keys::default(), SystemTime::now());
    let first = keys.at(now).expect("keys");
    assert!(Arc::ptr_eq(&first, &keys.at(now).expect("keys")));
    let second = keys.at(now + ROTATION).expect("keys");
    let third = keys.at(now + 2 * ROTATION).expect("keys");
    for (at, lineage) in [Lineage::Classical, Lineage::PostQuantum]
        .into_iter()
        .enumerate()
    {
        let old = ticket(&first.current[at]);
        assert_eq!(first.lineage_of(&old), Some(lineage));
        assert_eq!(second.lineage_of(&old), Some(lineage));
        assert_eq!(third.lineage_of(&old), None);
    }
}

#[test]
fn what_is_no_ticket_of_ours_has_no_lineage() {
    let generation = Generation::new(None, SystemTime::now()).expect("keys");
    let good = ticket(&generation.current[0]);
    let mut other = good.clone();
    other[0] = 2;
    for ticket in [&b""[..], &good[..16], &other] {
        assert_eq!(generation.lineage_of(ticket), None);
    }
}

#[test]
fn keys_of_one_scope_know_no_tickets_of_another() {
    let generation = Generation::new(None, SystemTime::now()).expect("keys");
    let scopes: [&[u8]; 3] = [b"", b"a", b"b"];
    let bound = scopes.map(|scope| generation.bound_to(scope));
    for (from, issuing) in bound.iter().enumerate() {
        for (at, lineage) in [Lineage::Classical, Lineage::PostQuantum]
            .into_iter()
            .enumerate()
        {
            let key = &issuing.current[at];
            assert_ne!(*key.secret, *generation.current[at].secret);
            for (to, opening) in bound.iter().enumerate() {
                let known = opening.lineage_of(&ticket(key));
                assert_eq!(known, (from == to).then_some(lineage));
            }
            let again = generation.bound_to(scopes[from]);
            assert_eq!(*again.current[at].secret, *key.secret);
        }
    }
}
