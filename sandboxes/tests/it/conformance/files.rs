//! Checks of file transfer in both directions.

use std::path::Path;

use futures::FutureExt;
use testwright_sandboxes::Sandbox;
use testwright_sandboxes::error::ErrorKind;

use super::{Check, CheckFn, Fault, Verdict, download, ensure, expect, noise, sh, upload};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check {
            name: "a file comes back byte for byte",
            what: CheckFn::Running(|s| round_trip(s).boxed()),
            fault: Fault::MangleFiles,
        },
        Check {
            name: "a big file comes back",
            what: CheckFn::Running(|s| big(s).boxed()),
            fault: Fault::CutFiles,
        },
        Check {
            name: "a big file of the host is uploaded byte for byte",
            what: CheckFn::Running(|s| from_host(s).boxed()),
            fault: Fault::CutFiles,
        },
        Check {
            name: "an uploaded file has its mode, and tools can read it",
            what: CheckFn::Running(|s| mode(s).boxed()),
            fault: Fault::ForgetModes,
        },
        Check {
            name: "the toolbox can be put into the store and run",
            what: CheckFn::Running(|s| program(s).boxed()),
            fault: Fault::ForgetModes,
        },
        Check {
            name: "a missing file is reported as such",
            what: CheckFn::Running(|s| missing(s).boxed()),
            fault: Fault::MissingIsEmpty,
        },
        Check {
            name: "an archive is unpacked with modes, times, links and spaces",
            what: CheckFn::Running(|s| unpack(s).boxed()),
            fault: Fault::TouchUnpacked,
        },
        Check {
            name: "an archive is unpacked into the store, for tools to read",
            what: CheckFn::Running(|s| unpack_into_the_store(s).boxed()),
            fault: Fault::SkipStore,
        },
        Check {
            name: "tools can change uploaded and unpacked files",
            what: CheckFn::Running(|s| writable(s).boxed()),
            fault: Fault::UploadReadOnly,
        },
    ]
}

async fn from_host(sandbox: &dyn Sandbox) -> Verdict {
    let content = noise(5 << 20);
    let file = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    std::fs::write(file.path(), &content).map_err(|e| e.to_string())?;
    let paths = &sandbox.info().paths;
    for path in [
        paths.workspace.join("new/big.bin"),
        paths.store.join("big.bin"),
    ] {
        let result = sandbox.upload_file(&path, file.path(), 0o644).await;
        result.map_err(|e| e.to_string())?;
        ensure(
            download(sandbox, &path).await? == content,
            "other content came back",
        )?;
    }
    Ok(())
}

async fn round_trip(sandbox: &dyn Sandbox) -> Verdict {
    let folder = sandbox.info().paths.workspace.join("made on the way");
    for (name, content) in [
        ("a name with spaces", noise(3000)),
        ("empty", Vec::new()),
        ("ümlaut.txt", b"\0\r\n\xff\xfe".to_vec()),
        ("-n", b"dash".to_vec()),
    ] {
        let path = folder.join(name);
        upload(sandbox, &path, &content).await?;
        expect(name, download(sandbox, &path).await?, content)?;
    }
    let path = folder.join("twice");
    upload(sandbox, &path, b"a longer first content").await?;
    upload(sandbox, &path, b"second").await?;
    expect(
        "replaced",
        download(sandbox, &path).await?,
        b"second".to_vec(),
    )
}

async fn big(sandbox: &dyn Sandbox) -> Verdict {
    let content = noise(20 << 20);
    let path = sandbox.info().paths.temporary.join("big");
    upload(sandbox, &path, &content).await?;
    let back = download(sandbox, &path).await?;
    expect("length", back.len(), content.len())?;
    ensure(back == content, "other bytes came back")
}

async fn mode(sandbox: &dyn Sandbox) -> Verdict {
    let path = sandbox.info().paths.temporary.join("private");
    let result = sandbox.upload(&path, b"x", 0o600).await;
    result.map_err(|e| e.to_string())?;
    let (_, text) = sh(
        sandbox,
        &format!("stat -c %a '{0}'; cat '{0}'", path.display()),
    )
    .await?;
    expect("mode and content", text.as_str(), "600\nx")
}

