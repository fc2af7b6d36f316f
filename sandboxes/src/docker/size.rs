//! Size of a saved state in the engine: the layers that saving added to those of its base image.

use super::engine::Engine;
use super::error::EngineResult;
use super::images::{absent, inspect, state_tag};
use super::owner;
use crate::sandbox::Result;

/// Returns the number of steps in the history of an image.
pub(super) async fn steps(engine: &Engine, image: &str) -> Result<usize> {
    Ok(sizes(engine, image).await?.len())
}

pub(super) async fn saved_bytes(engine: &Engine, name: &str) -> Result<u64> {
    let tag = state_tag(name);
    let image = inspect(engine, &tag).await?;
    let image = image.ok_or_else(|| absent(name, &tag))?;
    let labels = image.config.and_then(|config| config.labels);
    let below = labels.and_then(|labels| labels.get(owner::BASE_STEPS)?.parse::<usize>().ok());
    Ok(on_top(&sizes(engine, &tag).await?, below))
}

/// Sums the layers that saving added. Saving may take two commits, and the base may be a saved state too, so only the
/// earlier number of steps shows where the state begins.
fn on_top(sizes: &[u64], below: Option<usize>) -> u64 {
    // An image that was not saved by this version has no label.
    let added = below.map_or(1, |below| sizes.len().saturating_sub(below));
    sizes.iter().take(added).sum()
}

/// Returns the bytes that each step of the history added, the last first.
async fn sizes(engine: &Engine, image: &str) -> Result<Vec<u64>> {
    let history = engine.api.image_history(image).await;
    let history = history.doing(&format!("read the history of image {image}"))?;
    let size = |step: &bollard::models::ImageHistoryResponseItem| u64::try_from(step.size);
    Ok(history.iter().map(|step| size(step).unwrap_or(0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_layers_of_the_save_count() {
        let sizes = [1, 20, 300, 4000];
        assert_eq!(on_top(&sizes, Some(2)), 21);
        assert_eq!(on_top(&sizes, Some(3)), 1);
        assert_eq!(on_top(&sizes, Some(5)), 0);
        assert_eq!(on_top(&sizes, None), 1);
    }
}
