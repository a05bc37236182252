//! From a list of tests to an exit code: the world is started by the first test that runs, and taken down after the last.

use std::{
    fs,
    future::Future,
    io::{self, Write},
    path::{Path, PathBuf},
    pin::Pin,
    process::ExitCode,
    sync::{Arc, OnceLock},
};

use anyhow::{Context as _, Result};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

use super::world::World;

/// The body of a test.
pub type Body = for<'a> fn(&'a World) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// A test and what it needs.
pub struct Test {
    pub name: &'static str,
    pub body: Body,
    /// Whether no other test may run beside it.
    pub alone: bool,
}

/// Names the tests of a module. `alone` ones run while no other does.
#[macro_export]
macro_rules! tests {
    ($($name:ident),* $(,)?) => { $crate::tests!(@ false, $($name),*); };
    (alone: $($name:ident),* $(,)?) => { $crate::tests!(@ true, $($name),*); };
    (@ $alone:literal, $($name:ident),*) => {
        /// The tests of this module.
        pub fn tests() -> Vec<$crate::harness::stage::Test> {
            vec![$($crate::harness::stage::Test {
                name: concat!(module_path!(), "::", stringify!($name)).trim_start_matches("e2e::"),
                body: |world| Box::pin($name(world)),
                alone: $alone,
            }),*]
        }
    };
}

struct Stage {
    runtime: Runtime,
    folder: PathBuf,
    /// Empty where it could not be started; the first test says why.
    world: OnceLock<Result<World, ()>>,
}

/// Runs tests as the command line says.
pub fn run(tests: Vec<Test>) -> Result<ExitCode> {
    let arguments = Arguments::from_args();
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    sweep(scratch)?;
    let stage = Arc::new(Stage {
        runtime: tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?,
        folder: scratch.join(format!("e2e-{}", std::process::id())),
        world: OnceLock::new(),
    });
    let trials = tests.into_iter().map(|test| {
        let stage = Arc::clone(&stage);
        Trial::test(test.name, move || stage.play(&test))
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let stage = Arc::into_inner(stage).context("a test still holds the control plane")?;
    stage.clear(conclusion.has_failed())?;
    Ok(conclusion.exit_code())
}

impl Stage {
    fn play(&self, test: &Test) -> Result<(), Failed> {
        let mut problem = "see the first failure".to_owned();
        let world = self.world.get_or_init(|| {
            self.runtime.block_on(World::start(&self.folder)).map_err(|error| problem = format!("{error:#}"))
        });
        let Ok(world) = world else { return Err(format!("there is nothing to test on: {problem}").into()) };
        let outcome = self.runtime.block_on(async {
            if test.alone {
                let _alone = world.stage.write().await;
                (test.body)(world).await
            } else {
                let _beside_others = world.stage.read().await;
                (test.body)(world).await
            }
        });
        outcome.map_err(|error| Failed::from(format!("{error:#}")))
    }

    /// Ends every process; leaves the logs where something failed.
    fn clear(self, failed: bool) -> Result<()> {
        if let Some(Ok(mut world)) = self.world.into_inner() {
            world.guard.stop()?;
            world.plane.stop()?;
        }
        if failed && self.folder.exists() {
            let _ = fs::remove_dir_all(self.folder.join("etcd"));
            writeln!(io::stderr(), "Logs, until the next run: {}", self.folder.display())?;
        } else if self.folder.exists() {
            fs::remove_dir_all(&self.folder)?;
        }
        Ok(())
    }
}

/// Removes what runs that were killed, or that failed, have left.
fn sweep(scratch: &Path) -> Result<()> {
    for entry in fs::read_dir(scratch)? {
        let entry = entry?;
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix("e2e-"));
        if owner.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
