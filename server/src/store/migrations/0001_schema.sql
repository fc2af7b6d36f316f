-- One schema for SQLite and Postgres. Times are milliseconds since 1970, UTC.

-- Runs, matrices, gradings, comparisons and GitHub tasks are jobs. They share these columns:
--   status       queued, running, or the end: done, failed, cancelled …
--   attempt      Number of claims. A process that lost its claim can no longer write.
--   worker       Process that claimed it last; a name of worker_processes.
--   cancel       1 if the job was cancelled.
--   not_before   Earliest time of the next claim.
--   losses       Number of processes that died with it since the last retry.
--   returns      Number of returns to the queue because of a shortage since the last retry;
--                return_reason has the latest reason, earlier_returns the number before the last retry.
CREATE TABLE runs (
    id TEXT PRIMARY KEY NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    status TEXT NOT NULL,
    -- The request, as JSON.
    request TEXT NOT NULL,
    -- Title of the issue; empty until the issue was read.
    title TEXT NOT NULL,
    repository TEXT NOT NULL,
    approach TEXT NOT NULL,
    model TEXT NOT NULL,
    -- Owner of the run, and the comparison or other batch that it belongs to (empty for a single run).
    owner TEXT NOT NULL,
    batch TEXT NOT NULL,
    idempotency_key TEXT UNIQUE,
    -- Span of the request, in the format of the header traceparent (W3C Trace Context).
    traceparent TEXT,
    patch TEXT,
    -- Content of run.json, or the reason for its absence.
    record TEXT,
    attempt BIGINT NOT NULL DEFAULT 0,
    worker TEXT,
    cancel BIGINT NOT NULL DEFAULT 0,
    not_before BIGINT NOT NULL DEFAULT 0,
    losses BIGINT NOT NULL DEFAULT 0,
    returns BIGINT NOT NULL DEFAULT 0,
    earlier_returns BIGINT NOT NULL DEFAULT 0,
    return_reason TEXT
);
-- Ids sort by creation time.
CREATE INDEX runs_status ON runs (status, id);
CREATE INDEX runs_waiting ON runs (status, owner, batch, id);
CREATE INDEX runs_repository ON runs (repository, id);
CREATE INDEX runs_owner ON runs (owner, id);
CREATE INDEX runs_batch ON runs (batch, status);
-- Retention finds old runs by their end.
CREATE INDEX runs_ended_at ON runs (ended_at);

-- Lines of trajectories, numbered from 1.
CREATE TABLE events (
    run TEXT NOT NULL,
    number BIGINT NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (run, number)
);

-- Matrices of tests and patches: requests and progress.
CREATE TABLE matrices (
    id TEXT PRIMARY KEY NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    status TEXT NOT NULL,
    -- The request with the tests of its runs, as JSON.
    request TEXT NOT NULL,
    repository TEXT NOT NULL,
    owner TEXT NOT NULL,
    batch TEXT NOT NULL DEFAULT '',
    idempotency_key TEXT UNIQUE,
    -- Reason for a missing result.
    message TEXT,
    attempt BIGINT NOT NULL DEFAULT 0,
    worker TEXT,
    cancel BIGINT NOT NULL DEFAULT 0,
    not_before BIGINT NOT NULL DEFAULT 0,
    losses BIGINT NOT NULL DEFAULT 0,
    returns BIGINT NOT NULL DEFAULT 0,
    earlier_returns BIGINT NOT NULL DEFAULT 0,
    return_reason TEXT
);
CREATE INDEX matrices_status ON matrices (status, id);
CREATE INDEX matrices_waiting ON matrices (status, owner, batch, id);
CREATE INDEX matrices_repository ON matrices (repository, id);
CREATE INDEX matrices_owner ON matrices (owner, id);
CREATE INDEX matrices_ended_at ON matrices (ended_at);

-- Results of a set of tests on a patch.
CREATE TABLE matrix_cells (
    matrix TEXT NOT NULL,
    tests TEXT NOT NULL,
    patch TEXT NOT NULL,
    -- As JSON.
    result TEXT NOT NULL,
    PRIMARY KEY (matrix, tests, patch)
);

-- Gradings: predictions for an instance that a worker grades.
CREATE TABLE gradings (
    id TEXT PRIMARY KEY NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    status TEXT NOT NULL,
    -- The instance, its predictions and the options of the grading, as JSON.
    request TEXT NOT NULL,
    -- Owner, and the evaluation or comparison that the grading belongs to.
    owner TEXT NOT NULL,
    batch TEXT NOT NULL,
    idempotency_key TEXT NOT NULL UNIQUE,
    -- Reason for a missing result.
    message TEXT,
    attempt BIGINT NOT NULL DEFAULT 0,
    worker TEXT,
    cancel BIGINT NOT NULL DEFAULT 0,
    not_before BIGINT NOT NULL DEFAULT 0,
    losses BIGINT NOT NULL DEFAULT 0,
    returns BIGINT NOT NULL DEFAULT 0,
    earlier_returns BIGINT NOT NULL DEFAULT 0,
    return_reason TEXT
);
CREATE INDEX gradings_waiting ON gradings (status, owner, batch, id);
CREATE INDEX gradings_owner ON gradings (owner, batch);
CREATE INDEX gradings_batch ON gradings (batch, status);
CREATE INDEX gradings_ended_at ON gradings (ended_at);

