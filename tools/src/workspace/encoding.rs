//! Encodings of text files: the declaration of a Python file (PEP 263), a byte order mark, or UTF-8.
//!
//! A decoded file can always be encoded again byte for byte. If an encoding is unknown, or does not return the same
//! bytes, each byte above ASCII becomes one character: such a file can be shown and edited, but only ASCII can be added.

use std::str::Utf8Error;

use encoding_rs::Encoding;

/// The reason why bytes cannot be decoded, or text cannot be encoded; the message follows the file's name.
#[derive(Debug, thiserror::Error)]
pub(super) enum EncodingError {
    #[error("is a binary file")]
    Binary,
    #[error("is not UTF-8 text (first bad byte at offset {})", .0.valid_up_to())]
    NotUtf8(#[source] Utf8Error),
    #[error("is written in {encoding}, which has no `{letter}`")]
    NotInEncoding { encoding: String, letter: char },
}

/// An encoding of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Codec {
    Utf8,
    Utf16Le,
    Utf16Be,
    Ascii,
    Latin1,
    /// An encoding with tables of its own, under the name that the file declares.
    Table(String, &'static Encoding),
    /// An unknown encoding, under the name that the file declares: bytes above ASCII stand for themselves.
    Unknown(String),
}

/// Byte order marks with their encodings.
static MARKS: [(&[u8], Codec); 3] = [
    (b"\xef\xbb\xbf", Codec::Utf8),
    (b"\xff\xfe", Codec::Utf16Le),
    (b"\xfe\xff", Codec::Utf16Be),
];

/// Returns the encoding that a byte order mark at the beginning names, and the mark.
pub(super) fn mark(bytes: &[u8]) -> Option<(Codec, &'static [u8])> {
    let entry = MARKS.iter().find(|(mark, _)| bytes.starts_with(mark));
    entry.map(|(mark, codec)| (codec.clone(), *mark))
}

impl Codec {
    /// Returns the encoding of bytes without a byte order mark. Only Python obeys a declaration whatever the bytes are.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not text.
    pub(super) fn from_bytes(bytes: &[u8], is_python: bool) -> Result<Codec, EncodingError> {
        if bytes.contains(&0) {
            return Err(EncodingError::Binary);
        }
        let error = std::str::from_utf8(bytes).err();
        match (declaration(bytes), error) {
            (Some(name), _) if is_python => Ok(Codec::named(&name).checked(bytes)),
            (_, None) => Ok(Codec::Utf8),
            (None, Some(error)) if is_python => Err(EncodingError::NotUtf8(error)),
            (Some(name), Some(_)) => Ok(Codec::named(&name).checked(bytes)),
            (None, Some(_)) => Ok(Codec::Unknown("an unknown encoding".to_owned())),
        }
    }

    /// Returns the encoding that Python knows by a name.
    pub(super) fn named(name: &str) -> Codec {
        let plain = name.to_ascii_lowercase().replace('_', "-");
        match plain.as_str() {
            "utf-8" | "utf8" | "u8" | "utf" | "cp65001" | "utf-8-sig" => return Codec::Utf8,
            "ascii" | "us-ascii" | "646" => return Codec::Ascii,
            "latin-1" | "latin1" | "latin" | "l1" | "iso-8859-1" | "iso8859-1" | "iso8859"
            | "8859" | "cp819" => return Codec::Latin1,
            _ if plain.starts_with("iso-latin-1") => return Codec::Latin1,
            _ if plain.starts_with("utf-8-") => return Codec::Utf8,
            _ => {}
        }
        // Names of the WHATWG standard for Python's names.
        let label: &str = match plain.as_str() {
            "cp932" | "ms932" | "mskanji" | "ms-kanji" | "s-jis" | "shiftjis" => "shift_jis",
            "cp936" | "936" | "ms936" | "euc-cn" | "euccn" | "gb2312-1980" | "eucgb2312-cn" => {
                "gbk"
            }
            "cp949" | "949" | "ms949" | "uhc" | "euckr" | "ksc5601" | "ks-c-5601" => "euc-kr",
            "cp950" | "950" | "ms950" | "big5-tw" => "big5",
            "eucjp" | "ujis" | "u-jis" => "euc-jp",
            "gb18030-2000" => "gb18030",
            "iso2022-jp" | "iso2022jp" | "csiso2022jp" => "iso-2022-jp",
            "cp874" | "tis-620" | "tis620" => "windows-874",
            "mac-roman" | "macroman" => "macintosh",
            "mac-cyrillic" | "maccyrillic" => "x-mac-cyrillic",
            _ => &plain,
        };
        let respelled = [
            label.to_owned(),
            label.replace("windows-", "cp").replace("cp", "windows-"),
            label.replace("iso8859", "iso-8859"),
        ];
        let encoding = respelled
            .iter()
            .find_map(|label| Encoding::for_label_no_replacement(label.as_bytes()));
        match encoding.filter(|encoding| {
            encoding.is_ascii_compatible() || *encoding == encoding_rs::ISO_2022_JP
        }) {
            Some(encoding) => Codec::Table(name.to_owned(), encoding),
            None => Codec::Unknown(name.to_owned()),
        }
    }

