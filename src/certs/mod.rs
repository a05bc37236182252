//! Certificates: making a small authority and what it signs, and reading what a certificate says of itself.

mod inspect;
mod issue;

pub use self::{
    inspect::{InspectError, names, not_after},
    issue::{Authority, IssueError, Issued},
};
