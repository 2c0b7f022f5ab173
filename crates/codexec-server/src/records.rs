use std::path::PathBuf;
use std::time::SystemTime;

use codexec_store::{Store, StoreError};
use tokio::sync::OnceCell;

/// The store, opened when first needed, so that a slow disk does not delay the first words to a
/// client. An opening that failed is tried again the next time.
pub struct Records {
    path: PathBuf,
    store: OnceCell<Store>,
}

impl Records {
    /// `path` is the database's; its folder has to be there.
    pub fn at(path: PathBuf) -> Records {
        Records { path, store: OnceCell::new() }
    }

    /// Whoever opens it also takes over what servers that died have left.
    pub async fn store(&self) -> Result<&Store, StoreError> {
        let open = || async {
            let store = Store::open(&self.path).await?;
            let interrupted = store.interrupt_leftovers(SystemTime::now()).await?;
            if interrupted > 0 {
                tracing::warn!(interrupted, "executions of a server that died are marked so");
            }
            Ok(store)
        };
        self.store.get_or_try_init(open).await
    }
}
