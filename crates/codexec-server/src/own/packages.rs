use codexec_scripts::Meta;
use serde_json::{Value, json};

use super::OwnError;
use crate::fields::Fields;
use crate::sessions::Session;
use crate::{App, Client};

impl App {
    pub(super) async fn install_package(
        &self,
        fields: Fields,
        _client: &Client,
    ) -> Result<Value, OwnError> {
        fields.finish()?;
        Err(OwnError::new("PACKAGES_UNAVAILABLE", "packages cannot be installed here yet"))
    }

    pub(super) async fn list_packages(
        &self,
        fields: Fields,
        _client: &Client,
    ) -> Result<Value, OwnError> {
        fields.finish()?;
        Ok(json!({"packages": []}))
    }

    /// Whether everything that a script needs is there.
    pub(super) async fn has_packages(
        &self,
        _meta: &Meta,
        _session: Option<&Session>,
    ) -> Result<(), OwnError> {
        Ok(())
    }
}
