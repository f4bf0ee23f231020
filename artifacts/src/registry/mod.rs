//! Bundles in OCI registries.
//!
//! A bundle is an artifact with a layer for each of its files, titled with its path in the bundle's folder, so that other
//! tools of OCI (`oras pull`) get the folder too. The registry's digests are sha256; a bundle's are blake3, and the manifest
//! has them. Pulling reads the manifest first, and then takes what it names and nothing else.

mod pull;
mod push;

use std::{
    env,
    fs::File,
    io::{self, BufReader},
    net::IpAddr,
    path::PathBuf,
    time::Duration,
};

use docker_credential::{CredentialRetrievalError, DockerCredential, get_credential_from_reader};
use oci_client::{
    Client, Reference,
    client::{ClientConfig, ClientProtocol},
    errors::{DigestError, OciDistributionError, OciErrorCode},
    secrets::RegistryAuth,
};

use crate::{bundle::Bundle, error::Error, store::StoreWriter};

/// What kind of artifact a bundle is.
const ARTIFACT: &str = "application/vnd.mlxcel.bundle.v1";

/// The annotation of a file's path.
const TITLE: &str = "org.opencontainers.image.title";

/// How often a transfer that stops is begun again without having moved anything in between.
const ATTEMPTS: u32 = 5;

/// No more is shown of what a registry says.
const LONGEST_CHARS: usize = 300;

/// A transfer that moves nothing for so long has stopped.
const PATIENCE: Duration = Duration::from_secs(60);

/// What happens during a transfer, for whoever watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferEvent {
    /// A file's turn has come.
    File {
        /// What it is.
        what: String,
        /// Its length.
        bytes: u64,
    },
    /// So many bytes of it are where they go; all of them at once, if they were there.
    Bytes(u64),
    /// It stopped, and is gone on with.
    Again {
        /// Why.
        problem: String,
    },
}

/// A place in a registry, `registry.example/models/demo:1`.
pub struct Registry {
    runtime: tokio::runtime::Runtime,
    client: Client,
    /// What it was called.
    name: String,
    reference: Reference,
    auth: RegistryAuth,
}

impl Registry {
    /// The place that `name` says, with the credentials that docker's configuration has for it. Registries on this machine
    /// are spoken to in plain HTTP, others in HTTPS, unless `plain_http`.
    ///
    /// # Errors
    /// It is no reference, or the credentials cannot be read.
    pub fn new(name: &str, plain_http: bool) -> Result<Self, Error> {
        // As docker has it, what has no registry is docker.io's, where nobody wants to push by mistake.
        let (host, _) = name.split_once('/').unwrap_or_default();
        if !host.contains(['.', ':']) && host != "localhost" {
            let source = "it has no registry before a /".into();
            return Err(Error::Reference { found: name.to_owned(), source });
        }
        let reference: Reference = name
            .parse()
            .map_err(|source| Error::Reference { found: name.to_owned(), source: Box::new(source) })?;
        let host = reference.resolve_registry().to_owned();
        let auth = credentials(&host)?;
        let protocol = if plain_http || is_here(&host) {
            ClientProtocol::HttpsExcept(vec![host])
        } else {
            ClientProtocol::Https
        };
        // The provider that was installed first stays.
        _ = rustls::crypto::ring::default_provider().install_default();
        let config = ClientConfig {
            protocol,
            use_monolithic_push: true,
            read_timeout: Some(PATIENCE),
            connect_timeout: Some(PATIENCE),
            user_agent: concat!("mlxcel/", env!("CARGO_PKG_VERSION")),
            platform_resolver: None,
            ..ClientConfig::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self {
            runtime: runtime.map_err(Error::read("the network"))?,
            client: Client::new(config),
            name: name.to_owned(),
            reference,
            auth,
        })
    }

    /// Uploads a bundle; gives the digest of what the reference means then. Every file is verified before. What the registry
    /// has is not sent.
    ///
    /// # Errors
    /// A blob is damaged, or the registry or the network does not do its part.
    pub fn push(&self, bundle: &Bundle, progress: &mut dyn FnMut(TransferEvent)) -> Result<String, Error> {
        self.runtime.block_on(self.push_all(bundle, progress))
    }

    /// Downloads a bundle into a store. What is there is not downloaded, and what a download before this one has left is
    /// gone on with.
    ///
    /// # Errors
    /// It is no bundle, not whole or not what its manifest says; the registry or the network does not do its part; or the
    /// store cannot be written.
    pub fn pull(&self, to: StoreWriter, progress: &mut dyn FnMut(TransferEvent)) -> Result<Bundle, Error> {
        self.runtime.block_on(self.pull_all(to, progress))
    }

    fn failed(&self, doing: &'static str, source: OciDistributionError) -> Error {
        use OciErrorCode::{Denied, ManifestUnknown, NameUnknown, NotFound, Unauthorized};
        // Found while a layer is read, it is an error of reading.
        let is_digest = |source: &io::Error| source.get_ref().is_some_and(|error| error.is::<DigestError>());
        if matches!(&source, OciDistributionError::DigestError(_))
            || matches!(&source, OciDistributionError::IoError(source) if is_digest(source))
        {
            return Error::Tampered { name: self.name.clone(), source: said(&source).into() };
        }
        let code = match &source {
            OciDistributionError::RegistryError { envelope, .. } => {
                envelope.errors.first().map(|error| &error.code)
            }
            OciDistributionError::UnauthorizedError { .. }
            | OciDistributionError::AuthenticationFailure(_) => Some(&Unauthorized),
            OciDistributionError::ImageManifestNotFoundError(_) => Some(&ManifestUnknown),
            OciDistributionError::RequestError(error) => match error.status().map(|status| status.as_u16()) {
                Some(401 | 403) => Some(&Unauthorized),
                Some(404) => Some(&NotFound),
                _ => None,
            },
            _ => None,
        };
        let hint = match (code, &source) {
            (Some(Unauthorized | Denied), _) => {
                format!("docker login {} gives credentials", self.reference.registry())
            }
            (Some(ManifestUnknown | NameUnknown | NotFound), _) => "look at its name and its tag".to_owned(),
            (_, OciDistributionError::RequestError(error)) if error.is_connect() => {
                "look at the registry's name; --plain-http is for one without TLS".to_owned()
            }
            _ => {
                "what has been transferred need not be again: repeat it when the registry answers".to_owned()
            }
        };
        Error::Registry { doing, name: self.name.clone(), hint, source: said(&source).into() }
    }

