//! Logs: one JSON object a line on standard error, with a filter that can be changed while the server runs.

use std::{io, panic};

use tracing::Level;
use tracing_subscriber::{
    EnvFilter, Layer, Registry, filter::filter_fn, fmt::MakeWriter, layer::SubscriberExt, reload,
    util::SubscriberInitExt,
};

/// What is logged unless something else is asked for. kube's client and runtime repeat at every attempt what the guard
/// says once for every change.
pub const DEFAULT_FILTER: &str = "info,kube_runtime=error,kube_client=error";

/// Changes the filter of a running server.
#[derive(Clone, Debug)]
pub struct LogFilter {
    handle: reload::Handle<EnvFilter, Registry>,
}

impl LogFilter {
    /// The filter in force.
    pub fn current(&self) -> String {
        self.handle.with_current(ToString::to_string).unwrap_or_default()
    }

    /// Puts another filter in force, such as `debug` or `info,cascade_guard=trace`.
    ///
    /// # Errors
    /// When `directives` is no filter; the one in force stays.
    pub fn set(&self, directives: &str) -> Result<(), String> {
        let filter = parse(directives)?;
        self.handle.reload(filter).map_err(|error| error.to_string())
    }
}

fn parse(directives: &str) -> Result<EnvFilter, String> {
    let directives = directives.trim();
    if directives.is_empty() {
        return Err(format!("the filter is empty; write one such as `{DEFAULT_FILTER}` or `debug`"));
    }
    EnvFilter::try_new(directives).map_err(|error| format!("`{directives}` is no log filter: {error}"))
}

/// Starts logging for the whole process.
///
/// # Errors
/// When `directives` is no filter.
pub fn init(directives: &str) -> Result<LogFilter, String> {
    let (subscriber, filter) = subscriber(directives, io::stderr)?;
    // A second subscriber in one process is refused; the first one goes on logging.
    let _ = subscriber.try_init();
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        // A formatted message may hold a piece of somebody's object. A literal cannot.
        let message = panic.payload().downcast_ref::<&'static str>().copied().unwrap_or("(message withheld)");
        tracing::error!(place, message, "panic; this is a fault of cascade-guard, please report it");
    }));
    Ok(filter)
}

/// The subscriber, without making it that of the process.
///
/// # Errors
/// When `directives` is no filter.
pub fn subscriber<W>(directives: &str, writer: W) -> Result<(impl tracing::Subscriber + Send + Sync, LogFilter), String>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let (filter, handle) = reload::Layer::new(parse(directives)?);
    let json = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_writer(writer)
        .with_filter(filter_fn(|meta| !may_hold_bodies(meta.target(), *meta.level())));
    Ok((tracing_subscriber::registry().with(filter).with(json), LogFilter { handle }))
}

/// kube's client logs the whole body of an answer that it cannot decode, and the body of error answers; the body may be
/// a Secret. Whatever the filter says, these lines are never written.
fn may_hold_bodies(target: &str, level: Level) -> bool {
    target == "kube_client::client" || (target.starts_with("kube_client::client::builder") && level <= Level::ERROR)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Lines {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    #[test]
    fn filter_changes_while_the_server_runs() {
        let lines = Lines::default();
        let writer = lines.clone();
        let (subscriber, filter) = subscriber("info", move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            tracing::debug!("before");
            filter.set("debug").unwrap();
            tracing::debug!("after");
            assert!(filter.set("cascade_guard=loud").is_err());
            assert!(filter.set(" ").is_err());
            assert_eq!(filter.current(), "debug");
        });
        assert!(!lines.text().contains("before") && lines.text().contains(r#""message":"after""#), "{}", lines.text());
    }

    #[test]
    fn bodies_that_kube_logs_are_never_written() {
        let lines = Lines::default();
        let writer = lines.clone();
        let (subscriber, _filter) = subscriber("trace", move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(target: "kube_client::client", "body of a Secret");
        });
        assert_eq!(lines.text(), "");
    }
}
