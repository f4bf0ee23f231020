//! The pages for people, as a browser asks for them.

use reqwest::{Client, StatusCode};
use serde_json::Value;

use crate::scripted::Server;

#[tokio::test(flavor = "multi_thread")]
async fn pages_need_no_key_and_run_only_their_own_files() {
    let server = Server::with_keys(&["one"]).await;
    let client = Client::new();
    for (path, content_type, part) in [
        ("/", "text/html; charset=utf-8", "<title>Chat"),
        ("/status", "text/html; charset=utf-8", "<title>Status"),
        ("/assets/js/chat/main.js", "text/javascript; charset=utf-8", "import"),
        ("/assets/css/base.css", "text/css; charset=utf-8", ":root"),
        ("/assets/icon.svg", "image/svg+xml", "<svg"),
    ] {
        let whole = client.get(server.url(path)).send().await.unwrap();
        assert_eq!(whole.status(), StatusCode::OK, "{path}");
        let headers = whole.headers().clone();
        assert_eq!(headers["content-type"], content_type, "{path}");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["cache-control"], "no-cache");
        assert_eq!(
            headers["content-security-policy"],
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        let text = whole.text().await.unwrap();
        assert!(text.contains(part), "{path}");

        let head = client.head(server.url(path)).send().await.unwrap();
        assert_eq!(
            (head.status(), head.headers()["etag"].clone()),
            (StatusCode::OK, headers["etag"].clone())
        );
        assert_eq!(head.headers()["content-length"], text.len().to_string());
        assert_eq!(head.text().await.unwrap(), "");

        let tag = headers["etag"].to_str().unwrap();
        for (known, status) in [
            (tag.to_owned(), 304),
            (format!("\"a\", W/{tag}"), 304),
            ("*".into(), 304),
            ("\"a\"".into(), 200),
        ] {
            let again = client.get(server.url(path)).header("if-none-match", &known).send().await.unwrap();
            assert_eq!(
                (again.status().as_u16(), &again.headers()["etag"]),
                (status, &headers["etag"]),
                "{known}"
            );
            assert_eq!(again.text().await.unwrap(), if status == 304 { "" } else { text.as_str() });
        }
    }
    for (method, path, status) in [
        ("GET", "/assets/js/none.js", 404),
        ("GET", "/assets/../Cargo.toml", 404),
        ("GET", "/assets/%2e%2e/Cargo.toml", 404),
        ("GET", "/assets/", 404),
        ("POST", "/", 405),
        ("DELETE", "/assets/icon.svg", 405),
    ] {
        let response = client.request(method.parse().unwrap(), server.url(path)).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{method} {path}");
        let error: Value = response.json().await.unwrap();
        assert!(error["error"]["message"].as_str().unwrap().starts_with("found no "), "{error}");
    }
    let models: Value =
        client.get(server.url("/v1/models")).bearer_auth("one").send().await.unwrap().json().await.unwrap();
    assert_eq!(models["data"][0]["chat_template"], true);
}
