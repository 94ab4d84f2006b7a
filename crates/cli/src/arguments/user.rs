//! The arguments of commands about the user's own settings and keys.

use clap::{Args, Subcommand};

use super::ListOutput;
use super::examples::{AUTH_EXAMPLES, CONFIG_EXAMPLES};

/// The arguments of `llm-do config`.
#[derive(Debug, Args)]
#[command(after_help = CONFIG_EXAMPLES)]
pub(crate) struct ConfigArguments {
    #[command(subcommand)]
    pub(crate) action: Option<ConfigAction>,
    /// The output format
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: ListOutput,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Print the value of a key
    Get {
        /// The key, such as `model` or `aliases.fast`
        key: String,
    },
    /// Set a key; keeps comments and order, and refuses an invalid value
    Set {
        /// The key, such as `model`, `aliases.fast` or `models."openai:gpt-5*".price`
        key: String,
        /// The value: text, or TOML such as `{ input = 1.25, output = 10 }`
        value: String,
    },
    /// Remove a key
    Unset {
        /// The key
        key: String,
    },
    /// Open the file in `$VISUAL` or `$EDITOR`, and check it afterwards
    Edit,
    /// Print the path of the file
    Path,
}

/// The arguments of `llm-do auth`.
#[derive(Debug, Args)]
#[command(after_help = AUTH_EXAMPLES)]
pub(crate) struct AuthArguments {
    #[command(subcommand)]
    pub(crate) action: AuthAction,
}

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum AuthAction {
    /// Store the key of a provider, typed at the terminal without echo
    Login {
        /// The provider, such as `openai`, or one of your configuration
        provider: String,
        /// Read the key from stdin instead
        #[arg(long)]
        stdin: bool,
    },
    /// Delete the stored key of a provider
    Logout {
        /// The provider
        provider: String,
    },
    /// List the keys that are found: provider, origin and last 4 characters
    List {
        /// The output format
        #[arg(long, value_enum, default_value_t, value_name = "FORM")]
        output: ListOutput,
    },
}
