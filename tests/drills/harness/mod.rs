//! What the drills share: a guard that is watched, a client, objects of a small world, and honest people meanwhile.

pub mod guard;
pub mod honest;
pub mod world;

use std::time::{Duration, Instant};

use serde_json::Value;

use self::{guard::Guard, honest::Meanwhile};

/// Sends `review` from `clients` clients at a time while somebody honest deletes and the kubelet probes, and prints what
/// came of it under the name `label`.
///
/// # Errors
/// When an honest request or a probe was not answered, or an attacker could not even connect.
pub fn attack(guard: &Guard, label: &str, path: &str, review: &Value, clients: usize) -> anyhow::Result<()> {
    let body = review.to_string();
    let (before, start) = (guard.processor_time(), Instant::now());
    let meanwhile = Meanwhile::start(guard);
    let answers: Vec<String> = std::thread::scope(|scope| {
        let sending: Vec<_> = (0..clients)
            .map(|_| {
                scope.spawn(|| match guard.client().and_then(|mut client| client.post(path, &body)) {
                    Ok(answer) => answer.verdict(),
                    Err(error) => format!("no answer ({error:#})"),
                })
            })
            .collect();
        sending.into_iter().map(|thread| thread.join().unwrap_or_else(|_| "broke down".to_owned())).collect()
    });
    let (took, spent) = (start.elapsed(), guard.processor_time().saturating_sub(before));
    let honest = meanwhile.end()?;
    println!(
        "  {label}: {} kB, {clients} at a time, {:.2} s, processor {:.2} s; {}",
        body.len() >> 10,
        took.as_secs_f64(),
        spent.as_secs_f64(),
        counted(&answers)
    );
    println!("    meanwhile {honest}");
    Ok(())
}

/// Each answer once, with its number.
fn counted(answers: &[String]) -> String {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for answer in answers {
        *counts.entry(answer).or_default() += 1;
    }
    counts.iter().map(|(answer, count)| format!("{count} x {answer}")).collect::<Vec<_>>().join(", ")
}

/// Milliseconds for people.
pub fn milliseconds(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1000.0)
}
