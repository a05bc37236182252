//! Child processes that never outlive the test program, however it ends.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
};

use anyhow::{Context as _, Result, bail};

use super::wait::Hopeless;

/// Runs "$@" until it ends or standard input does. Standard input is a pipe from the test program, and the kernel closes
/// it when that program is gone, be it by Ctrl-C, a panic or SIGKILL. The program is asked to end, and made to after ten
/// seconds.
const SUPERVISE: &str = r#"
exec 3<&0
"$@" 3<&- </dev/null &
child=$!
(
    read -r _ <&3
    kill "$child" 2>/dev/null
    tries=0
    while kill -0 "$child" 2>/dev/null; do
        [ "$tries" -lt 100 ] || kill -KILL "$child" 2>/dev/null
        tries=$((tries + 1))
        sleep 0.1
    done
) &
watcher=$!
exec 3<&- 0<&-
wait "$child"
status=$?
kill "$watcher" 2>/dev/null
exit "$status"
"#;

/// A program under supervision.
#[derive(Debug)]
pub struct Supervised {
    name: String,
    log: PathBuf,
    child: Child,
    lifeline: Option<ChildStdin>,
}

impl Supervised {
    /// Starts `program`; what it prints goes to `NAME.log` in `folder`.
    pub fn start(folder: &Path, name: &str, program: &Path, arguments: &[String]) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let output = File::options().create(true).append(true).open(&log).context("cannot open the log")?;
        let mut child = Command::new("sh")
            .args(["-c", SUPERVISE, name])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            // Ctrl-C reaches the test program alone; the pipe tells the rest.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let lifeline = child.stdin.take();
        Ok(Self { name: name.to_owned(), log, child, lifeline })
    }

    /// [`Hopeless`] if the program has ended, with the end of its log.
    pub fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!(Hopeless(format!("{} ended ({status}):\n{}", self.name, self.log_tail())));
        }
        Ok(())
    }

    /// Asks the program to end and waits for it.
    pub fn stop(&mut self) -> io::Result<ExitStatus> {
        drop(self.lifeline.take());
        self.child.wait()
    }

    /// The last lines it printed.
    pub fn log_tail(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            let _ = writeln!(io::stderr(), "{} could not be stopped: {error}", self.name);
        }
    }
}
