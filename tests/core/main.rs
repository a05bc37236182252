//! The core, tested through the library: acceptance cases, recordings, properties, and its own shape.

mod acceptance;
mod architecture;
mod audit;
mod properties;
mod recordings;
mod replay;
mod support;
