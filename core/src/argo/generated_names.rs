//! Names of the Applications that an ApplicationSet generates, as far as it says them itself: by its list generators and
//! the template of the name (`applicationset/generators/list.go`, `applicationset/utils/utils.go`).

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::object::null_to_default;

/// How an ApplicationSet names what it generates.
#[derive(Debug, Default)]
pub struct Naming {
    /// The template, in one spelling for Go templates and for the older kind.
    template: String,
    /// Names by its list generators; `None` where a name or an element cannot be told without rendering.
    listed: Option<BTreeSet<String>>,
    /// Its other generators.
    others: Vec<Value>,
    /// Whether its policy keeps the controller from deleting Applications.
    forbids_deletes: bool,
}

/// Applications that an update takes from an ApplicationSet.
#[derive(Debug, PartialEq, Eq)]
pub struct Dropped<'n> {
    /// Their names.
    pub names: Vec<&'n str>,
    /// Whether that is sure. It is not where the template is too rich to be rendered here.
    pub surely: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Body {
    #[serde(deserialize_with = "null_to_default")]
    spec: Spec,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "null_to_default")]
    generators: Vec<Value>,
    #[serde(deserialize_with = "null_to_default")]
    go_template: bool,
    template: Value,
    sync_policy: Value,
}

impl Naming {
    /// Reads an ApplicationSet.
    ///
    /// # Errors
    /// When its `spec` does not have the shape that Argo CD gives it.
    pub fn of(json: &str) -> Result<Self, serde_json::Error> {
        let Body { spec } = serde_json::from_str(json)?;
        let template = name_in(&spec.template).unwrap_or_default();
        let mut naming = Self {
            template: spelling(template),
            listed: Some(BTreeSet::new()),
            others: Vec::new(),
            forbids_deletes: matches!(
                spec.sync_policy["applicationsSync"].as_str(),
                Some("create-only" | "create-update")
            ),
        };
        for generator in spec.generators {
            if generator["list"].is_object() {
                naming.listed =
                    naming.listed.take().zip(list(&generator, template, spec.go_template)).map(|(mut names, more)| {
                        names.extend(more);
                        names
                    });
            } else {
                naming.others.push(generator);
            }
        }
        Ok(naming)
    }

    /// The names by its list generators; `None` where they cannot be told.
    pub fn names(&self) -> Option<&BTreeSet<String>> {
        self.listed.as_ref()
    }

    /// Whether an Application of this name may be one of those it generates.
    pub fn may_name(&self, name: &str) -> bool {
        if self.others.is_empty()
            && let Some(listed) = &self.listed
        {
            return listed.contains(name);
        }
        // What stands between the tags has to be in the name, in this order. Without anything that says nothing.
        let mut rest = name;
        let mut parts = self.template.split("{{").map(|part| part.split_once("}}").map_or(part, |(_, text)| text));
        let Some(first) = parts.next() else { return false };
        let Some(after) = rest.strip_prefix(first) else { return false };
        rest = after;
        let others: Vec<&str> = parts.collect();
        let Some((last, middle)) = others.split_last() else { return rest.is_empty() };
        for part in middle {
            let Some((_, after)) = rest.split_once(part) else { return false };
            rest = after;
        }
        rest.ends_with(last) && (!first.is_empty() || others.iter().any(|part| !part.is_empty()))
    }

    /// Of the Applications called `generated`, which it generated until now, those that it does not generate `after` an
    /// update. What other generators than lists yield is known only while they stay as they are.
    pub fn dropped<'n>(&self, after: &Self, generated: &[&'n str]) -> Dropped<'n> {
        let none = Dropped { names: Vec::new(), surely: true };
        if after.forbids_deletes || self.others != after.others {
            return none;
        }
        let renamed = self.template != after.template;
        let (names, surely) = match (&self.listed, &after.listed) {
            (_, Some(after)) if renamed => {
                (generated.iter().filter(|name| !after.contains(**name)).copied().collect(), true)
            }
            (_, None) if renamed => (generated.to_vec(), false),
            (Some(before), Some(after)) => {
                let gone = |name: &&&str| before.contains(**name) && !after.contains(**name);
                (generated.iter().filter(gone).copied().collect(), true)
            }
            _ => return none,
        };
        Dropped { names, surely }
    }
}

/// The names that one list generator yields.
fn list(generator: &Value, template: &str, go: bool) -> Option<Vec<String>> {
    let list = &generator["list"];
    let filtered =
        !generator["selector"].is_null() || list["elementsYaml"].as_str().is_some_and(|yaml| !yaml.is_empty());
    if filtered {
        return None;
    }
    let template = name_in(&list["template"]).unwrap_or(template);
    let elements = list["elements"].as_array().map_or(&[][..], Vec::as_slice);
    elements.iter().map(|element| render(template, element, go)).collect()
}

fn name_in(template: &Value) -> Option<&str> {
    template["metadata"]["name"].as_str().filter(|name| !name.is_empty())
}