    fn refuse(&self, problem: String) -> Error {
        Error::NoArtifact { name: self.name.clone(), problem }
    }
}

/// What docker's configuration says, `$DOCKER_CONFIG/config.json` or `~/.docker/config.json`.
fn credentials(host: &str) -> Result<RegistryAuth, Error> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("DOCKER_CONFIG").or_else(|| set("HOME").map(|home| home.join(".docker")));
    let Some(path) = folder.map(|folder| folder.join("config.json")) else {
        return Ok(RegistryAuth::Anonymous);
    };
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(RegistryAuth::Anonymous),
        other => other.map_err(Error::read(&path))?,
    };
    let bad = |source: Box<dyn std::error::Error + Send + Sync>| {
        let host = host.to_owned();
        Err(Error::Credentials { host, path: path.clone(), source })
    };
    match get_credential_from_reader(BufReader::new(file), known_as(host)) {
        Ok(DockerCredential::UsernamePassword(user, password)) => Ok(RegistryAuth::Basic(user, password)),
        Ok(DockerCredential::IdentityToken(_)) => {
            bad("found an identity token, expected user and password".into())
        }
        Err(CredentialRetrievalError::NoCredentialConfigured) => Ok(RegistryAuth::Anonymous),
        Err(source) => bad(Box::new(source)),
    }
}

/// What docker's configuration calls a registry: docker's own has another name there.
fn known_as(host: &str) -> &str {
    if host == "docker.io" || host.ends_with(".docker.io") { "https://index.docker.io/v1/" } else { host }
}

/// Whether a registry is on this machine: docker takes these too for ones without TLS.
fn is_here(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host }
    });
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// How often something was tried without moving anything.
#[derive(Default)]
struct Attempts(u32);

impl Attempts {
    /// Waits for the next one, after this error; gives it back where that would not go better.
    async fn again(
        &mut self,
        error: OciDistributionError,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<(), OciDistributionError> {
        self.0 += 1;
        if self.0 >= ATTEMPTS || !may_pass(&error) {
            return Err(error);
        }
        progress(TransferEvent::Again { problem: said(&error) });
        tokio::time::sleep(Duration::from_millis(200 << self.0)).await;
        Ok(())
    }
}

/// Whether another attempt may go better.
fn may_pass(error: &OciDistributionError) -> bool {
    match error {
        OciDistributionError::RequestError(_) | OciDistributionError::IoError(_) => true,
        OciDistributionError::ServerError { code, .. } => *code >= 500 || *code == 429,
        _ => false,
    }
}

/// What is wrong, in a line without addresses: what the registry says, or what lies at the bottom of it.
fn said(error: &OciDistributionError) -> String {
    match error {
        OciDistributionError::RegistryError { envelope, .. } => {
            let all: Vec<_> = envelope.errors.iter().map(|error| error.message.as_str()).collect();
            format!("the registry says: {}", quoted(&all.join("; ")))
        }
        OciDistributionError::ServerError { code, .. } => format!("the registry answers {code}"),
        OciDistributionError::UnauthorizedError { .. } => "the registry answers 401 Unauthorized".into(),
        OciDistributionError::ImageManifestNotFoundError(_) => "the registry has no such manifest".into(),
        _ => {
            if let OciDistributionError::RequestError(error) = error
                && let Some(status) = error.status()
            {
                return format!("the registry answers {status}");
            }
            let mut bottom: &dyn std::error::Error = error;
            while let Some(cause) = bottom.source() {
                bottom = cause;
            }
            quoted(&bottom.to_string())
        }
    }
}

/// A text that a registry may have made, as a terminal can take it.
fn quoted(text: &str) -> String {
    text.escape_debug().take(LONGEST_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docker_s_password_is_docker_s_alone() {
        for host in ["docker.io", "index.docker.io", "registry-1.docker.io"] {
            assert_eq!(known_as(host), "https://index.docker.io/v1/");
        }
        for host in ["evildocker.io", "docker.io.example", "docker.io:5000", "localhost:5000"] {
            assert_eq!(known_as(host), host);
        }
    }

    #[test]
    fn what_a_registry_says_is_short_and_plain() {
        let shown = said(&OciDistributionError::AuthenticationFailure("\u{1b}[2J".repeat(1000)));
        assert_eq!(shown.chars().count(), LONGEST_CHARS);
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }

    #[test]
    fn only_this_machine_goes_without_tls() {
        for host in ["localhost", "localhost:5000", "127.0.0.1:5000", "127.1.2.3", "[::1]:5000"] {
            assert!(is_here(host), "{host}");
        }
        for host in ["localhost.example", "127.0.0.1.example:80", "10.0.0.1:5000", "example:5000"] {
            assert!(!is_here(host), "{host}");
        }
    }
}
