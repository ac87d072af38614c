//! What a client remembers of servers, and a server of its clients.

pub(super) mod careful_resume;
pub(super) mod servers;
