-- The same for SQLite and Postgres. Times are milliseconds since 1970, UTC.

-- Runs, matrices, gradings, comparisons and tasks of GitHub are jobs, and have these columns in common:
--   status       queued, running, or how it ended
--   attempt      How often a process has claimed it. A process that lost it to another writes nothing more.
--   worker       The process that claimed it last, a name of worker_processes.
--   cancel       1 once its end was asked for.
--   not_before   No process claims it earlier.
--   losses       How often its process died, since it was last retried.
--   returns      How often it went back to the queue because a machine lacked something, since it was last retried;
--                return_reason says why it did so last, earlier_returns counts those before the last retry.
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
    -- Whose run it is, and to which comparison or other batch of one owner it belongs (empty: none).
    owner TEXT NOT NULL,
    batch TEXT NOT NULL,
    idempotency_key TEXT UNIQUE,
    -- The span of the request by which it was asked for, as in the header traceparent of W3C Trace Context.
    traceparent TEXT,
    patch TEXT,
    -- run.json, or why there is none.
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
-- Ids sort by the time at which runs were made.
CREATE INDEX runs_status ON runs (status, id);
CREATE INDEX runs_waiting ON runs (status, owner, batch, id);
CREATE INDEX runs_repository ON runs (repository, id);
CREATE INDEX runs_owner ON runs (owner, id);
CREATE INDEX runs_batch ON runs (batch, status);
-- Old runs are looked for by when they ended.
CREATE INDEX runs_ended_at ON runs (ended_at);

-- Lines of trajectories, from 1.
CREATE TABLE events (
    run TEXT NOT NULL,
    number BIGINT NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (run, number)
);

-- Tests × patches: what was asked for, and how far it is.
CREATE TABLE matrices (
    id TEXT PRIMARY KEY NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    status TEXT NOT NULL,
    -- What was asked for, as JSON, with the tests of runs in it.
    request TEXT NOT NULL,
    repository TEXT NOT NULL,
    owner TEXT NOT NULL,
    batch TEXT NOT NULL DEFAULT '',
    idempotency_key TEXT UNIQUE,
    -- Why it came to no result.
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

-- A set of tests on a patch, once it is known.
CREATE TABLE matrix_cells (
    matrix TEXT NOT NULL,
    tests TEXT NOT NULL,
    patch TEXT NOT NULL,
    -- As JSON.
    result TEXT NOT NULL,
    PRIMARY KEY (matrix, tests, patch)
);

-- Predictions for an instance that a worker grades.
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
    idempotency_key TEXT NOT NULL UNIQUE,
    -- Why it came to no result.
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

-- Results of a grading, with their logs, once they are there.
CREATE TABLE graded_predictions (
    grading TEXT NOT NULL,
    prediction TEXT NOT NULL,
    -- As JSON.
    result TEXT NOT NULL,
    PRIMARY KEY (grading, prediction)
);

-- Comparisons whose runs are made by the workers: their id is the batch of the runs. A comparison that a client asks a server
-- for is a job of the servers; one that a command makes has no status.
CREATE TABLE comparisons (
    id TEXT PRIMARY KEY NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    status TEXT,
    -- What was asked for, as JSON; none where a command compares.
    request TEXT,
    owner TEXT NOT NULL,
    -- Of the dataset.
    name TEXT NOT NULL,
    -- comparison.json
    plan TEXT NOT NULL,
    -- Of all runs together.
    max_dollars DOUBLE PRECISION,
    idempotency_key TEXT UNIQUE,
    traceparent TEXT,
    -- report.json and report.html, once it was graded.
    report TEXT,
    page TEXT,
    -- Why it came to no result.
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
-- As the status of a comparison is read.
CREATE INDEX comparisons_status ON comparisons (
    (COALESCE(status, CASE WHEN cancel = 1 THEN 'cancelled' WHEN report IS NOT NULL THEN 'done' ELSE 'running' END)),
    id
);
CREATE INDEX comparisons_owner ON comparisons (owner, id);
CREATE INDEX comparisons_name ON comparisons (name, id);
CREATE INDEX comparisons_ended_at ON comparisons (ended_at);

-- What GitHub has delivered. A delivery that comes twice, under its own id or another, is known by one of the two.
CREATE TABLE github_deliveries (
    id TEXT PRIMARY KEY NOT NULL,
    -- SHA-256 of the body.
    digest TEXT NOT NULL UNIQUE,
    received_at BIGINT NOT NULL
);

-- What a delivery asks for: an answer to an issue, or the outcome of its test on a pull request. Servers work on it.
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
    -- What else the delivery says, as JSON.
    details TEXT NOT NULL,
    -- The run that writes the test.
    run TEXT,
    -- How often it failed.
    failures BIGINT NOT NULL DEFAULT 0,
    -- What came of it, in words.
    result TEXT,
    attempt BIGINT NOT NULL DEFAULT 0,
    worker TEXT,
    cancel BIGINT NOT NULL DEFAULT 0,
    not_before BIGINT NOT NULL DEFAULT 0,
    losses BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX github_tasks_due ON github_tasks (status, kind, not_before);
CREATE INDEX github_tasks_issue ON github_tasks (repository, issue);

-- Processes that claim jobs. A row without a recent heartbeat belongs to a process that died.
CREATE TABLE worker_processes (
    name TEXT PRIMARY KEY NOT NULL,
    host TEXT NOT NULL,
    version TEXT NOT NULL,
    -- Runs, matrices and gradings that it works on at a time; 0: none, as a server without workers.
    slots BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    -- By the clock of the database.
    last_seen BIGINT NOT NULL
);

-- When an owner's batch was last given a worker, as a number that grows with each.
CREATE TABLE shares (
    owner TEXT NOT NULL,
    batch TEXT NOT NULL,
    turn BIGINT NOT NULL,
    PRIMARY KEY (owner, batch)
);

-- Who may use the API. A token itself is not stored.
CREATE TABLE tokens (
    name TEXT PRIMARY KEY NOT NULL,
    -- SHA-256 of the token, in hexadecimal digits.
    hash TEXT NOT NULL UNIQUE,
    -- Whose runs those are that are made with it.
    owner TEXT NOT NULL,
    -- Separated by commas.
    scopes TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT
);

-- What calls of models used, all workers together: by minute, by day, by batch of runs. Reservations of calls in flight
-- included.
CREATE TABLE model_usage (
    scope TEXT PRIMARY KEY NOT NULL,
    requests BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    microdollars BIGINT NOT NULL,
    -- From when on it is no longer needed.
    ends_at BIGINT
);

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

-- The small write by which a server shows that it can write.
CREATE TABLE write_probes (
    name TEXT PRIMARY KEY,
    content TEXT NOT NULL
);
