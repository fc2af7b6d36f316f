-- Tests × patches: what was asked for, and how far it is. The same for SQLite and Postgres.
CREATE TABLE matrices (
    id TEXT PRIMARY KEY NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    status TEXT NOT NULL,
    -- What was asked for, as JSON, with the tests of runs in it.
    request TEXT NOT NULL,
    repository TEXT NOT NULL,
    -- How often a worker has taken it. A worker that lost it to another writes nothing more.
    attempt BIGINT NOT NULL,
    cancel BIGINT NOT NULL,
    -- Why it came to no result.
    message TEXT
);

-- A set of tests on a patch, once it is known.
CREATE TABLE matrix_cells (
    matrix TEXT NOT NULL,
    tests TEXT NOT NULL,
    patch TEXT NOT NULL,
    -- As JSON.
    result TEXT NOT NULL,
    PRIMARY KEY (matrix, tests, patch)
);
