//! Variables that name code, or folders with code.

use super::{
    StartPlanner, StartRefusal,
    command_line::{Reading, has, has_prefix},
};

/// Families of variables, by the start of their names, in capitals.
const FAMILIES: &str = "\
    ASDF_ BASH_ BUNDLE_ BUN_ CARGO_ COMPLUS_ CONDA_ CORECLR_ COREPACK_ COR_ DENO_ DOCKER_ \
    DOTNET_ DYLD_ ELECTRON_ ERL_ GEM_ GIO_ GIT_ GRADLE_ GST_ GTK_ HATCH_ JAVA_ JDK_ JRUBY_ \
    JULIA_ LD_ LUA_ MAKE MAVEN_ MISE_ NIX_ NODE_ NPM_ NVM_ OPENSSL_ PDM_ PERL PHP PIPX_ PIP_ \
    PNPM_ POETRY_ PYTHON QT_ RUBY RUST R_ SSH_ TSX_ TS_NODE_ UV_ VOLTA_ XDG_ YARN_ _JAVA_ \
    __PYVENV_";
/// Other variables.
const NAMES: &str = "\
    ANT_OPTS AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE BROWSER CDPATH CLASSPATH EDITOR \
    EMACSLOADPATH ENV FPATH GCONV_PATH GOBIN GOCACHE GOENV GOFLAGS GOMODCACHE GOPATH GOROOT \
    GOWORK GUILE_LOAD_PATH HOME JVM_OPTS KUBECONFIG LESSOPEN LOCPATH M2_HOME NLSPATH PAGER \
    PROMPT_COMMAND SBT_OPTS SHELL SUDO_ASKPASS TCLLIBPATH VIRTUAL_ENV VISUAL ZDOTDIR";

/// Lists of folders, in which an empty part is the working directory.
const LISTS: &str = "\
    CDPATH CLASSPATH FPATH GCONV_PATH GEM_PATH LD_LIBRARY_PATH NODE_PATH PERL5LIB PYTHONPATH \
    RUBYLIB";

impl StartPlanner<'_> {
    /// THREAT[CFG-8]: variables that name code name nothing that guests can write. Others are the
    /// server's data, unless they name a file with code.
    pub(super) fn check_variables(&self) -> Result<(), StartRefusal> {
        // Guests' folders on PATH are left out; see `clean_path`.
        for (name, value) in self.plan.env.iter().filter(|(name, _)| *name != "PATH") {
            if is_code_variable(name) {
                self.check_text(value, Reading::Name, &mut vec![self.plan.cwd.clone()])?;
                if has(LISTS, name) {
                    value
                        .split(':')
                        .try_for_each(|part| self.check_path(&self.plan.cwd.join(part)))?;
                }
            } else {
                let parts = self.parts(value).into_iter().filter(|p| p.starts_with(['/', '.']));
                for part in parts {
                    self.check_file(&part)?;
                }
            }
        }
        Ok(())
    }
}

fn is_code_variable(name: &str) -> bool {
    let capitals = name.to_ascii_uppercase();
    has(NAMES, name) || has_prefix(FAMILIES, &capitals)
}
