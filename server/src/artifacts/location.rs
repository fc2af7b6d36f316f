//! The location of an artifact store: `file:///FOLDER`, or `s3://BUCKET/PREFIX` with the usual AWS variables.

use std::ffi::OsString;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use object_store::RetryConfig;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use testwright_sandboxes::private;

use super::Artifacts;
use super::s3_client::S3Connector;
use testwright_agent::backends::ca_bundle;
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;

/// Retry limits are low, because callers can often continue without the store.
const RETRIES: usize = 3;
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);

/// Variables that name an S3 service other than Amazon's.
const ENDPOINTS: [&str; 3] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];

pub(super) fn open(url: &str, settings: &Settings) -> Result<Artifacts> {
    if let Some(path) = url.strip_prefix("file://") {
        return folder(FilePath::new(path));
    }
    if let Some(place) = url.strip_prefix("s3://") {
        return bucket(place, settings);
    }
    Err(invalid_store_error(
        url,
        "the URL names neither a folder nor a bucket",
    ))
}

fn invalid_store_error(url: &str, why: impl std::fmt::Display) -> Error {
    Error::usage(format!("use {url} as the artifact store"))
        .cause(why)
        .hint("write file:///FOLDER or s3://BUCKET/PREFIX")
}

pub(super) fn folder(folder: &FilePath) -> Result<Artifacts> {
    let address = format!("file://{}", folder.display());
    if !folder.is_absolute() {
        return Err(invalid_store_error(
            &address,
            "the path of the folder is not absolute",
        ));
    }
    private::create(folder).map_err(|error| Error::io(format!("create {address}"), &error))?;
    let store =
        LocalFileSystem::new_with_prefix(folder).map_err(|e| invalid_store_error(&address, e))?;
    // Objects must survive a crash of the machine, because the database refers to them.
    let store = store.with_fsync(true);
    Ok(Artifacts::new(Arc::new(store), Path::default(), address))
}

/// Configures S3 from the AWS variables. An empty variable counts as unset, because compose files pass unset variables
/// as empty.
fn from_variables(variables: impl Iterator<Item = (OsString, OsString)>) -> AmazonS3Builder {
    let texts = variables.filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        (name.starts_with("AWS_") && !value.is_empty()).then_some((name, value))
    });
    texts.fold(AmazonS3Builder::new(), |builder, (name, value)| match name
        .to_ascii_lowercase()
        .parse()
    {
        Ok(key) => builder.with_config(key, value),
        Err(_) => builder,
    })
}

/// Opens `BUCKET/PREFIX`.
fn bucket(place: &str, settings: &Settings) -> Result<Artifacts> {
    let address = format!("s3://{place}");
    let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
    if bucket.is_empty() {
        return Err(invalid_store_error(&address, "the URL names no bucket"));
    }
    let prefix = Path::parse(prefix).map_err(|e| invalid_store_error(&address, e))?;
    let endpoint = ENDPOINTS
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.is_empty())
        .unwrap_or_default();
    let retry = RetryConfig {
        max_retries: RETRIES,
        retry_timeout: RETRY_TIMEOUT,
        ..RetryConfig::default()
    };
    let mut builder = from_variables(std::env::vars_os())
        .with_bucket_name(bucket)
        .with_retry(retry)
        .with_http_connector(S3Connector::new(ca_bundle(settings), &endpoint));
    if endpoint.starts_with("http://") {
        builder = builder.with_allow_http(true);
    }
    let store = builder
        .build()
        .map_err(|e| invalid_store_error(&address, e))?;
    Ok(Artifacts::new(Arc::new(store), prefix, address))
}

/// Returns a hint for an error.
pub(super) fn hint(error: &object_store::Error) -> &'static str {
    match error {
        object_store::Error::Unauthenticated { .. }
        | object_store::Error::PermissionDenied { .. } => {
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to an account that may read, write and delete objects in the bucket"
        }
        object_store::Error::NotFound { .. } => {
            "check the bucket's name; if the bucket does not exist, create it"
        }
        _ => {
            "check that the store responds, and check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION; for a service other than Amazon's, set AWS_ENDPOINT_URL"
        }
    }
}

#[cfg(test)]
mod tests {
    use object_store::aws::AmazonS3ConfigKey::{AccessKeyId, Endpoint, Region};

    use super::*;

    #[test]
    fn empty_variable_counts_as_unset() {
        let variables = [
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_ENDPOINT_URL", ""),
            ("AWS_REGION", ""),
            ("AWS_PROFILE_OF_OTHERS", "x"),
            ("HOME", "/root"),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let builder = from_variables(variables.into_iter());
        let value = |key| builder.get_config_value(&key);
        assert_eq!(value(AccessKeyId).as_deref(), Some("id"));
        assert_eq!((value(Endpoint), value(Region)), (None, None));
    }
}
