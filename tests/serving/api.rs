//! An API server that does what a test tells it to, also what no real one could be brought to do.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use axum::http::{Request, Response};
use futures::{channel::mpsc, stream::StreamExt};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What comes back for a path.
#[derive(Clone)]
pub enum Reply {
    /// A status and a body.
    Json(u16, Value),
    /// Something that is no JSON.
    Text(u16, &'static str),
    /// Nothing, ever.
    Silence,
}

impl Reply {
    /// A failure as the API server words it.
    pub fn failure(code: u16, reason: &str, message: &str) -> Self {
        let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
            "message": message});
        Self::Json(code, body)
    }

    /// A list.
    pub fn list(items: &[Value]) -> Self {
        Self::Json(
            200,
            json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "10"}, "items": items}),
        )
    }
}

type Event = Result<Frame<Bytes>, Infallible>;

/// The API server.
#[derive(Clone, Default)]
pub struct FakeApi {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    replies: Mutex<HashMap<String, Reply>>,
    watches: Mutex<HashMap<String, mpsc::UnboundedSender<Event>>>,
    requests: Mutex<Vec<(String, String)>>,
    open: Mutex<(usize, usize)>,
    watched: Notify,
    gate: Mutex<Option<Arc<Notify>>>,
}

impl FakeApi {
    /// One that serves the kinds these tests speak of, and lists nothing of any of them.
    pub fn new() -> Self {
        let api = Self::default();
        let resource = |plural: &str, kind: &str, scope: &str| {
            json!({"resource": plural, "responseKind": {"group": "", "version": "", "kind": kind}, "scope": scope,
                "verbs": ["get", "list", "watch"]})
        };
        let group = |name: &str, version: &str, resources: Vec<Value>| json!({"metadata": {"name": name}, "versions": [{"version": version, "resources": resources}]});
        let list = |items: Vec<Value>| {
            Reply::Json(
                200,
                json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}),
            )
        };
        api.reply(
            "/api",
            list(vec![group(
                "",
                "v1",
                vec![
                    resource("namespaces", "Namespace", "Cluster"),
                    resource("secrets", "Secret", "Namespaced"),
                    resource("pods", "Pod", "Namespaced"),
                ],
            )]),
        );
        api.reply(
            "/apis",
            list(vec![
                group("rbac.authorization.k8s.io", "v1", vec![resource("roles", "Role", "Namespaced")]),
                group("example.com", "v1beta2", vec![resource("gateways", "Gateway", "Cluster")]),
            ]),
        );
        for path in [
            "/apis/argoproj.io/v1alpha1/applications",
            "/apis/argoproj.io/v1alpha1/applicationsets",
            "/apis/argoproj.io/v1alpha1/appprojects",
            "/api/v1/namespaces",
            "/api/v1/configmaps",
            "/api/v1/namespaces/argocd/secrets",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "/apis/cascade-guard.io/v1alpha1/guardpolicies",
        ] {
            api.reply(path, Reply::list(&[]));
        }
        api
    }

    /// Says what comes back for a path from now on; for `PATH?watch` or `PATH?continue`, to a watch or a later page.
    pub fn reply(&self, path: &str, reply: Reply) {
        self.state.replies.lock().unwrap().insert(path.to_owned(), reply);
    }

    /// Takes back what was said about a path.
    pub fn forget(&self, path: &str) {
        self.state.replies.lock().unwrap().remove(path);
    }

    /// Holds every answer back until the gate is notified for each.
    pub fn hold(&self) -> Arc<Notify> {
        let gate = Arc::new(Notify::new());
        *self.state.gate.lock().unwrap() = Some(gate.clone());
        gate
    }

    /// Sends a watch event to whoever watches a path, once somebody does.
    pub async fn event(&self, path: &str, kind: &str, object: Value) {
        let line = format!("{}\n", json!({"type": kind, "object": object}));
        // The API server writes the type first; json! sorts alphabetically.
        let line = line.replacen(
            &format!(r#"{{"object":{object},"type":"{kind}"}}"#),
            &format!(r#"{{"type":"{kind}","object":{object}}}"#),
            1,
        );
        loop {
            let watched = self.state.watched.notified();
            let sender = self.state.watches.lock().unwrap().get(path).cloned();
            if sender.is_some_and(|sender| sender.unbounded_send(Ok(Frame::data(Bytes::from(line.clone())))).is_ok()) {
                return;
            }
            watched.await;
        }
    }

    /// Ends the watch of a path, as the API server does when its time is over.
    pub fn end(&self, path: &str) {
        self.state.watches.lock().unwrap().remove(path);
    }

    /// Path and `Accept` of every request so far.
    pub fn requests(&self) -> Vec<(String, String)> {
        self.state.requests.lock().unwrap().clone()
    }

    /// How many requests are being answered, and how many there were at most.
    pub fn open(&self) -> (usize, usize) {
        *self.state.open.lock().unwrap()
    }

    /// A client that talks to this server.
    pub fn client(&self) -> kube::Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        kube::Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let accept = request.headers().get("accept").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        self.state.requests.lock().unwrap().push((request.uri().to_string(), accept.to_owned()));
        let part = ["watch", "continue"].into_iter().find(|part| query.contains(&format!("{part}=")));
        let own = part.and_then(|part| self.state.replies.lock().unwrap().get(&format!("{path}?{part}")).cloned());
        if own.is_none() && query.contains("watch=true") {
            let (sender, receiver) = mpsc::unbounded();
            self.state.watches.lock().unwrap().insert(path, sender);
            self.state.watched.notify_waiters();
            return Response::new(StreamBody::new(receiver.boxed()).boxed_unsync());
        }
        {
            let mut open = self.state.open.lock().unwrap();
            open.0 += 1;
            open.1 = open.1.max(open.0);
        }
        let gate = self.state.gate.lock().unwrap().clone();
        if let Some(gate) = gate {
            gate.notified().await;
        }
        let reply = own.or_else(|| self.state.replies.lock().unwrap().get(&path).cloned());
        let (code, body) = match reply {
            Some(Reply::Json(code, body)) => (code, body.to_string()),
            Some(Reply::Text(code, text)) => (code, text.to_owned()),
            Some(Reply::Silence) => std::future::pending().await,
            None => (404, "404 page not found\n".to_owned()),
        };
        self.state.open.lock().unwrap().0 -= 1;
        Response::builder().status(code).body(Full::new(Bytes::from(body)).boxed_unsync()).unwrap()
    }
}
