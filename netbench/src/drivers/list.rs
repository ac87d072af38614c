//! List of the stacks.

use super::Driver;
use super::hybriq::Hybriq;
use super::program::{self, Program};
#[cfg(feature = "quiche")]
use super::quiche::Quiche;
use super::tcp_tls::TcpTls;
use crate::scenario::axes::Stack;
use crate::system::failure::Failure;

/// Returns the driver of a stack.
///
/// # Errors
///
/// The stack is not there; the line says how to get it.
pub(crate) fn driver(stack: Stack) -> Result<Box<dyn Driver>, Failure> {
    match stack {
        Stack::Hybriq => Ok(Box::new(Hybriq)),
        #[cfg(feature = "noq")]
        Stack::Noq => Ok(Box::new(super::noq::Noq)),
        #[cfg(feature = "quinn")]
        Stack::Quinn => Ok(Box::new(super::quinn::Quinn)),
        #[cfg(feature = "s2n-quic")]
        Stack::S2nQuic => Ok(Box::new(super::s2n_quic::S2nQuic)),
        #[cfg(feature = "quiche")]
        Stack::Quiche => Ok(Box::new(Quiche)),
        Stack::TcpTls => Ok(Box::new(TcpTls)),
        Stack::Nginx | Stack::QuicGo | Stack::TokioQuiche => Ok(Box::new(Program::find(stack)?)),
        #[cfg(not(all(
            feature = "noq",
            feature = "quiche",
            feature = "quinn",
            feature = "s2n-quic"
        )))]
        _ => Err(missing(stack).into()),
    }
}

/// Returns a line about how to get a stack.
pub(super) fn missing(stack: Stack) -> String {
    if stack.is_program() {
        return program::missing(stack);
    }
    let feature = stack.feature().unwrap_or_default();
    format!("{stack} is not built in: build with `--features {feature}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_built_in_is_told_with_the_way_to_get_it() {
        for stack in Stack::ALL {
            match (driver(stack), stack.feature()) {
                (Ok(driver), _) => {
                    assert_eq!(driver.name(), stack.name());
                    assert!(stack.is_built_in());
                }
                (Err(failure), Some(feature)) => {
                    let help = format!("--features {feature}");
                    assert!(failure.to_string().contains(&help), "{failure}");
                    assert!(!stack.is_built_in());
                }
                (Err(failure), None) => {
                    assert!(
                        failure.to_string().contains("NETBENCH_SERVERS"),
                        "{failure}"
                    );
                    assert!(stack.is_program());
                }
            }
        }
    }
}
