//! MCPProxy's `code_execution`: code or a script's name in, `{ok, value | error}` out. Shared by
//! the tool and the command line, so that both behave the same.

mod answer;
mod arguments;
mod refusal;
mod script_files;

use codexec_scripts::{ScriptError, ScriptFilter};
use codexec_server::{App, Client, Connection, ExecutionRequest, FinishedExecution, TextBudget};
use codexec_types::{Image, Language};
use rmcp::model::ContentBlock;
use serde_json::{Map, Value};

use self::arguments::{CodeExecutionArguments, CodeSource};
use self::refusal::CodeRefusal;
use self::script_files::ScriptFile;
use super::McpproxyTools;

/// The result of `code_execution`.
pub struct CodeExecution {
    /// The JSON that MCPProxy's clients know, and nothing else.
    pub text: String,
    /// The code's output.
    pub output: String,
    pub images: Vec<Image>,
    /// Links to the files that the code has left.
    pub links: Vec<ContentBlock>,
    pub came: CodeExecutionStatus,
}

/// How a `code_execution` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeExecutionStatus {
    /// The code ran to its end.
    Fine,
    /// The code failed, or could not be parsed: that is a result, too.
    Failed,
    /// The request is not allowed, or codexec could not run it.
    Refused,
}

/// A script that can be run by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedScript {
    pub name: String,
    pub language: Language,
    /// True for a file in the scripts folder, false for a script of the library.
    pub is_file: bool,
}

/// Maximum number of names that are read for a list.
const MAX_NAMES: usize = 1_000;

impl McpproxyTools {
    /// Runs code or a script. Never fails: an error is an answer of the same shape.
    pub async fn code_execution(
        &self,
        app: &App,
        args: Map<String, Value>,
        client: &Client,
    ) -> CodeExecution {
        let budget = client.connection.budget();
        let budget = (budget != TextBudget::UNLIMITED).then_some(budget);
        match self.run_code_execution(app, args, client).await {
            Ok(execution) => answer::from_execution(&execution, budget),
            Err(refused) => {
                tracing::debug!(code = refused.code, "not executed");
                answer::from_refusal(&refused)
            }
        }
    }

    /// Returns every script that `script` can name, sorted.
    pub async fn code_scripts(&self, app: &App, connection: &Connection) -> Vec<NamedScript> {
        let files = match self.settings.scripts.clone() {
            Some(folder) => blocking(move || script_files::list(&folder, MAX_NAMES)).await,
            None => None,
        };
        let mut all = files.unwrap_or_default();
        let owner = connection.script_owner().cloned();
        let filter = ScriptFilter { owner, limit: MAX_NAMES, ..ScriptFilter::default() };
        let saved = app.scripts.list(filter).await.map(|listed| listed.scripts);
        let saved =
            saved.unwrap_or_default().into_iter().filter(|meta| script_files::is_name(&meta.name));
        all.extend(saved.map(|meta| NamedScript {
            name: meta.name,
            language: meta.language,
            is_file: false,
        }));
        // The sort is stable: a file stays before the saved script of its name, which it hides.
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    async fn run_code_execution(
        &self,
        app: &App,
        args: Map<String, Value>,
        client: &Client,
    ) -> Result<FinishedExecution, CodeRefusal> {
        if !self.settings.is_enabled {
            return Err(CodeRefusal::disabled());
        }
        let policy = client.connection.policy();
        let CodeExecutionArguments { source, language, input, asked } =
            CodeExecutionArguments::read(args, &self.settings, &policy)?;
        let mut request =
            ExecutionRequest::new(language.unwrap_or(Language::JavaScript), String::new());
        (request.input, request.asked) = (input, asked);
        request.words.servers = "options.allowed_servers";
        request.words.directory = None;
        match source {
            CodeSource::Code(code) => request.code = code,
            CodeSource::Script(name) => match self.read_script_file(&name).await? {
                Some(stored) => {
                    check_language(&name, stored.language, language)?;
                    (request.language, request.code) = (stored.language, stored.code);
                }
                None => {
                    return self.run_from_library(app, &name, (language, request), client).await;
                }
            },
        }
        Ok(app.execute(request, client).await?)
    }

    async fn run_from_library(
        &self,
        app: &App,
        name: &str,
        (asked, request): (Option<Language>, ExecutionRequest),
        client: &Client,
    ) -> Result<FinishedExecution, CodeRefusal> {
        match app.scripts.get(name, None).await {
            Ok(script) => check_language(name, script.meta.language, asked)?,
            Err(ScriptError::NotFound { .. }) => {
                return Err(CodeRefusal::no_script(
                    name,
                    &self.code_scripts(app, &client.connection).await,
                ));
            }
            Err(error) => return Err(CodeRefusal::script(&error)),
        }
        Ok(app.run_saved(name, None, request, client).await?)
    }

    /// Reads the file anew for each run, so that edits take effect at once.
    async fn read_script_file(&self, name: &str) -> Result<Option<ScriptFile>, CodeRefusal> {
        script_files::check_name(name)?;
        let Some(folder) = self.settings.scripts.clone() else { return Ok(None) };
        let name = name.to_owned();
        let found = blocking(move || script_files::find(&folder, &name)).await;
        found.unwrap_or_else(|| Err(CodeRefusal::unusable("reading the script failed")))
    }
}

fn check_language(name: &str, its: Language, asked: Option<Language>) -> Result<(), CodeRefusal> {
    match asked {
        Some(asked) if asked != its => Err(CodeRefusal::other_language(name, its, asked)),
        Some(_) | None => Ok(()),
    }
}

/// Runs disk access off the runtime's threads.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
