//! The arguments of commands about the user's own settings and keys.

use clap::{Args, Subcommand};

use super::ListOutput;

/// What `llm-do config` is told.
#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    #[command(subcommand)]
    pub(crate) action: Option<ConfigAction>,
    /// How to print the settings
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: ListOutput,
}

/// What is done with the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Prints the value of a key
    Get {
        /// The key, such as `model` or `aliases.fast`
        key: String,
    },
    /// Sets a key. Comments and order of the file are kept, and nothing invalid is written
    Set {
        /// The key, such as `model`, `aliases.fast` or `models."openai:gpt-5*".price`
        key: String,
        /// The value: a text, or TOML (`{ input = 1.25, output = 10 }`)
        value: String,
    },
    /// Removes a key
    Unset {
        /// The key
        key: String,
    },
    /// Opens the file in `$VISUAL` or `$EDITOR`, and checks it afterwards
    Edit,
    /// Prints the path of the file
    Path,
}

/// What `llm-do auth` is told.
#[derive(Debug, Args)]
pub(crate) struct AuthArguments {
    #[command(subcommand)]
    pub(crate) action: AuthAction,
}

/// What is done with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum AuthAction {
    /// Stores the key of a provider, read from the terminal without echo
    Login {
        /// The provider, such as `openai`, or one of your configuration
        provider: String,
        /// Reads the key from stdin instead
        #[arg(long)]
        stdin: bool,
    },
    /// Forgets the stored key of a provider
    Logout {
        /// The provider
        provider: String,
    },
    /// Lists providers with a key: where it comes from, and its last 4 characters
    List {
        /// How to print it
        #[arg(long, value_enum, default_value_t, value_name = "FORM")]
        output: ListOutput,
    },
}
