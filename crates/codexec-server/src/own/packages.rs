use std::sync::Arc;
use std::time::SystemTime;

use codexec_exec::packages::InstallTarget;
use codexec_scripts::ScriptMeta;
use codexec_store::{PackageInstall, PackageTarget};
use codexec_types::{Language, PackageName};
use serde_json::{Value, json};

use super::running::read_language;
use super::sessions::calling_session;
use super::{OwnFunctionError, shape};
use crate::execution_packages::ExecutionPackages;
use crate::fields::Fields;
use crate::outer_execution::SessionScope;
use crate::sessions::OpenSession;
use crate::{App, Client};

impl App {
    pub(super) async fn install_package(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        let text = fields.required_text("package")?;
        let (session, language) = self.read_package_target(fields, client)?;
        let own = || calling_execution(client).map(|execution| execution.language);
        let language = check_installable(language.or_else(own))?;
        let execution = calling_execution(client).filter(|_| session.is_none());
        if let Some(execution) = execution.filter(|one| one.language != language) {
            return Err(OwnFunctionError::invalid(format!(
                "session_id: it is missing, and this code is {}, which cannot use {language} \
                 packages; name a {language} session (sessions.start opens one), or let the user \
                 install it for everybody with `codexec packages install`",
                execution.language
            )));
        }
        if let Some(session) = session.as_ref().filter(|session| session.language != language) {
            return Err(OwnFunctionError::invalid(format!(
                "language: {} is a {} session and cannot use {language} packages",
                session.id, session.language
            )));
        }
        let package = PackageName::parse(language, &text)
            .map_err(|error| OwnFunctionError::invalid(format!("package: {error}")))?;
        let target = match execution {
            Some(execution) => {
                InstallTarget::Session(execution.folder().await.map_err(crate::ExecuteError::from)?)
            }
            None => install_target(session.as_deref()),
        };
        let say = |line: &str| {
            let line = line.to_owned();
            client.progress.send_modify(|progress| progress.message = Some(line));
        };
        let installed = self.packages.install(&package, target, say, &client.cancel).await;
        let recorded = match (&session, execution) {
            (Some(session), _) => Some(PackageTarget::Session(session.id.clone())),
            (None, None) => Some(PackageTarget::Everybody(language)),
            // Removed with the execution.
            (None, Some(_)) => None,
        };
        if let Some(target) = &recorded {
            let install = PackageInstall {
                target,
                name: package.name(),
                version: installed.as_ref().ok().map(|done| done.version.as_str()),
                is_ok: installed.is_ok(),
                principal: &client.principal(),
                at: SystemTime::now(),
            };
            self.records.store().await?.record_package_install(&install).await?;
        }
        let installed = installed?;
        if let Some(session) = &session {
            session.note_package(package.name());
        }
        let also: Vec<String> =
            installed.also.iter().map(|(name, version)| format!("{name}-{version}")).collect();
        let (output, _) = shape::cut(&installed.output, client.text_budget());
        let mut value = json!({
            "success": true,
            "package": installed.package,
            "version": installed.version,
            "install_output": output,
        });
        if let (Some(fields), false) = (value.as_object_mut(), also.is_empty()) {
            fields.insert("also_installed".to_owned(), json!(also));
        }
        Ok(value)
    }

    /// Removes a package that is installed for all code, and returns its name and version. Only for
    /// the user: code cannot call this.
    pub async fn remove_package(
        &self,
        language: Language,
        package: &str,
        client: &Client,
    ) -> Result<(String, String), OwnFunctionError> {
        let language = check_installable(Some(language))?;
        let package = PackageName::parse(language, package)
            .map_err(|error| OwnFunctionError::invalid(format!("package: {error}")))?;
        let removed = self.packages.remove(&package, &client.cancel).await?;
        removed.ok_or_else(|| {
            let name = package.name();
            let message = format!("{name} is not installed; list_packages shows what is");
            OwnFunctionError::new("PACKAGE_NOT_FOUND", message)
        })
    }

