//! Every output, and what cannot be read.

use crate::support::{CLAIM, CONFIG, NAMESPACE, Trees, run};

fn trees() -> Trees {
    Trees::new(&[("web/a.yaml", &[CONFIG, CLAIM, NAMESPACE].concat())], &[("web/a.yaml", NAMESPACE)])
}

#[test]
fn every_format_names_what_goes() {
    for format in ["table", "json", "yaml", "sarif", "junit", "github", "markdown"] {
        let said = trees().diff(&["-o", format]);
        assert_eq!(said.code, 1, "{format}: {}", said.err);
        assert!(
            said.out.contains("PersistentVolumeClaim shop/data goes: argocd/web prunes it"),
            "{format}: {}",
            said.out
        );
    }
}

#[test]
fn comment_has_the_worst_first_and_folds_the_rest() {
    let text = trees().diff(&["-o", "markdown"]).out;
    assert!(text.starts_with("<!-- cascade-guard -->\n### cascade-guard diff: "), "{text}");
    let (claim, fold, config) =
        (text.find("shop/data").unwrap(), text.find("<details>").unwrap(), text.find("shop/settings").unwrap());
    assert!(claim < fold && fold < config, "{text}");
}

#[test]
fn what_cannot_be_read_does_not_hide_the_rest() {
    let trees = Trees::new(
        &[("web/a.yaml", &[CONFIG, CLAIM].concat()), ("bad/a.yaml", "a: [")],
        &[("web/a.yaml", CONFIG), ("bad/a.yaml", "kind: x\n")],
    );
    let said = trees.diff(&[]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("error: base/bad/a.yaml:1") && said.err.contains("error: target/bad/a.yaml:1"),
        "{}",
        said.err
    );
    assert!(said.out.contains("PersistentVolumeClaim shop/data"), "{}", said.out);
    let usage = |arguments: &[&str]| run(trees.0.path(), &[&["diff"], arguments].concat());
    for arguments in [&["base"][..], &[], &["gone", "target"], &["base", "target", "--git", "a..b"]] {
        let said = usage(arguments);
        assert!(said.code == 2 && said.out.is_empty(), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn one_application_may_have_many_folders() {
    let trees = Trees::new(&[("a/x.yaml", CONFIG), ("b/y.yaml", CLAIM)], &[("c/x.yaml", CONFIG), ("d.yaml", CLAIM)]);
    assert_ne!(trees.diff(&[]).out.trim(), "nothing found");
    assert_eq!(trees.diff(&["--single"]).out.trim(), "nothing found");
}
