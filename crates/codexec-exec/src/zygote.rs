//! The zygote of one kind of worker: the process that forks the keepers of its workers.

use std::io;
use std::sync::Arc;

use codexec_sandbox::{FirstProcess, Launch, MissingLayer, ZygoteLink};

use crate::nursery::WarmZygote;
use crate::worker_kind::WorkerKind;
use crate::{ExecError, Settings, interpreter};

pub(crate) struct Zygote {
    pub(crate) link: Arc<ZygoteLink>,
    pub(crate) launch: Launch,
    pub(crate) missing: Vec<MissingLayer>,
    /// The first process of each worker; `None` for the built-in engine.
    pub(crate) first: Option<FirstProcess>,
    /// The warm interpreter, if guests are forked from one.
    pub(crate) warm: Option<WarmZygote>,
}

impl Zygote {
    pub(crate) async fn start(
        kind: WorkerKind,
        settings: &Settings,
        has_cgroups: bool,
    ) -> Result<Zygote, ExecError> {
        match kind {
            WorkerKind::Engine => {
                let (program, role) = (settings.program.clone(), settings.role);
                let link =
                    run_blocking(move || Ok(Arc::new(ZygoteLink::start(&program, role)?))).await?;
                let memory_bytes = settings.limits.memory_bytes;
                let launch = Launch::for_interpreter(memory_bytes, settings.lowered.clone());
                Ok(Zygote { link, launch, missing: Vec::new(), first: None, warm: None })
            }
            WorkerKind::Python | WorkerKind::Bash | WorkerKind::Node => {
                Zygote::start_programs(kind, settings, has_cgroups).await
            }
        }
    }

    async fn start_programs(
        kind: WorkerKind,
        settings: &Settings,
        has_cgroups: bool,
    ) -> Result<Zygote, ExecError> {
        let settings = settings.clone();
        let (link, found, missing) = run_blocking(move || {
            let mut found = interpreter::find(kind, &settings)?;
            if !has_cgroups {
                found.launch = found.launch.without_cgroups(settings.limits.memory_bytes);
            }
            let link = ZygoteLink::start(&settings.program, settings.programs_role)?;
            let missing = link.enter_rootfs(&found.launch)?.map_err(ExecError::Sandbox)?;
            Ok((Arc::new(link), found, missing))
        })
        .await?;
        let warm = match &found.python {
            Some(python) => {
                let warm = WarmZygote::start(&link, python).await;
                Some(warm.map_err(|error| match error {
                    ExecError::Start(error) => ExecError::Interpreter(format!(
                        "{} does not start in the sandbox: {error}",
                        found.name
                    )),
                    other => other,
                })?)
            }
            None => None,
        };
        let (launch, first) = (found.launch, Some(found.first));
        Ok(Zygote { link, launch, missing, first, warm })
    }
}

pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ExecError> + Send + 'static,
) -> Result<T, ExecError> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
