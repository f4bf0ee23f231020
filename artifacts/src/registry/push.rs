//! Uploads.

use std::{
    convert::Infallible,
    fs::File,
    io::{self, Cursor, Read},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
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
    transfer::{Attempts, TransferEvent, retried, uploaded},
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
        for client in [&self.client, &self.uploads] {
            self.authorize(client, RegistryOperation::Push, progress).await.map_err(failed)?;
        }
        let mut layers = Vec::new();
        let texts = [(MANIFEST, Some(bundle.text().to_owned())), (SIGNATURE, bundle.signature_text()?)];
        for (path, text) in texts {
            let Some(text) = text else { continue };
            let media_type = if path == MANIFEST { MANIFEST_LAYER_TYPE } else { FILE_LAYER_TYPE };
            let layer = descriptor(path, media_type, &hex(&Sha256::digest(&text)), text.len() as u64);
            let bytes = Bytes::from(text);
            let open = || Ok(Cursor::new(bytes.clone()));
            self.push_layer(open, path, &layer, progress).await.map_err(failed)?;
            layers.push(layer);
        }
        // Ordered by digest, as in an archive.
        for (name, (role, blob)) in bundle.manifest().distinct_blobs() {
            let path = bundle.blob_path(&blob);
            let sha256 = self.verify_and_hash(&path, &role, &blob)?;
            let layer = descriptor(&format!("{BLOBS}/{name}"), FILE_LAYER_TYPE, &sha256, blob.size);
            let open = || File::open(&path);
            self.push_layer(open, &role.to_string(), &layer, progress).await.map_err(failed)?;
            layers.push(layer);
        }
        let sha256 = hex(&Sha256::digest(EMPTY_CONFIG));
        let mut config = descriptor("", EMPTY_CONFIG_TYPE, &sha256, EMPTY_CONFIG.len() as u64);
        config.annotations = None;
        let open = || Ok(EMPTY_CONFIG);
        self.push_layer(open, "", &config, &mut |_| ()).await.map_err(failed)?;
        let manifest = OciImageManifest {
            media_type: Some(OCI_IMAGE_MEDIA_TYPE.to_owned()),
            artifact_type: Some(ARTIFACT_TYPE.to_owned()),
            config,
            layers,
            ..OciImageManifest::default()
        };
        let manifest = manifest.into();
        let push = || self.client.push_manifest(&self.reference, &manifest);
        retried(progress, push).await.map_err(failed)?;
        let fetch = || self.client.fetch_manifest_digest(&self.reference, &self.auth);
        retried(progress, fetch).await.map_err(failed)
    }

    /// Uploads what `open` returns, unless the registry has it, in as many attempts as it takes.
    async fn push_layer<R: Read + Send + 'static>(
        &self,
        open: impl Fn() -> io::Result<R>,
        what: &str,
        layer: &OciDescriptor,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<(), OciDistributionError> {
        let bytes = u64::try_from(layer.size).unwrap_or_default();
        progress(TransferEvent::Started { what: what.to_owned(), bytes });
        let mut attempts = Attempts::default();
        loop {
            let sent = Arc::new(AtomicU64::new(0));
            let upload = async {
                if !self.uploads.blob_exists(&self.reference, &layer.digest).await? {
                    let stream = chunks(open()?, Arc::clone(&sent));
                    self.uploads
                        .push_blob_stream(&self.reference, stream, &layer.digest, Some(bytes))
                        .await?;
                }
                Ok(())
            };
            match uploaded(upload, (&sent, bytes), self.patience, progress).await {
                Ok(()) => {
                    progress(TransferEvent::Progress(bytes));
                    return Ok(());
                }
                Err(error) => attempts.wait_after(error, progress).await?,
            }
        }
    }

    /// Verifies a blob and returns its sha256 in hex.
    fn verify_and_hash(&self, path: &Path, role: &BlobRole, blob: &Blob) -> Result<String, Error> {
        let file = File::open(path).map_err(Error::read(path))?;
        let mut hasher = Sha256::new();
        let read = read_hashed(&mut self.cancel.watch(file), |chunk| {
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

/// Streams a source in chunks, and counts in `sent` the bytes that were taken.
fn chunks(source: impl Read, sent: Arc<AtomicU64>) -> impl Stream<Item = oci_client::errors::Result<Bytes>> {
    stream::try_unfold((source, sent), |(mut source, sent)| async move {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        (&mut source).take(CHUNK_BYTES as u64).read_to_end(&mut chunk)?;
        sent.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        Ok((!chunk.is_empty()).then(|| (chunk.into(), (source, sent))))
    })
}
