//! Argo CD's vocabulary: what its objects say, read the way Argo CD 3.6 reads them.

pub mod application;
pub mod application_set;
pub mod cluster_generator;
pub mod config;
pub mod controller;
pub mod destination;
pub mod digest;
pub mod generated_names;
pub mod hook;
pub mod order;
mod partial;
pub mod patterns;
pub mod project;
pub mod sync_intent;
pub mod sync_options;
pub mod tracking;

pub use application::{Application, Class, Entry};
pub use controller::Controller;
pub use destination::{Clusters, Destination};
pub use partial::partial;
pub use patterns::Patterns;
pub use project::ProjectSpec;
pub use tracking::{Marker, TrackingId, TrackingMethod};
