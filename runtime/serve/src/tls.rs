//! TLS of connections.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
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

/// The certificate that connections are served with.
#[derive(Debug, Clone)]
pub struct Tls(Arc<ServerConfig>);

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
                Ok(Self(Arc::new(config)))
            }
            Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                Err(TlsError::Mismatch { key, certificate })
            }
            Err(source) => Err(TlsError::Unusable { key, certificate, source }),
        }
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.0.clone().into()
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
