//! The wire: `admission.k8s.io/v1`. The only place that knows its JSON.

mod delete_review;
mod request;
mod response;

pub use delete_review::delete_review;
pub use request::{DecodeError, DeleteOptions, Object, Operation, Request, Resource, UserInfo, decode};
pub use response::{Response, encode};
