//! A session: runs cells in one engine, one after the other.

use std::rc::Rc;

use codexec_types::{Cell, CellEnding, FromGuest, WorkerJob};

use super::{EngineGuest, JsGuest};
use crate::fault::take_ok;
use crate::program::{NameScope, Program};
use crate::wire::HostGone;

impl JsGuest {
    /// Runs cells until the host is gone.
    pub(super) fn run_cells(&self, job: &WorkerJob) -> Result<(), HostGone> {
        self.limit_memory(job);
        let host = Rc::clone(&self.host);
        // THREAT[SES-3]: the guest cannot catch this, and nothing runs after it.
        let handler = move || host.check_interrupt();
        self.context.runtime().set_interrupt_handler(Some(Box::new(handler)));
        self.with_run(|run| run.begin(job).map_err(|_| HostGone))?;
        loop {
            let cell = self.host.with_wire(crate::wire::Wire::receive_cell)?;
            let ending = self.run_cell(job, &cell)?;
            self.send(&FromGuest::CellEnded { key: cell.key, ending })?;
        }
    }

    fn run_cell(&self, job: &WorkerJob, cell: &Cell) -> Result<CellEnding, HostGone> {
        let program = match Program::compile(&cell.code, job.language, NameScope::Session) {
            Ok(program) => program,
            Err(flaw) => return Ok(CellEnding::Threw(flaw)),
        };
        let source = (cell.code.clone(), program.source_type);
        let file = self.host.texts.borrow_mut().add(cell.number, source, program.positions);
        self.with_run(|run| {
            let declared = program.declared;
            let given = run
                .give(&cell.input, &cell.args)
                .and_then(|()| run.prelude.declare(declared.variables, declared.anew));
            if given.is_err() {
                return Ok(CellEnding::Threw(run.take_thrown()));
            }
            let main = match run.compile_main(&program.script, &file, job.language) {
                Ok(main) => main,
                Err(flaw) => return Ok(CellEnding::Threw(flaw)),
            };
            run.host.with_wire(|wire| wire.send(&FromGuest::Compiled))?;
            let ending = run.run_to_end(main)?;
            if run.host.is_interrupted() {
                run.discard_cell();
                return Ok(CellEnding::Interrupted);
            }
            Ok(ending.map_or_else(CellEnding::Threw, CellEnding::Returned))
        })
    }
}

impl EngineGuest<'_, '_> {
    /// Discards everything that an interrupted cell has started, so that it does not affect the
    /// next one. Pending jobs end quickly while the cell is interrupted.
    fn discard_cell(&self) {
        take_ok(&self.ctx, self.prelude.forget_cell());
        while self.ctx.execute_pending_job() {}
        take_ok(&self.ctx, self.prelude.forget_cell());
    }
}
