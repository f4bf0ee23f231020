//! The pages for people: chat at `/`, status at `/status`, and the files that they load.

use axum::{
    extract::Path,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
};
use mlxcel_artifacts::Digest;

use crate::api::error::ApiError;

/// What the pages may load and run: their own files, and nothing in line.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Headers of every page and file.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    // Browsers ask each time whether a file has changed. Another version of the server has others.
    (header::CACHE_CONTROL, "no-cache"),
];

/// A file of the pages.
struct Asset {
    path: &'static str,
    bytes: &'static [u8],
}

macro_rules! assets {
    ($($path:literal)*) => {
        [$(Asset { path: $path, bytes: include_bytes!(concat!("../../pages/", $path)) }),*]
    };
}

/// All files of the folder `pages`.
static ASSETS: [Asset; 41] = assets! {
    "chat.html"
    "icon.svg"
    "status.html"
    "css/base.css"
    "css/chat.css"
    "css/message.css"
    "css/status.css"
    "js/chat/announce.js"
    "js/chat/answer.js"
    "js/chat/composer.js"
    "js/chat/conversation.js"
    "js/chat/editor.js"
    "js/chat/library.js"
    "js/chat/main.js"
    "js/chat/message-view.js"
    "js/chat/models.js"
    "js/chat/panels.js"
    "js/chat/retry.js"
    "js/chat/runs.js"
    "js/chat/settings.js"
    "js/chat/sidebar.js"
    "js/chat/store.js"
    "js/chat/text-mode.js"
    "js/chat/toasts.js"
    "js/chat/transcript.js"
    "js/chat/transfer.js"
    "js/markdown/blocks.js"
    "js/markdown/inline.js"
    "js/markdown/render.js"
    "js/shared/api.js"
    "js/shared/dom.js"
    "js/shared/format.js"
    "js/shared/key-dialog.js"
    "js/shared/key.js"
    "js/shared/sse.js"
    "js/shared/theme.js"
    "js/status/main.js"
    "js/status/model.js"
    "js/status/plot.js"
    "js/status/scale.js"
    "js/status/table.js"
};

pub(super) async fn chat(method: Method, headers: HeaderMap, uri: Uri) -> Response {
    send("chat.html", &method, &headers, &uri)
}

pub(super) async fn status(method: Method, headers: HeaderMap, uri: Uri) -> Response {
    send("status.html", &method, &headers, &uri)
}

pub(super) async fn asset(
    Path(path): Path<String>,
    method: Method,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    send(&path, &method, &headers, &uri)
}

/// Sends a file, unless the browser has it.
fn send(path: &str, method: &Method, headers: &HeaderMap, uri: &Uri) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.path == path) else {
        return ApiError::no_path(method.as_str(), uri.path()).into_response();
    };
    let tag = format!("\"{}\"", &Digest::of(asset.bytes).hex()[..32]);
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut known = known.flat_map(|value| value.split(',')).map(str::trim);
    let is_known = known.any(|known| known == "*" || known.trim_start_matches("W/") == tag);
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => ([(header::CONTENT_TYPE, content_type(path))], asset.bytes).into_response(),
    };
    let fields = response.headers_mut();
    fields.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    fields.extend(HeaderValue::try_from(tag).map(|tag| (header::ETAG, tag)));
    response
}

/// Returns the type of a file by its extension.
fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
        path::Path,
    };

    use super::*;

    /// Returns the paths of all files in a folder, from `root` on.
    fn files(root: &Path, folder: &Path) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.append(&mut files(root, &path));
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
        found
    }

    /// Returns the texts between `begin` and `end`.
    fn between<'a>(text: &'a str, begin: &str, end: char) -> Vec<&'a str> {
        text.split(begin).skip(1).filter_map(|rest| rest.split(end).next()).collect()
    }

    /// Returns the modules that a module imports, as paths.
    fn imports(path: &str, text: &str) -> BTreeSet<String> {
        let of = |import: &str| {
            let mut parts: Vec<_> = path.split('/').collect();
            parts.pop();
            for part in import.split('/') {
                match part {
                    "." => {}
                    ".." => _ = parts.pop(),
                    name => parts.push(name),
                }
            }
            parts.join("/")
        };
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('*'));
        let lines = lines.filter(|line| line.starts_with("import") || line.starts_with("export"));
        lines.flat_map(|line| between(line, "from \"", '"')).map(of).collect()
    }

    #[test]
    fn all_files_are_served() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("pages");
        let served: BTreeSet<_> = ASSETS.iter().map(|asset| asset.path.to_owned()).collect();
        assert_eq!(served, files(&root, &root));
        for Asset { path, .. } in &ASSETS {
            assert_ne!(content_type(path), "application/octet-stream", "{path}");
        }
    }

    #[test]
    fn pages_refer_to_their_own_files_only() {
        let mut checked = 0;
        for Asset { path, bytes } in &ASSETS {
            let text = str::from_utf8(bytes).unwrap();
            // The name of a format, which is not loaded.
            let bare = text.replace("http://www.w3.org/2000/svg", "");
            for part in
                ["http://", "https://", "url(", "@import", "innerHTML", "outerHTML", "insertAdjacentHTML"]
            {
                let is_checked = ["http://", "https://"].contains(&part) && path.ends_with(".js");
                // The renderer of markdown compares addresses of links with these.
                assert!(is_checked || !bare.contains(part), "{path} has {part}");
            }
            if !path.ends_with(".html") {
                continue;
            }
            for attribute in ["style=", "onclick=", "onload=", "<style", "javascript:"] {
                assert!(!text.contains(attribute), "{path} has {attribute}");
            }
            assert!(between(text, "<script", '>').iter().all(|tag| tag.contains("src=")), "{path}");
            for reference in [" src=\"", " href=\""].into_iter().flat_map(|name| between(text, name, '"')) {
                checked += 1;
                let is_own = match reference.strip_prefix("assets/") {
                    Some(asset) => ASSETS.iter().any(|known| known.path == asset),
                    None => reference.starts_with('#') || ["./", "status"].contains(&reference),
                };
                assert!(is_own, "{path} refers to {reference}");
            }
        }
        assert!(checked > 10, "found {checked} references");
    }

    #[test]
    fn modules_import_what_is_there_without_circles() {
        let modules = ASSETS.iter().filter(|asset| asset.path.ends_with(".js"));
        let mut left: BTreeMap<_, _> = modules
            .map(|asset| (asset.path.to_owned(), imports(asset.path, str::from_utf8(asset.bytes).unwrap())))
            .collect();
        assert!(left["js/chat/main.js"].contains("js/shared/dom.js"), "{left:?}");
        for (path, imports) in &left {
            for import in imports {
                assert!(left.contains_key(import), "{path} imports {import}");
            }
        }
        while let Some(free) = left.iter().find(|(_, imports)| imports.is_empty()) {
            let free = free.0.clone();
            left.remove(&free);
            for imports in left.values_mut() {
                imports.remove(&free);
            }
        }
        assert!(left.is_empty(), "a circle of imports: {left:?}");
    }
}
