//! Downloads.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::StreamExt as _;
use oci_client::{
    RegistryOperation,
    client::BlobResponse,
    errors::OciDistributionError,
    manifest::{OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest},
};

use super::{
    artifact::{ARTIFACT_TYPE, TITLE},
    client::{POLL, Registry},
    failure::unexpected_end,
    transfer::{Attempts, TransferEvent, retried},
};
use crate::{
    blob::{Blob, BlobRole},
    bundle::{Bundle, sign::LIMIT_BYTES as SIGNATURE_LIMIT, write::Destination as _},
    error::Error,
    layout::{BLOBS, MANIFEST, SIGNATURE},
    manifest::{MANIFEST_LIMIT, Manifest},
    store::{Download, PartialDownload, StoreWriter},
};

/// An artifact's layers by title.
type Layers = BTreeMap<String, OciDescriptor>;

impl Registry {
    /// Downloads a bundle into a store.
    ///
    /// Skips files that the store has, and resumes a download that was interrupted.
    ///
    /// # Errors
    /// The artifact is not a bundle, is incomplete or does not match its manifest; the registry or the network fails; or
    /// the store cannot be written.
    pub fn pull(&self, to: StoreWriter, progress: &mut dyn FnMut(TransferEvent)) -> Result<Bundle, Error> {
        self.run("pull", self.pull_bundle(to, progress))
    }

    /// Returns the reference with the digest that it stands for now. Later pulls of it get this bundle, whatever its tag names
    /// then.
    ///
    /// # Errors
    /// The registry has no such artifact, or it or the network fails.
    pub fn resolve(&self) -> Result<String, Error> {
        let failed = |source| self.failed("resolve", source);
        let (_, digest) =
            self.run("resolve", async { self.pull_artifact(&mut |_| ()).await.map_err(failed) })?;
        Ok(format!("{}/{}@{digest}", self.reference.registry(), self.reference.repository()))
    }

    /// Downloads a bundle's manifest alone, such as for [`check_targets`](crate::check_targets) before anything large is pulled.
    ///
    /// # Errors
    /// The artifact is not a bundle, or the registry or the network fails.
    pub fn manifest(&self) -> Result<Manifest, Error> {
        self.run("pull", async {
            let progress = &mut |_| ();
            let mut layers = self.pull_layers(progress).await?;
            let (manifest, _) = self.pull_manifest(&mut layers, progress).await?;
            Ok(manifest)
        })
    }

