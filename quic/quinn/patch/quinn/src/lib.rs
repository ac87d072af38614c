//! [`hybriq_quinn`] under quinn's name, for `[patch.crates-io]`.

pub use hybriq_quinn::*;

#[cfg(feature = "qlog")]
compile_error!("hybriq has its own qlog: leave the feature `qlog` out, and use `hybriq::EndpointBuilder::qlog`");
#[cfg(any(feature = "runtime-async-std", feature = "runtime-smol"))]
compile_error!("hybriq runs on tokio: leave the feature `runtime-async-std` or `runtime-smol` out");
#[cfg(any(feature = "aws-lc-rs-fips", feature = "rustls-aws-lc-rs-fips"))]
compile_error!("FIPS is a feature of hybriq: leave the feature out, and depend on `hybriq` with its feature `fips`");
