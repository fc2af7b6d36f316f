//! Saved states as files, to take them to another engine: the image with all that it is made from, as Docker saves it,
//! compressed.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use bollard::query_parameters::ImportImageOptions;
use futures::StreamExt;

use super::archive::streamed;
use super::engine::Engine;
use super::error::explain;
use super::images;
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::Result;

pub(super) async fn export(engine: &Engine, name: &str, to: &Path) -> Result<()> {
    let tag = images::saved(engine, name).await?.name;
    let mut archive = zstd::Encoder::new(File::create(to)?, zstd::DEFAULT_COMPRESSION_LEVEL)?;
    let api = engine.patient();
    let mut parts = std::pin::pin!(api.export_image(&tag));
    while let Some(part) = parts.next().await {
        let part = part.map_err(|e| explain(&format!("read the image {tag}"), e))?;
        // A part is small: nobody waits long for it.
        archive.write_all(&part)?;
    }
    archive.finish()?.flush()?;
    Ok(())
}

/// The archive names the image.
pub(super) async fn import(engine: &Engine, name: &str, from: &Path) -> Result<()> {
    let doing = format!("load the image of the state {name}");
    let archive = zstd::Decoder::new(File::open(from)?)?;
    let parts = streamed(move |mut out| {
        let mut archive = archive;
        io::copy(&mut archive, &mut out)?;
        out.flush()
    });
    let options = ImportImageOptions {
        quiet: true,
        ..ImportImageOptions::default()
    };
    let api = engine.patient();
    let mut steps = std::pin::pin!(api.import_image_stream(options, parts, None));
    while let Some(step) = steps.next().await {
        step.map_err(|e| explain(&doing, e))?;
    }
    match images::present(engine, &images::state_tag(name)).await? {
        true => Ok(()),
        false => {
            let text = format!("{doing}: the archive holds another one");
            Err(SandboxError::new(ErrorKind::NotFound, text))
        }
    }
}
