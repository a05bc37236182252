//! A Namespace that somebody wants to delete: its approval, its content, the finalizers that may keep it Terminating, and
//! its status as a whole.

pub mod approval;
pub mod approval_list;
pub mod content;
pub mod finalizers;
pub mod status;
