//! The core, tested through the library: acceptance cases, recordings, properties, and its own shape.

mod acceptance;
mod approval;
mod architecture;
mod properties;
mod recordings;
mod support;
