use super::*;

fn keys() -> Vec<String> {
    vec!["Watchdog".to_owned()]
}

fn of(text: &str, trailers: &str) -> Vec<Result<Wish, Malformed>> {
    wishes(Message { text, trailers }, &keys(), "argocd")
}

/// A message whose last paragraph is these lines.
fn trailer(lines: &str) -> Vec<Result<Wish, Malformed>> {
    of(&format!("a subject\n\n{lines}\n"), lines)
}

fn problem(line: &str) -> String {
    match trailer(line).pop() {
        Some(Err(malformed)) => malformed.problem,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn defaults_are_the_careful_ones() {
    let wish = trailer("Watchdog: app=payments").pop().unwrap().unwrap();
    assert_eq!((wish.deadline, wish.stable, wish.mode, wish.expect), (900, 120, Mode::Shadow, Expect::Healthy));
    assert_eq!(wish.app.to_string(), "argocd/payments");
}

#[test]
fn every_field_is_read() {
    let line = "WATCHDOG: app=team/web deadline=60 mode=arm expect=Healthy,children stable=10";
    let wish = trailer(line).pop().unwrap().unwrap();
    assert_eq!((wish.deadline, wish.stable, wish.mode, wish.expect), (60, 10, Mode::Arm, Expect::Children));
    assert_eq!(wish.app, AppRef::new("team", "web"));
}

#[test]
fn what_cannot_be_acted_on_says_why() {
    for (line, words) in [
        ("Watchdog: deadline=60", "app=NAME is missing"),
        ("Watchdog: app=", "no name"),
        ("Watchdog: app=A_b", "no name"),
        ("Watchdog: app=a/b/c", "no name"),
        ("Watchdog: app=a deadline=29", "from 30 to 86400"),
        ("Watchdog: app=a deadline=86401", "from 30 to 86400"),
        ("Watchdog: app=a deadline=+60", "from 30"),
        ("Watchdog: app=a deadline=60 stable=60", "must be less"),
        ("Watchdog: app=a stable=0 deadline=60", "from 1"),
        ("Watchdog: app=a mode=armed", "shadow or arm"),
        ("Watchdog: app=a expect=Degraded", "Healthy,children"),
        ("Watchdog: app=a colour=red", "no field `colour`"),
        ("Watchdog: app=a app=b", "twice"),
        ("Watchdog:", "app=NAME is missing"),
    ] {
        assert!(problem(line).contains(words), "{line}: {}", problem(line));
    }
}

#[test]
fn one_application_is_named_once_and_several_are_fine() {
    let several = trailer("Watchdog: app=a\nReviewed-by: x\nWatchdog: app=b");
    assert!(several.len() == 2 && several.iter().all(Result::is_ok), "{several:?}");
    let twice = trailer("Watchdog: app=a\nWatchdog: app=argocd/a deadline=60 stable=5");
    assert!(twice.len() == 2 && twice.iter().all(Result::is_err), "{twice:?}");
}

#[test]
fn line_outside_the_block_is_told() {
    for text in [
        "subject\n\nWatchdog: app=a\n\nCo-authored-by: x <x@example.com>\n",
        "subject\n\nWatchdog: app=a\nand an ordinary line\n",
        "subject (#4)\n\n* web: one\n\n    Watchdog: app=a mode=arm\n\n* web: two\n",
        "Watchdog: app=a",
    ] {
        let found = of(text, "");
        let Some(Err(malformed)) = found.first() else { panic!("{text}: {found:?}") };
        assert!(malformed.problem.contains("block of trailers"), "{text}");
        assert_eq!(malformed.app, Some(AppRef::new("argocd", "a")));
    }
    assert_eq!(of("about\n\n    Watchdog: the tool that reverts\n", ""), []);
    assert_eq!(of("watchdogs: app=a\n\nWatchdog app=a\n", ""), []);
}

#[test]
fn folded_trailer_is_no_stray_line() {
    let found = of("s\n\nWatchdog: app=a\n  deadline=60 stable=5\n", "Watchdog: app=a deadline=60 stable=5");
    assert!(found.len() == 1 && found[0].is_ok(), "{found:?}");
}

#[test]
fn quotation_in_a_revert_is_none_and_a_trailer_of_its_own_counts() {
    let id = "a".repeat(40);
    let quoted = format!("Revert \"web\"\n\nThis reverts commit {id}.\n\nWatchdog: app=a mode=arm\n\nBecause.\n");
    assert_eq!(of(&quoted, ""), []);
    let own = format!("Revert \"web\"\n\nThis reverts commit {id}.\n\nWatchdog: app=a\n");
    assert!(matches!(of(&own, "Watchdog: app=a")[..], [Ok(_)]));
}

#[test]
fn reverted_commits_are_full_ids_only() {
    let id = "0123456789abcdef0123456789abcdef01234567";
    assert_eq!(reverted_by(&format!("This reverts commit {id}, reversing\nchanges")), [id]);
    assert_eq!(reverted_by(&format!("x\nThis reverts commit {}.", id.to_uppercase())), [id]);
    assert!(reverted_by("This reverts commit 0123456.").is_empty());
    assert!(reverted_by(&format!("it reverts commit {id}")).is_empty());
}
