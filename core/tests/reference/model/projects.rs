//! "Claims, known or unknown, count where the Application's project permits them (source namespaces, destinations)."

use serde_json::Value;

use super::{ARGO, Cluster, Model, url};
use crate::json::{glob, list, text};

pub(super) fn project_of(app: &Value) -> &str {
    let project = text(app, "/spec/project");
    if project.is_empty() { "default" } else { project }
}

impl Model<'_> {
    /// Whether the project of an Application permits it an object in this namespace of its cluster.
    pub(super) fn is_permitted(&self, app: &Value, namespace: &str) -> bool {
        // "in a snapshot without any AppProject nothing is known of projects"
        if self.of_kind("AppProject").next().is_none() {
            return true;
        }
        // "Never compared and not served: no unknown claimant; what an Application lists counts all the same."
        let Some(home) = self.installation_of(app) else { return true };
        let (own, foreign) = (text(app, "/metadata/namespace"), text(app, "/metadata/namespace") != home);
        let project = self.live(&(Cluster::This, self.key(ARGO, "AppProject", home, project_of(app))));
        // "A project that does not exist permits nothing to an Application outside the installation's own namespace"
        let Some(project) = project else { return !foreign };
        let mut sources = list(project, "/spec/sourceNamespaces").iter().filter_map(Value::as_str);
        if foreign && !sources.any(|pattern| glob(pattern, own)) {
            return false;
        }
        let target = text(app, "/spec/destination/namespace");
        self.permits(project, app, target) && (namespace.is_empty() || self.permits(project, app, namespace))
    }

    /// Whether a destination of the project covers this namespace, and none that begins with `!` does.
    fn permits(&self, project: &Value, app: &Value, namespace: &str) -> bool {
        let here = self.cluster_of(app) == Cluster::This;
        let server = text(app, "/spec/destination/server");
        let mut servers = if server.is_empty() { vec![] } else { vec![url(server)] };
        if here {
            servers.push(url("https://kubernetes.default.svc"));
        }
        let permits = |rule: &Value| {
            let wanted = text(rule, "/server");
            let covers = |server: &String| wanted == "*" || url(wanted) == *server;
            servers.iter().any(covers) && glob(text(rule, "/namespace"), namespace)
        };
        list(project, "/spec/destinations").iter().any(permits)
    }
}
