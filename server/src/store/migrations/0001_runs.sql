-- The same for SQLite and Postgres. Times are milliseconds since 1970, UTC.
CREATE TABLE runs (
    id TEXT PRIMARY KEY NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    status TEXT NOT NULL,
    -- What was asked for, as JSON.
    request TEXT NOT NULL,
    -- Of the issue, once it was read.
    title TEXT NOT NULL,
    repository TEXT NOT NULL,
    approach TEXT NOT NULL,
    model TEXT NOT NULL,
    -- How often a worker has taken it. A worker that lost it to another writes nothing more.
    attempt BIGINT NOT NULL,
    cancel BIGINT NOT NULL,
    idempotency_key TEXT UNIQUE,
    patch TEXT,
    -- run.json, or why there is none.
    record TEXT
);
-- Ids sort by the time at which runs were made.
CREATE INDEX runs_status ON runs (status, id);
CREATE INDEX runs_repository ON runs (repository, id);

-- Lines of trajectories, from 1.
CREATE TABLE events (
    run TEXT NOT NULL,
    number BIGINT NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (run, number)
);