-- Results of a grading, with their logs.
CREATE TABLE graded_predictions (
    grading TEXT NOT NULL,
    prediction TEXT NOT NULL,
    -- As JSON.
    result TEXT NOT NULL,
    PRIMARY KEY (grading, prediction)
);

-- Comparisons whose runs are made by workers; the id is the batch of the runs. A comparison that a client requests from a
-- server is a job of the servers; a comparison of a command has no status.
CREATE TABLE comparisons (
    id TEXT PRIMARY KEY NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    status TEXT,
    -- The request, as JSON; NULL for a comparison of a command.
    request TEXT,
    owner TEXT NOT NULL,
    -- Name of the dataset.
    name TEXT NOT NULL,
    -- Content of comparison.json.
    plan TEXT NOT NULL,
    -- Sums over all runs.
    max_dollars DOUBLE PRECISION,
    idempotency_key TEXT UNIQUE,
    traceparent TEXT,
    -- Content of report.json and report.html, after grading.
    report TEXT,
    page TEXT,
    -- Reason for a missing result.
    message TEXT,
    attempt BIGINT NOT NULL DEFAULT 0,
    worker TEXT,
    cancel BIGINT NOT NULL DEFAULT 0,
    not_before BIGINT NOT NULL DEFAULT 0,
    losses BIGINT NOT NULL DEFAULT 0,
    returns BIGINT NOT NULL DEFAULT 0,
    earlier_returns BIGINT NOT NULL DEFAULT 0,
    return_reason TEXT
);
CREATE INDEX comparisons_open ON comparisons (status, id);
-- Used to read the status of a comparison.
CREATE INDEX comparisons_status ON comparisons (
    (COALESCE(status, CASE WHEN cancel = 1 THEN 'cancelled' WHEN report IS NOT NULL THEN 'done' ELSE 'running' END)),
    id
);
CREATE INDEX comparisons_owner ON comparisons (owner, id);
CREATE INDEX comparisons_name ON comparisons (name, id);
CREATE INDEX comparisons_ended_at ON comparisons (ended_at);

-- Deliveries of GitHub. A repeated delivery is recognized by its id or by its body.
CREATE TABLE github_deliveries (
    id TEXT PRIMARY KEY NOT NULL,
    -- SHA-256 of the body.
    digest TEXT NOT NULL UNIQUE,
    received_at BIGINT NOT NULL
);

-- Tasks from deliveries: answer an issue, or confirm a test on a pull request. Servers claim them.
CREATE TABLE github_tasks (
    id TEXT PRIMARY KEY NOT NULL,
    -- answer, confirm
    kind TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    -- queued, running, done, failed
    status TEXT NOT NULL,
    -- OWNER/NAME
    repository TEXT NOT NULL,
    issue BIGINT NOT NULL,
    -- Other data of the delivery, as JSON.
    details TEXT NOT NULL,
    -- The run that writes the test.
    run TEXT,
    -- Number of failures.
    failures BIGINT NOT NULL DEFAULT 0,
    -- The result, as text.
    result TEXT,
    attempt BIGINT NOT NULL DEFAULT 0,
    worker TEXT,
    cancel BIGINT NOT NULL DEFAULT 0,
    not_before BIGINT NOT NULL DEFAULT 0,
    losses BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX github_tasks_due ON github_tasks (status, kind, not_before);
CREATE INDEX github_tasks_issue ON github_tasks (repository, issue);

-- Processes that claim jobs. A process without a recent heartbeat is considered dead.
CREATE TABLE worker_processes (
    name TEXT PRIMARY KEY NOT NULL,
    host TEXT NOT NULL,
    version TEXT NOT NULL,
    -- Maximum number of concurrent runs, matrices and gradings; 0 for a server without workers.
    slots BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    -- Time of the database's clock.
    last_seen BIGINT NOT NULL
);

-- Order in which workers last claimed a job from each owner's batch; the number increases with each claim.
CREATE TABLE shares (
    owner TEXT NOT NULL,
    batch TEXT NOT NULL,
    turn BIGINT NOT NULL,
    PRIMARY KEY (owner, batch)
);

-- Tokens of the API. Only the hash of a token is stored.
CREATE TABLE tokens (
    name TEXT PRIMARY KEY NOT NULL,
    -- SHA-256 of the token, in hexadecimal digits.
    hash TEXT NOT NULL UNIQUE,
    -- Owner of the runs that use the token.
    owner TEXT NOT NULL,
    -- Comma-separated.
    scopes TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT
);

-- Model usage of all workers: by minute, by day and by batch of runs. It includes reservations for calls
-- in flight.
CREATE TABLE model_usage (
    scope TEXT PRIMARY KEY NOT NULL,
    requests BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    microdollars BIGINT NOT NULL,
    -- Time from which the row is no longer needed.
    ends_at BIGINT
);

-- Files of runs. The artifact store has their content, under its digest.
CREATE TABLE artifacts (
    run TEXT NOT NULL,
    name TEXT NOT NULL,
    -- SHA-256, in hexadecimal digits.
    digest TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (run, name)
);
CREATE INDEX artifacts_digest ON artifacts (digest);

-- Digests that a run no longer refers to. Their content is deleted unless another run refers to it.
CREATE TABLE removed_artifacts (
    digest TEXT PRIMARY KEY NOT NULL
);

-- Written by a server to check that it can write.
CREATE TABLE write_probes (
    name TEXT PRIMARY KEY,
    content TEXT NOT NULL
);
