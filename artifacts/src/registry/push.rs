//! Uploads.

use std::{
    convert::Infallible,
    fs::File,
    io::Read as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, stream};
use oci_client::{
    RegistryOperation,
    errors::OciDistributionError,
    manifest::{OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest},
};
use sha2::{Digest as _, Sha256};

use super::{
    artifact::{ARTIFACT_TYPE, EMPTY_CONFIG, EMPTY_CONFIG_TYPE, FILE_LAYER_TYPE, MANIFEST_LAYER_TYPE, TITLE},
    client::Registry,
    transfer::{Attempts, TransferEvent},
};
use crate::{
    blob::{Blob, BlobRole},
    bundle::{Bundle, verify::check_digest},
    digest::{Stopped, read_hashed},
    error::Error,
    layout::{BLOBS, MANIFEST, SIGNATURE},
};

/// The size of the pieces in which a file is sent.
const CHUNK_BYTES: usize = 1 << 20;

/// The time between two reports of progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

impl Registry {
    /// Uploads a bundle and returns the digest that the reference has then.
    ///
    /// Verifies every file before it is sent, and skips files that the registry has.
    ///
    /// # Errors
    /// A blob is damaged, or the registry or the network fails.
    pub fn push(&self, bundle: &Bundle, progress: &mut dyn FnMut(TransferEvent)) -> Result<String, Error> {
        self.run("push", self.push_bundle(bundle, progress))
    }

    async fn push_bundle(
        &self,
        bundle: &Bundle,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<String, Error> {
        let failed = |source| self.failed("push", source);
        self.client.auth(&self.reference, &self.auth, RegistryOperation::Push).await.map_err(failed)?;
        let mut layers = Vec::new();
        let texts = [(MANIFEST, Some(bundle.text().to_owned())), (SIGNATURE, bundle.signature_text()?)];
        for (path, text) in texts {
            let Some(text) = text else { continue };
            let media_type = if path == MANIFEST { MANIFEST_LAYER_TYPE } else { FILE_LAYER_TYPE };
            let layer = descriptor(path, media_type, &hex(&Sha256::digest(&text)), text.len() as u64);
            self.push_bytes(text.into_bytes(), &layer, progress).await.map_err(failed)?;
            layers.push(layer);
        }
        // Ordered by digest, as in an archive.
        for (name, (role, blob)) in bundle.manifest().distinct_blobs() {
            let path = bundle.blob_path(&blob);
            let sha256 = verify_and_hash(&path, &role, &blob)?;
            let layer = descriptor(&format!("{BLOBS}/{name}"), FILE_LAYER_TYPE, &sha256, blob.size);
            self.push_file(&path, &role, &layer, progress).await?;
            layers.push(layer);
        }
        let sha256 = hex(&Sha256::digest(EMPTY_CONFIG));
        let mut config = descriptor("", EMPTY_CONFIG_TYPE, &sha256, EMPTY_CONFIG.len() as u64);
        config.annotations = None;
        self.push_bytes(EMPTY_CONFIG.to_vec(), &config, &mut |_| ()).await.map_err(failed)?;
        let manifest = OciImageManifest {
            media_type: Some(OCI_IMAGE_MEDIA_TYPE.to_owned()),
            artifact_type: Some(ARTIFACT_TYPE.to_owned()),
            config,
            layers,
            ..OciImageManifest::default()
        };
        self.client.push_manifest(&self.reference, &manifest.into()).await.map_err(failed)?;
        self.client.fetch_manifest_digest(&self.reference, &self.auth).await.map_err(failed)
    }

    async fn push_bytes(
        &self,
        bytes: Vec<u8>,
        layer: &OciDescriptor,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<(), OciDistributionError> {
        let what = layer.annotations.iter().flatten().map(|(_, title)| title.clone()).collect();
        let len = bytes.len() as u64;
        progress(TransferEvent::Started { what, bytes: len });
        if !self.client.blob_exists(&self.reference, &layer.digest).await? {
            self.client.push_blob(&self.reference, bytes, &layer.digest).await?;
        }
        progress(TransferEvent::Progress(len));
        Ok(())
    }

    async fn push_file(
        &self,
        path: &Path,
        role: &BlobRole,
        layer: &OciDescriptor,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<(), Error> {
        let bytes = u64::try_from(layer.size).unwrap_or_default();
        progress(TransferEvent::Started { what: role.to_string(), bytes });
        let mut attempts = Attempts::default();
        loop {
            match self.push_file_once(path, layer, bytes, progress).await {
                Ok(()) => {
                    progress(TransferEvent::Progress(bytes));
                    return Ok(());
                }
                Err(error) => {
                    let failed = |error| self.failed("push", error);
                    attempts.wait_after(error, progress).await.map_err(failed)?;
                }
            }
        }
    }

    async fn push_file_once(
        &self,
        path: &Path,
        layer: &OciDescriptor,
        bytes: u64,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<(), OciDistributionError> {
        let sent = Arc::new(AtomicU64::new(0));
        let send = async {
            if !self.client.blob_exists(&self.reference, &layer.digest).await? {
                let stream = chunks(File::open(path)?, Arc::clone(&sent));
                self.client.push_blob_stream(&self.reference, stream, &layer.digest, Some(bytes)).await?;
            }
            Ok(())
        };
        tokio::pin!(send);
        loop {
            tokio::select! {
                done = &mut send => return done,
                () = tokio::time::sleep(REPORT_INTERVAL) => {
                    progress(TransferEvent::Progress(sent.load(Ordering::Relaxed)));
                }
            }
        }
    }
}

/// Verifies a blob and returns its sha256 in hex.
fn verify_and_hash(path: &Path, role: &BlobRole, blob: &Blob) -> Result<String, Error> {
    let mut file = File::open(path).map_err(Error::read(path))?;
    let mut hasher = Sha256::new();
    let read = read_hashed(&mut file, |chunk| {
        hasher.update(chunk);
        Ok::<_, Infallible>(())
    });
    let (found, _) = read.map_err(|stopped| match stopped {
        Stopped::Read(error) => Error::read(path)(error),
        Stopped::Sink(never) => match never {},
    })?;
    check_digest(role, found, blob)?;
    Ok(hex(&hasher.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn descriptor(path: &str, media_type: &str, sha256: &str, size: u64) -> OciDescriptor {
    OciDescriptor {
        media_type: media_type.to_owned(),
        digest: format!("sha256:{sha256}"),
        size: i64::try_from(size).unwrap_or(i64::MAX),
        annotations: Some([(TITLE.to_owned(), path.to_owned())].into()),
        ..OciDescriptor::default()
    }
}

/// Streams a file in chunks, and counts in `sent` the bytes that were taken.
fn chunks(file: File, sent: Arc<AtomicU64>) -> impl Stream<Item = oci_client::errors::Result<Bytes>> {
    stream::try_unfold((file, sent), |(mut file, sent)| async move {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        (&mut file).take(CHUNK_BYTES as u64).read_to_end(&mut chunk)?;
        sent.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        Ok((!chunk.is_empty()).then(|| (chunk.into(), (file, sent))))
    })
}