    async fn pull_bundle(
        &self,
        mut to: StoreWriter,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<Bundle, Error> {
        let mut layers = self.pull_layers(progress).await?;
        let (manifest, text) = self.pull_manifest(&mut layers, progress).await?;
        to.prepare(&manifest)?;
        let signature = match layers.remove(SIGNATURE) {
            Some(layer) => Some(self.pull_text(&layer, SIGNATURE_LIMIT, SIGNATURE, progress).await?),
            None => None,
        };
        for (name, (role, blob)) in manifest.distinct_blobs() {
            progress(TransferEvent::Started { what: role.to_string(), bytes: blob.size });
            if let Some(part) = self.open_download(&mut to, &blob).await? {
                let Some(layer) = layers.get(&format!("{BLOBS}/{name}")) else {
                    return Err(Error::MissingBlob { role, digest: blob.digest });
                };
                let part = self.pull_blob(layer, part, (&role, &blob), progress).await?;
                let tampered = |source| Error::Tampered { name: self.name.clone(), source: Box::new(source) };
                to.add_download(part, (&role, &blob), &self.cancel).map_err(tampered)?;
            }
            progress(TransferEvent::Progress(blob.size));
        }
        Box::new(to).commit(&manifest, text, signature.as_deref())
    }

    /// Opens the download of a blob, or returns `None` if the store has the blob. Waits for a process that downloads it.
    pub(super) async fn open_download(
        &self,
        to: &mut StoreWriter,
        blob: &Blob,
    ) -> Result<Option<PartialDownload>, Error> {
        loop {
            match to.download(blob)? {
                Download::Present => return Ok(None),
                Download::Part(part) => return Ok(Some(part)),
                Download::Busy => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// Downloads the artifact's own manifest. Returns its digest too.
    async fn pull_artifact(
        &self,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<(Bytes, String), OciDistributionError> {
        self.authorize(&self.client, RegistryOperation::Pull, progress).await?;
        let accepted = [OCI_IMAGE_MEDIA_TYPE];
        retried(progress, || self.client.pull_manifest_raw(&self.reference, &self.auth, &accepted)).await
    }

    /// Downloads the artifact's own manifest and returns its layers.
    async fn pull_layers(&self, progress: &mut dyn FnMut(TransferEvent)) -> Result<Layers, Error> {
        let failed = |source| self.failed("pull", source);
        let (text, _) = self.pull_artifact(progress).await.map_err(failed)?;
        let artifact: OciImageManifest =
            serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
        if artifact.artifact_type.as_deref() != Some(ARTIFACT_TYPE) {
            let found = artifact.artifact_type.unwrap_or(artifact.config.media_type);
            let problem = format!("found type {}, expected {ARTIFACT_TYPE}", found.escape_debug());
            return Err(self.not_a_bundle(problem));
        }
        let mut layers = Layers::new();
        for layer in artifact.layers {
            let title = layer.annotations.as_ref().and_then(|annotations| annotations.get(TITLE)).cloned();
            let title = title.unwrap_or_default();
            if layers.insert(title.clone(), layer).is_some() {
                let problem = format!("found two layers titled `{}`, expected one", title.escape_debug());
                return Err(self.not_a_bundle(problem));
            }
        }
        Ok(layers)
    }

    /// Downloads the bundle's manifest and takes its layer from the others. Returns its text too.
    async fn pull_manifest(
        &self,
        layers: &mut Layers,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<(Manifest, String), Error> {
        let Some(layer) = layers.remove(MANIFEST) else {
            return Err(self.not_a_bundle(format!("found no layer titled {MANIFEST}, expected one")));
        };
        let text = self.pull_text(&layer, MANIFEST_LIMIT, MANIFEST, progress).await?;
        Ok((Manifest::parse(&text)?, text))
    }

    /// Downloads a layer of at most `limit` bytes of text.
    async fn pull_text(
        &self,
        layer: &OciDescriptor,
        limit: u64,
        what: &str,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<String, Error> {
        let pulled = retried(progress, || self.pull_bytes(&layer.digest, limit)).await;
        let bytes = pulled.map_err(|source| self.failed("pull", source))?;
        if bytes.len() as u64 > limit {
            return Err(self.not_a_bundle(format!("{what} has more than {limit} bytes")));
        }
        String::from_utf8(bytes).map_err(|_| self.not_a_bundle(format!("{what} is not UTF-8, expected text")))
    }

    /// Downloads a layer. Stops soon after `limit` bytes.
    async fn pull_bytes(&self, digest: &str, limit: u64) -> Result<Vec<u8>, OciDistributionError> {
        // A layer may list other addresses, which are not the registry's: requests its digest only.
        let mut stream = self.client.pull_blob_stream(&self.reference, digest).await?;
        let mut bytes = Vec::new();
        while let Some(chunk) = stream.next().await {
            bytes.extend_from_slice(&chunk?);
            if bytes.len() as u64 > limit {
                break;
            }
        }
        Ok(bytes)
    }

    /// Downloads the rest of a blob. Starts over if what was there before does not fit.
    async fn pull_blob(
        &self,
        layer: &OciDescriptor,
        mut part: PartialDownload,
        (role, blob): (&BlobRole, &Blob),
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<PartialDownload, Error> {
        let found = u64::try_from(layer.size).unwrap_or_default();
        if found != blob.size {
            let role = role.clone();
            return Err(Error::BlobSize { role, found, expected: blob.size, digest: blob.digest });
        }
        let resumed = part.len() > 0;
        self.pull_rest(&layer.digest, &mut part, blob.size, progress).await?;
        if resumed && !part.matches(blob, &self.cancel)? {
            // The interrupted download was of another file, or was not synced to the disk.
            part.restart()?;
            self.pull_rest(&layer.digest, &mut part, blob.size, progress).await?;
        }
        Ok(part)
    }

    /// Downloads until `part` has `size` bytes, in as many attempts as make progress.
    async fn pull_rest(
        &self,
        digest: &str,
        part: &mut PartialDownload,
        size: u64,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<(), Error> {
        if part.len() > size {
            part.restart()?;
        }
        let mut attempts = Attempts::default();
        while part.len() < size {
            let before = part.len();
            match self.pull_once(digest, part, size, progress).await? {
                Ok(()) => return Ok(()),
                // Complete, but with another sha256: the caller compares the blake3 digest.
                Err(_) if part.len() == size => return Ok(()),
                Err(error) => {
                    if part.len() > before {
                        attempts = Attempts::default();
                    }
                    let failed = |error| self.failed("pull", error);
                    attempts.wait_after(error, progress).await.map_err(failed)?;
                }
            }
        }
        Ok(())
    }

    /// Makes one attempt to download the rest of a blob. The outer error is one of the disk, the inner one may be retried.
    async fn pull_once(
        &self,
        digest: &str,
        part: &mut PartialDownload,
        size: u64,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<Result<(), OciDistributionError>, Error> {
        let response = if part.len() == 0 {
            self.client.pull_blob_stream(&self.reference, digest).await.map(BlobResponse::Full)
        } else {
            self.client.pull_blob_stream_partial(&self.reference, digest, part.len(), None).await
        };
        let mut stream = match response {
            Err(error) => return Ok(Err(error)),
            Ok(BlobResponse::Partial(stream)) => stream.stream,
            Ok(BlobResponse::Full(stream)) => {
                part.restart()?;
                stream.stream
            }
        };
        while let Some(chunk) = stream.next().await {
            let chunk = match chunk {
                Ok(chunk) => chunk,
                Err(error) => return Ok(Err(error.into())),
            };
            // Drops what exceeds the blob's size; its digest is compared later.
            let room = usize::try_from(size - part.len()).unwrap_or(usize::MAX);
            part.append(&chunk[..chunk.len().min(room)])?;
            progress(TransferEvent::Progress(part.len()));
            if chunk.len() > room {
                return Ok(Ok(()));
            }
        }
        Ok(if part.len() < size { Err(unexpected_end()) } else { Ok(()) })
    }
}
