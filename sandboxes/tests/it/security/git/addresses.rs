//! Locations that lead to the same repository: a path, a `file:` URL, and a server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use super::*;

/// Returns named locations of a work tree's repository. The server runs as long as the test.
pub(super) fn addresses(work: &Path) -> Vec<(&'static str, String)> {
    let folder = work.join(".git");
    let folder = folder.to_str().unwrap();
    let port = serve(PathBuf::from(folder));
    vec![
        ("path", work.to_str().unwrap().to_owned()),
        ("file", format!("file://{folder}")),
        ("http", format!("http://127.0.0.1:{port}/repository.git")),
    ]
}

/// Serves a git folder with `git http-backend`.
fn serve(folder: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let folder = folder.clone();
            // Clients may disconnect halfway, so errors are ignored.
            std::thread::spawn(move || answer(stream.unwrap(), &folder));
        }
    });
    port
}

fn answer(mut stream: TcpStream, folder: &Path) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 && !head.ends_with("\r\n\r\n") {}
    let header = |key: &str| {
        let pairs = head.lines().filter_map(|line| line.split_once(": "));
        let mut matches = pairs.filter(|(name, _)| name.eq_ignore_ascii_case(key));
        matches.next().map_or("", |(_, value)| value)
    };
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let length: u64 = header("content-length").parse().unwrap_or(0);
    let path = path.strip_prefix("/repository.git").unwrap();
    let mut backend = Command::new("git")
        .arg("http-backend")
        .env(
            "PATH_TRANSLATED",
            format!("{}{path}", folder.to_str().unwrap()),
        )
        .env("PATH_INFO", path)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", length.to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "uploadpack.allowFilter")
        .env("GIT_CONFIG_VALUE_0", "true")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdin = backend.stdin.take().unwrap();
    std::io::copy(&mut reader.take(length), &mut stdin)?;
    drop(stdin);
    let mut output = BufReader::new(backend.stdout.take().unwrap());
    stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n")?;
    std::io::copy(&mut output, &mut stream)?;
    backend.wait().map(drop)
}
