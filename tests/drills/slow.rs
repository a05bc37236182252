//! Clients that connect and never finish a request, on both ports: can anybody else still be answered?

use std::{
    io::Write,
    net::TcpStream,
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::{
    Drill,
    harness::{
        guard::Guard,
        honest::Meanwhile,
        world::{base, policy},
    },
};

pub const DRILL: Drill = Drill { name: "slow", about: "a thousand clients that never finish a request", run };

/// More than there is room for.
const CLIENTS: usize = 1_100;
/// For so long the unfinished requests stay as they are, and those that trickle go on.
const LASTS: Duration = Duration::from_secs(15);

fn run() -> Result<()> {
    let guard = Guard::start(&base(), &policy())?;
    let head = "POST /validate?timeout=30s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{";
    for (label, text) in [("nothing", ""), ("half a request line", "POST /vali"), ("a body byte by byte", head)] {
        let meanwhile = Meanwhile::start(&guard);
        let mut open = Vec::new();
        for _ in 0..CLIENTS {
            // Whoever is turned away at once is one attacker less.
            if let Ok(mut client) = guard.client()
                && client.begin(text).is_ok()
            {
                open.push(client);
            }
        }
        let (begun, opened) = (Instant::now(), open.len());
        while begun.elapsed() < LASTS {
            if text == head {
                open.retain_mut(|client| client.begin(" ").is_ok());
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        println!("  {label} over TLS: {opened} clients; meanwhile {}", meanwhile.end()?);
    }
    for (label, address) in [("webhook", guard.webhook()), ("plain", guard.plain())] {
        let meanwhile = Meanwhile::start(&guard);
        let mut open = Vec::new();
        for _ in 0..CLIENTS {
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(b"G")?;
            open.push(stream);
        }
        println!("  one byte to the {label} port: {} clients; meanwhile {}", open.len(), meanwhile.end()?);
    }
    Ok(())
}
