//! Uploading.

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

use super::{ARTIFACT, Attempts, Registry, TITLE, TransferEvent};
use crate::{
    blob::Blob,
    bundle::{Bundle, same},
    digest::{Stopped, read_hashed},
    error::Error,
    layout::{BLOBS, MANIFEST, SIGNATURE},
};

/// The layers' media types: the manifest's, and every other file's.
const MANIFEST_LAYER: &str = "application/vnd.mlxcel.bundle.manifest.v1+toml";
const FILE_LAYER: &str = "application/vnd.mlxcel.bundle.file.v1";

/// The configuration of an artifact that has none, as the image specification has it.
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
const EMPTY: &[u8] = b"{}";

const CHUNK: usize = 1 << 20;

impl Registry {
    pub(super) async fn push_all(
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
            let kind = if path == MANIFEST { MANIFEST_LAYER } else { FILE_LAYER };
            let layer = descriptor(path, kind, &hex(&Sha256::digest(&text)), text.len() as u64);
            self.push_bytes(text.into_bytes(), &layer, progress).await.map_err(failed)?;
            layers.push(layer);
        }
        // By digest, each once, as in an archive.
        for (name, (what, blob)) in bundle.manifest().distinct_blobs() {
            let path = bundle.blob_path(&blob);
            let sha256 = sha256(&path, &what, &blob)?;
            let layer = descriptor(&format!("{BLOBS}/{name}"), FILE_LAYER, &sha256, blob.size);
            self.push_file(&path, &what, &layer, progress).await?;
            layers.push(layer);
        }
        let mut config = descriptor("", EMPTY_TYPE, &hex(&Sha256::digest(EMPTY)), EMPTY.len() as u64);
        config.annotations = None;
        self.push_bytes(EMPTY.to_vec(), &config, &mut |_| ()).await.map_err(failed)?;
        let manifest = OciImageManifest {
            media_type: Some(OCI_IMAGE_MEDIA_TYPE.to_owned()),
            artifact_type: Some(ARTIFACT.to_owned()),
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
        progress(TransferEvent::File { what, bytes: len });
        if !self.client.blob_exists(&self.reference, &layer.digest).await? {
            self.client.push_blob(&self.reference, bytes, &layer.digest).await?;
        }
        progress(TransferEvent::Bytes(len));
        Ok(())
    }

    async fn push_file(
        &self,
        path: &Path,
        what: &str,
        layer: &OciDescriptor,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<(), Error> {
        let bytes = u64::try_from(layer.size).unwrap_or_default();
        progress(TransferEvent::File { what: what.to_owned(), bytes });
        let mut attempts = Attempts::default();
        loop {
            let sent = Arc::new(AtomicU64::new(0));
            let send = async {
                if !self.client.blob_exists(&self.reference, &layer.digest).await? {
                    let file = File::open(path)?;
                    let stream = chunks(file, Arc::clone(&sent));
                    self.client.push_blob_stream(&self.reference, stream, &layer.digest, Some(bytes)).await?;
                }
                Ok(())
            };
            let told = |bytes: &AtomicU64, progress: &mut dyn FnMut(TransferEvent)| {
                progress(TransferEvent::Bytes(bytes.load(Ordering::Relaxed)));
            };
            tokio::pin!(send);
            let done = loop {
                tokio::select! {
                    done = &mut send => break done,
                    () = tokio::time::sleep(Duration::from_millis(100)) => told(&sent, progress),
                }
            };
            match done {
                Ok(()) => {
                    progress(TransferEvent::Bytes(bytes));
                    return Ok(());
                }
                Err(error) => {
                    let stays = |error| self.failed("push", error);
                    attempts.again(error, progress).await.map_err(stays)?;
                }
            }
        }
    }
}

/// The file's sha256 in hex; verifies its blake3 on the way.
fn sha256(path: &Path, what: &str, blob: &Blob) -> Result<String, Error> {
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
    same(what, found, blob)?;
    Ok(hex(&hasher.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn descriptor(path: &str, kind: &str, sha256: &str, size: u64) -> OciDescriptor {
    OciDescriptor {
        media_type: kind.to_owned(),
        digest: format!("sha256:{sha256}"),
        size: i64::try_from(size).unwrap_or(i64::MAX),
        annotations: Some([(TITLE.to_owned(), path.to_owned())].into()),
        ..OciDescriptor::default()
    }
}

/// A file's bytes in chunks, counted.
fn chunks(file: File, sent: Arc<AtomicU64>) -> impl Stream<Item = oci_client::errors::Result<Bytes>> {
    stream::try_unfold((file, sent), |(mut file, sent)| async move {
        let mut chunk = Vec::with_capacity(CHUNK);
        (&mut file).take(CHUNK as u64).read_to_end(&mut chunk)?;
        sent.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        Ok((!chunk.is_empty()).then(|| (chunk.into(), (file, sent))))
    })
}
