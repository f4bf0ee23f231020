//! What the environment says about the hub, under the names that huggingface_hub gives it.

use std::{
    env,
    ffi::OsString,
    fmt, fs,
    path::{Path, PathBuf},
};

/// The hub without `HF_ENDPOINT`.
const ENDPOINT: &str = "https://huggingface.co";

/// Where the hub is, and the cache of what was downloaded from it.
#[derive(Clone, PartialEq, Eq)]
pub struct HubSettings {
    /// The folder of repositories; `None` if there is no home folder either.
    pub cache: Option<PathBuf>,
    /// URL of the hub, or of a mirror.
    pub endpoint: String,
    /// The token that private and gated repositories need.
    pub token: Option<String>,
    /// Whether only the cache is used.
    pub offline: bool,
}

impl HubSettings {
    /// Reads the settings from the environment.
    ///
    /// The cache is `HF_HUB_CACHE`, otherwise `hub` in `HF_HOME`, otherwise `~/.cache/huggingface/hub`. The token is
    /// `HF_TOKEN`, otherwise the file at `HF_TOKEN_PATH` or `token` in `HF_HOME`. `HF_ENDPOINT` is the URL of a mirror,
    /// and `HF_HUB_OFFLINE=1` uses only the cache.
    #[must_use]
    pub fn from_env() -> Self {
        Self::from_variables(&|name| env::var_os(name))
    }

    fn from_variables(variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        let path = |name| {
            variable(name).map(|value| expand_home(&PathBuf::from(value), variable("HOME").as_deref()))
        };
        let text = |name| variable(name).and_then(|value| value.into_string().ok());
        let caches = path("XDG_CACHE_HOME").or_else(|| Some(path("HOME")?.join(".cache")));
        let home = path("HF_HOME").or_else(|| Some(caches?.join("huggingface")));
        let token_file = path("HF_TOKEN_PATH").or_else(|| Some(home.as_ref()?.join("token")));
        let token = text("HF_TOKEN").or_else(|| fs::read_to_string(token_file?).ok());
        let token = token.map(|token| token.trim().to_owned());
        let endpoint = text("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned());
        let is_true =
            |value: String| ["1", "ON", "YES", "TRUE"].contains(&value.to_ascii_uppercase().as_str());
        Self {
            cache: path("HF_HUB_CACHE").or_else(|| Some(home?.join("hub"))),
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            token: token.filter(|token| !token.is_empty()),
            offline: text("HF_HUB_OFFLINE").is_some_and(is_true),
        }
    }
}

impl fmt::Debug for HubSettings {
    /// Writes everything but the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cache, endpoint, token, offline } = self;
        let token = token.as_ref().map(|_| "…");
        let mut all = f.debug_struct("HubSettings");
        all.field("cache", cache).field("endpoint", endpoint).field("token", &token);
        all.field("offline", offline).finish()
    }
}

/// Returns a path with the home folder in place of `~`, as huggingface_hub reads it.
fn expand_home(path: &Path, home: Option<&std::ffi::OsStr>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => Path::new(home).join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> HubSettings {
        HubSettings::from_variables(&|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn the_environment_names_the_cache_and_the_hub() {
        let cache = |variables: &[(&str, &str)]| settings(variables).cache;
        assert_eq!(cache(&[]), None);
        assert_eq!(cache(&[("HOME", "/h")]), Some("/h/.cache/huggingface/hub".into()));
        assert_eq!(cache(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")]), Some("/x/huggingface/hub".into()));
        assert_eq!(cache(&[("HOME", "/h"), ("HF_HOME", "~/hf")]), Some("/h/hf/hub".into()));
        assert_eq!(cache(&[("HF_HOME", "/hf"), ("HF_HUB_CACHE", "/c")]), Some("/c".into()));
        assert_eq!(settings(&[("HF_ENDPOINT", "")]).endpoint, "https://huggingface.co");
        assert_eq!(settings(&[("HF_ENDPOINT", "http://mirror/")]).endpoint, "http://mirror");
        for (value, offline) in [("1", true), ("true", true), ("0", false), ("", false)] {
            assert_eq!(settings(&[("HF_HUB_OFFLINE", value)]).offline, offline, "{value}");
        }
    }

    #[test]
    fn tokens_are_read_and_never_shown() {
        let home = tempfile::tempdir().unwrap();
        let home_text = home.path().to_str().unwrap();
        assert_eq!(settings(&[("HF_HOME", home_text)]).token, None);
        fs::write(home.path().join("token"), " hf_file\n").unwrap();
        let found = settings(&[("HF_HOME", home_text)]);
        assert_eq!(found.token.as_deref(), Some("hf_file"));
        assert!(!format!("{found:?}").contains("hf_file"));
        assert_eq!(
            settings(&[("HF_HOME", home_text), ("HF_TOKEN", "hf_env")]).token.as_deref(),
            Some("hf_env")
        );
    }
}