/// The name for one element; `None` where the template asks for more than values of the element.
fn render(template: &str, element: &Value, go: bool) -> Option<String> {
    let mut name = String::new();
    let mut rest = template;
    while let Some((before, tag)) = rest.split_once("{{") {
        let (tag, after) = tag.split_once("}}")?;
        let tag = tag.trim();
        let path = if go { tag.strip_prefix('.')? } else { tag };
        let is_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.' || (c == '-' && !go);
        if path.is_empty() || !path.chars().all(is_path) {
            return None;
        }
        name.push_str(before);
        match path.split('.').try_fold(element, |at, key| at.get(key))? {
            Value::String(text) => name.push_str(text),
            Value::Number(number) if go => name.push_str(&number.to_string()),
            _ => return None,
        }
        rest = after;
    }
    name.push_str(rest);
    Some(name)
}

/// A template as it would be written without spaces, and in one way for both kinds of templates.
fn spelling(template: &str) -> String {
    let bare: String = template.chars().filter(|c| !c.is_whitespace()).collect();
    bare.replace("{{.", "{{")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(template: &str, go: bool, elements: &[&str]) -> Value {
        let elements: Vec<Value> = elements.iter().map(|name| json!({"name": name, "values": {"of": name}})).collect();
        json!({"spec": {"goTemplate": go, "generators": [{"list": {"elements": elements}}],
            "template": {"metadata": {"name": template}}}})
    }

    fn dropped(before: &Value, after: &Value) -> (Vec<String>, bool) {
        let naming = |set: &Value| Naming::of(&set.to_string()).unwrap();
        let (before, after) = (naming(before), naming(after));
        let Dropped { names, surely } = before.dropped(&after, &["web-a", "web-b", "web-c"]);
        (names.into_iter().map(str::to_owned).collect(), surely)
    }

    fn surely(names: &[&str]) -> (Vec<String>, bool) {
        (names.iter().map(|name| (*name).to_owned()).collect(), true)
    }

    #[test]
    fn element_that_is_taken_out_takes_its_application_out() {
        let before = set("web-{{name}}", false, &["a", "b", "c"]);
        assert_eq!(dropped(&before, &set("web-{{name}}", false, &["a", "c", "d"])), surely(&["web-b"]));
        assert_eq!(dropped(&before, &set("web-{{name}}", false, &["c", "b", "a"])), surely(&[]));
        assert_eq!(dropped(&before, &set("web-{{name}}", false, &[])), surely(&["web-a", "web-b", "web-c"]));
    }

    #[test]
    fn template_that_changes_renames_and_one_in_another_spelling_does_not() {
        let before = set("web-{{name}}", false, &["a", "b", "c"]);
        let after = |template, go| dropped(&before, &set(template, go, &["a", "b", "c"]));
        assert_eq!(after("web2-{{name}}", false), surely(&["web-a", "web-b", "web-c"]));
        assert_eq!(after("web-{{ values.of }}", false), surely(&[]));
        assert_eq!(after("web-{{ .name }}", true), surely(&[]));
        assert_eq!(after("web-{{ .name | lower }}", true), (surely(&["web-a", "web-b", "web-c"]).0, false));
    }

    #[test]
    fn names_are_told_by_the_list_or_by_what_stands_between_the_tags() {
        let naming = |set: Value| Naming::of(&set.to_string()).unwrap();
        let listed = naming(set("web-{{name}}", false, &["a", "b"]));
        assert!(listed.may_name("web-a") && !listed.may_name("web-c"));
        assert_eq!(listed.names().unwrap().len(), 2);
        let git = |template: &str| {
            naming(json!({"spec": {"generators": [{"git": {}}], "template": {"metadata": {"name": template}}}}))
        };
        assert!(git("{{path.basename}}-web").may_name("shop-web"));
        assert!(!git("{{path.basename}}-web").may_name("shop-api"));
        assert!(git("a-{{x}}-b-{{y}}").may_name("a-1-b-2") && !git("a-{{x}}-b-{{y}}").may_name("a-1-c-2"));
        // A template of tags alone fits everything, so it tells nothing.
        assert!(!git("{{path.basename}}").may_name("shop"));
    }

    #[test]
    fn nothing_is_said_of_what_only_the_controller_knows() {
        let git = |template: &str, revision: &str| json!({"spec": {"generators": [{"git": {"revision": revision}}], "template": {"metadata": {"name": template}}}});
        assert_eq!(dropped(&git("web-{{path}}", "a"), &git("web-{{path}}", "b")), surely(&[]));
        assert_eq!(dropped(&git("web-{{path}}", "a"), &git("x-{{path}}", "b")), surely(&[]));
        // The template alone is reason enough.
        assert_eq!(dropped(&git("web-{{path}}", "a"), &git("x-{{path}}", "a")), surely(&["web-a", "web-b", "web-c"]));
        let before = set("web-{{name}}", false, &["a", "b"]);
        assert_eq!(dropped(&before, &git("web-{{name}}", "a")), surely(&[]));
        let mut kept = set("web-{{name}}", false, &["a"]);
        kept["spec"]["syncPolicy"] = json!({"applicationsSync": "create-update"});
        assert_eq!(dropped(&before, &kept), surely(&[]));
    }
}
