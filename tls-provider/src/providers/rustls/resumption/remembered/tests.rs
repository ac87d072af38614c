use super::*;

fn name(number: usize) -> ServerName<'static> {
    ServerName::try_from(format!("server-{number}.test")).expect("a name")
}

fn ticket(value: usize, lineage: Lineage) -> Ticket<usize> {
    let alpn = Arc::default();
    Ticket {
        value,
        lineage,
        alpn,
        scope: Arc::default(),
    }
}

const PREFER: KeyExchange = KeyExchange::PreferPostQuantum;

#[test]
fn tickets_are_used_once_and_the_newest_first() {
    let memory = Memory::default();
    for value in 0..10 {
        memory.insert(name(1), ticket(value, Lineage::PostQuantum));
    }
    let taken: Vec<_> = std::iter::from_fn(|| memory.take(&name(1), &PREFER, &[], None))
        .map(|ticket| ticket.value)
        .collect();
    assert_eq!(taken, [9, 8, 7, 6, 5, 4, 3, 2]);
}

#[test]
fn a_policy_that_requires_post_quantum_takes_no_ticket_of_classical_lineage() {
    let memory = Memory::default();
    memory.insert(name(1), ticket(1, Lineage::PostQuantum));
    memory.insert(name(1), ticket(2, Lineage::Classical));
    let require = KeyExchange::RequirePostQuantum;
    let taken = memory
        .take(&name(1), &require, &[], None)
        .expect("a ticket");
    assert_eq!(taken.value, 1);
    assert!(memory.take(&name(1), &require, &[], None).is_none());
    assert_eq!(
        memory
            .take(&name(1), &PREFER, &[], None)
            .expect("a ticket")
            .value,
        2
    );
}

#[test]
fn servers_are_bounded_and_the_one_heard_of_longest_ago_goes() {
    let memory = Memory::default();
    for number in 0..SERVERS {
        memory.insert(name(number), ticket(number, Lineage::PostQuantum));
    }
    memory.insert(name(0), ticket(0, Lineage::PostQuantum));
    memory.insert(name(SERVERS), ticket(0, Lineage::PostQuantum));
    assert_eq!(memory.with(|servers| servers.by_name.len()), SERVERS);
    assert!(memory.take(&name(0), &PREFER, &[], None).is_some());
    assert!(memory.take(&name(1), &PREFER, &[], None).is_none());
}

#[test]
fn a_ticket_is_taken_only_in_its_scope() {
    let memory = Memory::default();
    for (value, scope) in [(1, b"a"), (2, b"b"), (3, b"b")] {
        let ticket = Ticket {
            scope: scope[..].into(),
            ..ticket(value, Lineage::PostQuantum)
        };
        memory.insert(name(1), ticket);
    }
    let take = |scope: &[u8]| {
        memory
            .take(&name(1), &PREFER, scope, None)
            .map(|it| it.value)
    };
    assert_eq!(take(b"c"), None);
    assert_eq!(take(b"a"), Some(1));
    assert_eq!(take(b"a"), None);
    assert_eq!(take(b"b"), Some(3));
}

#[test]
fn a_ticket_is_taken_only_with_the_lineage_that_was_asked_for() {
    let memory = Memory::default();
    memory.insert(name(1), ticket(1, Lineage::PostQuantum));
    memory.insert(name(1), ticket(2, Lineage::Classical));
    let take = |lineage| {
        memory
            .take(&name(1), &PREFER, &[], lineage)
            .map(|it| it.value)
    };
    assert_eq!(take(Some(Lineage::PostQuantum)), Some(1));
    assert_eq!(take(Some(Lineage::PostQuantum)), None);
    assert_eq!(take(None), Some(2));
}
