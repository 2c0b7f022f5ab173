//! The interpreter, and the modules of its own tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::step;

/// An interpreter with fewer test files is not worth comparing.
const MIN_FILES: usize = 200;

const PROBE: &str = "import os, sys, test
print(os.path.realpath(sys.executable)); print(os.path.dirname(test.__file__))";

/// Modules that are not run: they need a display or a network, or take minutes.
const EXCLUDED: &[&str] = &[
    // Need a display.
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
    // Need a network: a guest has none, and some of these wait for one.
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
    // Take minutes, or more memory and disk than most machines have.
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

pub(super) struct PythonInterpreter {
    pub(super) program: PathBuf,
    tests: PathBuf,
}

impl PythonInterpreter {
    /// Finds the named interpreter, or the first one that includes its tests (Debian's has few).
    pub(super) fn find(named: Option<&Path>) -> Result<PythonInterpreter> {
        let usual = ["python3", "/usr/local/bin/python3", "/usr/bin/python3"].map(Path::new);
        let candidates = named.map_or_else(|| usual.to_vec(), |named| vec![named]);
        let found = candidates.iter().filter_map(|program| PythonInterpreter::probe(program));
        let mut fit = found.filter(|found| found.all().is_ok_and(|all| all.len() >= MIN_FILES));
        fit.next().with_context(|| {
            format!(
                "none of {candidates:?} has at least {MIN_FILES} files of its own tests; name \
                 another with --interpreter"
            )
        })
    }

    fn probe(program: &Path) -> Option<PythonInterpreter> {
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
        Some(PythonInterpreter { program: lines.next()?, tests: lines.next()? })
    }

    pub(super) fn modules(&self, only: &[String]) -> Result<Vec<String>> {
        let mut modules = self.all()?;
        modules.retain(|name| match only {
            [] => !EXCLUDED.contains(&name.as_str()),
            only => only.contains(name),
        });
        if modules.is_empty() || (only.is_empty() && modules.len() < MIN_FILES) {
            bail!("only {} test files found", modules.len());
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
