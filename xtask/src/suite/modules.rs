//! Which interpreter, and which of its tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::step;

/// Fewer say little.
const FEWEST: usize = 200;

const PROBE: &str = "import os, sys, test
print(os.path.realpath(sys.executable)); print(os.path.dirname(test.__file__))";

/// Not run on either side: what is about a display, about a network, or takes minutes.
const LEFT_OUT: &[&str] = &[
    // A display.
    "test_idle",
    "test_tcl",
    "test_tix",
    "test_tk",
    "test_tkinter",
    "test_tools",
    "test_ttk",
    "test_ttk_guionly",
    "test_ttk_textonly",
    "test_turtle",
    // A network: a guest has none, and some of these wait for it.
    "test_asynchat",
    "test_asyncio",
    "test_asyncore",
    "test_docxmlrpc",
    "test_ftplib",
    "test_httplib",
    "test_httpservers",
    "test_imaplib",
    "test_logging",
    "test_nntplib",
    "test_poplib",
    "test_robotparser",
    "test_smtpd",
    "test_smtplib",
    "test_smtpnet",
    "test_socket",
    "test_socketserver",
    "test_ssl",
    "test_telnetlib",
    "test_timeout",
    "test_urllib2_localnet",
    "test_urllib2net",
    "test_urllibnet",
    "test_xmlrpc",
    "test_xmlrpc_net",
    // Minutes, or more memory and disk than most machines have.
    "test__xxsubinterpreters",
    "test_bigaddrspace",
    "test_bigmem",
    "test_clinic",
    "test_compileall",
    "test_concurrent_futures",
    "test_cppext",
    "test_distutils",
    "test_embed",
    "test_ensurepip",
    "test_faulthandler",
    "test_freeze",
    "test_gdb",
    "test_interpreters",
    "test_lib2to3",
    "test_multiprocessing_fork",
    "test_multiprocessing_forkserver",
    "test_multiprocessing_main_handling",
    "test_multiprocessing_spawn",
    "test_peg_generator",
    "test_regrtest",
    "test_tokenize",
    "test_venv",
    "test_zipfile64",
];

pub(super) struct Interpreter {
    pub(super) program: PathBuf,
    tests: PathBuf,
}

impl Interpreter {
    /// The named one, or the first that has its tests with it: Debian's has only a few.
    pub(super) fn find(named: Option<&Path>) -> Result<Interpreter> {
        let usual = ["python3", "/usr/local/bin/python3", "/usr/bin/python3"].map(Path::new);
        let candidates = named.map_or_else(|| usual.to_vec(), |named| vec![named]);
        let found = candidates.iter().filter_map(|program| Interpreter::ask(program));
        let mut fit = found.filter(|found| found.all().is_ok_and(|all| all.len() >= FEWEST));
        fit.next().with_context(|| {
            format!(
                "no interpreter with at least {FEWEST} files of its own tests among {candidates:?}; \
                 name one with --interpreter"
            )
        })
    }

    fn ask(program: &Path) -> Option<Interpreter> {
        let probe = || {
            let mut command = step::command(program);
            command.args(["-c", PROBE]);
            command
        };
        if !step::works(&mut probe()) {
            return None;
        }
        let said = step::output(&mut probe()).ok()?;
        let mut lines = said.lines().map(PathBuf::from);
        Some(Interpreter { program: lines.next()?, tests: lines.next()? })
    }

    pub(super) fn modules(&self, only: &[String]) -> Result<Vec<String>> {
        let mut modules = self.all()?;
        modules.retain(|name| match only {
            [] => !LEFT_OUT.contains(&name.as_str()),
            only => only.contains(name),
        });
        if modules.is_empty() || (only.is_empty() && modules.len() < FEWEST) {
            bail!("{} test files are too few", modules.len());
        }
        Ok(modules)
    }

    fn all(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.tests)? {
            let path = entry?.path();
            let is_module = path.extension().is_some_and(|end| end == "py")
                || path.join("__init__.py").is_file();
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            if is_module && name.starts_with("test_") {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }
}
