//! TLS of connections.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use thiserror::Error;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, InconsistentKeys, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject as _},
    },
};

/// The certificate that connections are served with. Clones share it.
#[derive(Debug, Clone)]
pub struct Tls(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    certificate: PathBuf,
    key: PathBuf,
    config: RwLock<Arc<ServerConfig>>,
}

/// Why there is no TLS.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file has not what it should.
    #[error("{} has no {expected}, expected one in PEM form\nhint: such a file has a line `-----BEGIN {label}-----`", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What it should have.
        expected: &'static str,
        /// What PEM calls that.
        label: &'static str,
    },
    /// A file is no PEM.
    #[error("{} cannot be parsed: {problem}, expected PEM", .path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The certificate is for another key.
    #[error("the key of {} is not that of the certificate in {}, expected a pair", .key.display(), .certificate.display())]
    Mismatch {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
    },
    /// The certificate or the key cannot be used.
    #[error("{} and {} cannot be used: {source}", .certificate.display(), .key.display())]
    Unusable {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
        /// Why not.
        source: rustls::Error,
    },
}

impl Tls {
    /// Reads a certificate with those that vouch for it, and its key, both in PEM form.
    ///
    /// # Errors
    /// A file cannot be read or parsed, or the key is another one's.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let config = RwLock::new(read_config(certificate, key)?);
        Ok(Self(Arc::new(Inner { certificate: certificate.to_owned(), key: key.to_owned(), config })))
    }

    /// Reads the files again, for connections from now on: certificates expire while a server runs.
    ///
    /// # Errors
    /// As [`Tls::read`]. Then the old certificate goes on.
    pub fn reload(&self) -> Result<(), TlsError> {
        let config = read_config(&self.0.certificate, &self.0.key)?;
        *self.0.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.0.config.read().unwrap_or_else(PoisonError::into_inner).clone().into()
    }
}

/// Reads a certificate and its key.
fn read_config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let text = read(certificate)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| parse_error(certificate, &error))?;
    if chain.is_empty() {
        return Err(missing(certificate, "certificate", "CERTIFICATE"));
    }
    let found = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| match error {
        pem::Error::NoItemsFound => missing(key, "private key", "PRIVATE KEY"),
        error => parse_error(key, &error),
    })?;
    let (key, certificate) = (key.to_owned(), certificate.to_owned());
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = builder
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, found));
    match config {
        Ok(mut config) => {
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Ok(Arc::new(config))
        }
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(TlsError::Mismatch { key, certificate })
        }
        Err(source) => Err(TlsError::Unusable { key, certificate, source }),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

fn missing(path: &Path, expected: &'static str, label: &'static str) -> TlsError {
    TlsError::Missing { path: path.to_owned(), expected, label }
}

fn parse_error(path: &Path, error: &pem::Error) -> TlsError {
    TlsError::Parse { path: path.to_owned(), problem: error.to_string() }
}
