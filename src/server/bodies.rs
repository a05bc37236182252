//! Takes in bodies within a budget of memory, whoever sends how many of them at once.
//!
//! A body that is larger than what every connection may hold anyway asks for its room before it is read, by its own
//! `Content-Length` or, where it has none, for the largest there may be. What finds no room waits for a third of the time
//! that the API server grants. Then it is answered with 429 and `Retry-After`, which the API server's client takes as a
//! request to send the same again, until its own deadline.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout, timeout_at},
};

use super::listener::Patience;
use crate::telemetry::{Metrics, metrics::Refused};

/// A review carries an object twice, and the API server takes objects of 3 MiB.
pub const MAX_BODY: usize = 8 << 20;
/// What every connection may hold without asking: most reviews are smaller, and never wait for larger ones.
const FREE: usize = 64 << 10;
/// All that is larger shares this. While a body is judged it is still there, and what was decoded of it besides: up to eight
/// times as much where it is made of small pieces.
const BUDGET: usize = 16 << 20;
/// The budget is counted in pieces of so many bytes.
const PIECE: usize = 1 << 10;
/// A body that takes up room and of which nothing comes for so long is given up.
const STALL: Duration = Duration::from_secs(3);
/// A body that is not wanted and pauses for so long has been sent, or its sender waits for the answer.
const PAUSE: Duration = Duration::from_secs(1);
/// Of a body that is not wanted so much is read and thrown away, so that its sender gets to see the answer.
const DISCARDED: usize = 16 << 20;

/// Room for bodies.
#[derive(Clone, Debug)]
pub(super) struct Bodies {
    room: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

/// A whole body. It takes up room until it is dropped.
#[derive(Debug)]
pub(super) struct Received {
    bytes: Vec<u8>,
    _room: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Received {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Bodies {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self { room: Arc::new(Semaphore::new(BUDGET / PIECE)), metrics }
    }

    /// Takes in a whole body within two thirds of the time `granted`; the error is what to answer instead.
    pub(super) async fn receive(&self, request: Request, granted: Duration) -> Result<Received, Response> {
        let begun = Instant::now();
        let patience = request.extensions().get::<Patience>().cloned();
        let body = request.into_body();
        let hint = body.size_hint();
        // More than a usize can tell is more than enough.
        let declared = hint.exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        if declared.is_some_and(|length| length > MAX_BODY) {
            // At once; what is still being sent is taken off the wire meanwhile.
            tokio::spawn(discard(body, STALL));
            return Err(self.refuse(Refused::TooLarge));
        }
        let mut receiving = Receiving { bytes: Vec::new(), body, end: begun + granted * 2 / 3 };
        let mut room = None;
        if declared.is_none_or(|length| length > FREE) {
            if declared.is_none() && receiving.up_to(FREE).await.map_err(|refused| self.refuse(refused))? {
                return Ok(Received { bytes: receiving.bytes, _room: None });
            }
            let wanted = pieces(declared.unwrap_or(MAX_BODY));
            let Some(taken) = self.room_for(wanted, granted / 3, patience).await else {
                discard(receiving.body, granted / 3).await;
                return Err(self.refuse(Refused::NoRoom));
            };
            room = Some(taken);
        }
        receiving.bytes.reserve_exact(declared.unwrap_or_default());
        if !receiving.up_to(MAX_BODY).await.map_err(|refused| self.refuse(refused))? {
            tokio::spawn(discard(receiving.body, STALL));
            return Err(self.refuse(Refused::TooLarge));
        }
        if let Some(room) = &mut room {
            // Room for the largest was taken where the size was not known.
            drop(room.split(room.num_permits().saturating_sub(pieces(receiving.bytes.len()) as usize)));
        }
        Ok(Received { bytes: receiving.bytes, _room: room })
    }

    /// So many pieces of the budget, if they come free in time.
    async fn room_for(&self, pieces: u32, wait: Duration, patience: Option<Patience>) -> Option<OwnedSemaphorePermit> {
        if let Ok(taken) = self.room.clone().try_acquire_many_owned(pieces) {
            return Some(taken);
        }
        if let Some(patience) = patience {
            patience.put_off(wait);
        }
        timeout(wait, self.room.clone().acquire_many_owned(pieces)).await.ok()?.ok()
    }

    fn refuse(&self, refused: Refused) -> Response {
        self.metrics.count_refused(refused);
        match refused {
            Refused::TooLarge => {
                let reason = format!("a review is at most {} MiB\n", MAX_BODY >> 20);
                (StatusCode::PAYLOAD_TOO_LARGE, reason).into_response()
            }
            Refused::TooSlow => (StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time\n").into_response(),
            Refused::Broken => (StatusCode::BAD_REQUEST, "the body broke off\n").into_response(),
            Refused::NoRoom => {
                let reason = "too many large reviews at a time; send it again\n";
                (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "1")], reason).into_response()
            }
        }
    }
}

/// A size in pieces of the budget.
fn pieces(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PIECE)).unwrap_or(u32::MAX)
}

/// A body that is coming in.
struct Receiving {
    bytes: Vec<u8>,
    body: Body,
    end: Instant,
}

