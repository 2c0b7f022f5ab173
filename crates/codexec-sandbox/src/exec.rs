use std::convert::Infallible;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use nix::unistd::execve;

use crate::control::Command;

/// A command in the kernel's words, made before the fork: what cannot be said fails there.
pub(crate) struct Exec {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Exec {
    pub(crate) fn new(command: &Command) -> io::Result<Exec> {
        let text = |text: &[u8]| CString::new(text).map_err(io::Error::other);
        let program = text(command.program.as_os_str().as_bytes())?;
        let given = command.arguments.iter().map(|argument| text(argument.as_bytes()));
        let variables = command.environment.iter();
        let variables = variables.map(|(name, value)| text(format!("{name}={value}").as_bytes()));
        Ok(Exec {
            arguments: std::iter::once(Ok(program.clone()))
                .chain(given)
                .collect::<Result<_, _>>()?,
            environment: variables.collect::<Result<_, _>>()?,
            program,
        })
    }

    /// This process becomes the program.
    pub(crate) fn run(&self) -> io::Result<Infallible> {
        Ok(execve(&self.program, &self.arguments, &self.environment)?)
    }
}
