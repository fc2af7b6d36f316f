//! `testwright tokens`: manages the tokens of a server.
//!
//! It works on the server's database. Access to the database makes its user an operator of the server.

use secrecy::ExposeSecret as _;

use super::output::{self, escape_line};
use super::server_options::StoreArgs;
use testwright_config::error::{Error, Result};
use testwright_server::reserved_owners;
use testwright_server::store::{Scope, Store, Token, now, timestamp};

const DAY: i64 = 24 * 60 * 60 * 1000;
/// Maximum characters of a name.
const MAX_NAME_LEN: usize = 64;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: TokensCommand,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, clap::Subcommand)]
enum TokensCommand {
    /// Create a token and print it; it is not shown again
    Create {
        /// Name of the token, shown by `list` and passed to `revoke`
        name: String,
        /// Scopes of the token, separated by commas [default: read,write]
        #[arg(long, value_name = "SCOPES", value_enum, value_delimiter = ',', default_values_t = [Scope::Read, Scope::Write], hide_default_value = true)]
        scope: Vec<Scope>,
        /// Owner of the runs started with the token; the server divides its workers evenly among
        /// owners [default: the name of the token]
        #[arg(long, value_name = "NAME")]
        owner: Option<String>,
        /// Days until the token expires [default: never]
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u16).range(1..))]
        days: Option<u16>,
    },
    /// List the tokens, without their secrets
    List,
    /// Revoke a token at once
    Revoke {
        /// Name of the token
        name: String,
    },
}

pub(super) async fn run(args: &Args) -> Result<()> {
    let store = Store::open(&args.store.database()?).await?;
    match &args.what {
        TokensCommand::Create {
            name,
            scope,
            owner,
            days,
        } => {
            let owner = owner.as_ref().unwrap_or(name);
            for text in [name, owner] {
                check_name(text)?;
            }
            if reserved_owners::RESERVED.contains(&owner.as_str()) {
                return Err(Error::usage("create a token")
                    .cause(format!(
                        "{owner} is a reserved owner ({})",
                        reserved_owners::RESERVED.join(", ")
                    ))
                    .hint("choose another name, or another --owner"));
            }
            let end = days.map(|days| now() + i64::from(days) * DAY);
            let token = store.add_token(name, owner, scope, end).await?;
            output::print_stdout(format!("{}\n", token.expose_secret()));
        }
        TokensCommand::List => {
            let tokens = store.tokens().await?;
            if tokens.is_empty() {
                output::print_stderr("no tokens");
            }
            for token in tokens {
                output::print_stdout(format!("{}\n", escape_line(&format_token(&token))));
            }
        }
        TokensCommand::Revoke { name } => {
            if !store.revoke_token(name).await? {
                return Err(Error::usage(format!("revoke the token {name}"))
                    .cause("it does not exist")
                    .hint("run `testwright tokens list` to see all tokens"));
            }
        }
    }
    Ok(())
}

fn check_name(name: &str) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    if !name.is_empty() && name.len() <= MAX_NAME_LEN && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(Error::usage("create a token")
        .cause("a name has 1 to 64 letters, digits, and . _ - @")
        .hint("choose a name as in `testwright tokens create ci`"))
}

fn format_token(token: &Token) -> String {
    let day = |time: i64| {
        let time = timestamp(time);
        time.strftime("%Y-%m-%d").to_string()
    };
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let used = token.last_used_at.map_or("never".to_owned(), day);
    let until = token
        .expires_at
        .map_or(String::new(), |end| match end < now() {
            true => format!(", expired {}", day(end)),
            false => format!(", expires {}", day(end)),
        });
    format!(
        "{:<20}  {:<11}  owner {}, created {}, last used {used}{until}",
        token.name,
        scopes.join(","),
        token.owner,
        day(token.created_at),
    )
}
