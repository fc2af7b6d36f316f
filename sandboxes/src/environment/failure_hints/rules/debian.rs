//! Debian packages by the headers, programs and libraries that they contain.

/// C headers, by the beginning of their path.
const HEADERS: [(&str, &str); 35] = [
    ("boost/", "libboost-dev"),
    ("bzlib.h", "libbz2-dev"),
    ("cairo", "libcairo2-dev"),
    ("curl/", "libcurl4-openssl-dev"),
    ("ev.h", "libev-dev"),
    ("expat.h", "libexpat1-dev"),
    ("ffi.h", "libffi-dev"),
    ("freetype", "libfreetype6-dev"),
    ("ft2build.h", "libfreetype6-dev"),
    ("geos_c.h", "libgeos-dev"),
    ("gmp.h", "libgmp-dev"),
    ("graphviz/", "libgraphviz-dev"),
    ("gssapi", "libkrb5-dev"),
    ("hdf5.h", "libhdf5-dev"),
    ("jpeglib.h", "libjpeg-dev"),
    ("lber.h", "libldap2-dev"),
    ("ldap.h", "libldap2-dev"),
    ("libpq-fe.h", "libpq-dev"),
    ("librdkafka", "librdkafka-dev"),
    ("libxml/", "libxml2-dev"),
    ("libxslt/", "libxslt1-dev"),
    ("lzma.h", "liblzma-dev"),
    ("mpfr.h", "libmpfr-dev"),
    ("mysql.h", "default-libmysqlclient-dev"),
    ("openssl/", "libssl-dev"),
    ("pcap.h", "libpcap-dev"),
    ("png.h", "libpng-dev"),
    ("portaudio.h", "portaudio19-dev"),
    ("sasl/", "libsasl2-dev"),
    ("sql.h", "unixodbc-dev"),
    ("sqlite3.h", "libsqlite3-dev"),
    ("uuid/", "uuid-dev"),
    ("yaml.h", "libyaml-dev"),
    ("zlib.h", "zlib1g-dev"),
    ("zmq.h", "libzmq3-dev"),
];

/// Programs that builds start.
const PROGRAMS: [(&str, &str); 20] = [
    ("bison", "bison"),
    ("c++", "build-essential"),
    ("cc", "build-essential"),
    ("clang", "clang"),
    ("cmake", "cmake"),
    ("flex", "flex"),
    ("g++", "build-essential"),
    ("gcc", "build-essential"),
    ("gdal-config", "libgdal-dev"),
    ("geos-config", "libgeos-dev"),
    ("gfortran", "gfortran"),
    ("krb5-config", "libkrb5-dev"),
    ("make", "build-essential"),
    ("mysql_config", "default-libmysqlclient-dev"),
    ("ninja", "ninja-build"),
    ("pg_config", "libpq-dev"),
    ("pkg-config", "pkg-config"),
    ("swig", "swig"),
    ("xml2-config", "libxml2-dev"),
    ("xslt-config", "libxslt1-dev"),
];

/// Libraries, by the names that pkg-config, linkers and CMake use, in lower case.
const LIBRARIES: [(&str, &str); 26] = [
    ("blas", "libopenblas-dev"),
    ("cairo", "libcairo2-dev"),
    ("curl", "libcurl4-openssl-dev"),
    ("expat", "libexpat1-dev"),
    ("ffi", "libffi-dev"),
    ("freetype", "libfreetype6-dev"),
    ("freetype2", "libfreetype6-dev"),
    ("gl", "libgl1"),
    ("glib-2.0", "libglib2.0-dev"),
    ("gobject-introspection-1.0", "libgirepository1.0-dev"),
    ("hdf5", "libhdf5-dev"),
    ("jpeg", "libjpeg-dev"),
    ("lapack", "liblapack-dev"),
    ("libxml-2.0", "libxml2-dev"),
    ("libxml2", "libxml2-dev"),
    ("mysqlclient", "default-libmysqlclient-dev"),
    ("openblas", "libopenblas-dev"),
    ("openssl", "libssl-dev"),
    ("pq", "libpq-dev"),
    ("qhull", "libqhull-dev"),
    ("scipy-openblas", "libopenblas-dev"),
    ("sqlite3", "libsqlite3-dev"),
    ("xml2", "libxml2-dev"),
    ("xslt", "libxslt1-dev"),
    ("z", "zlib1g-dev"),
    ("zlib", "zlib1g-dev"),
];

/// Returns the package that contains a header.
pub(super) fn of_header(header: &str) -> Option<&'static str> {
    let known = HEADERS.iter().find(|(known, _)| header.starts_with(known));
    known.map(|(_, package)| *package)
}

/// Returns the package that contains a program. Compilers may be named with the machine, as `x86_64-linux-gnu-gcc`.
pub(super) fn of_program(program: &str) -> Option<&'static str> {
    let known = |name: &str| PROGRAMS.iter().find(|(known, _)| *known == name);
    let plain = program.rsplit('/').next().unwrap_or(program);
    let short = plain.rsplit("-linux-gnu-").next().unwrap_or(plain);
    known(plain)
        .or_else(|| known(short))
        .map(|(_, package)| *package)
}

/// Packages of PyPI that are compiled against a library.
const REQUIREMENTS: [(&str, &str); 20] = [
    ("dbus-python", "libdbus-1-dev"),
    ("gdal", "libgdal-dev"),
    ("gssapi", "libkrb5-dev"),
    ("h5py", "libhdf5-dev"),
    ("libvirt-python", "libvirt-dev"),
    ("mysqlclient", "default-libmysqlclient-dev"),
    ("psycopg2", "libpq-dev"),
    ("pyaudio", "portaudio19-dev"),
    ("pybluez", "libbluetooth-dev"),
    ("pycairo", "libcairo2-dev"),
    ("pycups", "libcups2-dev"),
    ("pycurl", "libcurl4-openssl-dev"),
    ("pygobject", "libgirepository1.0-dev"),
    ("pygraphviz", "libgraphviz-dev"),
    ("pyodbc", "unixodbc-dev"),
    ("python-ldap", "libldap2-dev"),
    ("python-snappy", "libsnappy-dev"),
    ("shapely", "libgeos-dev"),
    ("systemd-python", "libsystemd-dev"),
    ("xmlsec", "libxmlsec1-dev"),
];

/// Returns the package with the library that a package of PyPI is compiled against.
pub(super) fn of_requirement(name: &str) -> Option<&'static str> {
    let known = REQUIREMENTS.iter().find(|(known, _)| *known == name);
    known.map(|(_, package)| *package)
}

/// Returns the package that contains a library.
pub(super) fn of_library(library: &str) -> Option<&'static str> {
    let library = library.to_lowercase();
    let known = LIBRARIES.iter().find(|(known, _)| *known == library);
    known.map(|(_, package)| *package)
}
