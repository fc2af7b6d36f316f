-- Predictions for an instance that a worker grades. The same for SQLite and Postgres.
CREATE TABLE gradings (
    id TEXT PRIMARY KEY NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    status TEXT NOT NULL,
    -- The instance, the predictions, and how they are graded, as JSON.
    request TEXT NOT NULL,
    -- Whose it is, and to which evaluation or comparison it belongs.
    owner TEXT NOT NULL,
    batch TEXT NOT NULL,
    -- The queue's message by which a worker has it.
    ticket TEXT,
    -- How often a worker has taken it. A worker that lost it to another writes nothing more.
    attempt BIGINT NOT NULL,
    cancel BIGINT NOT NULL,
    idempotency_key TEXT NOT NULL UNIQUE,
    -- Why it came to no result.
    message TEXT
);
CREATE INDEX gradings_waiting ON gradings (status, owner, batch, id);
CREATE INDEX gradings_ticket ON gradings (ticket);
CREATE INDEX gradings_batch ON gradings (batch, status);
CREATE INDEX gradings_ended_at ON gradings (ended_at);

-- Results of a grading, with their logs, once they are there.
CREATE TABLE graded_predictions (
    grading TEXT NOT NULL,
    prediction TEXT NOT NULL,
    -- As JSON.
    result TEXT NOT NULL,
    PRIMARY KEY (grading, prediction)
);
