//! What judging one thing may cost. The core knows no clock: whoever waits for a verdict hands over how to find out that
//! it comes too late, and long loops ask.

use std::{fmt, sync::Arc};

/// Tells whether whoever wanted the verdict has stopped waiting for it. Asked often, so it has to be quick.
pub type Interrupt = Arc<dyn Fn() -> bool + Send + Sync>;

/// Steps that were taken, and whether more may be.
#[derive(Clone, Default)]
pub struct Budget {
    interrupt: Option<Interrupt>,
    steps: u64,
    is_over: bool,
}

/// So many steps are taken between two questions whether anybody still waits.
const BETWEEN: u64 = 64;

impl Budget {
    /// Steps until `interrupt` says that nobody waits any more.
    pub fn until(interrupt: Interrupt) -> Self {
        Self { interrupt: Some(interrupt), ..Self::default() }
    }

    /// Counts one step: one object of a plan, one need, one finding. `false` once nobody waits any more; whatever is in
    /// progress is to be left then, because its result counts for nothing.
    pub fn step(&mut self) -> bool {
        self.is_over |= self.steps.is_multiple_of(BETWEEN) && self.interrupt.as_ref().is_some_and(|over| over());
        self.steps += 1;
        !self.is_over
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether something was left because nobody waited any more.
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("steps", &self.steps).field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_when_nobody_waits_and_never_without_an_interrupt() {
        let mut budget = Budget::until(Arc::new(|| true));
        assert!(!budget.step() && !budget.step() && budget.is_over());
        let mut budget = Budget::default();
        assert!((0..1000).all(|_| budget.step()));
        assert_eq!((budget.steps(), budget.is_over()), (1000, false));
    }
}
