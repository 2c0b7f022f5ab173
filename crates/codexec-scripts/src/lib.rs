//! The library of saved scripts: plain files that people read and edit, and an index beside them.
