-- Files that came of runs. Their content is in the artifact store, under its digest.
CREATE TABLE artifacts (
    run TEXT NOT NULL,
    name TEXT NOT NULL,
    -- SHA-256, in hexadecimal digits.
    digest TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (run, name)
);
CREATE INDEX artifacts_digest ON artifacts (digest);

-- Digests that a run no longer has; their content goes unless another run has it.
CREATE TABLE removed_artifacts (
    digest TEXT PRIMARY KEY NOT NULL
);
