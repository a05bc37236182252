//! What git is asked and told.
