//! Server names under which a client keeps its tickets.
//!
//! A ticket may be good for only one connection, and a stack may keep only a few for a server. So
//! concurrent connections each use their own server name, such as `t0.netbench.localhost`, and find
//! the ticket that the last connection under that name left.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Free server names, each with a ticket.
#[derive(Default)]
pub(crate) struct Names {
    free: RefCell<BTreeMap<(String, usize), Vec<String>>>,
    pub(crate) is_primed: Cell<bool>,
}

impl Names {
    /// Lends a name that has a ticket; the base name if none is free.
    pub(crate) fn lend(&self, base: &str, server: usize) -> Name<'_> {
        let key = (base.to_owned(), server);
        let free = self.free.borrow_mut().get_mut(&key).and_then(Vec::pop);
        match free {
            Some(name) => Name {
                back_to: Some((self, base.to_owned(), server)),
                name,
            },
            None => Name::plain(base),
        }
    }

    /// Adds a free name that has a ticket.
    pub(crate) fn put(&self, base: &str, server: usize, name: String) {
        let key = (base.to_owned(), server);
        self.free.borrow_mut().entry(key).or_default().push(name);
    }
}

/// A name in use by nobody else. Dropped, it is free again.
pub(crate) struct Name<'a> {
    back_to: Option<(&'a Names, String, usize)>,
    name: String,
}

impl Name<'_> {
    /// Returns a name that needs no ticket and that several connections may use at once.
    pub(crate) fn plain(base: &str) -> Self {
        Self {
            back_to: None,
            name: base.to_owned(),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.name
    }
}

impl Drop for Name<'_> {
    fn drop(&mut self) {
        if let Some((names, base, server)) = self.back_to.take() {
            names.put(&base, server, std::mem::take(&mut self.name));
        }
    }
}
