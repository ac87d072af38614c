//! Connections to servers: where they go, how they are made, and which ones there are.

mod addresses;
mod alt_svc;
mod connect;
mod pool;
mod records;
mod route;
mod sharing;

#[cfg(feature = "https-records")]
pub use self::records::SystemRecords;
pub(super) use self::{
    addresses::{Lookup, Resolver},
    connect::{Quic, Shared, Times},
    pool::{Choice, Limits, Pool, Progress, Wanted},
};
pub use self::{
    alt_svc::OfferedHosts,
    pool::Http3,
    records::{HttpsRecord, HttpsResolver, InvalidHttpsRecord},
};
