//! uv, which makes Python's virtual environments: it takes a third of the CPU time of pip.

use std::{
    path::PathBuf,
    process::Command,
    sync::{Mutex, OnceLock, PoisonError},
};

use anyhow::Result;

use super::wheels;
use crate::{shell, workspace::Workspace};

/// The part of the toolchain.
const PART: &str = "uv";

/// pip's settings, and uv's variables for them.
const SETTINGS: [(&str, &str); 8] = [
    ("index-url", "UV_DEFAULT_INDEX"),
    ("extra-index-url", "UV_INDEX"),
    ("find-links", "UV_FIND_LINKS"),
    ("cert", "SSL_CERT_FILE"),
    ("proxy", "ALL_PROXY"),
    ("trusted-host", "UV_INSECURE_HOST"),
    ("timeout", "UV_HTTP_TIMEOUT"),
    ("default-timeout", "UV_HTTP_TIMEOUT"),
];

/// Returns a command of uv, fetched if it is not there, that uses the mirror, the proxy and the certificates of pip.
pub(crate) fn uv(workspace: &Workspace, arguments: &[&str]) -> Result<Command> {
    let program = installed(workspace)?;
    let mut command = workspace.command(program);
    command.args(["--no-config", "--no-cache", "--no-python-downloads", "--system-certs"]).args(arguments);
    for (name, value) in pip_settings(workspace) {
        if workspace.variable(name).is_none() {
            command.env(name, value);
        }
    }
    Ok(command)
}

/// Returns pip's settings as variables of uv, asked for once: pip takes a while to start.
fn pip_settings(workspace: &Workspace) -> &'static [(&'static str, String)] {
    static FOUND: OnceLock<Vec<(&str, String)>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let settings = shell::output(workspace.command("python3").args(["-m", "pip", "config", "list"]));
        // Without pip there are no settings of it.
        variables(&settings.unwrap_or_default())
    })
}

/// Returns the program, unpacked once however many environments are made at a time.
fn installed(workspace: &Workspace) -> Result<PathBuf> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let program = workspace.toolchain.join(PART).join("uv");
    if !program.is_file() || wheels::is_outdated(workspace, PART) {
        wheels::install(workspace, PART)?;
    }
    Ok(program)
}

/// Translates what `pip config list` prints. Of a setting that is there several times, the last counts, as with pip.
fn variables(settings: &str) -> Vec<(&'static str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for (name, value) in settings.lines().filter_map(|line| line.split_once('=')) {
        // `global.index-url`, `install.index-url`, or `:env:.index-url` for a variable.
        let Some((section, key)) = name.split_once('.') else { continue };
        let Some((_, variable)) = SETTINGS.iter().find(|(setting, _)| *setting == key) else { continue };
        if !["global", "install", ":env:"].contains(&section) {
            continue;
        }
        // Python's `repr`, with a line for each value of a list.
        let value = value.trim_matches(['\'', '"']).replace("\\n", " ");
        let values: Vec<&str> = value.split_whitespace().collect();
        let separator = if *variable == "UV_FIND_LINKS" { "," } else { " " };
        found.retain(|(other, _)| other != variable);
        if !values.is_empty() {
            found.push((variable, values.join(separator)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_pip_become_variables_of_uv() {
        let text = "global.cert='/etc/ssl/company.pem'\n\
                    global.extra-index-url='\\nhttps://a.example/simple\\nhttps://b.example/simple'\n\
                    global.index-url='https://old.example/simple'\n\
                    install.index-url='https://mirror.example/simple?a=b'\n\
                    freeze.timeout='10'\n\
                    :env:.find-links='/opt/one /opt/two'\n\
                    :env:.no-input='1'\n";
        let expected = [
            ("SSL_CERT_FILE", "/etc/ssl/company.pem"),
            ("UV_INDEX", "https://a.example/simple https://b.example/simple"),
            ("UV_DEFAULT_INDEX", "https://mirror.example/simple?a=b"),
            ("UV_FIND_LINKS", "/opt/one,/opt/two"),
        ];
        assert_eq!(variables(text), expected.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(variables(""), []);
    }
}
