//! Downloading.

use std::{collections::BTreeMap, io};

use futures_util::StreamExt as _;
use oci_client::{
    RegistryOperation,
    client::BlobResponse,
    errors::OciDistributionError,
    manifest::{OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest},
};

use super::{ARTIFACT, Attempts, Registry, TITLE, TransferEvent};
use crate::{
    bundle::{Bundle, sign::LIMIT_BYTES as SIGNATURE_LIMIT, write::Destination as _},
    error::Error,
    layout::{BLOBS, MANIFEST, SIGNATURE},
    manifest::{MANIFEST_LIMIT, Manifest},
    store::{Part, StoreWriter},
};

impl Registry {
    pub(super) async fn pull_all(
        &self,
        mut to: StoreWriter,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<Bundle, Error> {
        let failed = |source| self.failed("pull", source);
        self.client.auth(&self.reference, &self.auth, RegistryOperation::Pull).await.map_err(failed)?;
        let accepted = [OCI_IMAGE_MEDIA_TYPE];
        let pulled = self.client.pull_manifest_raw(&self.reference, &self.auth, &accepted).await;
        let (text, _) = pulled.map_err(failed)?;
        let artifact: OciImageManifest =
            serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
        if artifact.artifact_type.as_deref() != Some(ARTIFACT) {
            let found = artifact.artifact_type.unwrap_or(artifact.config.media_type);
            return Err(self.refuse(format!("found {}, expected {ARTIFACT}", found.escape_debug())));
        }
        let mut layers: BTreeMap<String, OciDescriptor> = BTreeMap::new();
        for layer in artifact.layers {
            let title = layer.annotations.as_ref().and_then(|annotations| annotations.get(TITLE)).cloned();
            let title = title.unwrap_or_default();
            if layers.insert(title.clone(), layer).is_some() {
                return Err(self.refuse(format!("found two layers titled `{}`", title.escape_debug())));
            }
        }
        let Some(layer) = layers.remove(MANIFEST) else {
            return Err(self.refuse(format!("expected a layer titled {MANIFEST}, found none")));
        };
        let text = self.pull_text(&layer, MANIFEST_LIMIT, MANIFEST).await?;
        let manifest = Manifest::parse(&text)?;
        to.begin(&manifest)?;
        let signature = match layers.remove(SIGNATURE) {
            Some(layer) => Some(self.pull_text(&layer, SIGNATURE_LIMIT, SIGNATURE).await?),
            None => None,
        };
        for (name, (what, blob)) in manifest.distinct_blobs() {
            progress(TransferEvent::File { what: what.clone(), bytes: blob.size });
            if let Some(mut part) = to.part(&blob)? {
                let Some(layer) = layers.get(&format!("{BLOBS}/{name}")) else {
                    return Err(Error::MissingBlob { what, digest: blob.digest });
                };
                let found = u64::try_from(layer.size).unwrap_or_default();
                if found != blob.size {
                    return Err(Error::BlobSize { what, found, expected: blob.size, digest: blob.digest });
                }
                let resumed = part.len() > 0;
                self.pull_blob(&layer.digest, &mut part, blob.size, progress).await?;
                if resumed && !part.is(&blob)? {
                    // What was there may have come from elsewhere, or not got to the disk.
                    part.restart()?;
                    self.pull_blob(&layer.digest, &mut part, blob.size, progress).await?;
                }
                let source = |error| Error::Tampered { name: self.name.clone(), source: Box::new(error) };
                to.add_part(part, &what, &blob).map_err(source)?;
            }
            progress(TransferEvent::Bytes(blob.size));
        }
        Box::new(to).finish_as(&manifest, text, signature.as_deref())
    }

    /// A layer of at most `limit` bytes of text.
    async fn pull_text(&self, layer: &OciDescriptor, limit: u64, what: &str) -> Result<String, Error> {
        let failed = |source| self.failed("pull", source);
        // By its digest alone: the other addresses that a layer may name are not the registry.
        let mut stream =
            self.client.pull_blob_stream(&self.reference, layer.digest.as_str()).await.map_err(failed)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = stream.next().await {
            bytes.extend_from_slice(&chunk.map_err(|error| failed(error.into()))?);
            if bytes.len() as u64 > limit {
                return Err(self.refuse(format!("{what}: found more than {limit} bytes")));
            }
        }
        String::from_utf8(bytes).map_err(|_| self.refuse(format!("{what}: found bytes that are not utf-8")))
    }

    /// Goes on with a blob until `size` bytes are there.
    async fn pull_blob(
        &self,
        digest: &str,
        part: &mut Part,
        size: u64,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<(), Error> {
        if part.len() > size {
            part.restart()?;
        }
        let mut attempts = Attempts::default();
        while part.len() < size {
            let before = part.len();
            match self.pull_rest(digest, part, size, progress).await? {
                Ok(()) => return Ok(()),
                // All of it, but not what the registry has it for: its own digest tells what it is.
                Err(_) if part.len() == size => return Ok(()),
                Err(error) => {
                    if part.len() > before {
                        attempts = Attempts::default();
                    }
                    let stays = |error| self.failed("pull", error);
                    attempts.again(error, progress).await.map_err(stays)?;
                }
            }
        }
        Ok(())
    }

    /// One attempt. The outer error is one of the disk.
    async fn pull_rest(
        &self,
        digest: &str,
        part: &mut Part,
        size: u64,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<Result<(), OciDistributionError>, Error> {
        let asked = if part.len() == 0 {
            self.client.pull_blob_stream(&self.reference, digest).await.map(BlobResponse::Full)
        } else {
            self.client.pull_blob_stream_partial(&self.reference, digest, part.len(), None).await
        };
        let mut stream = match asked {
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
            // What is too much is not kept: the digest will not be that of the blob, unless it is.
            let room = usize::try_from(size - part.len()).unwrap_or(usize::MAX);
            part.append(&chunk[..chunk.len().min(room)])?;
            progress(TransferEvent::Bytes(part.len()));
            if chunk.len() > room {
                return Ok(Ok(()));
            }
        }
        if part.len() < size {
            return Ok(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()));
        }
        Ok(Ok(()))
    }
}