impl Receiving {
    /// Reads on until the end, or until there is more than `limit` bytes; says whether it was the end.
    async fn up_to(&mut self, limit: usize) -> Result<bool, Refused> {
        while let Some(piece) = self.next().await? {
            self.bytes.extend_from_slice(&piece);
            if self.bytes.len() > limit {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Refused> {
        let patience = self.end.min(Instant::now() + STALL);
        match timeout_at(patience, self.body.frame()).await {
            Err(_) => Err(Refused::TooSlow),
            Ok(None) => Ok(None),
            Ok(Some(Err(_))) => Err(Refused::Broken),
            // Trailers say nothing that counts here.
            Ok(Some(Ok(frame))) => Ok(Some(frame.into_data().unwrap_or_default())),
        }
    }
}

/// Takes a body off the wire without keeping it: a client that is still sending when its connection is closed may never
/// see the answer.
async fn discard(mut body: Body, time: Duration) {
    let mut left = DISCARDED;
    let _ = timeout(time, async {
        while let Ok(Some(Ok(frame))) = timeout(PAUSE, body.frame()).await {
            left = left.saturating_sub(frame.into_data().map_or(0, |data| data.len()));
            if left == 0 {
                return;
            }
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, stream};

    use super::*;

    const GRANTED: Duration = Duration::from_secs(30);

    fn bodies() -> Bodies {
        Bodies::new(Arc::new(Metrics::new()))
    }

    fn of(size: usize) -> Request {
        Request::new(Body::from(vec![b' '; size]))
    }

    /// A body of unknown length: `sent` pieces of 16 KiB, then silence if it `stalls`.
    fn chunked(sent: usize, stalls: bool) -> Request {
        let pieces = stream::iter((0..sent).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 16 << 10]))));
        Request::new(if stalls {
            Body::from_stream(pieces.chain(stream::pending()))
        } else {
            Body::from_stream(pieces)
        })
    }

    fn status(result: Result<Received, Response>) -> u16 {
        result.map_or_else(|response| response.status().as_u16(), |_| 200)
    }

    #[tokio::test]
    async fn room_is_taken_for_what_is_large_and_given_back() {
        let bodies = bodies();
        let whole = bodies.room.available_permits();
        let small = bodies.receive(of(FREE), GRANTED).await.unwrap();
        assert_eq!(bodies.room.available_permits(), whole);
        let large = bodies.receive(of(FREE + 1), GRANTED).await.unwrap();
        assert_eq!(bodies.room.available_permits(), whole - 65);
        let unknown = bodies.receive(chunked(8, false), GRANTED).await.unwrap();
        assert_eq!(bodies.room.available_permits(), whole - 65 - 128, "no more than it turned out to be");
        assert_eq!((small.bytes.len(), large.bytes.len(), unknown.bytes.len()), (FREE, FREE + 1, 128 << 10));
        drop((small, large, unknown));
        assert_eq!(bodies.room.available_permits(), whole);
    }

    #[tokio::test(start_paused = true)]
    async fn without_room_large_ones_are_asked_to_come_again_and_small_ones_are_taken() {
        let bodies = bodies();
        let mut held = Vec::new();
        for _ in 0..BUDGET / MAX_BODY {
            held.push(bodies.receive(of(MAX_BODY), GRANTED).await.unwrap());
        }
        for body in [of(MAX_BODY), of(FREE + 1), chunked(8, false)] {
            let answer = bodies.receive(body, GRANTED).await.unwrap_err();
            assert_eq!(
                (answer.status(), &answer.headers()[header::RETRY_AFTER]),
                (StatusCode::TOO_MANY_REQUESTS, &"1".parse().unwrap())
            );
        }
        assert!(bodies.receive(of(FREE), GRANTED).await.is_ok());
        assert!(bodies.receive(chunked(2, false), GRANTED).await.is_ok());
        let waiting = tokio::spawn({
            let bodies = bodies.clone();
            async move { bodies.receive(of(MAX_BODY), GRANTED).await.is_ok() }
        });
        tokio::task::yield_now().await;
        held.pop();
        assert!(waiting.await.unwrap(), "room came free while it waited");
    }

    #[tokio::test(start_paused = true)]
    async fn too_large_is_refused_by_the_header_alone_and_by_what_comes() {
        let declared = |length: u64| {
            let body = Body::from_stream(stream::pending::<std::io::Result<Bytes>>());
            Request::new(Body::new(Declared { body, length }))
        };
        for length in [MAX_BODY as u64 + 1, 9_000_000_000_000_000_000, u64::MAX] {
            let asked = Instant::now();
            assert_eq!(status(bodies().receive(declared(length), GRANTED).await), 413);
            assert_eq!(asked.elapsed(), Duration::ZERO, "it was waited for");
        }
        assert_eq!(status(bodies().receive(chunked(MAX_BODY / (16 << 10) + 1, false), GRANTED).await), 413);
        assert_eq!(status(bodies().receive(chunked(MAX_BODY / (16 << 10), false), GRANTED).await), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn what_stalls_gives_its_room_back() {
        let bodies = bodies();
        let whole = bodies.room.available_permits();
        for sent in [0, 2, 8] {
            assert_eq!(status(bodies.receive(chunked(sent, true), GRANTED).await), 408);
        }
        assert_eq!(bodies.room.available_permits(), whole);
    }

    /// A body that says it is of some length.
    struct Declared {
        body: Body,
        length: u64,
    }

    impl hyper::body::Body for Declared {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            context: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, axum::Error>>> {
            std::pin::Pin::new(&mut self.body).poll_frame(context)
        }

        fn size_hint(&self) -> hyper::body::SizeHint {
            hyper::body::SizeHint::with_exact(self.length)
        }
    }
}
