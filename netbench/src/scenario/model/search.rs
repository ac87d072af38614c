//! Search for operations in the scripts of connections.

use crate::scenario::{ClientOp, Op, Scenario};

impl Scenario {
    /// Returns true if a script of a connection, of either end, has such an operation.
    pub(crate) fn has(&self, wanted: &impl Fn(&Op) -> bool) -> bool {
        let mut ops = self.clients.iter().flat_map(|client| &client.ops);
        ops.any(|op| of_client(op, wanted))
    }
}

fn of_client(op: &ClientOp, wanted: &impl Fn(&Op) -> bool) -> bool {
    match op {
        ClientOp::Connect(connect) => {
            of_script(&connect.ops, wanted) || of_script(&connect.server_ops, wanted)
        }
        ClientOp::Pool(pool) => of_script(&pool.ops, wanted),
        ClientOp::Scope(threads) => threads.iter().flatten().any(|op| of_client(op, wanted)),
        ClientOp::Iterate(iterate) => iterate.ops.iter().any(|op| of_client(op, wanted)),
        ClientOp::Hold(_) | ClientOp::Sleep(_) | ClientOp::Park(_) | ClientOp::Unpark(_) => false,
    }
}

fn of_script(ops: &[Op], wanted: &impl Fn(&Op) -> bool) -> bool {
    ops.iter().any(|op| {
        wanted(op)
            || match op {
                Op::OpenBidi(open) | Op::OpenUni(open) => of_script(&open.peer, wanted),
                Op::Scope(threads) => threads.iter().any(|ops| of_script(ops, wanted)),
                Op::Iterate(iterate) => of_script(&iterate.ops, wanted),
                Op::Request(request) => of_script(&request.ops, wanted),
                _ => false,
            }
    })
}
