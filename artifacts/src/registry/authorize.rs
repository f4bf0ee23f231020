//! The first request of a transfer.

use oci_client::{Client, RegistryOperation, errors::OciDistributionError};

use super::{
    client::Registry,
    transfer::{TransferEvent, retried},
};

impl Registry {
    /// Gets what the registry wants for an operation. If it cannot be reached, that is not tried again: its name may be wrong.
    pub(super) async fn authorize(
        &self,
        client: &Client,
        operation: RegistryOperation,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<(), OciDistributionError> {
        let attempt = || async {
            match client.auth(&self.reference, &self.auth, operation).await {
                Err(OciDistributionError::RequestError(error)) if error.is_connect() => Ok(Err(error.into())),
                other => other.map(|_| Ok(())),
            }
        };
        retried(progress, attempt).await?
    }
}