    pub(super) async fn list_packages(
        &self,
        fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        let (session, language) = self.read_package_target(fields, client)?;
        let languages = match language {
            Some(_) => vec![check_installable(language)?],
            None => vec![Language::Python, Language::Node],
        };
        let mut packages = Vec::new();
        let own = calling_execution(client).filter(|_| session.is_none());
        let own = own.and_then(|execution| Some((execution.language, execution.created_folder()?)));
        if let Some((one, folder)) = own.filter(|(one, _)| languages.contains(one)) {
            let found = self.packages.list_installed(one, InstallTarget::Session(folder)).await?;
            packages.extend(package_entries(one, &found));
        }
        for &one in &languages {
            let found =
                match self.packages.list_installed(one, install_target(session.as_deref())).await {
                    Ok(found) => found,
                    // A list for all languages leaves out those that are not installed.
                    Err(error) if language.is_none() => {
                        tracing::info!(%error, language = %one, "packages cannot be listed");
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
            packages.extend(package_entries(one, &found));
        }
        Ok(json!({"packages": packages}))
    }

    /// Returns the session that is named or that the calling code runs in, and the language that is
    /// named or the session's.
    ///
    /// THREAT[PKG-7]: code installs for its session or for its execution, never for everybody.
    fn read_package_target(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<(Option<Arc<OpenSession>>, Option<Language>), OwnFunctionError> {
        let handle = fields.text("session_id")?.or_else(|| calling_session(client));
        let language = read_language(&mut fields)?;
        fields.finish()?;
        let find = |handle: String| self.sessions.find(&handle, client);
        let session = handle.map(find).transpose()?;
        let of_session = session.as_ref().map(|session| session.language);
        Ok((session, language.or(of_session)))
    }

    /// Fails if a package that the script needs is missing.
    pub(super) async fn check_packages(
        &self,
        meta: &ScriptMeta,
        session: Option<&OpenSession>,
    ) -> Result<(), OwnFunctionError> {
        if meta.packages.is_empty() {
            return Ok(());
        }
        let language = match meta.language {
            Language::Python | Language::Node => meta.language,
            Language::JavaScript | Language::TypeScript | Language::Bash => return Ok(()),
        };
        let parse = |text: &String| PackageName::parse(language, text);
        let needed: Result<Vec<PackageName>, _> = meta.packages.iter().map(parse).collect();
        let needed =
            needed.map_err(|error| OwnFunctionError::invalid(format!("packages: {error}")))?;
        let missing =
            self.packages.find_missing(&needed, session.map(|session| &*session.folder)).await?;
        if missing.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = missing.iter().map(PackageName::as_str).collect();
        let how: Vec<String> = names
            .iter()
            .map(|name| {
                format!("install_package {}", json!({"package": name, "language": language}))
            })
            .collect();
        let message = format!(
            "{} needs packages that are not installed: {}; install each first: {}",
            meta.name,
            names.join(", "),
            how.join("; ")
        );
        Err(OwnFunctionError::new("MISSING_PACKAGES", message)
            .with("missing_packages", json!(names)))
    }
}

/// Returns the packages of the calling execution, if it is not in a session.
fn calling_execution(client: &Client) -> Option<&ExecutionPackages> {
    match client.scope()? {
        SessionScope::Execution(_) => client.outer.as_ref().map(|outer| &*outer.packages),
        SessionScope::Session(_) => None,
    }
}

fn package_entries(language: Language, found: &[(String, String)]) -> impl Iterator<Item = Value> {
    found.iter().map(move |(name, version)| {
        json!({"package": name, "version": version, "language": language.name()})
    })
}

fn install_target(session: Option<&OpenSession>) -> InstallTarget<'_> {
    match session {
        Some(session) => InstallTarget::Session(&session.folder),
        None => InstallTarget::Everybody,
    }
}

fn check_installable(language: Option<Language>) -> Result<Language, OwnFunctionError> {
    match language {
        Some(language @ (Language::Python | Language::Node)) => Ok(language),
        Some(other) => Err(OwnFunctionError::invalid(format!(
            "language: {other} has no packages; it must be python or node"
        ))),
        None => {
            Err(OwnFunctionError::invalid("language: it is missing; it must be python or node"))
        }
    }
}
