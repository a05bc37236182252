//! Argo CD's vocabulary: what its objects say, read the way Argo CD 3.6 reads them.

pub mod application;
pub mod destination;
pub mod digest;
pub mod sync_options;
pub mod tracking;

pub use application::{Application, Class, Entry};
pub use destination::{ClusterSecret, Clusters, Destination};
pub use tracking::{Marker, TrackingId, TrackingMethod};
