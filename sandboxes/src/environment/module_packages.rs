//! Packages that provide modules under another name.

/// Modules, and the packages that provide them under another name.
const MODULES: [(&str, &str); 34] = [
    ("Crypto", "pycryptodome"),
    ("Cryptodome", "pycryptodomex"),
    ("MySQLdb", "mysqlclient"),
    ("OpenSSL", "pyopenssl"),
    ("PIL", "pillow"),
    ("attr", "attrs"),
    ("bs4", "beautifulsoup4"),
    ("corsheaders", "django-cors-headers"),
    ("cv2", "opencv-python-headless"),
    ("dateutil", "python-dateutil"),
    ("debug_toolbar", "django-debug-toolbar"),
    ("django_filters", "django-filter"),
    ("docker", "docker"),
    ("dotenv", "python-dotenv"),
    ("flask", "flask"),
    ("git", "gitpython"),
    ("importlib_metadata", "importlib-metadata"),
    ("jwt", "pyjwt"),
    ("lockfile", "lockfile"),
    ("magic", "python-magic"),
    ("mock", "mock"),
    ("nose", "nose"),
    ("numpy", "numpy"),
    ("parameterized", "parameterized"),
    ("pkg_resources", "setuptools"),
    ("psycopg2", "psycopg2-binary"),
    ("requests_mock", "requests-mock"),
    ("responses", "responses"),
    ("rest_framework", "djangorestframework"),
    ("serial", "pyserial"),
    ("six", "six"),
    ("sklearn", "scikit-learn"),
    ("yaml", "pyyaml"),
    ("zmq", "pyzmq"),
];

/// Returns the package that provides a module under another name.
pub(super) fn package_of(module: &str) -> Option<&'static str> {
    let known = MODULES.iter().find(|(known, _)| *known == module);
    known.map(|(_, package)| *package)
}
