//! What a look at one watch knows beside the watch itself.

use jiff::{SignedDuration, Timestamp};

use super::{looks::Applications, schema::Opening, settings::Settings, updaters::ImageUpdater};

/// Another watch of the same commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sibling {
    /// Its name.
    pub name: String,
    /// Whether it reverted the commit.
    pub reverted: bool,
    /// Whether it is about to.
    pub intends: bool,
}

/// What is known beside the watch itself.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// The configuration.
    pub settings: &'a Settings,
    /// The Applications.
    pub applications: &'a Applications,
    /// Image updaters of 1.0 and later.
    pub updaters: &'a [ImageUpdater],
    /// Whether Applications can be read at present.
    pub readable: bool,
    /// The newest commit of the branch; `None` if it is not known.
    pub tip: Option<&'a str>,
    /// The newest commit of the branch that a revert is pushed to, where that is another one and exists.
    pub revert_tip: Option<&'a str>,
    /// Whether the branch is the default one.
    pub is_default_branch: bool,
    /// Whether Git was fetched for this very look.
    pub fresh: bool,
    /// Other watches of the same commit.
    pub siblings: &'a [Sibling],
    /// Where the circuit is open.
    pub open: &'a [Opening],
    /// Whether this replica may act.
    pub holds_lease: bool,
    /// Longer than this between two looks means that nobody looked.
    pub gap: SignedDuration,
    /// The time.
    pub now: Timestamp,
}
