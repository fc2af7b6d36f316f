-- What GitHub has delivered. A delivery that comes twice, under its own id or another, is known by one of the two.
CREATE TABLE github_deliveries (
    id TEXT PRIMARY KEY NOT NULL,
    -- SHA-256 of the body.
    digest TEXT NOT NULL UNIQUE,
    received_at BIGINT NOT NULL
);

-- What a delivery asks for: an answer to an issue, or the outcome of its test on a pull request.
CREATE TABLE github_tasks (
    id TEXT PRIMARY KEY NOT NULL,
    -- answer, confirm
    kind TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- OWNER/NAME
    repository TEXT NOT NULL,
    issue BIGINT NOT NULL,
    -- What else the delivery says, as JSON.
    details TEXT NOT NULL,
    -- The run that writes the test.
    run TEXT,
    -- open, done, failed
    status TEXT NOT NULL,
    -- How often it was taken; how often that failed.
    attempts BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    -- By a server that works on it.
    claimed_until BIGINT NOT NULL,
    -- What came of it, in words.
    result TEXT
);
CREATE INDEX github_tasks_due ON github_tasks (status, kind, next_at);
CREATE INDEX github_tasks_issue ON github_tasks (repository, issue);
