-- Comparisons whose runs are made by the workers: their id is the batch of the runs.
CREATE TABLE comparisons (
    id TEXT PRIMARY KEY NOT NULL,
    created_at BIGINT NOT NULL,
    owner TEXT NOT NULL,
    -- Of the dataset.
    name TEXT NOT NULL,
    -- comparison.json
    plan TEXT NOT NULL,
    -- Of all runs together.
    max_dollars DOUBLE PRECISION,
    -- No more runs are to be asked for.
    cancelled BIGINT NOT NULL,
    -- report.json and report.html, once it was graded.
    report TEXT,
    page TEXT
);
CREATE INDEX runs_batch ON runs (batch, status);
