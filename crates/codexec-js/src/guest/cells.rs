//! A session: runs cells in one engine, one after the other.

use std::rc::Rc;

use codexec_types::{Cell, CellEnding, FromGuest, Job};

use super::{Guest, Run};
use crate::fault::caught;
use crate::program::{Names, Program};
use crate::wire::Gone;

impl Guest {
    /// Runs cells until the host is gone.
    pub(super) fn run_cells(&self, job: &Job) -> Result<(), Gone> {
        self.limit_memory(job);
        let host = Rc::clone(&self.host);
        // THREAT[SES-3]: the guest cannot catch this, and nothing runs after it.
        let handler = move || host.looks_interrupted();
        self.context.runtime().set_interrupt_handler(Some(Box::new(handler)));
        self.inside(|run| run.begin(job).map_err(|_| Gone))?;
        loop {
            let cell = self.host.with_wire(crate::wire::Wire::receive_cell)?;
            let ending = self.run_cell(job, &cell)?;
            self.say(&FromGuest::CellEnded { key: cell.key, ending })?;
        }
    }

    fn run_cell(&self, job: &Job, cell: &Cell) -> Result<CellEnding, Gone> {
        let program = match Program::compile(&cell.code, job.language, Names::Session) {
            Ok(program) => program,
            Err(flaw) => return Ok(CellEnding::Threw(flaw)),
        };
        let file = self.host.texts.borrow_mut().put(cell.number, program.positions);
        self.inside(|run| {
            let declared = program.declared;
            let given = run
                .give(&cell.input, &cell.args)
                .and_then(|()| run.prelude.declare(declared.variables, declared.anew));
            if given.is_err() {
                return Ok(CellEnding::Threw(run.take_thrown()));
            }
            let main = match run.main(&program.script, &file, job.language) {
                Ok(main) => main,
                Err(flaw) => return Ok(CellEnding::Threw(flaw)),
            };
            run.host.with_wire(|wire| wire.send(&FromGuest::Compiled))?;
            let ending = run.to_end(main)?;
            if run.host.is_interrupted() {
                run.sweep();
                return Ok(CellEnding::Interrupted);
            }
            Ok(ending.map_or_else(CellEnding::Threw, CellEnding::Returned))
        })
    }
}

impl Run<'_, '_> {
    /// Discards everything that an interrupted cell has started, so that it does not affect the
    /// next one. Pending jobs end quickly while the cell is interrupted.
    fn sweep(&self) {
        caught(&self.ctx, self.prelude.forget_cell());
        while self.ctx.execute_pending_job() {}
        caught(&self.ctx, self.prelude.forget_cell());
    }
}
