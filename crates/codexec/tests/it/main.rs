//! The built binary from the outside: one test binary, a module per contract.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test helpers are not test functions to clippy"
)]

mod approvals;
mod asks;
mod attacks;
mod bad_input;
mod cli;
mod clients;
mod conformance;
mod cpython;
mod dashboard;
mod data;
mod direct;
mod durability;
mod escape;
mod files;
mod files_moved;
mod fleet;
mod guide;
mod http;
mod interpreters;
mod kept_workers;
mod leaks;
mod limits;
mod mistakes;
mod ordinary;
mod packages;
mod planted;
mod programs;
mod records;
mod reference;
mod remote;
mod resources;
mod seed_code_executor;
mod seed_codexec;
mod seed_execution_mode;
mod seed_mcpproxy;
mod seed_settings;
mod servers;
mod startup;
mod support;
mod trust;
mod two_people;
mod types;
mod upstreams;
mod world;
mod zygotes;
