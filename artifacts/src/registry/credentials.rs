//! Credentials from docker's configuration.

use std::{env, error, fs::File, io, io::BufReader, path::PathBuf};

use docker_credential::{CredentialRetrievalError, DockerCredential, get_credential_from_reader};
use oci_client::secrets::RegistryAuth;

use crate::error::Error;

/// What a credential helper writes to its standard output if it has no entry, by which docker knows it.
const NO_ENTRY: &str = "credentials not found in native keychain";

/// Docker's configuration, where `docker login` stores credentials.
#[derive(Debug, Clone, Default)]
pub struct DockerConfig {
    path: Option<PathBuf>,
}

impl DockerConfig {
    /// Finds the configuration where docker does: in `$DOCKER_CONFIG/config.json`, or `~/.docker/config.json`.
    #[must_use]
    pub fn from_env() -> Self {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = variable("DOCKER_CONFIG").or_else(|| variable("HOME").map(|home| home.join(".docker")));
        Self { path: folder.map(|folder| folder.join("config.json")) }
    }

    /// Returns the credentials for a registry, or none if there is no configuration or no entry.
    pub(super) fn credentials(&self, host: &str) -> Result<RegistryAuth, Error> {
        let Some(path) = &self.path else { return Ok(RegistryAuth::Anonymous) };
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(RegistryAuth::Anonymous),
            other => other.map_err(Error::read(path))?,
        };
        let failed = |source: Box<dyn error::Error + Send + Sync>| {
            Err(Error::Credentials { host: host.to_owned(), path: path.clone(), source })
        };
        match get_credential_from_reader(BufReader::new(file), entry_name(host)) {
            Ok(DockerCredential::UsernamePassword(user, password)) => Ok(RegistryAuth::Basic(user, password)),
            Ok(DockerCredential::IdentityToken(_)) => {
                failed("found an identity token, expected a user and a password".into())
            }
            Err(CredentialRetrievalError::NoCredentialConfigured) => Ok(RegistryAuth::Anonymous),
            Err(CredentialRetrievalError::HelperFailure { stdout, .. }) if stdout.trim() == NO_ENTRY => {
                Ok(RegistryAuth::Anonymous)
            }
            Err(CredentialRetrievalError::HelperFailure { helper, stdout, stderr }) => {
                let said = [stdout.trim(), stderr.trim()].join(" ");
                failed(format!("{helper} says: {}", said.trim().escape_debug()).into())
            }
            Err(source) => failed(Box::new(source)),
        }
    }
}

/// Returns a registry's name in docker's configuration, which is another one for Docker Hub.
fn entry_name(host: &str) -> &str {
    if host == "docker.io" || host.ends_with(".docker.io") { "https://index.docker.io/v1/" } else { host }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_docker_hub_gets_its_password() {
        for host in ["docker.io", "index.docker.io", "registry-1.docker.io"] {
            assert_eq!(entry_name(host), "https://index.docker.io/v1/");
        }
        for host in ["evildocker.io", "docker.io.example", "docker.io:5000", "localhost:5000"] {
            assert_eq!(entry_name(host), host);
        }
    }
}