async fn program(sandbox: &dyn Sandbox) -> Verdict {
    let path = sandbox.info().paths.store.join("bin/hello");
    let result = sandbox
        .upload(&path, b"#!/bin/sh\necho hello \"$1\"\n", 0o755)
        .await;
    result.map_err(|e| e.to_string())?;
    let (code, text) = sh(sandbox, &format!("'{}' you", path.display())).await?;
    expect(
        "exit code and output",
        (code, text.as_str()),
        (0, "hello you\n"),
    )?;
    let again = sandbox
        .upload(&path, b"#!/bin/sh\necho other\n", 0o755)
        .await;
    again.map_err(|e| e.to_string())?;
    let (_, text) = sh(sandbox, &format!("'{}'", path.display())).await?;
    expect("after replacing", text.as_str(), "other\n")
}

async fn missing(sandbox: &dyn Sandbox) -> Verdict {
    let path = sandbox.info().paths.workspace.join("no/such/file");
    match sandbox.download(&path).await {
        Ok(content) => Err(format!("{} bytes came", content.len())),
        Err(e) => expect("kind of error", e.kind, ErrorKind::NotFound),
    }
}

/// Modification time of the archive's files, in seconds since 1970.
const TIME: u64 = 1_500_000_000;

fn archive() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut builder = tar::Builder::new(file.as_file());
    let mut add = |path: &str, kind: tar::EntryType, mode: u32, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(TIME);
        header.set_uid(0);
        header.set_gid(0);
        if kind == tar::EntryType::Symlink {
            header.set_size(0);
            let target = String::from_utf8(content.to_vec()).unwrap();
            builder.append_link(&mut header, path, target).unwrap();
        } else {
            header.set_size(content.len() as u64);
            builder.append_data(&mut header, path, content).unwrap();
        }
    };
    add("package/", tar::EntryType::Directory, 0o755, b"");
    add(
        "package/module.py",
        tar::EntryType::Regular,
        0o644,
        b"x = 1\n",
    );
    add(
        "package/run me",
        tar::EntryType::Regular,
        0o755,
        b"#!/bin/sh\necho ran\n",
    );
    add("package/link", tar::EntryType::Symlink, 0o777, b"module.py");
    let long = format!("package/{}/deep.txt", "long-name".repeat(15));
    add(&long, tar::EntryType::Regular, 0o644, b"deep");
    builder.finish().unwrap();
    drop(builder);
    file
}

async fn unpacked(sandbox: &dyn Sandbox, folder: &Path) -> Verdict {
    let archive = archive();
    let result = sandbox.unpack(folder, archive.path()).await;
    result.map_err(|e| format!("unpack: {e}"))
}

async fn unpack(sandbox: &dyn Sandbox) -> Verdict {
    let folder = sandbox.info().paths.workspace.join("un packed");
    unpacked(sandbox, &folder).await?;
    let script = format!(
        "cd '{}/package' && stat -c '%a %Y' module.py 'run me' && './run me' && readlink link && cat */deep.txt",
        folder.display()
    );
    let (code, text) = sh(sandbox, &script).await?;
    let expected = format!("644 {TIME}\n755 {TIME}\nran\nmodule.py\ndeep");
    expect("content", (code, text.as_str()), (0, expected.as_str()))
}

async fn unpack_into_the_store(sandbox: &dyn Sandbox) -> Verdict {
    let folder = sandbox.info().paths.store.join("given/more");
    unpacked(sandbox, &folder).await?;
    unpacked(sandbox, &folder).await?;
    let script = format!(
        "cd '{}/package' && stat -c '%a %Y' module.py && './run me' && cat link; \
         for f in module.py new; do (echo > $f) 2>/dev/null && echo written; done; true",
        folder.display()
    );
    let (code, text) = sh(sandbox, &script).await?;
    let expected = format!("644 {TIME}\nran\nx = 1\n");
    expect("content", (code, text.as_str()), (0, expected.as_str()))
}

async fn writable(sandbox: &dyn Sandbox) -> Verdict {
    let folder = sandbox.info().paths.workspace.join("to change");
    unpacked(sandbox, &folder).await?;
    upload(sandbox, &folder.join("uploaded"), b"old").await?;
    let script = format!(
        "cd '{}' && echo new > uploaded && echo new >> package/module.py && rm 'package/run me' && mkdir more && cat uploaded",
        folder.display()
    );
    let (code, text) = sh(sandbox, &script).await?;
    expect("exit code and output", (code, text.as_str()), (0, "new\n"))
}
