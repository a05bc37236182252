//! What an ApplicationSet says of itself.

use crate::body::Body;

/// How Argo CD says that it will not take over an Application of another set (`controllerutil.AlreadyOwnedError`).
const OWNED_BY: &str = "already owned by another ApplicationSet controller ";

/// The ApplicationSet whose Applications this one wants, if its own condition says so: a set that was renamed generates
/// the same names as before. `json` is the whole object.
pub fn wants_applications_of(json: &str) -> Option<String> {
    let body: Body = serde_json::from_str(json).ok()?;
    let name = body.conditions.iter().find_map(|condition| condition.message.split_once(OWNED_BY))?.1;
    let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.')).unwrap_or(name.len());
    let name = name[..end].trim_end_matches('.');
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn condition_names_the_set_that_owns_them() {
        let said = |message: &str| {
            let set = serde_json::json!({"status": {"conditions": [{"type": "ErrorOccurred", "message": message}]}});
            wants_applications_of(&set.to_string())
        };
        let message = "Object argocd/web is already owned by another ApplicationSet controller shop-old";
        assert_eq!(said(message).as_deref(), Some("shop-old"));
        assert_eq!(said(&format!("{message}, and more.")).as_deref(), Some("shop-old"));
        assert_eq!(said(&format!("{message}.")).as_deref(), Some("shop-old"));
        assert_eq!(said("all well"), None);
        assert_eq!(wants_applications_of("{}"), None);
    }
}
