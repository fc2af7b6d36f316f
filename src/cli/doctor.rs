//! stub
#[derive(Debug, clap::Args)]
pub struct Args {}
pub async fn run(_: &Args) -> crate::error::Result<()> {
    Ok(())
}
