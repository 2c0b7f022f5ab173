use std::convert::Infallible;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use nix::unistd::execve;

use crate::control::ProgramCommand;

/// A command converted to C strings. The conversion happens before the fork, so that an invalid
/// command fails in the parent.
pub(crate) struct PreparedCommand {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl PreparedCommand {
    pub(crate) fn new(command: &ProgramCommand) -> io::Result<PreparedCommand> {
        let text = |text: &[u8]| CString::new(text).map_err(io::Error::other);
        let program = text(command.program.as_os_str().as_bytes())?;
        let arguments = command.arguments.iter().map(|argument| text(argument.as_bytes()));
        let variables = command.environment.iter();
        let variables = variables.map(|(name, value)| text(format!("{name}={value}").as_bytes()));
        Ok(PreparedCommand {
            arguments: std::iter::once(Ok(program.clone()))
                .chain(arguments)
                .collect::<Result<_, _>>()?,
            environment: variables.collect::<Result<_, _>>()?,
            program,
        })
    }

    /// Replaces this process by the program.
    pub(crate) fn run(&self) -> io::Result<Infallible> {
        Ok(execve(&self.program, &self.arguments, &self.environment)?)
    }
}
