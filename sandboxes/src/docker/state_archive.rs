//! Saved states as files, for transfer to another engine: the image with all its base layers, in Docker's format,
//! compressed.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use bollard::query_parameters::ImportImageOptions;
use futures::StreamExt;

use super::archive::stream_from_writer;
use super::engine::Engine;
use super::error::EngineResult;
use super::images;
use crate::error::SandboxError;
use crate::sandbox::Result;

pub(super) async fn export(engine: &Engine, name: &str, to: &Path) -> Result<()> {
    let tag = images::saved(engine, name).await?.name;
    let mut archive = zstd::Encoder::new(File::create(to)?, zstd::DEFAULT_COMPRESSION_LEVEL)?;
    let api = engine.long_timeout();
    let mut parts = std::pin::pin!(api.export_image(&tag));
    while let Some(part) = parts.next().await {
        let part = part.doing(&format!("read the image {tag}"))?;
        // A part is small, so this blocking write is short.
        archive.write_all(&part)?;
    }
    archive.finish()?.flush()?;
    Ok(())
}

/// Imports a state. The archive contains the image's name.
pub(super) async fn import(engine: &Engine, name: &str, from: &Path) -> Result<()> {
    let doing = format!("import the saved state {name}");
    let archive = zstd::Decoder::new(File::open(from)?)?;
    let parts = stream_from_writer(move |mut out| {
        let mut archive = archive;
        io::copy(&mut archive, &mut out)?;
        out.flush()
    });
    let options = ImportImageOptions {
        quiet: true,
        ..ImportImageOptions::default()
    };
    let api = engine.long_timeout();
    let mut steps = std::pin::pin!(api.import_image_stream(options, parts, None));
    while let Some(step) = steps.next().await {
        step.doing(&doing)?;
    }
    match images::present(engine, &images::state_tag(name)).await? {
        true => Ok(()),
        false => {
            let text = format!("{doing}: the archive contains another state");
            Err(SandboxError::not_found(text))
        }
    }
}
