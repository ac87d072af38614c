//! Congestion controllers, by quinn's names.

use std::sync::Arc;

use hybriq::transport::Congestion;

/// A choice of a congestion controller: one of this module, or a [`Congestion`] of hybriq, with Prague and custom
/// controllers.
pub trait ControllerFactory {
    /// Returns the controller of new connections.
    fn congestion(&self) -> Congestion;
}

impl ControllerFactory for Congestion {
    fn congestion(&self) -> Congestion {
        self.clone()
    }
}

impl<T: ControllerFactory + ?Sized> ControllerFactory for Arc<T> {
    fn congestion(&self) -> Congestion {
        (**self).congestion()
    }
}

macro_rules! choices {
    ($($name:ident $choice:ident $doc:literal;)*) => {$(
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, Default)]
        #[non_exhaustive]
        pub struct $name;

        impl ControllerFactory for $name {
            fn congestion(&self) -> Congestion {
                Congestion::$choice
            }
        }
    )*};
}

choices! {
    CubicConfig Cubic "CUBIC (RFC 9438), the default.";
    NewRenoConfig NewReno "NewReno (RFC 9002 §7).";
    BbrConfig Bbr "BBR version 3 (draft-ietf-ccwg-bbr).";
}