    /// Returns this encoding if it returns the same bytes for the text that it reads from them.
    fn checked(self, bytes: &[u8]) -> Codec {
        let again = self.decode(bytes).ok();
        let again = again.and_then(|text| self.encode(&text, "").ok());
        if again.is_some_and(|again| again == bytes) {
            return self;
        }
        Codec::Unknown(format!("{}, with invalid bytes", self.name()))
    }

    /// Decodes bytes without a byte order mark.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not valid in this encoding.
    pub(super) fn decode(&self, bytes: &[u8]) -> Result<String, EncodingError> {
        match self {
            Codec::Utf8 => std::str::from_utf8(bytes)
                .map(str::to_owned)
                .map_err(EncodingError::NotUtf8),
            Codec::Utf16Le => utf16(bytes, u16::from_le_bytes),
            Codec::Utf16Be => utf16(bytes, u16::from_be_bytes),
            Codec::Table(_, table) => Ok(table.decode_without_bom_handling(bytes).0.into_owned()),
            Codec::Ascii | Codec::Latin1 | Codec::Unknown(_) => {
                Ok(bytes.iter().map(|&byte| char::from(byte)).collect())
            }
        }
    }

    /// Encodes text without a byte order mark. `before` is the text of the file so far.
    ///
    /// # Errors
    ///
    /// Fails if this encoding lacks a character.
    pub(super) fn encode(&self, text: &str, before: &str) -> Result<Vec<u8>, EncodingError> {
        let missing = |letter| EncodingError::NotInEncoding {
            encoding: self.name(),
            letter,
        };
        match self {
            Codec::Utf8 => Ok(text.as_bytes().to_vec()),
            Codec::Utf16Le => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Codec::Utf16Be => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Codec::Table(_, table) => {
                let (bytes, _, has_unmappable) = table.encode(text);
                if !has_unmappable {
                    return Ok(bytes.into_owned());
                }
                let is_missing = |letter: &char| table.encode(&letter.to_string()).2;
                Err(missing(text.chars().find(is_missing).unwrap_or_default()))
            }
            Codec::Ascii | Codec::Latin1 | Codec::Unknown(_) => {
                let is_known = |letter: char| match self {
                    Codec::Latin1 => true,
                    Codec::Unknown(_) => letter.is_ascii() || before.contains(letter),
                    _ => letter.is_ascii(),
                };
                let byte = |letter: char| {
                    let byte = u8::try_from(letter).ok().filter(|_| is_known(letter));
                    byte.ok_or_else(|| missing(letter))
                };
                text.chars().map(byte).collect()
            }
        }
    }

    fn name(&self) -> String {
        match self {
            Codec::Utf8 => "UTF-8",
            Codec::Utf16Le | Codec::Utf16Be => "UTF-16",
            Codec::Ascii => "ASCII",
            Codec::Latin1 => "Latin-1",
            Codec::Table(name, _) | Codec::Unknown(name) => name,
        }
        .to_owned()
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, EncodingError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| unit(*pair));
    let text: Result<String, _> = char::decode_utf16(units).collect();
    match text {
        Ok(text) if rest.is_empty() && !text.contains('\0') => Ok(text),
        _ => Err(EncodingError::Binary),
    }
}

/// Returns the encoding that one of the first two lines declares (PEP 263).
pub(super) fn declaration(bytes: &[u8]) -> Option<String> {
    let mut lines = bytes.split(|&byte| byte == b'\n' || byte == b'\r');
    let first = lines.next()?;
    // A line end of two characters leaves an empty line between them.
    let second = match bytes.get(first.len()..first.len() + 2) {
        Some(b"\r\n") => lines.nth(1),
        _ => lines.next(),
    };
    let is_blank = |line: &[u8]| matches!(line.trim_ascii_start().first(), None | Some(b'#'));
    declared_in(first).or_else(|| declared_in(second.filter(|_| is_blank(first))?))
}

fn declared_in(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line.get(..line.len().min(1000))?);
    let comment = line.trim_start_matches([' ', '\t', '\u{c}']);
    let comment = comment.strip_prefix('#')?;
    comment.match_indices("coding").find_map(|(at, word)| {
        let rest = comment[at + word.len()..].strip_prefix([':', '='])?;
        let name: String = rest
            .trim_start_matches([' ', '\t'])
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c))
            .collect();
        (!name.is_empty()).then_some(name)
    })
}
