//! The settings of the systems that codexec replaces ("seeds"). A table says what each of them means
//! in codexec; those that the user has set are inherited where `config.toml` has none.

mod inherited;
mod settings_files;
mod table;
mod value_format;

pub(crate) use self::inherited::collect_values;
pub use self::inherited::{InheritError, InheritedSettings, SeedValue};
pub use self::settings_files::{SettingsFile, SettingsFileError};
pub(crate) use self::settings_files::{read_files, read_required};
pub use self::table::{SeedSetting, SettingMeaning, SettingSource, settings};
pub use self::value_format::{InvalidValue, ValueFormat};
use crate::{BridgeSettings, ExecutorSettings, ProxySettings};

/// The settings of the three seeds with tools of their own, as far as they have no equivalent in
/// codexec's own settings.
#[derive(Clone, Debug, Default)]
pub struct Seeds {
    /// Code Executor MCP.
    pub executor: ExecutorSettings,
    /// MCP Server Code Execution Mode.
    pub bridge: BridgeSettings,
    /// MCPProxy.
    pub proxy: ProxySettings,
}
