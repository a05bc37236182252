//! When two URLs mean one repository, as Argo CD sees it (`util/git.NormalizeGitURL`), and beyond: ssh and https forms of one
//! place are one place, because a commit is the same in both.

/// The place that a URL means: host and path for a remote one, the path for a local one. `None` where it is no URL of a Git
/// repository, an OCI registry for instance.
pub fn place(url: &str) -> Option<String> {
    let url = url.trim();
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
        // `git@host:path`, which is ssh; a path has a slash before any colon.
        None => match url.split_once(':') {
            Some((host, path)) if !host.is_empty() && !host.contains('/') => {
                return remote(host, path);
            }
            _ => return (url.starts_with('/')).then(|| tidy(url)),
        },
    };
    match scheme.as_str() {
        "file" => Some(tidy(rest)),
        "http" | "https" | "ssh" | "git+ssh" => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            remote(host, path)
        }
        _ => None,
    }
}

/// Whether two URLs mean one repository.
pub fn same(left: &str, right: &str) -> bool {
    place(left).is_some_and(|place_of_left| Some(place_of_left) == place(right))
}

/// A URL without what somebody may have put before the host: it is shown to people.
pub fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    path.map_or_else(|| format!("{scheme}://{host}"), |path| format!("{scheme}://{host}/{path}"))
}

fn remote(host: &str, path: &str) -> Option<String> {
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
    let host = [":443", ":80", ":22"].iter().find_map(|port| host.strip_suffix(port)).unwrap_or(&host);
    let path = tidy(path);
    let path = path.trim_start_matches('/');
    (!host.is_empty() && !path.is_empty()).then(|| format!("{host}/{path}"))
}

fn tidy(path: &str) -> String {
    let path = path.trim_end_matches('/');
    path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_one_repository_are_one() {
        let plain = "https://git.example.com/org/shop";
        for other in [
            "https://git.example.com/org/shop.git",
            "https://GIT.example.com/org/shop.git/",
            "https://alice:secret@git.example.com/org/shop",
            "git@git.example.com:org/shop.git",
            "ssh://git@git.example.com/org/shop",
            "ssh://git@git.example.com:22/org/shop.git",
            "https://git.example.com:443/org/shop",
            " https://git.example.com/org/shop ",
        ] {
            assert!(same(plain, other), "{other}: {:?}", place(other));
        }
    }

    #[test]
    fn others_are_others() {
        let plain = "https://git.example.com/org/shop";
        for other in [
            "https://git.example.com/org/Shop",
            "https://git.example.com/org/shop2",
            "https://git.example.com:8443/org/shop",
            "https://git.example.org/org/shop",
            "oci://git.example.com/org/shop",
            "/git.example.com/org/shop",
            "",
        ] {
            assert!(!same(plain, other), "{other}");
        }
        assert!(!same("", ""));
        assert!(same("file:///srv/shop.git", "/srv/shop"));
    }

    #[test]
    fn credentials_are_never_shown() {
        assert_eq!(without_credentials("https://u:p@host/x@y"), "https://host/x@y");
        assert_eq!(without_credentials("git@host:x"), "git@host:x");
        assert_eq!(without_credentials("https://u:p@host"), "https://host");
    }
}
